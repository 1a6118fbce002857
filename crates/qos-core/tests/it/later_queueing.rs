//! Queueing of routers since 12.4(20)T, against their prints.

use crate::common::build::*;
use crate::common::{self, bytes_by_source, class, load, with_policies, with_policy, Source, PORT, SECOND};
use qos_core::counters::ClassCounters;
use qos_core::wire::Framing::Ppp;
use qos_core::{Engine, RouterConfig, Time};

/// Ten seconds of those sources on a line; counters at the end.
fn counters_after_ten_seconds(
    rate_bps: u64,
    config: &RouterConfig,
    sources: &[Source],
) -> (Vec<ClassCounters>, Vec<u64>) {
    let mut engine: Engine<usize> = common::started(rate_bps, Ppp, config);
    let outputs = load(&mut engine, Ppp, sources, Time(10 * SECOND));
    engine.audit().unwrap();
    let policy = engine.counters(Time(10 * SECOND), None).interfaces["Out"].policy_output.clone().unwrap();
    let kbps = bytes_by_source(&outputs, sources.len()).iter().map(|bytes| bytes * 8 / 10_000).collect();
    (policy.classes, kbps)
}

/// `fair-queue` with `random-detect`: no flow has its own limit, early detection's thresholds hold for all
/// together. Before, one flow stopped at 16 packets, and thresholds of 20 and 40 could never act.
#[test]
fn early_detection_alone_limits_the_flows_of_a_class() {
    let config = with_policy(Hqf, 2_000, vec![class_default().fair_queue().random_detect(red_by_precedence())]);
    for flows in [1, 20] {
        let sources: Vec<_> = (0..flows).map(|flow| Source::new(1000, 0, flow, 4_000_000 / u64::from(flows))).collect();
        let (classes, _) = counters_after_ten_seconds(2_000_000, &config, &sources);
        let drops = classes[0].drops;
        assert_eq!((drops.flow.packets, drops.tail.packets), (0, 0), "{flows} flows");
        assert!(drops.random.packets + drops.random_tail.packets > 1_500, "{drops:?}");
        let queue = classes[0].queue.unwrap();
        assert_eq!((queue.per_flow_limit, queue.max_flows), (None, Some(256)));
        assert!(classes[0].random_detect.clone().unwrap().mean_depth > 20.0);
    }
}

/// A class that only marks, next to a shaped class-default: it is not in the shaper, whether or not class-default has a
/// child policy, in both generations.
#[test]
fn shaper_of_class_default_leaves_other_classes_unshaped() {
    for generation in [Classic, Hqf] {
        for child in [None, Some("CHILD")] {
            let mark = class_of("af").set(SetField::Dscp, 12);
            let service_policy = child.map(str::to_owned);
            let default = PolicyClass { service_policy, ..class_default().shape_bps(1_000_000) };
            let config = with_policy(generation, 10_000, vec![mark, default])
                .policy_map("CHILD", vec![class_of("low").kbps(200)]);
            let sources = [Source::new(1000, 10, 0, 3_000_000), Source::new(1000, 0, 1, 3_000_000)];
            let (_, kbps) = counters_after_ten_seconds(10_000_000, &config, &sources);
            assert!((2_990..3_030).contains(&kbps[0]), "{generation:?}, {child:?}: {kbps:?}");
            assert!((990..1_015).contains(&kbps[1]), "{generation:?}, {child:?}: {kbps:?}");
        }
    }
}

/// The published set-up: 20 % with ten flows, 30 % with a child of 70 % and a rest, and a flood in class-default, on
/// 2 Mb/s with a ring of 2. The print shows 174 packets in the parent, 107 and 64 in its children, and 18 in
/// class-default, whose flow may have 16.
#[test]
fn depths_shown_include_the_ring() {
    let maps = maps([
        ("Intra", vec![class_of("c1").percent(70).fair_queues(4096), class_default().percent(30)]),
        (
            "P",
            vec![
                class_of("af").percent(20).fair_queues(4096),
                class_of("parent").percent(30).service_policy("Intra"),
                class_default().fair_queue(),
            ],
        ),
    ]);
    let config = with_policies(Hqf, 2_000, maps).class_map("parent", match_all(vec![dscp(&[1, 2])]));
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &config);
    let send = |engine: &mut Engine<usize>, packets: usize, dscp: u8, flows: u16| {
        for packet in 0..packets {
            let source = Source::new(if dscp == 1 { 1300 } else { 256 }, dscp, packet as u16 % flows, 1);
            engine.transmit(Time(0), PORT, source.descriptor(Ppp), 0);
        }
    };
    let shown = |class: &ClassCounters| class.queue.unwrap().depth_packets + class.queue.unwrap().in_ring_packets;
    // The first three are on the line and in the ring: the parent's.
    send(&mut engine, 110, 1, 10);
    send(&mut engine, 80, 2, 1);
    let parent = class(&mut engine, Time(0), 1);
    let children = &parent.child.as_ref().unwrap().classes;
    let depths: Vec<_> = children.iter().map(|class| class.queue.unwrap().depth_packets).collect();
    assert_eq!((shown(&parent), depths), (174, vec![107, 64]));
    // All three classes have traffic: class-default's flow has 16 packets in its queue, or 15 until the next one comes,
    // and most often two or three of those in the ring and on the line.
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &config);
    let (mut outputs, mut seen) = (Vec::new(), std::collections::BTreeMap::new());
    let sources = [(256, 0, 1_285_000), (256, 2, 1_310_000), (1300, 1, 20_000_000), (1300, 10, 21_000_000)];
    for at in (0..30_000_000_000u64).step_by(5_000) {
        for (ip_len, dscp, gap) in sources {
            if at % gap == 0 {
                common::run(&mut engine, Time(at), &mut outputs);
                engine.transmit(Time(at), PORT, Source::new(ip_len, dscp, 0, 1).descriptor(Ppp), 0);
            }
        }
        if at > 10_000_000_000 && at % 9_715_000 == 0 {
            common::run(&mut engine, Time(at), &mut outputs);
            *seen.entry(shown(&class(&mut engine, Time(at), 2))).or_insert(0) += 1;
        }
    }
    let most = seen.iter().max_by_key(|(_, times)| **times).map(|(depth, _)| *depth);
    assert_eq!(most, Some(18), "{seen:?}");
}

/// An ISR G2's thresholds by code point.
#[test]
fn red_thresholds_by_code_point_follow_the_generation() {
    let red = class_default().kbps(500).random_detect(red_by_dscp());
    let minima = |generation: Generation| {
        let config = with_policy(generation, 2_000, vec![red.clone()]);
        let sources: Vec<_> = [10, 12, 14, 0].iter().map(|dscp| Source::new(1000, *dscp, 0, 200_000)).collect();
        let (classes, _) = counters_after_ten_seconds(2_000_000, &config, &sources);
        let rows = classes[0].random_detect.clone().unwrap().classes;
        rows.iter().map(|row| (row.value, row.min, row.max)).collect::<Vec<_>>()
    };
    assert_eq!(minima(Hqf), [(0, 20, 40), (10, 32, 40), (12, 28, 40), (14, 24, 40)]);
    assert_eq!(minima(Classic), [(0, 20, 40), (10, 33, 40), (12, 28, 40), (14, 24, 40)]);
}

/// All levels of a hierarchy classify the packet as it came: what the parent sets does not move it to another class of
/// the child. On the wire it has what was set last.
#[test]
fn child_policy_classifies_by_the_original_mark() {
    let parent = class_default().set(SetField::Dscp, 46).service_policy("CHILD").shape_bps(1_000_000);
    let child = vec![class_of("af").percent(20), class_of("ef").percent(20)];
    let config =
        with_policy(Hqf, 2_000, vec![parent]).policy_map("CHILD", child).class_map("ef", match_all(vec![dscp(&[46])]));
    let sources = [Source::new(1000, 10, 0, 500_000)];
    let (classes, _) = counters_after_ten_seconds(2_000_000, &config, &sources);
    let child = &classes[0].child.as_ref().unwrap().classes;
    let packets: Vec<_> = child.iter().map(|class| class.packets).collect();
    let expected = if qos_core::config::defaults::CHILD_MATCHES_PARENTS_MARK { [0, 626, 0] } else { [626, 0, 0] };
    assert_eq!(packets, expected);
}

/// A class with fair queueing reports its flows, and one without does not.
#[test]
fn class_with_fair_queue_shows_flow_limits() {
    for (class, per_flow, most) in [(class_default(), None, None), (class_default().fair_queue(), Some(16), Some(256))]
    {
        let mut engine: Engine<usize> =
            common::started(2_000_000, Ppp, &with_policy(Hqf, 2_000, vec![class.clone().queue_limit(64)]));
        let queue = common::class(&mut engine, Time(0), 0).queue.unwrap();
        assert_eq!((queue.per_flow_limit, queue.max_flows), (per_flow, most), "{class:?}");
    }
}

/// A packet is shown as its class's until its last bit is on the line; by the classic generation while it is in a
/// queue.
#[test]
fn depths_shown_end_with_the_last_bit() {
    let sent = |generation: Generation| {
        let class = vec![class_default().kbps(1000)];
        let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &with_policy(generation, 2_000, class));
        engine.transmit(Time(0), PORT, common::udp(496, 0, Ppp), 0);
        engine
    };
    let mut outputs = Vec::new();
    common::run(&mut sent(Hqf), Time(SECOND), &mut outputs);
    let end = common::departures(&outputs)[0].0 .0;
    let (mut later, mut classic) = (sent(Hqf), sent(Classic));
    for (at, shown) in [(end - 1, 1), (end, 0), (end + SECOND, 0)] {
        assert_eq!(class(&mut later, Time(at), 0).queue.unwrap().in_ring_packets, shown, "at {at}");
        assert_eq!(class(&mut classic, Time(at), 0).queue.unwrap().in_ring_packets, 0, "at {at}");
    }
}
