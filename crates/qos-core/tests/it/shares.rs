//! Shares of classes: by weight in any busy interval, with any load of others, and never beyond the shaper around them.

use crate::common::build::*;
use crate::common::{
    self, bytes_by_source, departures, load, run, with_policies, with_policy, Source, MILLI, PORT, SECOND,
};
use proptest::prelude::*;
use qos_core::wire::Framing::Ppp;
use qos_core::{Descriptor, Engine, Output, RouterConfig, Time};

const LINE: u64 = 2_000_000;

fn frame(ip_len: usize, dscp: u8) -> Descriptor {
    common::datagram(ip_len, dscp, 1, 6_000, Ppp)
}

/// Holds the fairness bound of start-time and self-clocked fair queueing: while two queues both have packets, what they
/// get differs from their weights by at most one packet of each. `served` are queue and bytes in order, `costs` what a
/// byte costs each queue. The first three went to the wire and the ring before the others had come; their costs count
/// later.
fn differ_by_one_packet(served: &[(usize, u64)], costs: &[f64]) -> Result<(), TestCaseError> {
    let (early, served) = served.split_at(3);
    let packets = |queue: usize| served.iter().filter(move |(other, _)| *other == queue);
    for one in 0..costs.len() {
        for other in one + 1..costs.len() {
            let mut left = [packets(one).count(), packets(other).count()];
            if left.contains(&0) {
                continue;
            }
            let (mut lead, mut least, mut most, mut sum) = (0.0f64, 0.0f64, 0.0f64, 0.0);
            let longest = |queue: usize| {
                early
                    .iter()
                    .chain(served)
                    .filter(|(other, _)| *other == queue)
                    .map(|(_, bytes)| *bytes)
                    .max()
                    .unwrap_or(0)
            };
            for (queue, bytes) in served {
                let cost = *bytes as f64 * costs[*queue];
                if *queue == one || *queue == other {
                    lead += if *queue == one { cost } else { -cost };
                    sum += cost;
                    left[usize::from(*queue == other)] -= 1;
                }
                (least, most) = (least.min(lead), most.max(lead));
                if left.contains(&0) {
                    break;
                }
            }
            let bound = longest(one) as f64 * costs[one] + longest(other) as f64 * costs[other];
            // Virtual time has integer values.
            prop_assert!(most - least <= bound + sum * 1e-6, "queues {one} and {other}: {} of {bound}", most - least);
        }
    }
    Ok(())
}

/// Everything comes at once; then the queues run empty. Class n is that of code point n, the last one is class-default.
fn drain_engine(config: &RouterConfig, packets: &[(usize, u8)]) -> Vec<(usize, u64)> {
    let mut engine: Engine<usize> = common::started(LINE, Ppp, config);
    for (ip_len, dscp) in packets {
        engine.transmit(Time(0), PORT, frame(*ip_len, *dscp), usize::from(*dscp));
    }
    let mut outputs: Vec<Output<usize>> = Vec::new();
    run(&mut engine, Time(3_600 * SECOND), &mut outputs);
    engine.audit().unwrap();
    assert!(outputs.iter().all(|output| matches!(output, Output::Departure(_))), "the queues hold everything");
    departures(&outputs).iter().map(|(_, dscp, bytes)| (*dscp, u64::from(*bytes))).collect()
}

fn packets(classes: usize) -> impl Strategy<Value = Vec<(usize, u8)>> {
    prop::collection::vec((28usize..1500, 0..classes as u8), 50..600)
}

const LIMIT: u32 = 1_000;

/// Class n has the n-th bandwidth, from c1 on, and class-default none.
fn with_bandwidths(generation: Generation, bandwidths: impl IntoIterator<Item = BandwidthConfig>) -> RouterConfig {
    let class = |(number, bandwidth)| class_of(&format!("c{number}")).bandwidth(bandwidth).queue_limit(LIMIT);
    let named = (1..).zip(bandwidths).map(class);
    with_policy(generation, 2_000, named.chain([class_default().queue_limit(LIMIT)]).collect())
}

proptest! {
    #![proptest_config(crate::bounded::cases(48))]

    /// HQF: classes get their bandwidth in kb/s, and class-default the rest.
    #[test]
    fn classes_share_by_their_bandwidth_within_a_packet(
        kbps in prop::collection::vec(10u64..400, 1..5), seed in packets(5)
    ) {
        let count = kbps.len() as u8 + 1;
        let packets: Vec<_> = seed.into_iter().map(|(ip_len, dscp)| (ip_len, dscp % count)).collect();
        let served = drain_engine(&with_bandwidths(Hqf, kbps.iter().copied().map(BandwidthConfig::Kbps)), &packets);
        let rest = 2_000 - kbps.iter().sum::<u64>();
        let costs: Vec<_> = std::iter::once(rest).chain(kbps).map(|kbps| 1.0 / kbps as f64).collect();
        differ_by_one_packet(&served, &costs)?;
    }

    /// The same with parts of the rest.
    #[test]
    fn classes_share_the_rest_by_their_ratios_within_a_packet(
        ratios in prop::array::uniform3(1u32..50), packets in packets(4)
    ) {
        let served = drain_engine(&with_bandwidths(Hqf, ratios.map(BandwidthConfig::RemainingRatio)), &packets);
        let costs: Vec<_> = std::iter::once(1).chain(ratios).map(|ratio| 1.0 / f64::from(ratio)).collect();
        differ_by_one_packet(&served, &costs)?;
    }

    /// Classic: a byte of a class costs the constant times the interface's bandwidth over the class's, one of
    /// class-default 32384.
    #[test]
    fn classic_classes_share_by_their_weights_within_a_packet(
        kbps in prop::array::uniform3(20u64..500), packets in packets(4)
    ) {
        let served = drain_engine(&with_bandwidths(Classic, kbps.map(BandwidthConfig::Kbps)), &packets);
        let costs: Vec<_> =
            std::iter::once(32_384).chain(kbps.map(|kbps| 16 * 2_000 / kbps)).map(|cost| cost as f64).collect();
        differ_by_one_packet(&served, &costs)?;
    }

    /// At each level of nested policies.
    #[test]
    fn nested_classes_share_at_each_level_within_a_packet(inner in 5u32..95, outer in 5u32..95, packets in packets(3)) {
        let rest = || class_default().queue_limit(LIMIT);
        let inner_classes = vec![class_of("c1").percent(inner).queue_limit(LIMIT), rest()];
        let outer_classes = vec![class_of("parent").percent(outer).service_policy("Inner"), rest()];
        let config = with_policies(Hqf, 2_000, maps([("Inner", inner_classes), ("P", outer_classes)]))
            .class_map("parent", match_all(vec![dscp(&[1, 2])]));
        let served = drain_engine(&config, &packets);
        let cost = |kbps: u32| 1.0 / f64::from(kbps);
        // Whole kb/s, and class-default the rest.
        let parent = outer * 2_000 / 100;
        let child = parent * inner / 100;
        // Some of the first three may belong to the other class: a child without packets costs nothing.
        let children: Vec<_> = served.iter().enumerate().filter(|(n, (dscp, _))| *n < 3 || *dscp > 0)
            .map(|(_, (dscp, bytes))| (dscp.checked_sub(1).unwrap_or(usize::MAX), *bytes)).collect();
        differ_by_one_packet(&children, &[cost(child), cost(parent - child)])?;
        let parents: Vec<_> = served.iter().map(|(dscp, bytes)| (usize::from(*dscp == 0), *bytes)).collect();
        differ_by_one_packet(&parents, &[cost(parent), cost(2_000 - parent)])?;
    }
}

proptest! {
    #![proptest_config(crate::bounded::cases(12))]

    /// Later generation: class-default gets the unreserved bandwidth, at least one per cent, regardless of other loads.
    #[test]
    fn class_default_is_not_starved(
        shares in prop::array::uniform3(1u32..34),
        lengths in prop::array::uniform4(60usize..1500),
        urgent in any::<bool>(),
    ) {
        prop_assume!(shares.iter().sum::<u32>() <= 99);
        let first = if urgent {
            class_of("c1").priority_percent(shares[0])
        } else {
            class_of("c1").percent(shares[0])
        };
        let classes = vec![first, class_of("c2").percent(shares[1]), class_of("c3").percent(shares[2])];
        let config = with_policy(Hqf, 2_000, classes);
        let shares = shares.map(u64::from);
        let mut engine: Engine<usize> = common::started(LINE, Ppp, &config);
        let sources: Vec<_> = (0..4).map(|n| Source::new(lengths[n], n as u8, n as u16, 4_000_000)).collect();
        let seconds = 20;
        let outputs = load(&mut engine, Ppp, &sources, Time(seconds * SECOND));
        engine.audit().unwrap();
        let bytes = bytes_by_source(&outputs, 4);
        // Each packet takes 3 bytes on the line that are not counted. A priority class still has its rate and its burst
        // in counted bytes, and the others have the rest.
        let shortest = *lengths.iter().min().unwrap() as u64 + 4;
        let counted = LINE * shortest / (shortest + 3) * seconds / 8;
        let rest = 100 - shares.iter().sum::<u64>();
        let (ahead, weights) = if urgent {
            (shares[0] * (2_500 * seconds + 500), 100 - shares[0])
        } else {
            (0, 100)
        };
        let least = (counted - ahead) * rest / weights;
        prop_assert!(bytes[0] + 4 * 1_504 >= least, "{bytes:?}, {least} expected");
    }

    /// Children together never send more than the shaper of their parent passes: the burst, the increments of the time,
    /// and the debt of one packet.
    #[test]
    fn children_do_not_exceed_the_shaper_around_them(
        generation in prop::sample::select(vec![Classic, Hqf]),
        rate in 64_000u64..1_500_000,
        lengths in prop::array::uniform3(60usize..1500),
    ) {
        let inner = vec![class_of("c1").priority_percent(20), class_of("c2").percent(50)];
        let maps = maps([("Inner", inner), ("P", vec![class_default().shape_bps(rate).service_policy("Inner")])]);
        let config = with_policies(generation, 100_000, maps);
        let mut engine: Engine<usize> = common::started(1_000_000_000, Ppp, &config);
        let values = common::class(&mut engine, Time(0), 0).shape.unwrap();
        let sources: Vec<_> = (0..3).map(|n| Source::new(lengths[n], n as u8, n as u16, rate)).collect();
        let outputs = load(&mut engine, Ppp, &sources, Time(10 * SECOND));
        engine.audit().unwrap();
        let departures = departures(&outputs);
        let longest = departures.iter().map(|(.., bytes)| u64::from(*bytes) * 8).max().unwrap();
        let interval = (u128::from(values.bc_bits) * u128::from(SECOND) / u128::from(rate)) as u64;
        for window in [2, 10, 50, departures.len()] {
            for frames in departures.windows(window) {
                // From the end of the first packet: its own bits do not belong to the interval.
                let bits: u64 = frames[1..].iter().map(|(.., bytes)| u64::from(*bytes) * 8).sum();
                let time = frames[window - 1].0.since(frames[0].0).0;
                let credit = (time / interval + 2) * (values.increment_bytes * 8 + 8);
                let bound = values.bc_bits + values.be_bits + credit + longest;
                prop_assert!(bits <= bound, "{bits} bits in {time} ns, {bound} at most");
            }
        }
        let all: u64 = departures.iter().map(|(.., bytes)| u64::from(*bytes) * 8).sum();
        prop_assert!(all + values.bc_bits + values.be_bits + 2 * longest >= rate * 10 * 99 / 100,
            "{all} bits: the shaper's rate is used");
    }
}

proptest! {
    #![proptest_config(crate::bounded::cases(24))]

    /// Classic: a byte of a class costs the constant times the interface's bandwidth over the class's, one of a flow of
    /// class-default 32384, so that class-default starves (published: half of 256 kb/s is 284 times as heavy, and TCP
    /// got 200 against 6 kb/s). The later generation gives it the rest.
    #[test]
    fn classic_class_default_starves_next_to_a_class(
        (kbps, constant) in prop::sample::select(vec![(64u64, 64u64), (128, 64), (256, 57), (512, 30), (2_000, 16)]),
        percent in 10u64..=75,
        lengths in prop::array::uniform2(200usize..1_500),
    ) {
        let class = kbps * percent / 100;
        let sources = [Source::new(lengths[0], 0, 0, kbps * 4_000), Source::new(lengths[1], 1, 1, kbps * 4_000)];
        let end = Time(12_000 * sources[1].gap_ns);
        let offer = |generation: Generation| {
            let config = with_policy(generation, kbps, vec![class_of("c1").kbps(class)]);
            let mut engine: Engine<usize> = common::started(kbps * 1_000, Ppp, &config);
            bytes_by_source(&load(&mut engine, Ppp, &sources, end), 2)
        };
        let packet = lengths[0] as u64 + 4;
        let bytes = offer(Classic);
        let expected = bytes[1] * (constant * kbps / class) / 32_384;
        // Wire and ring take the first packets, regardless of their weight.
        prop_assert!(bytes[0].abs_diff(expected) <= 6 * packet, "{bytes:?} bytes, {expected} expected");
        let bytes = offer(Hqf);
        let expected = (bytes[0] + bytes[1]) * (kbps - class) / kbps;
        prop_assert!(bytes[0].abs_diff(expected) <= 6 * packet + 4 * 1_504, "{bytes:?} bytes, {expected} expected");
    }
}

proptest! {
    #![proptest_config(crate::bounded::cases(24))]

    /// A change of the ring's size or of the clock rate loses nothing and changes no order within a class.
    #[test]
    fn changes_of_ring_and_clock_lose_nothing(
        generation in prop::sample::select(vec![Classic, Hqf]),
        steps in prop::collection::vec(
            (prop::option::of((1u32..12, 64_000u64..2_000_000)), 1u64..200, 28usize..1500, 0u8..3), 1..200),
    ) {
        let limited = |class: PolicyClass| class.queue_limit(LIMIT);
        let classes = [class_of("c1").percent(20), class_of("c2").strict(), class_default()].map(limited);
        let mut config = with_policy(generation, 2_000, classes.to_vec());
        let mut engine: Engine<usize> = common::started(LINE, Ppp, &config);
        let (mut now, mut outputs, mut code_points) = (0, Vec::new(), Vec::new());
        for (number, (change, gap, ip_len, dscp)) in steps.into_iter().enumerate() {
            if let Some((ring, clock)) = change {
                config.out().tx_ring_limit = Some(ring);
                config.out().clock_rate_bps = Some(clock);
                engine.configure(Time(now), &config).unwrap();
            }
            engine.transmit(Time(now), PORT, frame(ip_len, dscp), number);
            code_points.push(dscp);
            engine.audit().unwrap();
            now += gap * MILLI / 10;
        }
        run(&mut engine, Time(now + 3_600 * SECOND), &mut outputs);
        let departures = departures(&outputs);
        prop_assert_eq!(departures.len(), code_points.len());
        for dscp in 0..3 {
            let numbers = departures.iter().map(|(_, number, _)| *number);
            let order: Vec<_> = numbers.filter(|number| code_points[*number] == dscp).collect();
            prop_assert!(order.windows(2).all(|pair| pair[0] < pair[1]), "{order:?}");
        }
    }
}
