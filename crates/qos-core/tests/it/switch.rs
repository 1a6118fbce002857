//! What a switch does with frames.

use crate::common::frames;
use crate::common::switch::{config, defaults, interface, name, ports, read};
use crate::common::{self, MILLI, SECOND};
use qos_core::counters::SwitchPortCounters;
use qos_core::wire::Framing;
use qos_core::Label;
use qos_core::{frame, Departure, Descriptor, DropReason, Duration, Engine, Output, PortId, Side, Time};
use serde_json::{json, Value};

const IN: PortId = PortId(0);
const OUT: PortId = PortId(1);

/// A switch of two ports; `switch` changes the global part.
fn switch(switch: &Value, input: Value, output: Value) -> Engine<u64> {
    with_policies(switch, json!({}), json!({}), interface(input), interface(output))
}

fn with_policies(switch: &Value, classes: Value, policies: Value, input: Value, output: Value) -> Engine<u64> {
    let mut config = config(switch, json!({name(1): input, name(2): output}));
    config["class_maps"] = classes;
    config["policy_maps"] = policies;
    let mut engine = Engine::new(&ports(2), Time(0)).unwrap();
    engine.configure(Time(0), &read(&config)).unwrap();
    engine
}

fn changed(pointer: &str, value: Value) -> Value {
    let mut switch = defaults();
    *switch.pointer_mut(pointer).unwrap() = value;
    switch
}

fn parse(frame: &[u8]) -> Descriptor {
    frame::parse(frame, Framing::Ethernet)
}

fn udp(ip_len: usize, dscp: u8) -> Descriptor {
    parse(&frames::udp(ip_len, dscp, 40_000, 5_001))
}

fn departures(outputs: &[Output<u64>]) -> Vec<Departure<u64>> {
    let departure = |output: &Output<u64>| match output {
        Output::Departure(departure) => Some(*departure),
        Output::Dropped(_) => None,
    };
    outputs.iter().filter_map(departure).collect()
}

/// Takes a frame through the switch; what comes out inside and on the wire.
fn pass(engine: &mut Engine<u64>, at: u64, frame: Descriptor) -> Option<(Departure<u64>, Departure<u64>)> {
    let mut outputs = Vec::new();
    engine.receive(Time(at), IN, frame, at);
    engine.poll_inside(Time(at), Duration::ZERO, &mut outputs);
    let inside = *departures(&outputs).first()?;
    engine.transmit(inside.time, OUT, inside.descriptor, at);
    outputs.clear();
    engine.poll(Time(at + MILLI), &mut outputs);
    Some((inside, *departures(&outputs).first()?))
}

fn counters(engine: &mut Engine<u64>, port: usize, now: u64) -> SwitchPortCounters {
    engine.counters(Time(now), None).interfaces[&name(port)].switch.clone().unwrap()
}

/// The queue (from 1) that the one frame so far joined.
fn queue_of(counters: &SwitchPortCounters) -> (usize, usize) {
    let mut found = counters.enqueued.iter().enumerate().flat_map(|(queue, thresholds)| {
        thresholds.iter().enumerate().filter(|(_, frames)| **frames > 0).map(move |(t, _)| (queue + 1, t + 1))
    });
    let only = found.next().expect("a frame was enqueued");
    assert_eq!(found.next(), None);
    only
}

/// The label, the code point and class of service with which a frame leaves, and its queue.
fn treated(mut engine: Engine<u64>, frame: &[u8]) -> (Label, u8, u8, (usize, usize)) {
    let (inside, wire) = pass(&mut engine, MILLI, parse(frame)).expect("the frame passes");
    assert_eq!(wire.side, Side::Wire);
    let counted = counters(&mut engine, 2, 3 * MILLI);
    if wire.descriptor.is_ip() {
        assert_eq!(counted.dscp_out[usize::from(wire.descriptor.dscp)], 1);
    }
    assert_eq!(counted.cos_out[usize::from(wire.descriptor.cos)], 1);
    engine.audit().unwrap();
    (inside.descriptor.label.unwrap(), wire.descriptor.dscp, wire.descriptor.cos, queue_of(&counted))
}

#[test]
fn trust_gives_the_label_and_the_label_the_queue_and_the_marking() {
    let ef = frames::udp(200, 46, 1, 2);
    let tagged = frames::tagged(&ef, 3, 10);
    let arp = [&[0xff; 12][..], &[0x08, 0x06], &[0; 46]].concat();
    let tagged_arp = frames::tagged(&arp, 5, 10);
    let by = |input: Value, frame: &[u8]| treated(switch(&defaults(), input, json!({})), frame);
    let by_dscp = |dscp, queue| (Label { dscp, ..Label::default() }, dscp, dscp >> 3, (queue, 1));
    let by_cos =
        |cos: u8, queue| (Label { dscp: cos * 8, cos: Some(cos), ..Label::default() }, cos * 8, cos, (queue, 1));
    assert_eq!(by(json!({}), &ef), by_dscp(0, 2));
    assert_eq!(by(json!({"trust": "dscp"}), &ef), by_dscp(46, 1));
    assert_eq!(by(json!({"trust": "dscp"}), &tagged), by_dscp(46, 1));
    assert_eq!(by(json!({"trust": "cos"}), &tagged), by_cos(3, 3));
    assert_eq!(by(json!({"trust": "cos", "default_cos": 5}), &ef), by_cos(5, 1));
    assert_eq!(by(json!({"trust": "cos", "default_cos": 5, "cos_override": true}), &tagged), by_cos(5, 1));
    assert_eq!(by(json!({"cos_override": true, "default_cos": 4}), &ef), by_cos(4, 4));
    assert_eq!(by(json!({"trust": "ip-precedence"}), &ef), by_dscp(40, 1));
    // A frame that is no IP packet has its class of service, or the port's.
    let other = |dscp: u8, queue| (Label { dscp, ..Label::default() }, 0, dscp >> 3, (queue, 1));
    assert_eq!(by(json!({"trust": "dscp"}), &arp), other(0, 2));
    assert_eq!(by(json!({"trust": "dscp"}), &tagged_arp), other(40, 1));
    assert_eq!(by(json!({"trust": "ip-precedence", "default_cos": 3}), &arp), other(24, 3));
    assert_eq!(by(json!({"default_cos": 3}), &arp), other(0, 2));
}

#[test]
fn maps_are_applied_where_they_belong() {
    let ef = frames::udp(200, 46, 1, 2);
    let mut mutation: Vec<u8> = (0..64).collect();
    mutation[46] = 10;
    let mutating = changed("/maps/dscp_mutation", json!({"M": mutation}));
    let input = json!({"trust": "dscp", "dscp_mutation": "M"});
    let result = treated(switch(&mutating, input, json!({})), &ef);
    assert_eq!(result, (Label { dscp: 10, ..Label::default() }, 10, 1, (2, 1)));
    // Mutation needs a port that trusts the code point.
    let result = treated(switch(&mutating, json!({"trust": "ip-precedence", "dscp_mutation": "M"}), json!({})), &ef);
    assert_eq!(result.1, 40);
    // Without rewriting the code point stays; queue and class of service are those of the label.
    let mut keeping = mutating.clone();
    keeping["rewrite_ip_dscp"] = json!(false);
    let result = treated(switch(&keeping, json!({"trust": "dscp", "dscp_mutation": "M"}), json!({})), &ef);
    assert_eq!(result, (Label { dscp: 10, ..Label::default() }, 46, 1, (2, 1)));
    let one = |pointer: &str, value: Value, input: Value, frame: &[u8]| {
        treated(switch(&changed(pointer, value), input, json!({})), frame)
    };
    let dscp = json!({"trust": "dscp"});
    assert_eq!(one("/maps/dscp_output_q/46", json!([4, 3]), dscp.clone(), &ef).3, (4, 3));
    assert_eq!(one("/maps/dscp_cos/46", json!(2), dscp, &ef).2, 2);
    let tagged = frames::tagged(&ef, 5, 1);
    assert_eq!(one("/maps/cos_output_q/5", json!([3, 2]), json!({"trust": "cos"}), &tagged).3, (3, 2));
    assert_eq!(one("/maps/cos_dscp/5", json!(47), json!({"trust": "cos"}), &tagged).1, 47);
    assert_eq!(one("/maps/ip_prec_dscp/5", json!(1), json!({"trust": "ip-precedence"}), &ef).1, 1);
}

#[test]
fn statistics_count_both_ends() {
    let mut engine = switch(&defaults(), json!({"trust": "dscp"}), json!({}));
    for at in 1..=3 {
        pass(&mut engine, at * MILLI, udp(200, 46)).unwrap();
    }
    pass(&mut engine, 4 * MILLI, parse(&frames::tagged(&frames::udp(200, 0, 1, 2), 3, 10))).unwrap();
    let (input, output) = (counters(&mut engine, 1, 6 * MILLI), counters(&mut engine, 2, 6 * MILLI));
    assert_eq!((input.dscp_in[46], input.dscp_in[0], input.cos_in[0], input.cos_in[3]), (3, 1, 3, 1));
    assert_eq!(input.input_enqueued, [[1, 0, 0], [3, 0, 0]]);
    assert_eq!((output.dscp_out[46], output.dscp_out[0], output.cos_out[5], output.cos_out[0]), (3, 1, 3, 1));
    assert_eq!(output.operational_bandwidth_percent, 100.0);
    engine.clear(Time(6 * MILLI), None);
    assert_eq!(counters(&mut engine, 1, 6 * MILLI).dscp_in[46], 0);
    assert_eq!(counters(&mut engine, 2, 6 * MILLI).enqueued, [[0; 3]; 4]);
}

fn classes(voice: Value) -> (Value, Value) {
    let maps = json!({"VOICE": {"match": "all", "criteria": [{"type": "dscp", "values": [46], "ip_only": true}]},
        "WEB": {"match": "all", "criteria": [{"type": "dscp", "values": [18], "ip_only": true}]}});
    let mut classes = json!([{"name": "VOICE"}, {"name": "WEB", "trust": "dscp"}]);
    common::extend(&mut classes[0], &voice);
    (maps, json!({"P": {"classes": classes}}))
}

fn policed(switch: &Value, voice: Value) -> Engine<u64> {
    let (maps, policies) = classes(voice);
    let mut input = interface(json!({}));
    input["service_policy_input"] = json!("P");
    with_policies(switch, maps, policies, input, interface(json!({})))
}

#[test]
fn a_class_marks_trusts_or_zeroes() {
    let engine = |voice| policed(&defaults(), voice);
    let label = |engine, dscp| treated(engine, &frames::udp(200, dscp, 1, 2)).0.dscp;
    assert_eq!(label(engine(json!({"set": [{"field": "dscp", "value": 34}]})), 46), 34);
    assert_eq!(label(engine(json!({"set": [{"field": "ip_precedence", "value": 3}]})), 46), 24);
    assert_eq!(label(engine(json!({"trust": "ip-precedence"})), 46), 40);
    assert_eq!(label(engine(json!({})), 46), 0);
    assert_eq!(label(engine(json!({})), 18), 18);
    // class-default neither sets nor trusts.
    assert_eq!(label(engine(json!({})), 20), 0);
}

/// 1 Mb/s with 8000 bytes: so many frames of 1018 bytes (with check sequence) at once, then one in 8.144 ms.
#[test]
fn a_policer_drops_or_marks_down_what_is_out_of_profile() {
    let police = |exceed: Value| json!({"cir": {"bps": 1_000_000}, "bc": {"bytes": 8_000}, "exceed": exceed});
    let mut table: Vec<u8> = (0..64).collect();
    table[46] = 8;
    let marking = changed("/maps/policed_dscp", json!(table));
    let run = |mut engine: Engine<u64>| {
        let mut seen = Vec::new();
        for frame in 0..1_000 {
            let passed = pass(&mut engine, MILLI + frame * MILLI, udp(1_000, 46));
            seen.push(passed.map(|(_, wire)| wire.descriptor.dscp));
        }
        engine.audit().unwrap();
        let counted = counters(&mut engine, 1, 2 * SECOND).policer;
        let class = engine.counters(Time(2 * SECOND), None).interfaces[&name(1)].policy_input.clone().unwrap();
        (seen, counted, class.classes[0].packets)
    };
    // In 999 ms 124 875 bytes of tokens come on top of the burst: together they carry 130 frames.
    let (seen, counted, packets) =
        run(policed(&defaults(), json!({"trust": "dscp", "police": police(json!([{"action": "drop"}]))})));
    let passed = seen.iter().flatten().count() as u64;
    assert_eq!((counted.in_profile, counted.out_of_profile, packets), (passed, 1_000 - passed, 1_000));
    assert_eq!(passed, (8_000 + 999 * 125) / 1_018);
    let down = police(json!([{"action": "policed-dscp-transmit"}]));
    let (seen, counted, _) = run(policed(&marking, json!({"trust": "dscp", "police": down})));
    let kept = seen.iter().filter(|dscp| **dscp == Some(46)).count() as u64;
    let marked = seen.iter().filter(|dscp| **dscp == Some(8)).count() as u64;
    assert_eq!((counted.in_profile, counted.out_of_profile), (passed, 1_000 - passed));
    assert_eq!((kept, marked), (passed, 1_000 - passed));
}

/// So that the packets of a flow keep their order: what a policer marks down joins the queues of its own code point.
#[test]
fn what_is_marked_down_keeps_its_queues() {
    let mut table: Vec<u8> = (0..64).collect();
    table[46] = 8;
    let police = json!({"cir": {"bps": 1_000_000}, "bc": {"bytes": 8_000},
        "exceed": [{"action": "policed-dscp-transmit"}]});
    let marking = changed("/maps/policed_dscp", json!(table));
    let mut engine = policed(&marking, json!({"trust": "dscp", "police": police}));
    let frames = 20;
    for frame in 1..=frames {
        pass(&mut engine, frame * MILLI, udp(1_000, 46)).unwrap();
    }
    let (input, output) = (counters(&mut engine, 1, SECOND), counters(&mut engine, 2, SECOND));
    let kept = (8_000 + 19 * 125) / 1_018;
    assert_eq!((output.dscp_out[46], output.dscp_out[8]), (kept, frames - kept));
    assert_eq!((output.cos_out[5], output.cos_out[1]), (kept, frames - kept));
    // EF has queue 1, code point 8 would have queue 2; on the way in EF has queue 2.
    assert_eq!(output.enqueued, [[frames, 0, 0], [0; 3], [0; 3], [0; 3]]);
    assert_eq!(input.input_enqueued, [[0; 3], [frames, 0, 0]]);
}

/// The 3750 trusts the traffic class of IPv6, and `match ip dscp` is of IPv4 alone.
#[test]
fn ipv6_is_trusted_and_not_classified() {
    let six = frames::ipv6(46, 17, &[0x9c, 0x40, 0x14, 0x51, 0, 8, 0, 0]);
    let label = |engine| treated(engine, &six);
    let trusted = label(switch(&defaults(), json!({"trust": "dscp"}), json!({})));
    assert_eq!(trusted, (Label { dscp: 46, ..Label::default() }, 46, 5, (1, 1)));
    assert_eq!(label(switch(&defaults(), json!({}), json!({}))).1, 0);
    let marked = policed(&defaults(), json!({"set": [{"field": "dscp", "value": 34}]}));
    assert_eq!(label(marked).1, 0, "class-default");
}

#[test]
fn classes_share_an_aggregate_policer() {
    let policers = json!({"A": {"rate_bps": 1_000_000, "burst_bytes": 8_000, "exceed": "drop"}});
    let switch = changed("/aggregate_policers", policers);
    let (maps, mut policies) = classes(json!({"trust": "dscp", "police_aggregate": "A"}));
    policies["P"]["classes"][1]["police_aggregate"] = json!("A");
    let mut input = interface(json!({}));
    input["service_policy_input"] = json!("P");
    let mut engine = with_policies(&switch, maps, policies, input, interface(json!({})));
    let mut passed = 0;
    for frame in 0..20u64 {
        let dscp = if frame % 2 == 0 { 46 } else { 18 };
        passed += u64::from(pass(&mut engine, MILLI, udp(1_000, dscp)).is_some());
    }
    assert_eq!(passed, 8_000 / 1_018);
    let totals = engine.totals(IN, Side::Inside);
    assert_eq!(totals.dropped[DropReason::Police as usize].packets, 20 - passed);
    // Not an output drop.
    assert_eq!(engine.counters(Time(SECOND), None).interfaces[&name(2)].output.drops, 0);
}

/// Sends so many frames at once; what each queue took and dropped at its thresholds.
fn burst(engine: &mut Engine<u64>, frames: usize, frame: Descriptor) -> SwitchPortCounters {
    for _ in 0..frames {
        engine.transmit(Time(MILLI), OUT, frame, 0);
    }
    engine.audit().unwrap();
    counters(engine, 2, MILLI)
}

fn labelled(ip_len: usize, dscp: u8) -> Descriptor {
    Descriptor { label: Some(Label { dscp, ..Label::default() }), ..udp(ip_len, dscp) }
}

#[test]
fn queues_hold_what_their_thresholds_allow() {
    // A full frame of 1518 bytes takes 6 cells; the one on the wire holds its own.
    let full = |dscp| labelled(1_500, dscp);
    let mut engine = switch(&defaults(), json!({}), json!({}));
    let ef = burst(&mut engine, 30, full(46));
    assert_eq!((ef.enqueued[0], ef.dropped[0], ef.depth_cells[0]), ([16, 0, 0], [14, 0, 0], 96));
    // Queue 2 has 200 per cent: 200 cells, 50 reserved and 148 common ones in use.
    let best = burst(&mut engine, 50, full(0));
    assert_eq!((best.enqueued[1], best.dropped[1], best.depth_cells[1]), ([33, 0, 0], [17, 0, 0], 198));
    let memory = engine.counters(Time(MILLI), None).switch.unwrap();
    assert_eq!((memory.cells_total, memory.cells_reserved, memory.cells_common), (8_192, 4_800, 3_000));
    assert_eq!(memory.cells_common_free, 3_000 - 46 - 148);
    let interface = engine.counters(Time(MILLI), None).interfaces[&name(2)].clone();
    assert_eq!((interface.output.drops, interface.queue.drops, interface.queue.limit), (31, 31, 40));
    // Threshold 3 is the maximum: 400 per cent of 100 cells.
    let switch3 = changed("/maps/dscp_output_q/46", json!([1, 3]));
    let third = burst(&mut switch(&switch3, json!({}), json!({})), 100, full(46));
    assert_eq!((third.enqueued[0], third.dropped[0]), ([0, 0, 66], [0, 0, 34]));
    // Short frames take a cell each.
    let short = burst(&mut switch(&defaults(), json!({}), json!({})), 200, labelled(46, 46));
    assert_eq!((short.enqueued[0], short.depth_cells[0]), ([100, 0, 0], 100));
    // Without buffers a queue takes nothing.
    let none = changed("/queue_sets/0/buffers", json!([0, 50, 25, 25]));
    let none = burst(&mut switch(&none, json!({}), json!({})), 3, full(46));
    assert_eq!((none.enqueued[0], none.dropped[0]), ([0; 3], [3, 0, 0]));
    // A greater maximum than 400 per cent is held at that.
    let mut huge = defaults();
    huge["queue_sets"][0]["thresholds"][0] = json!({"t1": 3200, "t2": 3200, "reserved": 100, "maximum": 3200});
    let huge = burst(&mut switch(&huge, json!({}), json!({})), 100, full(46));
    assert_eq!(huge.depth_cells[0], 396);
}

#[test]
fn without_qos_a_port_is_one_queue() {
    let off = changed("/qos", json!(false));
    // What is configured on the port has no effect.
    let port = json!({"shape": [100, 0, 0, 0], "limit": 50, "priority_queue": true, "trust": "dscp"});
    let mut engine = switch(&off, port.clone(), port);
    let (inside, wire) = pass(&mut engine, MILLI / 2, udp(1_500, 46)).unwrap();
    assert_eq!((inside.descriptor.label, wire.descriptor.dscp), (None, 46));
    let mut engine = switch(&off, json!({}), json!({}));
    let counted = burst(&mut engine, 200, udp(1_500, 46));
    // 800 cells of 6.
    assert_eq!((counted.enqueued[3], counted.dropped[3], counted.depth_cells[3]), ([0, 0, 133], [0, 0, 67], 798));
    assert_eq!(counted.dscp_out, vec![0; 64]);
    // First in, first out at the link's rate.
    let mut outputs = Vec::new();
    engine.poll(Time(SECOND), &mut outputs);
    let last = departures(&outputs).last().unwrap().time;
    assert_eq!(last, Time(MILLI + 133 * 1538 * 8));
    // Turning QoS on keeps what waits, turning it off clears the statistics.
    for frame in 0..10 {
        engine.transmit(Time(SECOND), OUT, udp(1_500, 46), frame);
    }
    engine.configure(Time(SECOND), &read(&config(&defaults(), json!({})))).unwrap();
    engine.transmit(Time(SECOND), OUT, labelled(1_500, 46), 10);
    engine.audit().unwrap();
    let counted = counters(&mut engine, 2, SECOND);
    assert_eq!((counted.depth_packets, counted.enqueued[0][0]), ([1, 0, 0, 9], 1));
    engine.configure(Time(SECOND), &read(&config(&off, json!({})))).unwrap();
    assert_eq!(counters(&mut engine, 2, SECOND).enqueued, [[0; 3]; 4]);
    outputs.clear();
    engine.poll(Time(2 * SECOND), &mut outputs);
    assert_eq!(departures(&outputs).len(), 11);
    assert_eq!(counters(&mut engine, 2, 2 * SECOND).depth_cells, [0; 4]);
}

/// The memory is one for all ports of an ASIC: what one port gives back by a moment is there for another, however late
/// the engine looks.
#[test]
fn ports_share_the_common_cells() {
    const PORTS: usize = 24;
    // Everything is common but a cell or so a queue, and a queue may have 400 per cent.
    let mut switch = defaults();
    for queue in 0..4 {
        switch["queue_sets"][0]["thresholds"][queue] = json!({"t1": 400, "t2": 400, "reserved": 1, "maximum": 400});
    }
    let engine = || {
        let mut engine: Engine<u64> = Engine::new(&ports(PORTS), Time(0)).unwrap();
        engine.configure(Time(0), &read(&config(&switch, json!({})))).unwrap();
        engine
    };
    let fill = |engine: &mut Engine<u64>| {
        for port in 0..PORTS as u16 {
            for dscp in [0, 16, 32] {
                for _ in 0..66 {
                    engine.transmit(Time(MILLI), PortId(port), labelled(1_500, dscp), 0);
                }
            }
        }
        engine.audit().unwrap();
    };
    let mut late = engine();
    fill(&mut late);
    let memory = late.counters(Time(MILLI), None).switch.unwrap();
    assert!(memory.cells_common_free < 6, "{memory:?}");
    // Full frames leave every 12.304 us, 24 at a time: a new one finds 6 cells then, and none before.
    let drops =
        |engine: &mut Engine<u64>| engine.totals(PortId(0), Side::Wire).dropped[DropReason::Tail as usize].packets;
    let before = drops(&mut late);
    late.transmit(Time(MILLI + 12_303), PortId(0), labelled(1_500, 46), 0);
    assert_eq!(drops(&mut late), before + 1);
    let mut punctual = engine();
    fill(&mut punctual);
    let mut outputs = Vec::new();
    let mut compared = Vec::new();
    for frame in 0..400u64 {
        let at = Time(MILLI + 12_304 + frame * 700);
        let port = PortId((frame % PORTS as u64) as u16);
        punctual.poll(at, &mut outputs);
        late.transmit(at, port, labelled(1_500, 46), 0);
        punctual.transmit(at, port, labelled(1_500, 46), 0);
        compared.push((late.totals(port, Side::Wire).dropped, punctual.totals(port, Side::Wire).dropped));
    }
    let worst = compared.iter().filter(|(late, punctual)| late[1] != punctual[1]).count();
    // Port 0 of the late engine dropped one frame more, above.
    assert!(worst <= 400 / PORTS + 1, "{worst}");
    late.audit().unwrap();
    punctual.audit().unwrap();
    for engine in [&mut late, &mut punctual] {
        engine.poll(Time(SECOND), &mut outputs);
        let memory = engine.counters(Time(SECOND), None).switch.unwrap();
        assert_eq!(memory.cells_common_free, memory.cells_common);
        engine.audit().unwrap();
    }
}

#[test]
fn reservations_beyond_the_memory_leave_no_common_cells() {
    let mut switch = defaults();
    for queue in 0..4 {
        switch["queue_sets"][0]["thresholds"][queue]["reserved"] = json!(100);
    }
    let mut engine: Engine<u64> = Engine::new(&ports(1), Time(0)).unwrap();
    engine.configure(Time(0), &read(&config(&switch, json!({})))).unwrap();
    let memory = engine.counters(Time(0), None).switch.unwrap();
    assert_eq!((memory.cells_reserved, memory.cells_common, memory.cells_common_free), (9_600, 0, 0));
}

#[test]
fn a_switch_stays_a_switch() {
    let mut engine = switch(&defaults(), json!({}), json!({}));
    let router = json!({"format": 1, "router": "R1", "generation": "classic"});
    let error = engine.configure(Time(1), &read(&router)).unwrap_err();
    assert_eq!(error.path, "switch");
}

/// A datagram of 3000 bytes in three fragments, and a policer for a UDP port: the 3750 matches the first one alone, the
/// others stay best effort. A router takes those after the first by addresses and protocol.
#[test]
fn later_fragments_match_no_entry_with_ports() {
    let entry = json!({"action": "permit", "protocol": 17,
        "source": {"address": "0.0.0.0", "wildcard": "255.255.255.255"},
        "destination": {"address": "0.0.0.0", "wildcard": "255.255.255.255"},
        "destination_port": {"op": "eq", "ports": [5000]}});
    let mut config = config(&defaults(), json!({name(1): interface(json!({})), name(2): interface(json!({}))}));
    config["access_lists"] = json!({"A": [entry]});
    config["class_maps"] = json!({"A": {"match": "all", "criteria": [{"type": "access_group", "name": "A"}]}});
    let police = json!({"cir": {"bps": 1_000_000}, "bc": {"bytes": 8_000}, "exceed": [{"action": "drop"}]});
    config["policy_maps"] = json!({"P": {"classes": [{"name": "A", "police": police}]}});
    config["interfaces"][name(1)]["service_policy_input"] = json!("P");
    let mut engine: Engine<u64> = Engine::new(&ports(2), Time(0)).unwrap();
    engine.configure(Time(0), &read(&config)).unwrap();
    for (number, (offset, length)) in [(0u16, 1_500), (185, 1_500), (370, 88)].into_iter().enumerate() {
        let mut frame = frames::udp(length, 0, 40_000, 5_000);
        let more = u16::from(offset < 370) << 13;
        frame[14 + 6..14 + 8].copy_from_slice(&(more | offset).to_be_bytes());
        pass(&mut engine, (number as u64 + 1) * MILLI, parse(&frame)).unwrap();
    }
    let class =
        engine.counters(Time(SECOND), None).interfaces[&name(1)].policy_input.clone().unwrap().classes[0].clone();
    assert_eq!(class.packets, 1);
    assert_eq!(counters(&mut engine, 1, SECOND).policer.in_profile, 1);
}

/// A switch of three ports, the first two with `vlan_based` in VLAN 10, the third a trunk. What has code point 46 gets
/// 34 in VLAN 10 and is policed by port: 1 Mb/s by the first, 2 Mb/s by the second, both with a burst of 8000 bytes.
fn vlan_based(change: impl Fn(&mut Value)) -> Result<Engine<u64>, qos_core::ConfigError> {
    let port = |vlan: u16, mode: &str, trust: Value| {
        interface(json!({"vlan_based": true, "trust": trust, "switchport": {"mode": mode, "vlan": vlan}}))
    };
    let mut switch = defaults();
    switch["vlan_policies"] = json!({"10": "VLAN"});
    let ports_of = |numbers: &[usize]| {
        let names: Vec<_> = numbers.iter().map(|number| name(*number)).collect();
        json!({"match": "all", "criteria": [{"type": "input_interfaces", "names": names}]})
    };
    let police = |bps: u64| json!({"cir": {"bps": bps}, "bc": {"bytes": 8_000}, "exceed": [{"action": "drop"}]});
    let mut config = config(
        &switch,
        json!({name(1): port(10, "access", json!("dscp")), name(2): port(10, "access", json!(null)),
            name(3): port(1, "trunk", json!("cos"))}),
    );
    let voice = json!({"match": "all", "criteria": [{"type": "dscp", "values": [46], "ip_only": true}]});
    // The switch has a port 20 of that range, without a cable.
    config["class_maps"] = json!({"VOICE": voice, "ONE": ports_of(&[1]), "OTHERS": ports_of(&[2, 20])});
    config["policy_maps"] = json!({
        "VLAN": {"classes": [
            {"name": "VOICE", "set": [{"field": "dscp", "value": 34}], "service_policy": "PORTS"}]},
        "PORTS": {"classes": [{"name": "ONE", "police": police(1_000_000)},
            {"name": "OTHERS", "police": police(2_000_000)}]}});
    change(&mut config);
    let mut engine = Engine::new(&ports(3), Time(0)).unwrap();
    engine.configure(Time(0), &read(&config))?;
    Ok(engine)
}

/// What comes out inside of a frame that comes by a port.
fn labelled_at(engine: &mut Engine<u64>, at: u64, port: u16, frame: &[u8]) -> Option<Label> {
    let mut outputs = Vec::new();
    engine.receive(Time(at), PortId(port), parse(frame), at);
    engine.poll_inside(Time(at), Duration::ZERO, &mut outputs);
    departures(&outputs).first().map(|departure| departure.descriptor.label.unwrap())
}

#[test]
fn the_policy_of_a_vlan_marks_and_a_port_trusts_what_it_leaves() {
    let mut engine = vlan_based(|_| ()).unwrap();
    let by_dscp = |dscp| Some(Label { dscp, ..Label::default() });
    let mut label = |port, frame: &[u8]| labelled_at(&mut engine, MILLI, port, frame);
    let (ef, web) = (frames::udp(200, 46, 1, 2), frames::udp(200, 18, 1, 2));
    assert_eq!(label(0, &ef), by_dscp(34));
    assert_eq!(label(0, &web), by_dscp(18));
    assert_eq!(label(1, &ef), by_dscp(34));
    assert_eq!(label(1, &web), by_dscp(0));
    // By the trunk VLAN 10 comes with a tag; what has none, or VLAN 0, is in VLAN 1, whose interface has no policy.
    let by_cos = |cos: u8| Some(Label { dscp: cos * 8, cos: Some(cos), ..Label::default() });
    assert_eq!(label(2, &frames::tagged(&ef, 3, 10)), by_dscp(34));
    assert_eq!(label(2, &frames::tagged(&web, 3, 10)), by_cos(3));
    assert_eq!(label(2, &frames::tagged(&ef, 3, 11)), by_cos(3));
    assert_eq!(label(2, &frames::tagged(&ef, 3, 0)), by_cos(3));
    assert_eq!(label(2, &ef), by_cos(0));
    engine.audit().unwrap();
}

/// Frames of 1018 bytes (with check sequence) of EF by both ports of the VLAN, one each millisecond for a second: each
/// port has 8000 bytes at once, and then what comes to its own rate.
#[test]
fn each_port_of_a_vlan_has_its_own_policer() {
    let mut engine = vlan_based(|_| ()).unwrap();
    let mut passed = [0u64; 3];
    for frame in 0..1_000 {
        for port in 0..3u16 {
            let frame_of = |port| {
                if port == 2 {
                    frames::tagged(&frames::udp(1_000, 46, 1, 2), 0, 10)
                } else {
                    frames::udp(1_000, 46, 1, 2)
                }
            };
            let out = labelled_at(&mut engine, MILLI + frame * MILLI, port, &frame_of(port));
            passed[usize::from(port)] += u64::from(out.is_some());
        }
    }
    engine.audit().unwrap();
    let by_rate = |bytes_per_ms: u64| (8_000 + 999 * bytes_per_ms) / 1_018;
    // No policer is for the trunk.
    assert_eq!(passed, [by_rate(125), by_rate(250), 1_000]);
    let counted = |engine: &mut Engine<u64>, port| counters(engine, port, 2 * SECOND).policer;
    for port in [1, 2] {
        let found = counted(&mut engine, port);
        assert_eq!((found.in_profile, found.out_of_profile), (passed[port - 1], 1_000 - passed[port - 1]));
    }
    assert_eq!(counted(&mut engine, 3).in_profile, 0);
    let policy = engine.counters(Time(2 * SECOND), None).interfaces[&name(2)].policy_input.clone().unwrap();
    let vlan = &policy.classes[0];
    let voice = &vlan.child.as_ref().unwrap().classes[0];
    let others = &voice.child.as_ref().unwrap().classes[1];
    assert_eq!(
        (policy.policy.as_str(), vlan.name.as_str(), voice.name.as_str()),
        ("mls qos vlan-based", "Vlan10", "VOICE")
    );
    assert_eq!(
        (others.name.as_str(), others.packets, others.drops.police.packets),
        ("OTHERS", 1_000, 1_000 - passed[1])
    );
}

#[test]
fn without_vlan_based_the_policy_of_a_vlan_does_nothing() {
    let mut engine = vlan_based(|config| config["interfaces"][name(1)]["switch"]["vlan_based"] = json!(false)).unwrap();
    assert_eq!(
        labelled_at(&mut engine, MILLI, 0, &frames::udp(200, 46, 1, 2)),
        Some(Label { dscp: 46, ..Label::default() })
    );
}

#[test]
fn what_a_policy_of_a_vlan_cannot_have_is_refused() {
    let refused = |pointer: &str, value: Value| {
        let error = vlan_based(|config| *config.pointer_mut(pointer).unwrap() = value.clone()).unwrap_err();
        (error.path, error.message)
    };
    let police = json!({"cir": {"bps": 1_000_000}, "bc": {"bytes": 8_000}});
    let class = "/policy_maps/VLAN/classes/0";
    let (path, message) = refused(class, json!({"name": "VOICE", "police": police}));
    assert_eq!(path, "switch.vlan_policies.10");
    assert!(message.contains("at the level of a VLAN nothing does"), "{message}");
    assert!(refused(class, json!({"name": "ONE"})).1.contains("matches ports"));
    let below = "/policy_maps/PORTS/classes/0";
    assert!(refused(below, json!({"name": "ONE", "trust": "dscp"})).1.contains("marks"));
    assert!(refused(below, json!({"name": "VOICE"})).1.contains("something else than ports"));
    assert!(refused("/switch/vlan_policies", json!({"10": "NONE"})).1.contains("no policy-map \"NONE\""));
    assert!(refused("/switch/vlan_policies", json!({"4095": "VLAN"})).1.contains("no VLAN"));
    let own = |vlan_based: bool| {
        let port = json!({"vlan_based": vlan_based, "switchport": {"mode": "access", "vlan": 10}});
        let mut port = interface(port);
        port["service_policy_input"] = json!("VLAN");
        refused(&format!("/interfaces/{}", name(1).replace('/', "~1")), port)
    };
    assert!(own(true).1.contains("the policies of its VLANs count"));
    assert!(own(false).1.contains("two levels"));
}
