//! Random programs against the engine: bytes are read as operations, and after each everything must add up.
//!
//! Property tests and the fuzz target share this.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use qos_core::config::InterfaceConfig;
use qos_core::counters::{ClassCounters, Count, PolicyCounters};
use qos_core::wire::Framing;
use qos_core::{Descriptor, Engine, Output, PortId, PortsConfig, RouterConfig, Side, Time};
use serde_json::{json, Value};

use super::{frames, switch};

const PORTS: [(&str, Framing); 3] =
    [("Ethernet0/0", Framing::Ethernet), ("Ethernet0/1", Framing::Ethernet), ("Serial0/0", Framing::Ppp)];

fn wiring() -> PortsConfig {
    let port = |rate: u64, framing: &str, delay: u64, paced: bool| {
        let link = json!({"rate_bps": rate, "framing": framing, "delay_ns": delay});
        json!({"inside": "i", "wire": "w", "link": link, "paced_by_peer": paced})
    };
    let mut text = json!({"seed": 7, "ports": {
        "Ethernet0/0": port(10_000_000, "ethernet", 0, false),
        "Ethernet0/1": port(100_000_000, "ethernet", 1_000_000, true),
        "Serial0/0": port(512_000, "ppp", 50_000, false)}});
    let impaired = |line: &mut Value, rest: Value| super::extend(&mut line["link"], &rest);
    impaired(
        &mut text["ports"]["Ethernet0/0"],
        json!({"delay_ns": 100_000, "seed": 3, "jitter": {"distribution": "exponential", "ns": 3_000_000,
            "correlation": 0.5, "reorder": true}}),
    );
    impaired(
        &mut text["ports"]["Serial0/0"],
        json!({"seed": 4, "jitter": {"distribution": "uniform", "ns": 50_000},
            "loss": {"model": "gilbert_elliott", "p": 0.1, "r": 0.5, "loss_good": 0.01}}),
    );
    PortsConfig::from_json(&text.to_string()).unwrap()
}

/// A policy-map that programs choose from: name, classes, and whether it is for output only.
type Map = (&'static str, Value, bool);

fn class(name: &str, actions: Value) -> Value {
    let mut class = json!({"name": name});
    super::extend(&mut class, &actions);
    class
}

fn cir(bps: u64) -> Value {
    json!({"cir": {"bps": bps}})
}

/// Those that meter and mark.
fn metering() -> Vec<Map> {
    vec![
        ("police", json!([class("class-default", json!({"police": cir(500_000)}))]), false),
        (
            "colours",
            json!([
                class(
                    "low",
                    json!({"police": {"cir": {"percent": 5}, "bc": {"bytes": 4000}, "violate": [{"action": "drop"}],
                    "exceed": [{"action": "set-dscp-transmit", "value": 0}]},
                    "set": [{"field": "qos_group", "value": 5}]})
                ),
                class("any", json!({"police": {"cir": {"bps": 64_000}, "pir": {"bps": 128_000}}})),
                class(
                    "class-default",
                    json!({"police": {"cir": {"bps": 100_000},
                        "dynamic": {"initial_bytes": 3_000, "monitoring_ms": 1}}})
                ),
            ]),
            false,
        ),
        (
            "nested",
            json!([
                class("udp", json!({"service_policy": "colours", "police": cir(900_000)})),
                class("af", json!({"set": [{"field": "dscp", "value": 46}]}))
            ]),
            false,
        ),
    ]
}

/// Those that shape and queue.
fn queueing() -> Vec<Map> {
    vec![
        (
            "shape",
            json!([class("class-default", json!({"shape": {"mode": "average", "rate": {"bps": 400_000}}}))]),
            true,
        ),
        (
            "queues",
            json!([
                class(
                    "low",
                    json!({"shape": {"mode": "peak", "rate": {"percent": 10}, "bc": {"bits": 8000}, "be": {"bits": 0}},
                    "queue_limit": {"packets": 5}, "service_policy": "police"})
                ),
                class("udp", json!({"shape": {"mode": "average", "rate": {"bps": 64_000}}, "police": cir(200_000)})),
                class("class-default", json!({"fair_queue": {"queues": 16}, "queue_limit": {"packets": 12}})),
            ]),
            true,
        ),
    ]
}

/// Those that share a line.
fn sharing(hqf: bool) -> Vec<Map> {
    let rest = if hqf { json!({"remaining_ratio": 9}) } else { json!({"remaining_percent": 40}) };
    vec![
        (
            "shares",
            json!([
                class(
                    "low",
                    json!({"priority": {"unit": "kbps", "number": 60, "burst_bytes": 1_000},
                        "queue_limit": {"packets": 4}})
                ),
                class(
                    "af",
                    json!({"bandwidth": {"percent": 20}, "queue_limit": {"packets": 9},
                        "random_detect": {"basis": "precedence",
                        "exponential_weight": 2, "thresholds": [{"value": 0, "min": 1, "max": 5, "denominator": 2}]}})
                ),
                class("class-default", json!({"fair_queue": {"queues": 16}, "queue_limit": {"packets": 8}})),
            ]),
            true,
        ),
        (
            "urgent",
            json!([
                class("any", json!({"priority": {"unit": "percent", "number": 10, "level": hqf.then_some(2)}})),
                class(
                    "low",
                    json!({"priority": {"unit": "strict", "level": hqf.then_some(1)}, "service_policy": "police"})
                ),
                class(
                    "udp",
                    json!({"bandwidth": rest, "random_detect": {"basis": "dscp", "exponential_weight": 1,
                            "thresholds": [{"value": 10, "min": 2, "max": 4}]}})
                ),
            ]),
            true,
        ),
    ]
}

/// Those of several levels.
fn hierarchies(hqf: bool) -> Vec<Map> {
    vec![
        (
            "tree",
            json!([class(
                "class-default",
                json!({"shape": {"mode": "average", "rate": {"bps": 400_000}}, "service_policy": "shares",
                    "police": cir(700_000)})
            )]),
            true,
        ),
        (
            "deep",
            json!([
                class(
                    "udp",
                    if hqf {
                        json!({"bandwidth": {"percent": 30}, "service_policy": "tree"})
                    } else {
                        json!({"shape": {"mode": "average", "rate": {"percent": 30}}, "service_policy": "tree"})
                    }
                ),
                class(
                    "class-default",
                    if hqf {
                        json!({"fair_queue": {"queues": 16}, "queue_limit": {"packets": 8},
                            "random_detect": {"basis": "precedence", "exponential_weight": 3}})
                    } else {
                        json!({"random_detect": {"basis": "precedence", "exponential_weight": 1}})
                    }
                ),
            ]),
            true,
        ),
    ]
}

fn policies(hqf: bool) -> Vec<Map> {
    [metering(), queueing(), sharing(hqf), hierarchies(hqf)].concat()
}

fn configuration(choice: [u8; 4]) -> RouterConfig {
    let policies = policies(choice[3] & 1 == 1);
    let pick = |choice: u8, output: bool| -> Value {
        let usable: Vec<_> = policies.iter().filter(|(_, _, output_only)| output || !output_only).collect();
        usable.get(usize::from(choice) % (usable.len() + 1)).map_or(Value::Null, |(name, ..)| json!(name))
    };
    let maps: BTreeMap<_, _> = policies.iter().map(|(name, classes, _)| (*name, json!({"classes": classes}))).collect();
    let interfaces: BTreeMap<_, _> = PORTS
        .iter()
        .zip(choice)
        .map(|((name, _), choice)| {
            (
                *name,
                json!({"enabled": choice % 16 != 15, "bandwidth_kbps": 1500, "load_interval_s": 30,
                "tx_ring_limit": if choice & 1 == 0 { json!(1 + choice % 4) } else { Value::Null },
                "hold_queue_out": if choice & 2 == 0 { json!(3 + choice % 50) } else { Value::Null },
                "fair_queue": (choice & 4 == 0).then(|| json!({"enabled": choice & 8 == 0, "dynamic_queues": 16,
                    "discard_threshold": 1 + choice % 8})),
                "service_policy_input": pick(choice / 16, false), "service_policy_output": pick(choice / 3, true)}),
            )
        })
        .collect();
    let anywhere = json!({"address": "0.0.0.0", "wildcard": "255.255.255.255"});
    let text = json!({"format": 1, "router": "R1", "generation": if choice[3] & 1 == 0 { "classic" } else { "hqf" },
        "access_lists": {"low": [
            {"action": "deny", "protocol": 17, "source": anywhere, "destination": anywhere,
                "source_port": {"op": "eq", "ports": [u16::from(choice[3])]}},
            {"action": "permit", "protocol": 17, "source": anywhere, "destination": anywhere,
                "destination_port": {"op": "range", "ports": [0, 4]}}]},
        "class_maps": {
            "low": {"match": "all", "criteria": [{"type": "access_group", "name": "low"},
                {"type": "class_map", "name": "udp"}]},
            "udp": {"match": "any", "criteria": [{"type": "protocol", "name": "udp"}]},
            "any": {"match": "any", "criteria": [{"type": "packet_length", "max": 100},
                {"type": "input_interface", "name": "Serial0/0"}]},
            "af": {"match": "any", "criteria": [{"type": "dscp", "values": [10, 18]},
                {"type": "precedence", "values": [5], "negate": true}]}},
        "policy_maps": maps, "interfaces": interfaces});
    RouterConfig::from_json(&text.to_string()).unwrap()
}

/// A tree of two queues below a class, all with small limits.
fn tree(choice: u8) -> Value {
    let times = |mut queue: Value, target_us: u64| {
        super::extend(&mut queue, &json!({"target_us": target_us, "interval_us": 20_000, "ecn": choice & 1 == 0}));
        queue
    };
    let disciplines = [
        times(json!({"kind": "codel", "limit": 20}), 1_000),
        times(
            json!({"kind": "fq_codel", "limit": 20, "flows": 5, "quantum": 300, "memory_limit": 20_000,
                "drop_batch": 4}),
            1_000,
        ),
        json!({"kind": "pie", "limit": 20, "target_us": 1_000, "tupdate_us": 1_000, "alpha": 16, "beta": 32,
            "ecn": choice & 1 == 0, "bytemode": choice & 2 == 0}),
        json!({"kind": "cake", "diffserv": "diffserv4", "isolation": "triple_isolate", "rtt_us": 20_000,
            "target_us": 1_000, "memory_limit": 20_000}),
        json!({"kind": "red", "limit": 9_000, "min": 1_000, "max": 6_000, "exponential_weight": 1,
            "denominator": 4}),
        json!({"kind": "bfifo", "limit": 9_000}),
    ];
    let discipline = |choice: u8| &disciplines[usize::from(choice) % disciplines.len()];
    let shape = json!({"rate_bps": 200_000, "burst_bytes": if choice & 4 == 0 { 0 } else { 2_000 }, "deficit": true});
    let minimum_bps = if choice & 8 == 0 { 0 } else { 50_000 };
    json!({"type": "tree", "nodes": [
        {"name": "all", "shape": (choice & 16 == 0).then_some(shape)},
        {"name": "udp", "parent": "all", "weight": 3, "minimum_bps": minimum_bps, "queue": discipline(choice)},
        {"name": "rest", "parent": "all", "queue": discipline(choice / 6)}],
        "rules": [{"queue": 1, "access_list": "low"}, {"queue": 1, "larger_than": 900}], "default": 2})
}

/// The same configurations with trees of queues, and with output policies that only meter and mark.
fn tree_configuration(choice: [u8; 4]) -> RouterConfig {
    let mut config = configuration(choice);
    let metering: BTreeSet<_> = metering().into_iter().map(|(name, ..)| name).collect();
    for (interface, choice) in config.interfaces.values_mut().zip(choice) {
        interface.queueing = Some(serde_json::from_value(tree(choice)).unwrap());
        interface.service_policy_output.take_if(|name| !metering.contains(name.as_str()));
    }
    config
}

fn frame(shape: u8, flow: u8) -> Vec<u8> {
    let len = 28 + usize::from(shape) * 6;
    match flow % 8 {
        0 => vec![0xff; usize::from(shape)],
        1 => frames::ipv4(len, flow, 6, &[0; 20]),
        2 => frames::tagged(&frames::udp(len, flow >> 2, 9, u16::from(flow)), flow >> 5, 5),
        3 => frames::ipv6(flow >> 2, 17, &vec![0; len]),
        _ => frames::udp(len, flow >> 2, 9, u16::from(flow)),
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
    /// A length of time: small ones are exact, large ones go up to some seconds.
    fn gap(&mut self) -> Option<u64> {
        Some((1u64 << (self.byte()? % 33)) - 1)
    }
}

/// Configurations of a switch with [`PORTS`] ports: trust or policies, queues and thresholds, speeds that make frames
/// wait.
fn switch_configuration(choice: [u8; 4]) -> RouterConfig {
    let mut global = switch::defaults();
    let [.., all] = choice;
    global["qos"] = json!(all % 8 != 7);
    global["rewrite_ip_dscp"] = json!(all & 16 == 0);
    global["aggregate_policers"] =
        json!({"A": {"rate_bps": 200_000, "burst_bytes": 8_000, "exceed": "policed-dscp-transmit"}});
    let thresholds =
        json!({"t1": 1 + u32::from(all), "t2": 400, "reserved": 1 + all % 100, "maximum": 1 + 10 * u32::from(all)});
    global["queue_sets"][1] =
        json!({"buffers": [1, 1, 1, 97], "thresholds": [thresholds, thresholds, thresholds, thresholds]});
    let police =
        |exceed: &str| json!({"cir": {"bps": 100_000}, "bc": {"bytes": 8_000}, "exceed": [{"action": exceed}]});
    let policies = json!({
        "mark": {"classes": [{"name": "udp", "set": [{"field": "dscp", "value": 46}], "police": police("drop")},
            {"name": "class-default", "trust": "cos", "police_aggregate": "A"}]},
        "vlan": {"classes": [{"name": "udp", "set": [{"field": "dscp", "value": 10}], "service_policy": "ports"},
            {"name": "class-default", "service_policy": "ports"}]},
        "mark_only": {"classes": [{"name": "udp", "trust": "ip-precedence"}]},
        "ports": {"classes": [{"name": "ports", "police": police("policed-dscp-transmit")},
            {"name": "class-default", "police": police("drop")}]},
        "trust": {"classes": [{"name": "udp", "trust": "dscp", "police": police("policed-dscp-transmit")}]}});
    global["vlan_policies"] = json!({"1": "vlan", "2": "mark_only"});
    let port = |choice: u8| {
        let trust = [None, None, Some("dscp"), Some("cos"), Some("ip-precedence")][usize::from(choice % 5)];
        let speed = [10_000_000u64, 100_000_000, 1_000_000_000][usize::from(choice / 5 % 3)];
        let part = json!({"trust": trust, "default_cos": choice % 8, "shape": [choice % 50, 0, choice / 60, 0],
            "share": [1 + choice / 2, 25, 1, 255], "limit": if choice & 8 == 0 { 100 } else { 10 + choice % 81 },
            "priority_queue": choice & 16 == 0, "queue_set": 1 + choice % 2, "vlan_based": choice & 32 == 0,
            "speed_bps": speed});
        let mut port = switch::interface(part);
        port["enabled"] = json!(choice % 16 != 15);
        if choice & 32 == 0 {
            let mode = if choice & 64 == 0 { "access" } else { "trunk" };
            port["switch"]["switchport"] = json!({"mode": mode, "vlan": 1 + choice % 3});
        } else if trust.is_none() {
            port["service_policy_input"] = json!([None, Some("mark"), Some("trust")][usize::from(choice / 15 % 3)]);
        }
        port
    };
    let interfaces: serde_json::Map<_, _> =
        (1..=PORTS.len()).zip(choice).map(|(number, choice)| (switch::name(number), port(choice))).collect();
    let mut config = switch::config(&global, json!(interfaces));
    let ports = json!([{"type": "input_interfaces", "names": [switch::name(1), switch::name(20)]}]);
    config["class_maps"] = json!({"udp": {"match": "any", "criteria": [{"type": "dscp", "values": [0, 5, 10]}]},
        "ports": {"match": "all", "criteria": ports}});
    config["policy_maps"] = policies;
    switch::read(&config)
}

/// Runs a program on a router. Panics where the engine breaks a promise.
pub fn run(program: &[u8]) {
    static ROUTER: Configurations = Configurations::of(configuration);
    play(Engine::new(&wiring(), Time(0)).unwrap(), Machine { configurations: &ROUTER, switches: false }, program);
}

/// The same on a router whose interfaces have trees of queues with active queue management.
pub fn run_trees(program: &[u8]) {
    static TREES: Configurations = Configurations::of(tree_configuration);
    let mut engine = Engine::new(&wiring(), Time(0)).unwrap();
    engine.configure(Time(0), &TREES.get([0; 4])).unwrap();
    play(engine, Machine { configurations: &TREES, switches: false }, program);
}

/// Runs a program on a switch, which forwards each frame that it receives by the next port.
pub fn run_switch(program: &[u8]) {
    static SWITCH: Configurations = Configurations::of(switch_configuration);
    let mut engine = Engine::new(&switch::ports(PORTS.len()), Time(0)).unwrap();
    engine.configure(Time(0), &SWITCH.get([0; 4])).unwrap();
    play(engine, Machine { configurations: &SWITCH, switches: true }, program);
}

/// Configurations by what chooses them. Their parts are read from JSON once: that takes longer than what is done with
/// them.
struct Configurations {
    make: fn([u8; 4]) -> RouterConfig,
    /// By the one byte that decides of it, whichever interface it is.
    interfaces: [OnceLock<InterfaceConfig>; 256],
    /// All that is no interface, by the last byte.
    rest: [OnceLock<RouterConfig>; 256],
}

impl Configurations {
    const fn of(make: fn([u8; 4]) -> RouterConfig) -> Configurations {
        Configurations { make, interfaces: [const { OnceLock::new() }; 256], rest: [const { OnceLock::new() }; 256] }
    }

    /// What `make` makes of the choice.
    fn get(&self, choice: [u8; 4]) -> RouterConfig {
        let mut config = self.rest[usize::from(choice[3])].get_or_init(|| (self.make)([0, 0, 0, choice[3]])).clone();
        for (interface, byte) in config.interfaces.values_mut().zip(choice) {
            let first = || (self.make)([byte, 0, 0, 0]).interfaces.into_values().next().expect("there is one");
            interface.clone_from(self.interfaces[usize::from(byte)].get_or_init(first));
        }
        config
    }
}

#[test]
fn a_configuration_is_that_of_its_parts() {
    for make in [configuration, tree_configuration, switch_configuration] {
        let parts = Configurations::of(make);
        for choice in (0..=255u8).map(|byte| [byte, byte.wrapping_mul(7), byte ^ 0x55, byte.wrapping_add(99)]) {
            assert_eq!(parts.get(choice), make(choice));
        }
    }
}

#[derive(Clone, Copy)]
struct Machine {
    configurations: &'static Configurations,
    switches: bool,
}

fn play(mut engine: Engine<u32>, machine: Machine, program: &[u8]) {
    let mut reader = Reader(program);
    let mut now = 0;
    let mut next = 0;
    let mut inside: BTreeSet<u32> = BTreeSet::new();
    let mut last: BTreeMap<(PortId, bool), Time> = BTreeMap::new();
    let mut outputs = Vec::new();
    let settle =
        |engine: &mut Engine<u32>, outputs: &mut Vec<_>, inside: &mut BTreeSet<u32>, last: &mut BTreeMap<_, _>| {
            for (time, port, descriptor, payload) in collect(outputs, inside, last, machine.switches) {
                let by = PortId((port.0 + 1) % PORTS.len() as u16);
                engine.transmit(time, by, descriptor, payload);
            }
        };
    while step(&mut reader, &mut engine, machine, &mut now, &mut next, &mut inside, &mut outputs).is_some() {
        settle(&mut engine, &mut outputs, &mut inside, &mut last);
        engine.audit().unwrap();
    }
    // At the end everything comes out; what a switch then forwards, the second time.
    for _ in 0..2 {
        for _ in 0..200_000 {
            let Some(deadline) = engine.next_deadline() else { break };
            engine.poll(deadline.max(Time(now)), &mut outputs);
            settle(&mut engine, &mut outputs, &mut inside, &mut last);
        }
        engine.poll(Time(now), &mut outputs);
        settle(&mut engine, &mut outputs, &mut inside, &mut last);
    }
    engine.audit().unwrap();
    assert!(inside.is_empty(), "never came back: {inside:?}");
}

fn step(
    reader: &mut Reader<'_>,
    engine: &mut Engine<u32>,
    machine: Machine,
    now: &mut u64,
    next: &mut u32,
    inside: &mut BTreeSet<u32>,
    outputs: &mut Vec<Output<u32>>,
) -> Option<()> {
    let operation = reader.byte()?;
    let port = PortId(u16::from(operation >> 4) % 3);
    match operation % 16 {
        0 => *now += reader.gap()?,
        1 => engine.poll(Time(*now), outputs),
        2 => {
            let choice = [reader.byte()?, reader.byte()?, reader.byte()?, reader.byte()?];
            engine.configure(Time(*now), &machine.configurations.get(choice)).unwrap();
        }
        3 => engine.clear(Time(*now), (operation & 16 == 0).then_some(port)),
        4 => {
            let counters = engine.counters(Time(*now), None);
            assert_eq!(counters.interfaces.len(), PORTS.len());
            for interface in counters.interfaces.into_values() {
                if let Some(delay) = interface.queueing_delay {
                    assert!(
                        delay.p50_ns <= delay.p99_ns && delay.p99_ns.max(delay.mean_ns) <= delay.max_ns,
                        "{delay:?}"
                    );
                }
                assert_eq!(interface.queueing_delay.map_or(0, |delay| delay.packets), interface.output.packets);
                [interface.policy_input, interface.policy_output].iter().flatten().for_each(children_add_up);
            }
        }
        5 => {
            if let Some(deadline) = engine.next_deadline() {
                *now = (*now).max(deadline.0);
                engine.poll(Time(*now), outputs);
            }
        }
        kind => {
            // Some arrive late or out of order.
            let arrival = Time(if kind == 6 { now.saturating_sub(reader.gap()?) } else { *now });
            let bytes = frame(reader.byte()?, reader.byte()?);
            let descriptor: Descriptor = qos_core::frame::parse(&bytes, engine.framing(port));
            inside.insert(*next);
            if kind == 7 {
                engine.receive(arrival, port, descriptor, *next);
            } else {
                engine.transmit(arrival, port, descriptor, *next);
            }
            *next += 1;
        }
    }
    Some(())
}

/// A class's figures are its children's together.
fn children_add_up(policy: &PolicyCounters) {
    for class in &policy.classes {
        let Some(child) = &class.child else { continue };
        let sum = |count: fn(&ClassCounters) -> Count| {
            child.classes.iter().map(count).fold(Count::default(), |sum, count| Count {
                packets: sum.packets + count.packets,
                bytes: sum.bytes + count.bytes,
            })
        };
        let same =
            |count: fn(&ClassCounters) -> Count| assert_eq!(count(class), sum(count), "{} and its child", class.name);
        same(|class| Count { packets: class.packets, bytes: class.bytes });
        same(|class| class.drops.police);
        same(|class| class.drops.tail);
        same(|class| class.drops.flow);
        same(|class| class.drops.purged);
        same(|class| class.drops.priority);
        same(|class| class.drops.random);
        same(|class| class.drops.random_tail);
        children_add_up(child);
    }
}

/// Takes what came out; gives back what is to be forwarded.
fn collect(
    outputs: &mut Vec<Output<u32>>,
    inside: &mut BTreeSet<u32>,
    last: &mut BTreeMap<(PortId, bool), Time>,
    forward: bool,
) -> Vec<(Time, PortId, Descriptor, u32)> {
    let mut onward = Vec::new();
    for output in outputs.drain(..) {
        match output {
            Output::Dropped(dropped) => assert!(inside.remove(&dropped.payload), "{} came back twice", dropped.payload),
            Output::Departure(departure) => {
                assert!(inside.remove(&departure.payload), "{} came back twice", departure.payload);
                if forward && departure.side == Side::Inside {
                    inside.insert(departure.payload);
                    onward.push((departure.time, departure.port, departure.descriptor, departure.payload));
                }
                let before = last.insert((departure.port, departure.side == Side::Wire), departure.time);
                assert!(before.is_none_or(|before| before <= departure.time), "departures out of order");
            }
        }
    }
    onward
}
