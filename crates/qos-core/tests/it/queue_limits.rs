//! Queue limits in bytes and milliseconds and by a field of the packet, and early detection in bytes.

use crate::common::build::*;
use crate::common::{self, class, run, with_policies, with_policy, PORT};
use proptest::prelude::*;
use qos_core::wire::Framing::Ppp;
use qos_core::{Engine, Output, RouterConfig, Time};

/// Sends packets of those lengths and code points at those distances, and returns for each the depth of class-default's
/// queue that it met, in packets and bytes, and whether it was dropped.
fn offered_load(config: &RouterConfig, arrivals: &[(u64, usize, u8)]) -> Vec<(u64, u64, bool)> {
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, config);
    let (mut now, mut found) = (0, Vec::new());
    for (number, (gap, ip_len, dscp)) in arrivals.iter().enumerate() {
        now += gap;
        let mut outputs = Vec::new();
        run(&mut engine, Time(now), &mut outputs);
        let packet = common::datagram(*ip_len, *dscp, 1, 6_000, Ppp);
        engine.transmit(Time(now), PORT, packet, number);
        engine.audit().unwrap();
        outputs.clear();
        engine.poll(Time(now), &mut outputs);
        let dropped = outputs.iter().any(|output| matches!(output, Output::Dropped(d) if d.payload == number));
        // Due events are settled when the packet arrives, so only the depth after it shows the depth on its arrival.
        let after = class(&mut engine, Time(now), 0).queue.unwrap();
        let own = if dropped { (0, 0) } else { (1, packet.counted_len) };
        let depth = (after.depth_packets.saturating_sub(own.0), after.depth_bytes.saturating_sub(u64::from(own.1)));
        found.push((depth.0, depth.1, dropped));
    }
    found
}

fn with_class(class: PolicyClass) -> RouterConfig {
    with_policy(Hqf, 2_000, vec![class])
}

fn arrivals() -> impl Strategy<Value = Vec<(u64, usize, u8)>> {
    prop::collection::vec((0u64..4_000_000, 60usize..1500, 0u8..64), 1..150)
}

proptest! {
    #![proptest_config(crate::bounded::cases(48))]

    #[test]
    fn limit_in_bytes_counts_waiting_bytes(limit in 1u32..20_000, arrivals in arrivals()) {
        for (_, bytes, dropped) in offered_load(&with_class(class_default().limit(Bytes(limit))), &arrivals) {
            prop_assert_eq!(dropped, bytes >= u64::from(limit), "{} bytes of {}", bytes, limit);
        }
    }

    #[test]
    fn packet_is_queued_below_the_limit_of_its_field(
        field in prop::sample::select(vec![ThresholdField::Dscp, ThresholdField::Precedence]),
        limit in 1u32..40,
        thresholds in prop::collection::btree_map(0u8..8, 1u32..40, 1..5),
        arrivals in arrivals(),
    ) {
        let rows: Vec<_> = thresholds.iter()
            .map(|(value, packets)| limit_by(field, *value, Packets(*packets))).collect();
        let config = with_class(class_default().queue_limit(limit).queue_thresholds(rows));
        for ((packets, _, dropped), (_, _, dscp)) in offered_load(&config, &arrivals).into_iter().zip(&arrivals) {
            let value = if field == ThresholdField::Dscp { *dscp } else { dscp >> 3 };
            let own = thresholds.get(&value).copied().unwrap_or(limit).min(limit);
            prop_assert_eq!(dropped, packets >= u64::from(own), "{} of {} with {}", packets, own, value);
        }
    }
}

/// 15 000 bytes hold ten packets of 1500 and four of headers, as 15 040 is the first length that is not below them, and
/// 235 packets of 64.
#[test]
fn a_limit_in_bytes_holds_few_large_packets_and_many_small_ones() {
    let taken = |ip_len: usize| {
        // All at once: the first two are on the line and in the ring.
        let met = offered_load(&with_class(class_default().limit(Bytes(15_000))), &[(0, ip_len, 0); 400]);
        let queued = met.iter().filter(|(_, _, dropped)| !dropped).count();
        let most = met.iter().map(|(packets, bytes, _)| (*packets, *bytes)).max().unwrap();
        (queued as u64 - most.0, most)
    };
    let (straight, most) = taken(1_500);
    assert_eq!(most, (10, 15_040));
    assert_eq!(taken(60), (straight, (235, 15_040)));
}

/// A queue of 50 ms behind a shaper of 2 Mb/s: what is taken finds less than 12 500 bytes, which take 50 ms; what the
/// shaper holds for the current interval of 4 ms and the line add a little. Of packets of 500 and four bytes 25 wait at
/// the most, 50.4 ms.
#[test]
fn limit_of_50_ms_delays_by_50_ms() {
    let class = class_default().shape_bps(2_000_000).limit(Ms(50));
    let mut engine: Engine<u64> = common::started(100_000_000, Ppp, &with_policy(Hqf, 100_000, vec![class]));
    let sent = common::offer(&mut engine, common::udp(500, 1, Ppp), 1_000_000, Time(0), Time(2 * common::SECOND));
    let waits = common::departures(&sent).iter().map(|(time, at, _)| time.0 - at).collect::<Vec<_>>();
    let (longest, steady) = (*waits.iter().max().unwrap(), &waits[waits.len() / 2..]);
    let milli = common::MILLI;
    assert!((50 * milli - 2_016_000..54_500_000).contains(&longest), "{longest} ns");
    // Once full it stays full: no packet is more than one packet's time and an interval away from the limit.
    assert!(steady.iter().all(|wait| *wait > 44 * milli), "{:?}", steady.iter().min());
}

/// Limit of a class in a policy on an interface of `kbps`: packets, bytes, ms.
fn limit(kbps: u64, maps: Maps) -> (Option<u32>, Option<u32>, Option<u32>) {
    let mut engine: Engine<usize> = common::started(1_000_000_000, Ppp, &with_policies(Hqf, kbps, maps));
    let queue = class(&mut engine, Time(0), 0).queue.unwrap();
    (queue.limit_packets, queue.limit_bytes, queue.limit_ms)
}

/// A router's print has `queue limit 10 ms/ 375000 bytes` for `bandwidth 300000` with `shape average 1000000000`: the
/// bandwidth comes first.
#[test]
fn limit_in_ms_refers_to_bandwidth_then_shaper_then_parent() {
    let of = |class: PolicyClass| limit(1_000_000, maps([("P", vec![class])]));
    let ten = Ms(10);
    assert_eq!(of(class_of("c1").kbps(300_000).shape_bps(1_000_000_000).limit(ten)), (None, Some(375_000), Some(10)));
    let half = ShapeConfig::average(RateSpec::Percent(50));
    assert_eq!(of(class_default().shape(half).limit(ten)), (None, Some(625_000), Some(10)));
    assert_eq!(of(class_default().limit(ten)), (None, Some(1_250_000), Some(10)));
    assert_eq!(of(class_default().limit(Bytes(5))), (None, Some(5), None));
    assert_eq!(of(class_default().queue_limit(5)), (Some(5), None, None));
}

/// Prints of IOS XE: in a queue of 62500 bytes the greatest threshold is 31250 and the least ones are 15625, 17578,
/// ..., 29296.
#[test]
fn thresholds_in_bytes_follow_from_the_limit() {
    let rows = |class: PolicyClass| {
        let mut engine: Engine<usize> = common::started(1_000_000, Ppp, &with_policy(Hqf, 1_000, vec![class]));
        let red = common::class(&mut engine, Time(0), 0).random_detect.unwrap();
        assert!(red.in_bytes);
        red.classes.iter().map(|row| (row.min, row.max)).collect::<Vec<_>>()
    };
    let found = rows(class_default().limit(Bytes(62_500)).random_detect(red_by_precedence()));
    let least = [15_625, 17_578, 19_531, 21_484, 23_437, 25_390, 27_343, 29_296];
    assert_eq!(found, least.map(|min| (min, 31_250)));
    // 20 and 40 ms of 1 Mb/s.
    let found = rows(class_default().random_detect(red_by_precedence().unit(LimitUnit::Ms).row(3, 20, 40, None)));
    assert_eq!((found[3], found[0]), ((2_500, 5_000), (24_000, 48_000)));
}

/// In bytes the mean counts bytes: packets of 64 bytes are dropped later than packets of 1500.
#[test]
fn early_detection_in_bytes_spares_small_packets() {
    let dropped = |unit: LimitUnit, ip_len: usize| {
        let in_bytes = unit == LimitUnit::Bytes;
        let (min, max) = if in_bytes { (7_500, 30_000) } else { (5, 20) };
        let limit = if in_bytes { Bytes(90_000) } else { Packets(60) };
        let config = with_class(
            class_default().limit(limit).random_detect(red_by_precedence().weight(3).unit(unit).row(0, min, max, 5)),
        );
        offered_load(&config, &[(0, ip_len, 0); 50]).iter().filter(|(.., dropped)| *dropped).count()
    };
    assert!(dropped(LimitUnit::Packets, 64) > 20 && dropped(LimitUnit::Packets, 1500) > 20);
    assert!(dropped(LimitUnit::Bytes, 64) == 0 && dropped(LimitUnit::Bytes, 1500) > 20);
}

/// Place in the class and reason for which a policy-map with one class is refused on an interface.
fn refusal_of(generation: Generation, class: PolicyClass) -> (String, String) {
    let config = with_policy(generation, 2_000, vec![class]);
    let mut engine: Engine<usize> = common::engine(2_000_000, Ppp);
    let error = engine.configure(Time(0), &config).unwrap_err();
    (error.path.rsplit_once("classes[0].").unwrap().1.to_owned(), error.message)
}

/// Limits of a class are reported in the typed units.
#[test]
fn mixed_units_of_limits_are_refused_by_name() {
    let (packets, bytes, ms) = ((Packets(9), "packets"), (Bytes(9), "bytes"), (Ms(9), "ms"));
    for ((limit, own), (other_limit, other)) in [(packets, bytes), (bytes, ms), (ms, packets)] {
        let rows = vec![limit_by(ThresholdField::Cos, 1, other_limit)];
        let class = class_default().limit(limit).queue_thresholds(rows);
        let message = format!("in {other}, but queue_limit is in {own}: use the same unit for both");
        assert_eq!(refusal_of(Hqf, class), ("queue_thresholds".to_owned(), message));
    }
}

#[test]
fn impossible_limits_are_refused_with_their_path() {
    use ThresholdField::{Cos, Dscp};
    let class = class_default;
    let red = || red_by_dscp().unit(LimitUnit::Ms).row(10, 5, 9, None);
    let one = |field, value| vec![limit_by(field, value, Packets(9))];
    let two = vec![limit_by(Cos, 1, Packets(9)), limit_by(Dscp, 1, Packets(9))];
    for (generation, class, path) in [
        (Classic, class().limit(Bytes(9)), "queue_limit"),
        (Classic, class().limit(Ms(9)).shape_bps(64_000), "queue_limit"),
        (Classic, class().queue_thresholds(one(Dscp, 1)), "queue_thresholds"),
        (Classic, class().random_detect(red()), "random_detect.unit"),
        (Classic, class_of("c1").strict().limit(Bytes(9)), "queue_limit"),
        (Hqf, class().random_detect(red()).fair_queue(), "random_detect.unit"),
        (Hqf, class().limit(Bytes(9)).fair_queue(), "queue_limit"),
        (Hqf, class().limit(Bytes(9)).random_detect(red()), "random_detect.unit"),
        (Hqf, class().limit(Bytes(9)).queue_thresholds(one(Cos, 1)), "queue_thresholds"),
        (Hqf, class().queue_thresholds(one(Cos, 8)), "queue_thresholds[0].value"),
        (Hqf, class().queue_thresholds(vec![limit_by(Cos, 1, Packets(0))]), "queue_thresholds[0].limit"),
        (Hqf, class().queue_thresholds(two), "queue_thresholds[1].field"),
        (Hqf, class().limit(Ms(3401)), "queue_limit"),
        (Hqf, class().limit(Bytes(0)), "queue_limit"),
    ] {
        assert_eq!(refusal_of(generation, class.clone()).0, path, "{generation:?} {class:?}");
    }
}

/// A queue has 64 packets by default, regardless of other settings; in bytes 96 000.
#[test]
fn queues_have_their_default_limits() {
    let by = |limit| vec![limit_by(ThresholdField::Dscp, 1, limit)];
    for (thresholds, packets, bytes) in
        [(vec![], Some(64), None), (by(Packets(10)), Some(64), None), (by(Bytes(1_000)), None, Some(96_000))]
    {
        let classes = vec![class_of("c1").kbps(100).queue_thresholds(thresholds.clone())];
        let (found, in_bytes, _) = limit(2_000, maps([("P", classes)]));
        assert_eq!((found, in_bytes), (packets, bytes), "{thresholds:?}");
    }
}

/// Packets beyond a lowered limit, and priority drops while others wait, count as drops of the interface's queue.
#[test]
fn interface_counts_all_drops_of_its_queues() {
    let limited = |packets: u32| {
        let classes = vec![class_default().queue_limit(packets)];
        with_policy(Hqf, 2_000, classes)
    };
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &limited(10));
    let drops = |engine: &mut Engine<usize>| engine.counters(Time(0), None).interfaces["Out"].queue.drops;
    for number in 0..30 {
        engine.transmit(Time(0), common::PORT, common::udp(1_000, 0, Ppp), number);
    }
    let before = drops(&mut engine);
    engine.configure(Time(0), &limited(3)).unwrap();
    assert_eq!(drops(&mut engine), before + 7);
    engine.audit().unwrap();

    let priority = vec![class_of("udp").priority_kbps(64)];
    let mut engine: Engine<usize> = common::started(2_000_000, Ppp, &with_policy(Hqf, 2_000, priority));
    for number in 0..30 {
        engine.transmit(Time(0), common::PORT, common::udp(1_000, 0, Ppp), number);
    }
    let class = common::class(&mut engine, Time(0), 0);
    assert!(class.drops.priority.packets > 10, "{:?}", class.drops);
    assert_eq!(drops(&mut engine), class.drops.priority.packets);
}
