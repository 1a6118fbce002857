//! Queueing of an interface without a policy-map: generic traffic shaping, priority and custom queueing.

use crate::common::build::*;
use crate::common::{self, bytes_by_source, departures, load, out, Source, MILLI, PORT, SECOND};
use proptest::prelude::*;
use qos_core::counters::Strategy as Queueing;
use qos_core::wire::Framing;
use qos_core::{Engine, Time};

const LINE_BPS: u64 = 1_000_000;

fn engine<P>(queueing: InterfaceQueueing) -> Engine<P> {
    let mut interface = interface(1_000, None, None);
    interface.queueing = Some(queueing);
    interface.tx_ring_limit = Some(1);
    common::started(LINE_BPS, Framing::Ethernet, &common::configuration(Classic, Maps::new(), interface))
}

/// The rule that puts a flow of a [`Source`] into a queue.
fn flow_to(flow: u16, queue: u8) -> QueueRule {
    QueueRule { port: Some(QueuedPort { protocol: 17, number: 6_000 + flow }), ..ipv4_to(queue) }
}

fn ipv4_to(queue: u8) -> QueueRule {
    QueueRule { protocol: Some(QueuedProtocol::Ip), ..to_queue(queue) }
}

fn rules(queues: &[u8]) -> Vec<QueueRule> {
    queues.iter().enumerate().map(|(flow, queue)| flow_to(flow as u16, *queue)).collect()
}

/// Bytes of a frame that count, as IP.
fn ip(counted: usize) -> usize {
    counted - 14
}

proptest! {
    #![proptest_config(crate::bounded::cases(24))]

    /// A packet that was there before another one was taken from a lower queue leaves before that one.
    #[test]
    fn lower_priority_queue_is_served_only_when_higher_ones_are_empty(
        packets in prop::collection::vec((0u64..8_000_000, 0usize..4, 60usize..1500), 2..150),
    ) {
        let queueing = InterfaceQueueing::Priority { rules: rules(&[0, 1, 2, 3]), default: 2, limits: [0; 4] };
        let mut engine = engine(queueing);
        let (mut at, mut outputs, mut arrivals) = (0, Vec::new(), Vec::new());
        for (gap, queue, ip_len) in packets {
            at += gap;
            common::run(&mut engine, Time(at), &mut outputs);
            let source = Source { ip_len, dscp: 0, flow: queue as u16, gap_ns: 0 };
            let descriptor = source.descriptor(Framing::Ethernet);
            engine.transmit(Time(at), PORT, descriptor, arrivals.len());
            arrivals.push((at, queue, descriptor.line_len));
        }
        common::run(&mut engine, Time(at + 100 * SECOND), &mut outputs);
        engine.audit().unwrap();
        let left = departures(&outputs);
        prop_assert_eq!(left.len(), arrivals.len());
        let mut gone = vec![false; arrivals.len()];
        for pair in left.windows(2) {
            let ((end, before, _), (_, next, _)) = (pair[0], pair[1]);
            gone[before] = true;
            // A packet enters the one-packet ring when the previous packet starts on the line.
            let start = end.0 - u64::from(arrivals[before].2) * 8 * SECOND / LINE_BPS;
            let waited = |(number, arrival): (usize, &(u64, usize, u32))| {
                !gone[number] && number != next && arrival.0 < start && arrival.1 < arrivals[next].1
            };
            prop_assert!(arrivals[next].0 >= start || !arrivals.iter().enumerate().any(waited));
        }
    }

    /// Queues that always have packets take turns in their order, and after any number of turns a queue has sent as
    /// many byte counts, to a packet.
    #[test]
    fn byte_counts_are_shared_to_a_packet(
        queues in prop::collection::vec((1_500u32..6_000, 100usize..1_500), 2..6),
    ) {
        let values: Vec<_> = queues.iter().enumerate()
            .map(|(index, (byte_count, _))| custom_queue(index as u8 + 1, *byte_count))
            .collect();
        let numbers: Vec<u8> = (1..=queues.len() as u8).collect();
        let mut engine = engine(custom_queues(rules(&numbers), values));
        let sources: Vec<_> = queues.iter().enumerate()
            .map(|(flow, (_, size))| Source::new(ip(*size), 0, flow as u16, LINE_BPS))
            .collect();
        let outputs = load(&mut engine, Framing::Ethernet, &sources, Time(8 * SECOND));
        engine.audit().unwrap();
        // After a second every queue has packets.
        let late = departures(&outputs).into_iter().filter(|(at, ..)| at.0 > SECOND);
        let mut turns: Vec<(usize, u64)> = Vec::new();
        for (_, queue, bytes) in late {
            match turns.last_mut() {
                Some((last, sent)) if *last == queue => *sent += u64::from(bytes),
                _ => turns.push((queue, u64::from(bytes))),
            }
        }
        let (mut taken, mut sent) = (vec![0u64; queues.len()], vec![0u64; queues.len()]);
        let whole = &turns[1..turns.len() - 1];
        for pair in whole.windows(2) {
            prop_assert_eq!(pair[1].0, (pair[0].0 + 1) % queues.len());
        }
        for (queue, bytes) in whole {
            taken[*queue] += 1;
            sent[*queue] += bytes;
            let (byte_count, size) = queues[*queue];
            let due = taken[*queue] * u64::from(byte_count);
            prop_assert!(sent[*queue].abs_diff(due) < size as u64, "{sent:?} after {taken:?} turns of {queues:?}");
        }
    }
}

/// Cisco, "Congestion Management Overview", determining byte count values: packets of 1086, 291 and 831 bytes, of which
/// 1, 12 and 2 make a turn, get 17.4, 56 and 26.6 per cent; with 2, 23 and 3 it is 19.1, 58.9 and 21.9.
///
/// The lengths are remembered: the chapter could not be had again. The shares are arithmetic, 1086 / (1086 + 12 * 291 +
/// 2 * 831) is 17.4 per cent; and the rule (share by length, divided by the least, rounded up to packets) was read
/// again as quoted from the documentation of 12.1 in "Custom Queue Confusion" (groupstudy, 1 June 2003).
#[test]
fn byte_counts_give_the_shares_of_the_worked_example() {
    let sizes = [1_086, 291, 831];
    let shares = |packets: [usize; 3]| {
        let queues: Vec<_> =
            (0..3).map(|queue| custom_queue(queue as u8 + 1, (packets[queue] * sizes[queue]) as u32)).collect();
        let mut engine = engine(custom_queues(rules(&[1, 2, 3]), queues));
        let sources: Vec<_> = (0..3).map(|flow| Source::new(ip(sizes[flow]), 0, flow as u16, LINE_BPS)).collect();
        let outputs = load(&mut engine, Framing::Ethernet, &sources, Time(60 * SECOND));
        let sent = bytes_by_source(&outputs, 3);
        let all = sent.iter().sum::<u64>() as f64;
        sent.into_iter().map(move |bytes| bytes as f64 / all * 100.0)
    };
    for (packets, percent) in [([1, 12, 2], [17.4, 56.0, 26.6]), ([2, 23, 3], [19.1, 58.9, 21.9])] {
        for (share, expected) in shares(packets).zip(percent) {
            // A minute does not end with a turn.
            assert!((share - expected).abs() < 0.15, "{share} % instead of {expected} % with {packets:?}");
        }
    }
}

/// A turn beyond its byte count is shorter the next time: packets of 500, 300 and 100 bytes with byte counts of 200 get
/// a third each; without that rule they would get 50, 30 and 20 per cent.
#[test]
fn excess_of_a_turn_is_deducted_from_the_next() {
    let queues: Vec<_> = (1..4).map(|number| custom_queue(number, 200)).collect();
    let mut engine = engine(custom_queues(rules(&[1, 2, 3]), queues));
    let sizes = [500, 300, 100];
    let sources: Vec<_> = (0..3).map(|flow| Source::new(ip(sizes[flow]), 0, flow as u16, LINE_BPS)).collect();
    let sent = bytes_by_source(&load(&mut engine, Framing::Ethernet, &sources, Time(20 * SECOND)), 3);
    let all = sent.iter().sum::<u64>() as f64;
    for bytes in &sent {
        assert!((*bytes as f64 / all - 1.0 / 3.0).abs() < 0.005, "{sent:?}");
    }
}

/// The queues before the lowest custom one are served first; the others share the remainder.
#[test]
fn queues_before_the_lowest_custom_one_come_first() {
    let queueing = InterfaceQueueing::Custom { rules: rules(&[0, 1, 2]), default: 3, lowest: 2, queues: vec![] };
    let mut engine = engine(queueing);
    let sources = [(0, 200_000), (1, 300_000), (2, LINE_BPS), (3, LINE_BPS)]
        .map(|(flow, bps)| Source::new(ip(1_000), 0, flow, bps));
    let sent = bytes_by_source(&load(&mut engine, Framing::Ethernet, &sources, Time(30 * SECOND)), 4);
    let kbps: Vec<_> = sent.iter().map(|bytes| bytes * 8 / 30 / 1_000).collect();
    assert!(kbps[0].abs_diff(203) <= 2 && kbps[1].abs_diff(304) <= 2, "{kbps:?}");
    assert!(kbps[2].abs_diff(kbps[3]) <= 2 && kbps[2] > 220, "{kbps:?}");
    let counted = out(&mut engine, Time(30 * SECOND));
    assert_eq!(counted.queue.strategy, Queueing::Custom);
    let limits: Vec<_> = counted.numbered_queues.iter().map(|queue| (queue.number, queue.limit_packets)).collect();
    assert_eq!(limits, (0..17).map(|number| (number, 20)).collect::<Vec<_>>());
    let dropped = counted.numbered_queues.iter().map(|queue| queue.drops.packets);
    assert_eq!(dropped.sum::<u64>(), counted.output.drops);
}

/// A rule wants all that it says: sizes count as on the line's layer 2, ports at either end, the way in by its port.
#[test]
fn first_matching_rule_selects_the_queue() {
    let mut engine = engine(priority_group(vec![
        QueueRule { larger_than: Some(1_000), ..ipv4_to(0) },
        QueueRule { smaller_than: Some(100), ..ipv4_to(1) },
        QueueRule { access_list: Some("low".to_owned()), ..ipv4_to(3) },
        QueueRule { port: Some(QueuedPort { protocol: 17, number: 5_001 }), ..ipv4_to(1) },
        QueueRule { protocol: Some(QueuedProtocol::Other), ..to_queue(0) },
        QueueRule { interface: Some("Out".to_owned()), ..to_queue(3) },
        QueueRule { fragments: true, ..ipv4_to(3) },
    ]));
    let udp = |ip_len: usize, port: u16| common::datagram(ip_len, 0, 40_000, port, Framing::Ethernet);
    let cases = [
        (udp(ip(1_001), 9_000), 0),
        (udp(ip(1_000), 9_000), 2),
        (udp(ip(100), 9_000), 2),
        (udp(ip(99), 9_000), 1),
        (udp(500, 4_999), 3),
        (udp(500, 5_001), 1),
        (qos_core::Descriptor::UNKNOWN, 0),
        (qos_core::Descriptor { input_port: Some(PORT), ..udp(500, 9_000) }, 3),
        (qos_core::Descriptor { later_fragment: true, ..udp(500, 9_000) }, 3),
    ];
    for (number, (descriptor, queue)) in cases.into_iter().enumerate() {
        let before = out(&mut engine, Time(0)).numbered_queues;
        engine.transmit(Time(number as u64 * SECOND), PORT, descriptor, number);
        let after = out(&mut engine, Time(0)).numbered_queues;
        let changed = (0..4).filter(|index| after[*index].output != before[*index].output);
        assert_eq!(changed.collect::<Vec<_>>(), [queue], "case {number}");
    }
}

fn shaped_interface(shaper: InterfaceShaper) -> Engine<usize> {
    engine(InterfaceQueueing::Shaped { shapers: vec![shaper] })
}

/// The bursts of published prints: 8000 b/s and 64000 b/s, and 128000 b/s of a configuration.
#[test]
fn traffic_shape_bursts_match_published_prints() {
    for (bps, printed) in [
        (8_000, (2_000, 8_000, 8_000, 1_000, 1_000)),
        (64_000, (2_000, 8_000, 8_000, 125, 1_000)),
        (128_000, (1_984, 7_936, 7_936, 62, 992)),
    ] {
        let mut engine = shaped_interface(traffic_shape(None, bps));
        let shape = out(&mut engine, Time(0)).shapers[0].shape;
        let found = (shape.byte_limit, shape.bc_bits, shape.be_bits, shape.interval_ms, shape.increment_bytes);
        assert_eq!(found, printed, "{bps} b/s");
    }
}

/// A shaper of a list holds only its packets; packets waiting there have not reached the interface's queue.
#[test]
fn shaper_holds_only_packets_of_its_access_list() {
    for strategy in [true, false] {
        let mut interface = interface(1_000, None, None);
        interface.fair_queue = Some(InterfaceFairQueue { enabled: strategy, ..fair_queue() });
        interface.queueing = Some(InterfaceQueueing::Shaped { shapers: vec![traffic_shape(Some("low"), 100_000)] });
        let mut engine =
            common::started(LINE_BPS, Framing::Ethernet, &common::configuration(Classic, Maps::new(), interface));
        let held = common::datagram(ip(1_000), 0, 40_000, 4_999, Framing::Ethernet);
        let free = common::datagram(ip(1_000), 0, 40_000, 5_000, Framing::Ethernet);
        let mut outputs = Vec::new();
        // 200 kb/s for the shaper, 400 kb/s in parallel.
        for number in 0..500u64 {
            let at = Time(number * SECOND / 50);
            common::run(&mut engine, at, &mut outputs);
            engine.transmit(at, PORT, free, 0);
            if number % 2 == 0 {
                engine.transmit(at, PORT, held, 1);
            }
        }
        common::run(&mut engine, Time(10 * SECOND), &mut outputs);
        engine.audit().unwrap();
        let sent = bytes_by_source(&outputs, 2);
        assert!(sent[0] >= 499_000, "{sent:?}");
        // The rate and the initial bursts.
        assert!(sent[1].abs_diff(125_000 + 2_000) <= 2_000, "{sent:?}");
        let counted = out(&mut engine, Time(10 * SECOND));
        let shaper = counted.shapers[0];
        assert!(counted.queue.depth <= 1 && shaper.depth_packets > 55, "{counted:?}");
        assert!(shaper.shape.active && shaper.shape.delayed.packets > 100);
        assert_eq!(shaper.shape.sent.packets + shaper.depth_packets + shaper.drops.packets, 250);
    }
}

/// With `traffic-shape rate` everything is held, and the buffers are the limit.
#[test]
fn a_shaper_of_everything_keeps_the_rate() {
    let mut engine = shaped_interface(InterfaceShaper { buffers: 10, ..traffic_shape(None, 200_000) });
    let sources = [Source::new(ip(500), 0, 0, 300_000), Source::new(ip(500), 0, 1, 300_000)];
    let sent = bytes_by_source(&load(&mut engine, Framing::Ethernet, &sources, Time(20 * SECOND)), 2);
    let all = sent.iter().sum::<u64>();
    assert!(all.abs_diff(20 * 200_000 / 8) <= 3_000 && sent[0].abs_diff(sent[1]) <= 2_000, "{sent:?}");
    let counted = out(&mut engine, Time(20 * SECOND));
    assert_eq!((counted.shapers[0].limit_packets, counted.queue.depth), (10, 0));
    assert!(counted.shapers[0].depth_packets <= 10);
}

/// Other queues take over the waiting packets.
#[test]
fn a_change_of_queues_loses_no_packet() {
    let mut engine = shaped_interface(traffic_shape(None, 8_000));
    let packet = Source::new(ip(1_000), 0, 3, LINE_BPS).descriptor(Framing::Ethernet);
    (0..10).for_each(|number| engine.transmit(Time(number), PORT, packet, 0));
    let mut interface = interface(1_000, None, None);
    interface.queueing = Some(priority_group(rules(&[0, 1, 2, 3])));
    interface.tx_ring_limit = Some(1);
    let mut outputs = Vec::new();
    common::run(&mut engine, Time(1_000), &mut outputs);
    engine.configure(Time(1_000), &common::configuration(Classic, Maps::new(), interface)).unwrap();
    engine.audit().unwrap();
    assert!(out(&mut engine, Time(1_000)).numbered_queues[3].depth_packets > 0);
    common::run(&mut engine, Time(SECOND), &mut outputs);
    assert_eq!(departures(&outputs).len(), 10);
}

/// Impossible values are refused with their place.
#[test]
fn impossible_queues_are_refused() {
    let refused = |queueing: InterfaceQueueing, output: Option<&str>| {
        let mut interface = interface(1_000, None, output);
        interface.queueing = Some(queueing);
        let policy = maps([("P", vec![class_default().queue_limit(10)])]);
        let config = common::configuration(Classic, policy, interface);
        let error = common::engine::<u64>(LINE_BPS, Framing::Ethernet).configure(Time(0), &config).unwrap_err();
        error.path.trim_start_matches("interfaces.Out.").to_owned()
    };
    let icmp = Some(QueuedPort { protocol: 1, number: 7 });
    for (rule, path) in [
        (to_queue(4), "queue"),
        (QueueRule { access_list: Some("x".to_owned()), ..to_queue(0) }, "access_list"),
        (QueueRule { interface: Some("x".to_owned()), ..to_queue(0) }, "interface"),
        (QueueRule { port: icmp, ..to_queue(0) }, "port.protocol"),
    ] {
        assert_eq!(refused(priority_group(vec![rule]), None), format!("queueing.rules[0].{path}"));
    }
    assert_eq!(refused(custom_numbers(17, 1), None), "queueing.default");
    assert_eq!(refused(custom_numbers(1, 0), None), "queueing.lowest");
    let with_queue = |queue| custom_queues(vec![], vec![queue]);
    assert_eq!(refused(with_queue(CustomQueue::new(17)), None), "queueing.queues[0].number");
    assert_eq!(
        refused(with_queue(CustomQueue { byte_count: 0, ..CustomQueue::new(1) }), None),
        "queueing.queues[0].byte_count"
    );
    let slow = InterfaceQueueing::Shaped { shapers: vec![traffic_shape(None, 7_000)] };
    assert_eq!(refused(slow, None), "queueing.shapers[0].shape.rate");
    assert_eq!(refused(custom_queues(vec![], vec![]), Some("P")), "queueing");
}

/// Custom queueing with these numbers of queues: that of all else, and the first that takes turns.
fn custom_numbers(default: u8, lowest: u8) -> InterfaceQueueing {
    InterfaceQueueing::Custom { rules: vec![], default, lowest, queues: vec![] }
}

/// Values at the limit are accepted, and values just beyond it are refused.
#[test]
fn queueing_values_are_checked_at_their_limits() {
    let taken = |queueing: InterfaceQueueing| {
        let mut interface = interface(1_000, None, None);
        interface.queueing = Some(queueing);
        let config = common::configuration(Classic, Maps::new(), interface);
        common::engine::<u64>(LINE_BPS, Framing::Ethernet).configure(Time(0), &config).is_ok()
    };
    let with_rules = |rules| custom_queues(rules, vec![]);
    let with_queue = |queue| custom_queues(vec![], vec![queue]);
    for (last, fits) in [(16, true), (17, false)] {
        assert_eq!(taken(custom_numbers(last, 1)), fits, "{last}");
        assert_eq!(taken(custom_numbers(1, last)), fits, "{last}");
        assert_eq!(taken(with_queue(CustomQueue::new(last))), fits, "{last}");
        assert_eq!(taken(with_rules(vec![to_queue(last)])), fits, "{last}");
    }
    for (bytes, fits) in [(1, true), (16_777_215, true), (16_777_216, false)] {
        assert_eq!(taken(with_queue(CustomQueue { byte_count: bytes, ..CustomQueue::new(1) })), fits, "{bytes}");
    }
    for (rules, fits) in [(1_000, true), (1_001, false)] {
        assert_eq!(taken(with_rules(vec![to_queue(1); rules])), fits, "{rules} rules");
        assert_eq!(taken(priority_group(vec![to_queue(3); rules])), fits, "{rules} rules");
    }
    for (buffers, fits) in [(0, false), (1, true), (4_096, true), (4_097, false)] {
        let shapers = vec![InterfaceShaper { buffers, ..traffic_shape(None, 8_000) }];
        assert_eq!(taken(InterfaceQueueing::Shaped { shapers }), fits, "{buffers} buffers");
    }
    for protocol in [6, 17] {
        assert!(taken(with_rules(vec![QueueRule { port: Some(QueuedPort { protocol, number: 7 }), ..to_queue(1) }])));
    }
}

/// A queue that gets packets while another one has its turn waits for its own, though its number is lower.
#[test]
fn arrival_does_not_interrupt_a_turn() {
    let queues = vec![custom_queue(1, 1_000), custom_queue(2, 4_000)];
    let mut engine: Engine<usize> = engine(custom_queues(rules(&[1, 2]), queues));
    let packet = |flow| Source::new(ip(1_000), 0, flow, LINE_BPS).descriptor(Framing::Ethernet);
    // The first two were all that there was of their turns; those from the third on have one together.
    (0..8).for_each(|number| engine.transmit(Time(0), PORT, packet(1), number));
    let mut outputs = Vec::new();
    // The second is on the line and the third in the ring.
    let now = Time(9 * MILLI);
    common::run(&mut engine, now, &mut outputs);
    engine.transmit(now, PORT, packet(0), 8);
    common::run(&mut engine, Time(SECOND), &mut outputs);
    let left: Vec<_> = departures(&outputs).into_iter().map(|(_, number, _)| number).collect();
    assert_eq!(left, [0, 1, 2, 3, 4, 5, 8, 6, 7]);
}
