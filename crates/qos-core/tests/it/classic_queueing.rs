//! Queueing of routers up to 12.4(15)T, against their prints and Cisco's course texts.

use crate::common::build::*;
use crate::common::{self, configuration, load, out, Source, MILLI, PORT, SECOND};
use qos_core::wire::Framing::Ppp;
use qos_core::{Engine, Output, RouterConfig, Time};
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// 2 Mb/s with `fair-queue` and two flows of 4 Mb/s, precedence 5 and 0: as a router shows, `Output queue: 64/1000/64`
/// and weights of 5397 and 32384. The last packets of both have about the same number, so that there are as many of
/// each as its weight has them, 6 to 1.
#[test]
fn two_saturating_flows_hold_the_congestive_discard_threshold_together() {
    let mut port = interface(2_000, None, None);
    port.fair_queue = Some(fair_queue());
    let config = configuration(Classic, Maps::new(), port);
    let sources = [Source::new(1000, 40, 0, 4_000_000), Source::new(1000, 0, 1, 4_000_000)];
    for seconds in [1, 10] {
        let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &config);
        let outputs = load(&mut engine, Ppp, &sources, Time(seconds * SECOND));
        let found = out(&mut engine, Time(seconds * SECOND));
        let queue = found.queue;
        assert_eq!((queue.depth, queue.limit, queue.threshold), (64, 1000, Some(64)));
        let reported: Vec<_> = found.conversations.iter().map(|each| (each.depth_packets, each.weight)).collect();
        assert_eq!(reported, [(55, 5_397), (9, 32_384)]);
        assert_eq!(found.conversations.iter().map(|each| each.drops).sum::<u64>(), queue.drops);
        let heads: Vec<_> =
            found.conversations.iter().map(|each| (each.head.bytes, each.head.ip.unwrap().tos)).collect();
        assert_eq!(heads, [(1004, (40 << 2) | 1), (1004, 1)]);
        engine.clear(Time(seconds * SECOND), None);
        assert!(out(&mut engine, Time(seconds * SECOND)).conversations.iter().all(|each| each.drops == 0));
        assert_eq!((queue.conversations, queue.max_active_conversations), (Some(2), Some(2)));
        let bytes = common::bytes_by_source(&outputs, 2);
        let ratio = bytes[0] as f64 / bytes[1] as f64;
        assert!((ratio / 6.0 - 1.0).abs() < 0.1, "{ratio}");
        engine.audit().unwrap();
    }
}

/// The conversation of a class is identified by the number that `show policy-map interface` has for it, those of
/// class-default by their place among the dynamic ones; the deepest come first.
#[test]
fn class_conversations_are_identified_by_number() {
    let config = common::with_policy(Classic, 256, vec![class_of("af").percent(50), class_default().fair_queue()]);
    let mut engine: Engine<usize> = common::started(256_000, Ppp, &config);
    load(&mut engine, Ppp, &[Source::new(500, 10, 0, 300_000), Source::new(500, 0, 1, 300_000)], Time(5 * SECOND));
    let found = out(&mut engine, Time(5 * SECOND));
    let class = found.policy_output.as_ref().unwrap().classes[0].clone();
    let queue = class.queue.unwrap();
    let own = found.conversations.iter().find(|each| Some(each.number) == queue.conversation).unwrap();
    assert_eq!((own.depth_packets, own.drops), (queue.depth_packets, class.drops.tail.packets));
    let other = found.conversations.iter().find(|each| each.number < 64).unwrap();
    assert_eq!((other.weight, found.conversations.len()), (32_384, 2));
    assert!(found.conversations.is_sorted_by_key(|each| std::cmp::Reverse(each.depth_packets)));
}

/// Under a classic shaper the same holds in its own queue.
#[test]
fn shaper_conversations_share_the_congestive_discard_threshold() {
    let config = common::with_policy(Classic, 2_000, vec![class_default().shape_bps(1_000_000)]);
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &config);
    let sources: Vec<_> = (0..5).map(|flow| Source::new(1000, 0, flow, 1_000_000)).collect();
    // Just before the end of an interval, when two or three packets leave the shaper's queue.
    let end = 10 * SECOND - 1_000_000;
    load(&mut engine, Ppp, &sources, Time(end));
    let class = out(&mut engine, Time(end)).policy_output.unwrap().classes[0].clone();
    // A packet ahead of the last one is accepted, so the depth exceeds the threshold by a few packets.
    let depth = class.queue.unwrap().depth_packets;
    assert!((64..80).contains(&depth), "{depth}");
    assert!(class.drops.tail.packets > 0);
}

/// The article's random flood on a line with `priority 64` and fair-queue in class-default: mean IP length of the sent
/// packets in several windows, in seconds.
fn lengths(kbps: u64, seed: u64, windows: &[(u64, u64)]) -> Vec<f64> {
    let echo = class_of("af").priority_kbps(64);
    let classes = vec![echo, class_default().fair_queue()];
    let mut port = interface(kbps, None, Some("P"));
    port.tx_ring_limit = Some(2);
    let mut engine: Engine<usize> =
        common::started(kbps * 1000, Ppp, &configuration(Classic, maps([("P", classes)]), port));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut outputs = Vec::new();
    let end = windows.last().unwrap().1;
    for number in 0..end * SECOND / 3_000_000 {
        let now = Time(number * 3_000_000);
        common::run(&mut engine, now, &mut outputs);
        let length = 92 + (random.next_u64() % 960) as usize;
        let frame = common::datagram(length, 0, 40_000, 1 + (random.next_u64() % 65_500) as u16, Ppp);
        engine.transmit(now, PORT, frame, length);
        // The depth grows by one packet at most in each of the steps.
        if number % 16 == 0 {
            assert!(engine.counters(now, None).interfaces["Out"].queue.depth < 200 - 16);
        }
    }
    engine.audit().unwrap();
    let mean = |(from, to): &(u64, u64)| {
        let departures = common::departures(&outputs).into_iter();
        let within = departures.filter(|(time, ..)| (from * SECOND..to * SECOND).contains(&time.0));
        let lengths: Vec<_> = within.map(|(_, length, _)| length as f64).collect();
        lengths.iter().sum::<f64>() / lengths.len() as f64
    };
    windows.iter().map(mean).collect()
}

/// Fair queueing lets small packets pass, and since the hold-queue of 1000 never fills it does so from the first
/// second on: it does not matter when one measures.
#[test]
fn random_size_flood_reaches_steady_state_at_once() {
    let windows = [(1, 21), (21, 41), (41, 81)];
    for kbps in [128, 512] {
        let runs: Vec<_> = (0..3).map(|seed| lengths(kbps, seed, &windows)).collect();
        let mean = |window: usize| runs.iter().map(|run| run[window]).sum::<f64>() / runs.len() as f64;
        for window in 0..windows.len() {
            assert!((mean(window) / mean(2) - 1.0).abs() < 0.1, "{kbps} kb/s: {runs:?}");
            // The offered packets have a mean of 571.5 bytes.
            assert!(mean(window) < 480.0, "{kbps} kb/s: {runs:?}");
        }
    }
}

/// Packets of the small flow that are lost next to a flood, both in a class-default that is not mentioned, behind a
/// class that has no traffic.
fn small_flow(class_default: Option<PolicyClass>) -> u64 {
    let mut classes = vec![class_of("low").kbps(200)];
    classes.extend(class_default);
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &common::with_policy(Classic, 2_000, classes));
    let sources = [Source::new(1000, 0, 0, 4_000_000), Source::new(200, 0, 1, 200_000)];
    let outputs = load(&mut engine, Ppp, &sources, Time(10 * SECOND));
    engine.audit().unwrap();
    let lost = outputs.iter().filter(|output| matches!(output, Output::Dropped(dropped) if dropped.payload == 1));
    lost.count() as u64
}

/// class-default is flow-based weighted fair queueing by default: 200 kb/s in packets of 200 bytes lose nothing next to
/// 4 Mb/s, with `fair-queue` typed or not. With a bandwidth it is a class like others, one queue for all.
#[test]
fn class_default_queues_by_flow_by_default() {
    assert_eq!(small_flow(None), 0);
    assert_eq!(small_flow(Some(class_default())), 0);
    assert_eq!(small_flow(Some(class_default().fair_queue())), 0);
    assert!(small_flow(Some(class_default().kbps(500))) > 500);
}

/// 100 Mb/s with `bandwidth 20000` in class-default: a router shows 1/1 reserved conversations and 55000 kb/s that are
/// still available.
#[test]
fn bandwidth_of_class_default_counts_as_reserved() {
    let reserved = |classes: Vec<PolicyClass>| {
        let mut engine: Engine<usize> =
            common::started(100_000_000, Ppp, &common::with_policy(Classic, 100_000, classes));
        let queue = out(&mut engine, Time(0)).queue;
        let conversations = queue.reserved_conversations.unwrap();
        (conversations.allocated, conversations.max, queue.available_bandwidth_kbps.unwrap())
    };
    assert_eq!(reserved(vec![class_default().kbps(20_000)]), (1, 1, 55_000));
    assert_eq!(reserved(vec![class_of("low").kbps(10_000), class_default().kbps(20_000)]), (2, 2, 45_000));
    assert_eq!(reserved(vec![class_default().fair_queue()]), (0, 0, 75_000));
}

/// One flow of 4 Mb/s before a shaper of 1 Mb/s: its queue grows to the congestive discard threshold of 64 packets, or
/// to the shaper's buffers where these are fewer. Packets of 500 and four bytes are 4.032 ms of the rate; nothing waits
/// longer than the buffers, and an interval of 25 ms, take.
#[test]
fn a_shaper_holds_no_more_packets_than_its_buffers() {
    let longest = |buffers: Option<u32>| {
        let classes = vec![PolicyClass { shape_buffers: buffers, ..class_default().shape_bps(1_000_000) }];
        let mut engine: Engine<u64> =
            common::started(100_000_000, Ppp, &common::with_policy(Classic, 100_000, classes));
        let sent = common::offer(&mut engine, common::udp(500, 1, Ppp), 1_000_000, Time(0), Time(2 * SECOND));
        engine.audit().unwrap();
        let waits = common::departures(&sent).into_iter().map(|(time, at, _)| time.0 - at).max().unwrap();
        (waits as f64 / 4_032_000.0).round() as u64
    };
    // An interval sends six packets, and the last of them may have arrived just after the previous release.
    for (buffers, packets) in [(None, 64), (Some(1_000), 64), (Some(20), 20), (Some(7), 7)] {
        let found = longest(buffers);
        assert!((packets - 1..=packets + 7).contains(&found), "{found} of {packets}");
    }
}

#[test]
fn shaper_buffers_need_a_classic_shaper() {
    let refusal = |generation: Generation, class: PolicyClass| {
        let config = common::with_policy(generation, 2_000, vec![class]);
        let mut engine: Engine<usize> = common::engine(2_000_000, Ppp);
        engine.configure(Time(0), &config).unwrap_err().path.rsplit_once('.').unwrap().1.to_owned()
    };
    let class = |buffers: u32| PolicyClass { shape_buffers: Some(buffers), ..class_default().shape_bps(64_000) };
    assert_eq!(refusal(Hqf, class(9)), "shape_buffers");
    assert_eq!(refusal(Classic, class(0)), "shape_buffers");
    assert_eq!(refusal(Classic, class(4_097)), "shape_buffers");
    assert_eq!(refusal(Classic, PolicyClass { shape_buffers: Some(9), ..class_default() }), "shape_buffers");
}

/// A full hold queue drops the packet with the highest sequence number of all, which may be the new one; a conversation
/// does not pay for packets that were not sent. Packets of flow 0 have 1500 bytes and those of flow 1 have 600, so in
/// the order of their numbers two and a half packets of flow 1 follow each packet of flow 0.
#[test]
fn full_hold_queue_drops_the_packet_that_would_leave_last() {
    let mut port = interface(64, None, None);
    port.hold_queue_out = Some(4);
    port.tx_ring_limit = Some(1);
    let mut engine: Engine<usize> = common::started(64_000, Ppp, &configuration(Classic, Maps::new(), port));
    let mut outputs = Vec::new();
    let arrivals = [(0, 6), (1, 1), (0, 1), (1, 2)];
    let flows = arrivals.into_iter().flat_map(|(flow, packets)| std::iter::repeat_n(flow, packets));
    for (number, flow) in flows.enumerate() {
        let ip_len = if flow == 0 { 1_500 } else { 600 };
        engine.transmit(Time(0), PORT, common::udp(ip_len, flow, Ppp), number);
    }
    // One is on the line and one in the ring.
    let found = out(&mut engine, Time(0));
    assert_eq!((found.queue.depth, found.queue.drops), (4, 4));
    let reported: Vec<_> = found.conversations.iter().map(|each| (each.depth_packets, each.drops)).collect();
    assert_eq!(reported, [(3, 0), (1, 4)]);
    engine.audit().unwrap();
    common::run(&mut engine, Time(10 * SECOND), &mut outputs);
    let left: Vec<_> = common::departures(&outputs).into_iter().map(|(_, number, _)| number).collect();
    assert_eq!(left, [0, 1, 6, 8, 2, 9]);
    let lost = |output: &Output<usize>| match output {
        Output::Dropped(dropped) => Some(dropped.payload),
        Output::Departure(_) => None,
    };
    assert_eq!(outputs.iter().filter_map(lost).collect::<Vec<_>>(), [5, 7, 4, 3]);
    engine.audit().unwrap();
}

/// Under a shaper two flows get the same, regardless of their offered rates; a priority conversation counts as one as
/// well.
#[test]
fn flows_under_a_shaper_get_equal_shares() {
    let shape = class_default().shape_bps(1_000_000);
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &common::with_policy(Classic, 2_000, vec![shape]));
    let sources = [Source::new(1000, 0, 0, 1_000_000), Source::new(1000, 0, 1, 4_000_000)];
    let outputs = load(&mut engine, Ppp, &sources, Time(20 * SECOND));
    let bytes = common::bytes_by_source(&outputs, 2);
    assert!((bytes[0] as f64 / bytes[1] as f64 - 1.0).abs() < 0.05, "{bytes:?}");

    let priority = vec![class_of("udp").priority_kbps(500)];
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &common::with_policy(Classic, 2_000, priority));
    assert_eq!(out(&mut engine, Time(0)).queue.conversations, Some(0));
    (0..20).for_each(|number| engine.transmit(Time(0), PORT, common::udp(1_000, 0, Ppp), number));
    let queue = out(&mut engine, Time(0)).queue;
    assert_eq!((queue.conversations, queue.max_active_conversations), (Some(1), Some(1)));
}

/// Offers packets of one flow or class each, `(length, code point, flow)`, to a port whose hold queue has two places;
/// returns the lost ones.
fn lost_packets(config: &RouterConfig, before: usize, packets: &[(usize, u8, u16)]) -> Vec<usize> {
    let mut engine: Engine<usize> = common::started(1_000_000_000, Ppp, config);
    let mut outputs = Vec::new();
    for number in 0..before as u64 {
        let now = Time(number * MILLI);
        common::run(&mut engine, now, &mut outputs);
        engine.transmit(now, PORT, Source::new(60_000, 0, 0, 1).descriptor(Ppp), usize::MAX);
    }
    let now = Time(before as u64 * MILLI);
    common::run(&mut engine, now, &mut outputs);
    for (number, (ip_len, dscp, flow)) in packets.iter().enumerate() {
        engine.transmit(now, PORT, Source::new(*ip_len, *dscp, *flow, 1).descriptor(Ppp), number);
    }
    engine.audit().unwrap();
    common::run(&mut engine, Time(now.0 + SECOND), &mut outputs);
    let lost = |output: &Output<usize>| match output {
        Output::Dropped(dropped) => Some(dropped.payload),
        Output::Departure(_) => None,
    };
    outputs.iter().filter_map(lost).collect()
}

fn engine_with_two_places(mut config: RouterConfig) -> RouterConfig {
    config.out().hold_queue_out = Some(2);
    config.out().tx_ring_limit = Some(1);
    config
}

/// The packet with the higher number is dropped, regardless of its conversation or class, even if the numbers are large
/// and one byte apart, as after thousands of long packets.
#[test]
fn large_sequence_numbers_compare_correctly() {
    let mut port = interface(64, None, None);
    port.fair_queue = Some(fair_queue());
    let fair = engine_with_two_places(configuration(Classic, Maps::new(), port));
    let least = BandwidthConfig::Kbps(1);
    let classes = vec![class_of("c1").bandwidth(least), class_of("c2").bandwidth(least)];
    let classes = engine_with_two_places(common::with_policy(Classic, 2_000, classes));
    let long = (60_000, 0, 0);
    for (config, others) in [(fair, [(0, 1), (0, 2)]), (classes, [(1, 1), (2, 1)])] {
        for before in [0, 4_000] {
            for longer in [0, 1] {
                // On the line and in the ring; the two that wait; one that is before both.
                let waiting =
                    |which: usize| (if which == longer { 101 } else { 100 }, others[which].0, others[which].1);
                let packets = [long, long, waiting(0), waiting(1), (40, 0, 3)];
                assert_eq!(lost_packets(&config, before, &packets), [2 + longer], "{before} packets before, {longer}");
            }
        }
    }
}

/// A hold-queue with another limit holds as many from then on.
#[test]
fn hold_queue_applies_a_changed_limit() {
    let mut engine: Engine<usize> =
        common::started(64_000, Ppp, &configuration(Classic, Maps::new(), interface(64, None, None)));
    let mut number = 0;
    for (limit, packets) in [(10, 10), (4, 10), (20, 20)] {
        let mut port = interface(64, None, None);
        port.hold_queue_out = Some(limit);
        engine.configure(Time(0), &configuration(Classic, Maps::new(), port)).unwrap();
        for _ in 0..30 {
            engine.transmit(Time(0), PORT, common::udp(100, 0, Ppp), number);
            number += 1;
        }
        let queue = out(&mut engine, Time(0)).queue;
        assert_eq!((queue.limit, queue.depth), (limit, packets));
        engine.audit().unwrap();
    }
}
