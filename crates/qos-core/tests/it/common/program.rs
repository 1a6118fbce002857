//! Random programs against the engine: bytes are read as operations, and after each everything must add up.
//!
//! Property tests and the fuzz target share this.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use qos_core::counters::{ClassCounters, Count, PolicyCounters};
use qos_core::wire::Framing;
use qos_core::{Descriptor, Duration, Engine, Output, PortId, Side, Time};

use super::build::*;
use super::{frames, switch};

const PORTS: [(&str, Framing); 3] =
    [("Ethernet0/0", Framing::Ethernet), ("Ethernet0/1", Framing::Ethernet), ("Serial0/0", Framing::Ppp)];

fn wiring() -> PortsConfig {
    let link = |rate: u64, framing: Framing, delay: u64| LinkConfig::new(rate, framing).delay(Duration(delay));
    let jitter = |distribution, ns| JitterConfig { distribution, ns, correlation: 0.0, reorder: false };
    let overtaking =
        JitterConfig { correlation: 0.5, reorder: true, ..jitter(JitterDistribution::Exponential, 3_000_000) };
    let first = LinkConfig { seed: 3, jitter: Some(overtaking), ..link(10_000_000, Framing::Ethernet, 100_000) };
    let serial = LinkConfig {
        seed: 4,
        jitter: Some(jitter(JitterDistribution::Uniform, 50_000)),
        loss: Some(LossConfig::GilbertElliott { p: 0.1, r: 0.5, loss_good: 0.01, loss_bad: 1.0 }),
        ..link(512_000, Framing::Ppp, 50_000)
    };
    let second = PortConfig::new(link(100_000_000, Framing::Ethernet, 1_000_000));
    let ports = PortsConfig::new()
        .port("Ethernet0/0", PortConfig::new(first))
        .port("Ethernet0/1", PortConfig { paced_by_peer: true, ..second })
        .port("Serial0/0", PortConfig::new(serial));
    PortsConfig { seed: 7, ..ports }
}

/// A policy-map that programs choose from: name, classes, and whether it is for output only.
type Map = (&'static str, Vec<PolicyClass>, bool);

/// Steps that meter and mark.
fn metering() -> Vec<Map> {
    let share = PoliceConfig {
        violate: Some(vec![PoliceAction::Drop {}]),
        ..PoliceConfig::new(RateSpec::Percent(5)).bytes(4_000).exceed(PoliceAction::SetDscpTransmit { value: 0 })
    };
    let two_rates = PoliceConfig { pir: Some(RateSpec::Bps(128_000)), ..police(64_000) };
    let bucket =
        DynamicBucketConfig { initial_bytes: Some(3_000), monitoring_ms: Some(1), ..DynamicBucketConfig::default() };
    let dynamic = PoliceConfig { dynamic: Some(bucket), ..police(100_000) };
    let colours = vec![
        class_of("low").police(share).set(SetField::QosGroup, 5),
        class_of("any").police(two_rates),
        class_default().police(dynamic),
    ];
    let nested =
        vec![class_of("udp").service_policy("colours").police_bps(900_000), class_of("af").set(SetField::Dscp, 46)];
    vec![
        ("police", vec![class_default().police_bps(500_000)], false),
        ("colours", colours, false),
        ("nested", nested, false),
    ]
}

/// Steps that shape and queue.
fn queueing() -> Vec<Map> {
    let peak = ShapeConfig {
        mode: ShapeMode::Peak,
        bc: Some(ShapeBurst::Bits(8_000)),
        be: Some(ShapeBurst::Bits(0)),
        ..ShapeConfig::average(RateSpec::Percent(10))
    };
    let queues = vec![
        class_of("low").shape(peak).queue_limit(5).service_policy("police"),
        class_of("udp").shape_bps(64_000).police_bps(200_000),
        class_default().fair_queues(16).queue_limit(12),
    ];
    vec![("shape", vec![class_default().shape_bps(400_000)], true), ("queues", queues, true)]
}

/// Steps that share a line.
fn sharing(hqf: bool) -> Vec<Map> {
    let rest = if hqf { BandwidthConfig::RemainingRatio(9) } else { BandwidthConfig::RemainingPercent(40) };
    let level = |level| hqf.then_some(level);
    let shares = vec![
        class_of("low").priority(PriorityConfig { burst_bytes: Some(1_000), ..priority_kbps(60) }).queue_limit(4),
        class_of("af").percent(20).queue_limit(9).random_detect(red_by_precedence().weight(2).row(0, 1, 5, 2)),
        class_default().fair_queues(16).queue_limit(8),
    ];
    let tenth = PriorityConfig { level: level(2), ..priority(PriorityUnit::Percent, Some(10)) };
    let strict = PriorityConfig { level: level(1), ..priority(PriorityUnit::Strict, None) };
    let urgent = vec![
        class_of("any").priority(tenth),
        class_of("low").priority(strict).service_policy("police"),
        class_of("udp").bandwidth(rest).random_detect(red_by_dscp().weight(1).row(10, 2, 4, None)),
    ];
    vec![("shares", shares, true), ("urgent", urgent, true)]
}

/// Steps of several levels.
fn hierarchies(hqf: bool) -> Vec<Map> {
    let tree = vec![class_default().shape_bps(400_000).service_policy("shares").police_bps(700_000)];
    let udp = class_of("udp").service_policy("tree");
    let deep = if hqf {
        let detecting = class_default().random_detect(red_by_precedence().weight(3));
        vec![udp.percent(30), detecting.fair_queues(16).queue_limit(8)]
    } else {
        let share = ShapeConfig::average(RateSpec::Percent(30));
        vec![udp.shape(share), class_default().random_detect(red_by_precedence().weight(1))]
    };
    vec![("tree", tree, true), ("deep", deep, true)]
}

fn policies(hqf: bool) -> Vec<Map> {
    [metering(), queueing(), sharing(hqf), hierarchies(hqf)].concat()
}

fn configuration(choice: [u8; 4]) -> RouterConfig {
    let hqf = choice[3] & 1 == 1;
    let policies = policies(hqf);
    let pick = |choice: u8, output: bool| {
        let usable: Vec<_> = policies.iter().filter(|(_, _, output_only)| output || !output_only).collect();
        usable.get(usize::from(choice) % (usable.len() + 1)).map(|(name, ..)| (*name).to_owned())
    };
    let interface = |choice: u8| {
        let number = u32::from(choice);
        InterfaceConfig {
            enabled: choice % 16 != 15,
            load_interval_s: 30,
            tx_ring_limit: (choice & 1 == 0).then_some(1 + number % 4),
            hold_queue_out: (choice & 2 == 0).then_some(3 + number % 50),
            fair_queue: (choice & 4 == 0).then_some(InterfaceFairQueue {
                enabled: choice & 8 == 0,
                dynamic_queues: Some(16),
                discard_threshold: Some(1 + number % 8),
                reserved_queues: None,
            }),
            service_policy_input: pick(choice / 16, false),
            service_policy_output: pick(choice / 3, true),
            ..InterfaceConfig::new(1_500)
        }
    };
    let denied = AccessListEntry { source_port: ports(PortOperator::Eq, &[choice[3].into()]), ..deny(Some(17)) };
    let permitted = AccessListEntry { destination_port: ports(PortOperator::Range, &[0, 4]), ..permit(Some(17)) };
    let not_urgent = Criterion::Precedence { values: vec![5], ip_only: false, negate: true };
    let mut config = RouterConfig::new("R1", if hqf { Hqf } else { Classic })
        .access_list("low", vec![denied, permitted])
        .class_map("low", match_all(vec![access_group("low"), other_class("udp")]))
        .class_map("udp", match_any(vec![protocol(ProtocolName::Udp)]))
        .class_map("any", match_any(vec![packet_length(None, Some(100)), input_interface("Serial0/0")]))
        .class_map("af", match_any(vec![dscp(&[10, 18]), not_urgent]));
    for ((name, _), choice) in PORTS.iter().zip(choice) {
        config = config.interface(*name, interface(choice));
    }
    policies.into_iter().fold(config, |config, (name, classes, _)| config.policy_map(name, classes))
}

/// A tree of two queues below a class, all with small limits.
fn tree(choice: u8) -> InterfaceQueueing {
    let ecn = choice & 1 == 0;
    let (target_us, interval_us) = (1_000, 20_000);
    let disciplines = [
        QueueDiscipline::Codel { limit: 20, target_us, interval_us, ce_threshold_us: None, ecn },
        QueueDiscipline::FqCodel {
            limit: 20,
            flows: 5,
            quantum: 300,
            target_us,
            interval_us,
            memory_limit: 20_000,
            drop_batch: 4,
            ce_threshold_us: None,
            ecn,
        },
        QueueDiscipline::Pie {
            limit: 20,
            target_us,
            tupdate_us: 1_000,
            alpha: 16,
            beta: 32,
            ecn,
            bytemode: choice & 2 == 0,
        },
        QueueDiscipline::Cake {
            diffserv: Diffserv::Diffserv4,
            isolation: Isolation::TripleIsolate,
            rtt_us: 20_000,
            target_us,
            memory_limit: Some(20_000),
            wash: false,
        },
        QueueDiscipline::Red {
            limit: 9_000,
            min: 1_000,
            max: 6_000,
            exponential_weight: 1,
            denominator: 4,
            ecn: false,
        },
        QueueDiscipline::Bfifo { limit: 9_000 },
    ];
    let discipline = |choice: u8| Some(disciplines[usize::from(choice) % disciplines.len()].clone());
    let burst_bytes = if choice & 4 == 0 { 0 } else { 2_000 };
    let minimum_bps = if choice & 8 == 0 { 0 } else { 50_000 };
    let low = QueueRule { access_list: Some("low".to_owned()), ..to_queue(1) };
    InterfaceQueueing::Tree {
        nodes: vec![
            TreeNode {
                shape: (choice & 16 == 0).then_some(tree_shape(200_000, burst_bytes)),
                ..tree_node("all", None, None)
            },
            TreeNode { weight: 3, minimum_bps, ..tree_node("udp", Some("all"), discipline(choice)) },
            tree_node("rest", Some("all"), discipline(choice / 6)),
        ],
        rules: vec![low, QueueRule { larger_than: Some(900), ..to_queue(1) }],
        default: 2,
    }
}

/// The same configurations with trees of queues, and with output policies that only meter and mark.
fn tree_configuration(choice: [u8; 4]) -> RouterConfig {
    let mut config = configuration(choice);
    let metering: BTreeSet<_> = metering().into_iter().map(|(name, ..)| name).collect();
    for (interface, choice) in config.interfaces.values_mut().zip(choice) {
        interface.queueing = Some(tree(choice));
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
    let [.., all] = choice;
    let mut global = SwitchConfig { qos: all % 8 != 7, rewrite_ip_dscp: all & 16 == 0, ..switch::defaults() };
    let exceed = ExceedAction::PolicedDscpTransmit;
    let aggregate = AggregatePolicerConfig { rate_bps: 200_000, burst_bytes: 8_000, exceed };
    global.aggregate_policers.insert("A".to_owned(), aggregate);
    let all = u32::from(all);
    let thresholds = QueueThresholds { t1: 1 + all, t2: 400, reserved: 1 + all % 100, maximum: 1 + 10 * all };
    global.queue_sets[1] = QueueSetConfig { buffers: [1, 1, 1, 97], thresholds: [thresholds; 4] };
    global.vlan_policies = [(1, "vlan".to_owned()), (2, "mark_only".to_owned())].into();
    let policing = |class: PolicyClass, exceed| class.police(police(100_000).bytes(8_000).exceed(exceed));
    let (drop, mark_down) = (PoliceAction::Drop {}, PoliceAction::PolicedDscpTransmit {});
    let mark = vec![
        policing(class_of("udp").set(SetField::Dscp, 46), drop),
        class_default().trust(Trust::Cos).police_aggregate("A"),
    ];
    let vlan =
        vec![class_of("udp").set(SetField::Dscp, 10).service_policy("ports"), class_default().service_policy("ports")];
    let names = vec![switch::name(1), switch::name(20)];
    let mut config = switch::config(global)
        .class_map("udp", match_any(vec![dscp(&[0, 5, 10])]))
        .class_map("ports", match_all(vec![Criterion::InputInterfaces { names }]))
        .policy_map("mark", mark)
        .policy_map("vlan", vlan)
        .policy_map("mark_only", vec![class_of("udp").trust(Trust::IpPrecedence)])
        .policy_map("ports", vec![policing(class_of("ports"), mark_down), policing(class_default(), drop)])
        .policy_map("trust", vec![policing(class_of("udp").trust(Trust::Dscp), mark_down)]);
    for (number, choice) in (1..=PORTS.len()).zip(choice) {
        config = config.interface(switch::name(number), switch_port(choice));
    }
    config
}

fn switch_port(choice: u8) -> InterfaceConfig {
    let number = u32::from(choice);
    let trust = [None, None, Some(Trust::Dscp), Some(Trust::Cos), Some(Trust::IpPrecedence)][usize::from(choice % 5)];
    let vlan_based = choice & 32 == 0;
    let mode = if choice & 64 == 0 { SwitchportMode::Access } else { SwitchportMode::Trunk };
    let switch = SwitchPortConfig {
        trust,
        default_cos: choice % 8,
        shape: [number % 50, 0, number / 60, 0],
        share: [1 + number / 2, 25, 1, 255],
        limit: if choice & 8 == 0 { 100 } else { 10 + number % 81 },
        priority_queue: choice & 16 == 0,
        queue_set: 1 + number % 2,
        vlan_based,
        switchport: vlan_based.then_some(SwitchportConfig { mode, vlan: 1 + u16::from(choice) % 3 }),
        speed_bps: Some([10_000_000, 100_000_000, 1_000_000_000][usize::from(choice / 5 % 3)]),
        ..switch::port()
    };
    let policy_map = [None, Some("mark"), Some("trust")][usize::from(choice / 15 % 3)];
    InterfaceConfig {
        enabled: choice % 16 != 15,
        service_policy_input: policy_map.filter(|_| !vlan_based && trust.is_none()).map(str::to_owned),
        ..switch::interface(switch)
    }
}

/// Runs a program on a router. Panics if a property of the engine is violated.
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

/// Configurations by their choice. Their parts are built once, because that takes longer than the test.
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

    /// Result of `make` for the choice.
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
fn generated_configuration_equals_its_parts() {
    for make in [configuration, tree_configuration, switch_configuration] {
        let parts = Configurations::of(make);
        for choice in
            (0..=255u8).step_by(5).map(|byte| [byte, byte.wrapping_mul(7), byte ^ 0x55, byte.wrapping_add(99)])
        {
            assert_eq!(parts.get(choice), make(choice));
        }
    }
}

#[derive(Clone, Copy)]
struct Machine {
    configurations: &'static Configurations,
    switches: bool,
}

fn play(mut engine: Engine<usize>, machine: Machine, program: &[u8]) {
    let mut reader = Reader(program);
    let mut now = 0;
    let mut next = 0;
    let mut inside: BTreeSet<usize> = BTreeSet::new();
    let mut last: BTreeMap<(PortId, bool), Time> = BTreeMap::new();
    let mut outputs = Vec::new();
    let settle =
        |engine: &mut Engine<usize>, outputs: &mut Vec<_>, inside: &mut BTreeSet<usize>, last: &mut BTreeMap<_, _>| {
            for (time, port, descriptor, payload) in collect(outputs, inside, last, machine.switches) {
                let by = PortId((port.0 + 1) % PORTS.len() as u16);
                engine.transmit(time, by, descriptor, payload);
            }
        };
    while step(&mut reader, &mut engine, machine, &mut now, &mut next, &mut inside, &mut outputs).is_some() {
        settle(&mut engine, &mut outputs, &mut inside, &mut last);
        engine.audit().unwrap();
    }
    // At the end all frames leave, including those that a switch then forwards.
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
    engine: &mut Engine<usize>,
    machine: Machine,
    now: &mut u64,
    next: &mut usize,
    inside: &mut BTreeSet<usize>,
    outputs: &mut Vec<Output<usize>>,
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

/// A class's values are its children's together.
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

/// Takes the outputs; returns those to forward.
fn collect(
    outputs: &mut Vec<Output<usize>>,
    inside: &mut BTreeSet<usize>,
    last: &mut BTreeMap<(PortId, bool), Time>,
    forward: bool,
) -> Vec<(Time, PortId, Descriptor, usize)> {
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
