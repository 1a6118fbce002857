//! Treatment of frames by a switch.

use crate::common::build::*;
use crate::common::switch::{config, defaults, interface, name, port, ports, started};
use crate::common::{build, datagram, frames, MILLI, SECOND};
use qos_core::counters::SwitchPortCounters;
use qos_core::wire::Framing;
use qos_core::Label;
use qos_core::{frame, ConfigError, Departure, Descriptor, DropReason, Duration, Engine, Output, PortId, Side, Time};

const IN: PortId = PortId(0);
const OUT: PortId = PortId(1);

/// A switch of two ports.
fn switch(switch: &SwitchConfig, input: SwitchPortConfig, output: SwitchPortConfig) -> Engine<u64> {
    let config = config(switch.clone()).interface(name(1), interface(input)).interface(name(2), interface(output));
    started(2, &config)
}

/// The default switch with a change.
fn changed_switch(change: impl FnOnce(&mut SwitchConfig)) -> SwitchConfig {
    let mut switch = defaults();
    change(&mut switch);
    switch
}

fn trusting_port(trust: Trust) -> SwitchPortConfig {
    SwitchPortConfig { trust: Some(trust), ..port() }
}

fn parse(frame: &[u8]) -> Descriptor {
    frame::parse(frame, Framing::Ethernet)
}

fn udp(ip_len: usize, dscp: u8) -> Descriptor {
    datagram(ip_len, dscp, 40_000, 5_001, Framing::Ethernet)
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
fn treated_frame(mut engine: Engine<u64>, frame: &[u8]) -> (Label, u8, u8, (usize, usize)) {
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
    let by = |input: SwitchPortConfig, frame: &[u8]| treated_frame(switch(&defaults(), input, port()), frame);
    let by_dscp = |dscp, queue| (Label { dscp, ..Label::default() }, dscp, dscp >> 3, (queue, 1));
    let by_cos =
        |cos: u8, queue| (Label { dscp: cos * 8, cos: Some(cos), ..Label::default() }, cos * 8, cos, (queue, 1));
    assert_eq!(by(port(), &ef), by_dscp(0, 2));
    assert_eq!(by(trusting_port(Trust::Dscp), &ef), by_dscp(46, 1));
    assert_eq!(by(trusting_port(Trust::Dscp), &tagged), by_dscp(46, 1));
    assert_eq!(by(trusting_port(Trust::Cos), &tagged), by_cos(3, 3));
    assert_eq!(by(SwitchPortConfig { default_cos: 5, ..trusting_port(Trust::Cos) }, &ef), by_cos(5, 1));
    assert_eq!(
        by(SwitchPortConfig { default_cos: 5, cos_override: true, ..trusting_port(Trust::Cos) }, &tagged),
        by_cos(5, 1)
    );
    assert_eq!(by(SwitchPortConfig { cos_override: true, default_cos: 4, ..port() }, &ef), by_cos(4, 4));
    assert_eq!(by(trusting_port(Trust::IpPrecedence), &ef), by_dscp(40, 1));
    // A frame that is not IP has its own class of service, or the port's.
    let other = |dscp: u8, queue| (Label { dscp, ..Label::default() }, 0, dscp >> 3, (queue, 1));
    assert_eq!(by(trusting_port(Trust::Dscp), &arp), other(0, 2));
    assert_eq!(by(trusting_port(Trust::Dscp), &tagged_arp), other(40, 1));
    assert_eq!(by(SwitchPortConfig { default_cos: 3, ..trusting_port(Trust::IpPrecedence) }, &arp), other(24, 3));
    assert_eq!(by(SwitchPortConfig { default_cos: 3, ..port() }, &arp), other(0, 2));
}

#[test]
fn qos_maps_apply_to_their_trust_state() {
    let ef = frames::udp(200, 46, 1, 2);
    let mut mutation: Vec<u8> = (0..64).collect();
    mutation[46] = 10;
    let mutating = changed_switch(|switch| switch.maps.dscp_mutation = [("M".to_owned(), mutation)].into());
    let mutated = |trust| SwitchPortConfig { dscp_mutation: Some("M".to_owned()), ..trusting_port(trust) };
    let result = treated_frame(switch(&mutating, mutated(Trust::Dscp), port()), &ef);
    assert_eq!(result, (Label { dscp: 10, ..Label::default() }, 10, 1, (2, 1)));
    // Mutation needs a port that trusts the code point.
    let result = treated_frame(switch(&mutating, mutated(Trust::IpPrecedence), port()), &ef);
    assert_eq!(result.1, 40);
    // Without rewriting the code point stays; queue and class of service are those of the label.
    let mut keeping = mutating.clone();
    keeping.rewrite_ip_dscp = false;
    let result = treated_frame(switch(&keeping, mutated(Trust::Dscp), port()), &ef);
    assert_eq!(result, (Label { dscp: 10, ..Label::default() }, 46, 1, (2, 1)));
    let one = |change: fn(&mut MapsConfig), trust, frame: &[u8]| {
        treated_frame(switch(&changed_switch(|switch| change(&mut switch.maps)), trusting_port(trust), port()), frame)
    };
    assert_eq!(one(|maps| maps.dscp_output_q[46] = [4, 3], Trust::Dscp, &ef).3, (4, 3));
    assert_eq!(one(|maps| maps.dscp_cos[46] = 2, Trust::Dscp, &ef).2, 2);
    let tagged = frames::tagged(&ef, 5, 1);
    assert_eq!(one(|maps| maps.cos_output_q[5] = [3, 2], Trust::Cos, &tagged).3, (3, 2));
    assert_eq!(one(|maps| maps.cos_dscp[5] = 47, Trust::Cos, &tagged).1, 47);
    assert_eq!(one(|maps| maps.ip_prec_dscp[5] = 1, Trust::IpPrecedence, &ef).1, 1);
}

#[test]
fn switch_statistics_count_input_and_output() {
    let mut engine = switch(&defaults(), trusting_port(Trust::Dscp), port());
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

/// The class of EF of an input policy, without actions.
fn voice() -> PolicyClass {
    class_of("VOICE")
}

/// A switch with an input policy of this class and a class for web traffic.
fn policed_port(switch: &SwitchConfig, voice: PolicyClass, web: PolicyClass) -> Engine<u64> {
    let config = config(switch.clone())
        .class_map("VOICE", match_all(vec![ip_dscp(&[46])]))
        .class_map("WEB", match_all(vec![ip_dscp(&[18])]))
        .policy_map("P", vec![voice, web])
        .interface(name(1), interface(port()).input("P"))
        .interface(name(2), interface(port()));
    started(2, &config)
}

/// The same with a class for web traffic that is trusted.
fn with_voice(switch: &SwitchConfig, voice: PolicyClass) -> Engine<u64> {
    policed_port(switch, voice, class_of("WEB").trust(Trust::Dscp))
}

#[test]
fn a_class_marks_trusts_or_zeroes() {
    let engine = |voice| with_voice(&defaults(), voice);
    let label = |engine, dscp| treated_frame(engine, &frames::udp(200, dscp, 1, 2)).0.dscp;
    assert_eq!(label(engine(voice().set(SetField::Dscp, 34)), 46), 34);
    assert_eq!(label(engine(voice().set(SetField::IpPrecedence, 3)), 46), 24);
    assert_eq!(label(engine(voice().trust(Trust::IpPrecedence)), 46), 40);
    assert_eq!(label(engine(voice()), 46), 0);
    assert_eq!(label(engine(voice()), 18), 18);
    // class-default neither sets nor trusts.
    assert_eq!(label(engine(voice()), 20), 0);
}

/// 1 Mb/s with 8000 bytes: so many frames of 1018 bytes (with FCS) at once, then one in 8.144 ms.
#[test]
fn a_policer_drops_or_marks_down_what_is_out_of_profile() {
    let police = |exceed| police(1_000_000).bytes(8_000).exceed(exceed);
    let mut table: Vec<u8> = (0..64).collect();
    table[46] = 8;
    let marking = changed_switch(|switch| switch.maps.policed_dscp = table);
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
    // In 999 ms, 124 875 bytes of tokens are added to the burst: together they carry 130 frames.
    let (seen, counted, packets) =
        run(with_voice(&defaults(), voice().trust(Trust::Dscp).police(police(PoliceAction::Drop {}))));
    let passed = seen.iter().flatten().count() as u64;
    assert_eq!((counted.in_profile, counted.out_of_profile, packets), (passed, 1_000 - passed, 1_000));
    assert_eq!(passed, (8_000 + 999 * 125) / 1_018);
    let down = police(PoliceAction::PolicedDscpTransmit {});
    let (seen, counted, _) = run(with_voice(&marking, voice().trust(Trust::Dscp).police(down)));
    let kept = seen.iter().filter(|dscp| **dscp == Some(46)).count() as u64;
    let marked = seen.iter().filter(|dscp| **dscp == Some(8)).count() as u64;
    assert_eq!((counted.in_profile, counted.out_of_profile), (passed, 1_000 - passed));
    assert_eq!((kept, marked), (passed, 1_000 - passed));
}

/// So that the packets of a flow keep their order: what a policer marks down joins the queues of its own code point.
#[test]
fn marked_down_frames_keep_their_queues() {
    let mut table: Vec<u8> = (0..64).collect();
    table[46] = 8;
    let police = police(1_000_000).bytes(8_000).exceed(PoliceAction::PolicedDscpTransmit {});
    let marking = changed_switch(|switch| switch.maps.policed_dscp = table);
    let mut engine = with_voice(&marking, voice().trust(Trust::Dscp).police(police));
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
    let label = |engine| treated_frame(engine, &six);
    let trusted = label(switch(&defaults(), trusting_port(Trust::Dscp), port()));
    assert_eq!(trusted, (Label { dscp: 46, ..Label::default() }, 46, 5, (1, 1)));
    assert_eq!(label(switch(&defaults(), port(), port())).1, 0);
    let marked = with_voice(&defaults(), voice().set(SetField::Dscp, 34));
    assert_eq!(label(marked).1, 0, "class-default");
}

#[test]
fn classes_share_an_aggregate_policer() {
    let policer = AggregatePolicerConfig { rate_bps: 1_000_000, burst_bytes: 8_000, exceed: ExceedAction::Drop };
    let switch = changed_switch(|switch| switch.aggregate_policers = [("A".to_owned(), policer)].into());
    let policing = |class: PolicyClass| class.trust(Trust::Dscp).police_aggregate("A");
    let mut engine = policed_port(&switch, policing(voice()), policing(class_of("WEB")));
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

fn labelled_queue(ip_len: usize, dscp: u8) -> Descriptor {
    Descriptor { label: Some(Label { dscp, ..Label::default() }), ..udp(ip_len, dscp) }
}

#[test]
fn queues_hold_cells_up_to_their_thresholds() {
    // A full frame of 1518 bytes takes 6 cells; the one on the wire holds its own.
    let full = |dscp| labelled_queue(1_500, dscp);
    let mut engine = switch(&defaults(), port(), port());
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
    let switch3 = changed_switch(|switch| switch.maps.dscp_output_q[46] = [1, 3]);
    let third = burst(&mut switch(&switch3, port(), port()), 100, full(46));
    assert_eq!((third.enqueued[0], third.dropped[0]), ([0, 0, 66], [0, 0, 34]));
    // Short frames take a cell each.
    let short = burst(&mut switch(&defaults(), port(), port()), 200, labelled_queue(46, 46));
    assert_eq!((short.enqueued[0], short.depth_cells[0]), ([100, 0, 0], 100));
    // Without buffers a queue takes nothing.
    let none = changed_switch(|switch| switch.queue_sets[0].buffers = [0, 50, 25, 25]);
    let none = burst(&mut switch(&none, port(), port()), 3, full(46));
    assert_eq!((none.enqueued[0], none.dropped[0]), ([0; 3], [3, 0, 0]));
    // A maximum above 400 per cent is limited to it.
    let most = QueueThresholds { t1: 3200, t2: 3200, reserved: 100, maximum: 3200 };
    let huge = changed_switch(|switch| switch.queue_sets[0].thresholds[0] = most);
    let huge = burst(&mut switch(&huge, port(), port()), 100, full(46));
    assert_eq!(huge.depth_cells[0], 396);
}

#[test]
fn without_qos_a_port_is_one_queue() {
    let off = changed_switch(|switch| switch.qos = false);
    // The configuration of the port has no effect.
    let configured =
        SwitchPortConfig { shape: [100, 0, 0, 0], limit: 50, priority_queue: true, trust: Some(Trust::Dscp), ..port() };
    let mut engine = switch(&off, configured.clone(), configured);
    let (inside, wire) = pass(&mut engine, MILLI / 2, udp(1_500, 46)).unwrap();
    assert_eq!((inside.descriptor.label, wire.descriptor.dscp), (None, 46));
    let mut engine = switch(&off, port(), port());
    let counted = burst(&mut engine, 200, udp(1_500, 46));
    // 800 cells of 6.
    assert_eq!((counted.enqueued[3], counted.dropped[3], counted.depth_cells[3]), ([0, 0, 133], [0, 0, 67], 798));
    assert_eq!(counted.dscp_out, vec![0; 64]);
    // First in, first out at the link's rate.
    let mut outputs = Vec::new();
    engine.poll(Time(SECOND), &mut outputs);
    let last = departures(&outputs).last().unwrap().time;
    assert_eq!(last, Time(MILLI + 133 * 1538 * 8));
    // Turning QoS on keeps queued frames, turning it off clears the statistics.
    for frame in 0..10 {
        engine.transmit(Time(SECOND), OUT, udp(1_500, 46), frame);
    }
    engine.configure(Time(SECOND), &config(defaults())).unwrap();
    engine.transmit(Time(SECOND), OUT, labelled_queue(1_500, 46), 10);
    engine.audit().unwrap();
    let counted = counters(&mut engine, 2, SECOND);
    assert_eq!((counted.depth_packets, counted.enqueued[0][0]), ([1, 0, 0, 9], 1));
    engine.configure(Time(SECOND), &config(off)).unwrap();
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
    // Everything is common except about one cell per queue, and a queue may have 400 per cent.
    let thresholds = [QueueThresholds { t1: 400, t2: 400, reserved: 1, maximum: 400 }; 4];
    let engine = || started(PORTS, &config(changed_switch(|switch| switch.queue_sets[0].thresholds = thresholds)));
    let fill = |engine: &mut Engine<u64>| {
        for port in 0..PORTS as u16 {
            for dscp in [0, 16, 32] {
                for _ in 0..66 {
                    engine.transmit(Time(MILLI), PortId(port), labelled_queue(1_500, dscp), 0);
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
    late.transmit(Time(MILLI + 12_303), PortId(0), labelled_queue(1_500, 46), 0);
    assert_eq!(drops(&mut late), before + 1);
    let mut punctual = engine();
    fill(&mut punctual);
    let mut outputs = Vec::new();
    let mut compared = Vec::new();
    for frame in 0..400u64 {
        let at = Time(MILLI + 12_304 + frame * 700);
        let port = PortId((frame % PORTS as u64) as u16);
        punctual.poll(at, &mut outputs);
        late.transmit(at, port, labelled_queue(1_500, 46), 0);
        punctual.transmit(at, port, labelled_queue(1_500, 46), 0);
        compared.push((late.totals(port, Side::Wire).dropped, punctual.totals(port, Side::Wire).dropped));
    }
    let worst = compared.iter().filter(|(late, punctual)| late[1] != punctual[1]).count();
    // Port 0 of the late engine dropped one more frame above.
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
    let switch = changed_switch(|switch| {
        switch.queue_sets[0].thresholds.iter_mut().for_each(|thresholds| thresholds.reserved = 100);
    });
    let mut engine: Engine<u64> = started(1, &config(switch));
    let memory = engine.counters(Time(0), None).switch.unwrap();
    assert_eq!((memory.cells_reserved, memory.cells_common, memory.cells_common_free), (9_600, 0, 0));
}

#[test]
fn switch_refuses_a_router_configuration() {
    let mut engine = switch(&defaults(), port(), port());
    let error = engine.configure(Time(1), &RouterConfig::new("R1", Classic)).unwrap_err();
    assert_eq!(error.path, "switch");
}

/// A datagram of 3000 bytes in three fragments, and a policer for a UDP port: the 3750 matches the first one alone, the
/// others stay best effort. A router takes those after the first by addresses and protocol.
#[test]
fn later_fragments_match_no_entry_with_ports() {
    let entry = AccessListEntry { destination_port: build::ports(PortOperator::Eq, &[5_000]), ..permit(Some(17)) };
    let police = police(1_000_000).bytes(8_000).exceed(PoliceAction::Drop {});
    let config = config(defaults())
        .access_list("A", vec![entry])
        .class_map("A", match_all(vec![access_group("A")]))
        .policy_map("P", vec![class_of("A").police(police)])
        .interface(name(1), interface(port()).input("P"))
        .interface(name(2), interface(port()));
    let mut engine = started(2, &config);
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
fn vlan_based(change: impl FnOnce(&mut RouterConfig)) -> Result<Engine<u64>, ConfigError> {
    let in_vlan = |mode, vlan, trust| {
        let switchport = Some(SwitchportConfig { mode, vlan });
        interface(SwitchPortConfig { vlan_based: true, trust, switchport, ..port() })
    };
    let ports_of = |numbers: &[usize]| {
        let names = numbers.iter().map(|number| name(*number)).collect();
        match_all(vec![Criterion::InputInterfaces { names }])
    };
    let police = |bps: u64| police(bps).bytes(8_000).exceed(PoliceAction::Drop {});
    let mut config = config(changed_switch(|switch| switch.vlan_policies = [(10, "VLAN".to_owned())].into()))
        .class_map("VOICE", match_all(vec![ip_dscp(&[46])]))
        .class_map("ONE", ports_of(&[1]))
        // The switch has a port 20 of that range, without a cable.
        .class_map("OTHERS", ports_of(&[2, 20]))
        .policy_map("VLAN", vec![voice().set(SetField::Dscp, 34).service_policy("PORTS")])
        .policy_map(
            "PORTS",
            vec![class_of("ONE").police(police(1_000_000)), class_of("OTHERS").police(police(2_000_000))],
        )
        .interface(name(1), in_vlan(SwitchportMode::Access, 10, Some(Trust::Dscp)))
        .interface(name(2), in_vlan(SwitchportMode::Access, 10, None))
        .interface(name(3), in_vlan(SwitchportMode::Trunk, 1, Some(Trust::Cos)));
    change(&mut config);
    let mut engine = Engine::new(&ports(3), Time(0)).unwrap();
    engine.configure(Time(0), &config)?;
    Ok(engine)
}

/// Frames that leave inside, for a frame that arrives at a port.
fn labelled_queue_at(engine: &mut Engine<u64>, at: u64, port: u16, frame: &[u8]) -> Option<Label> {
    let mut outputs = Vec::new();
    engine.receive(Time(at), PortId(port), parse(frame), at);
    engine.poll_inside(Time(at), Duration::ZERO, &mut outputs);
    departures(&outputs).first().map(|departure| departure.descriptor.label.unwrap())
}

#[test]
fn vlan_policy_marks_and_the_port_trusts_the_rest() {
    let mut engine = vlan_based(|_| ()).unwrap();
    let by_dscp = |dscp| Some(Label { dscp, ..Label::default() });
    let mut label = |port, frame: &[u8]| labelled_queue_at(&mut engine, MILLI, port, frame);
    let (ef, web) = (frames::udp(200, 46, 1, 2), frames::udp(200, 18, 1, 2));
    assert_eq!(label(0, &ef), by_dscp(34));
    assert_eq!(label(0, &web), by_dscp(18));
    assert_eq!(label(1, &ef), by_dscp(34));
    assert_eq!(label(1, &web), by_dscp(0));
    // VLAN 10 arrives on the trunk with a tag; frames without one, or with VLAN 0, are in VLAN 1, whose interface has
    // no policy.
    let by_cos = |cos: u8| Some(Label { dscp: cos * 8, cos: Some(cos), ..Label::default() });
    assert_eq!(label(2, &frames::tagged(&ef, 3, 10)), by_dscp(34));
    assert_eq!(label(2, &frames::tagged(&web, 3, 10)), by_cos(3));
    assert_eq!(label(2, &frames::tagged(&ef, 3, 11)), by_cos(3));
    assert_eq!(label(2, &frames::tagged(&ef, 3, 0)), by_cos(3));
    assert_eq!(label(2, &ef), by_cos(0));
    engine.audit().unwrap();
}

/// Frames of 1018 bytes (with FCS) of EF by both ports of the VLAN, one each millisecond for a second: each
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
            let out = labelled_queue_at(&mut engine, MILLI + frame * MILLI, port, &frame_of(port));
            passed[usize::from(port)] += u64::from(out.is_some());
        }
    }
    engine.audit().unwrap();
    let by_rate = |bytes_per_ms: u64| (8_000 + 999 * bytes_per_ms) / 1_018;
    // No policer applies to the trunk.
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

/// The switch part of the port with this number.
fn switch_part(config: &mut RouterConfig, number: usize) -> &mut SwitchPortConfig {
    config.interfaces.get_mut(&name(number)).unwrap().switch.as_mut().unwrap()
}

#[test]
fn without_vlan_based_the_policy_of_a_vlan_does_nothing() {
    let mut engine = vlan_based(|config| switch_part(config, 1).vlan_based = false).unwrap();
    assert_eq!(
        labelled_queue_at(&mut engine, MILLI, 0, &frames::udp(200, 46, 1, 2)),
        Some(Label { dscp: 46, ..Label::default() })
    );
}

#[test]
fn impossible_vlan_policies_are_refused() {
    let refused = |change: &dyn Fn(&mut RouterConfig)| {
        let error = vlan_based(change).unwrap_err();
        (error.path, error.message)
    };
    let in_class = |policy_map: &str, class: PolicyClass| {
        refused(&|config| config.policy_maps.get_mut(policy_map).unwrap().classes[0] = class.clone())
    };
    let (path, message) = in_class("VLAN", voice().police(police(1_000_000).bytes(8_000)));
    assert_eq!(path, "switch.vlan_policies.10");
    assert!(message.contains("a VLAN policy-map cannot police"), "{message}");
    assert!(in_class("VLAN", class_of("ONE")).1.contains("matches ports"));
    assert!(in_class("PORTS", class_of("ONE").trust(Trust::Dscp)).1.contains("marks"));
    assert!(in_class("PORTS", voice()).1.contains("something other than ports"));
    let attached = |vlan: u16, policy_map: &str| {
        let policies = [(vlan, policy_map.to_owned())];
        refused(&|config| config.switch.as_mut().unwrap().vlan_policies = policies.clone().into()).1
    };
    assert!(attached(10, "NONE").contains("no policy-map \"NONE\""));
    assert!(attached(4_095, "VLAN").contains("not a VLAN"));
    let own = |vlan_based: bool| {
        let switchport = Some(SwitchportConfig { mode: SwitchportMode::Access, vlan: 10 });
        let port = interface(SwitchPortConfig { vlan_based, switchport, ..port() }).input("VLAN");
        refused(&|config| *config.interfaces.get_mut(&name(1)).unwrap() = port.clone()).1
    };
    assert!(own(true).contains("uses the policies of its VLANs"));
    assert!(own(false).contains("two-level policy-map"));
}
