//! The five properties of the dynamic bucket, and its counters.

use crate::common::build::*;
use crate::common::{self, udp, with_policy, MILLI, PORT, SECOND};
use proptest::prelude::*;
use qos_core::counters::{BucketChange, DynamicCounters};
use qos_core::meter::Colour;
use qos_core::meter::{DynamicBucket, DynamicPlan};
use qos_core::wire::Framing;
use qos_core::{Duration, Engine, Time};

fn plan(initial_bytes: u64, maximum_bytes: u64) -> DynamicPlan {
    DynamicPlan {
        initial_bytes,
        minimum_bytes: 3_000,
        maximum_bytes,
        monitoring: Duration::from_millis(100),
        idle: Duration::from_secs(3),
        first_growth_percent: 200,
        first_growths: 3,
        growth_percent: 100,
        shrink_percent: 2,
        spare_percent: 10,
    }
}

/// A sender that halves its window after a round trip with losses and adds a packet after one without, and that sends
/// its window in one clump at ten times the rate. The mean size of the bucket over the second half of the time, and the
/// goodput over the rate.
fn additive_increase(initial: u64, rate_bps: u64, round_trip_ms: u64, seconds: u64) -> (f64, f64) {
    let mut bucket = DynamicBucket::new(rate_bps, plan(initial, rate_bps * 3 / 16), Time(0));
    let gap = 1_500 * 8 * SECOND / (rate_bps * 10);
    let (mut now, mut window) = (0, 2u64);
    let (mut sizes, mut rounds, mut conformed) = (0, 0, 0);
    while now < seconds * SECOND {
        let mut lost = false;
        for packet in 0..window {
            match bucket.colour(Time(now + packet * gap), 1_500) {
                Colour::Conform => conformed += 1_500 * u64::from(now > seconds * SECOND / 2),
                _ => lost = true,
            }
        }
        // A window that takes longer than the round trip is clocked by the link.
        now += (round_trip_ms * MILLI).max(window * gap);
        window = if lost { (window / 2).max(1) } else { window + 1 };
        if now > seconds * SECOND / 2 {
            sizes += bucket.bytes().0;
            rounds += 1;
        }
    }
    let ideal = rate_bps * seconds / 16;
    (sizes as f64 / f64::from(rounds), conformed as f64 / ideal as f64)
}

proptest! {
    #![proptest_config(crate::bounded::cases(24))]

    /// (a) From far below and from far above the size comes to the same band.
    #[test]
    fn bucket_converges_from_any_initial_size(rate_kbps in 1_000u64..5_000, round_trip_ms in 40u64..100) {
        let rate = rate_kbps * 1_000;
        let (from_below, goodput) = additive_increase(3_000, rate, round_trip_ms, 1_200);
        let (from_above, same_goodput) = additive_increase(rate * 3 / 16, rate, round_trip_ms, 1_200);
        prop_assert!((from_below / from_above - 1.0).abs() < 0.25, "{} and {}", from_below, from_above);
        // A bucket that never held enough would leave this sender at three quarters.
        prop_assert!(goodput > 0.9 && same_goodput > 0.9, "{} and {}", goodput, same_goodput);
    }

    /// (b) A flood that does not react keeps the level near zero: nothing overflows, and the bucket never grows.
    #[test]
    fn flood_does_not_enlarge_the_bucket(
        rate_kbps in 100u64..10_000,
        initial in 3_000u64..100_000,
        packets in prop::collection::vec((60u32..1_500, 0u64..100), 200..2_000),
    ) {
        let rate = rate_kbps * 1_000;
        let mut bucket = DynamicBucket::new(rate, plan(initial, 200_000), Time(0));
        let mut now = 0;
        for (bytes, percent) in packets {
            bucket.colour(Time(now), bytes);
            prop_assert!(bucket.bytes().0 <= initial);
            // The next packet arrives before its tokens have been added.
            now += u64::from(bytes) * 8 * SECOND / rate * percent / 100;
        }
    }

    /// (c) Traffic below the rate, without a drop, leaves the size alone.
    #[test]
    fn traffic_below_the_rate_keeps_the_bucket_size(
        initial in 3_000u64..100_000,
        packets in prop::collection::vec((60u32..1_500, 0u64..5_000), 1..500),
    ) {
        let rate = 1_000_000;
        let mut bucket = DynamicBucket::new(rate, plan(initial, 187_500), Time(0));
        let mut now = 0;
        for (bytes, pause_ms) in packets {
            now += u64::from(bytes) * 8 * SECOND / rate + pause_ms * MILLI;
            prop_assert_eq!(bucket.colour(Time(now), bytes), Colour::Conform);
            prop_assert_eq!(bucket.bytes().0, initial);
        }
    }

    /// (d) With any input, the conforming bytes between any two packets are at most rate × time plus the greatest
    /// bucket.
    #[test]
    fn conforming_traffic_stays_within_rate_and_burst(
        rate in 64_000u64..10_000_000,
        packets in prop::collection::vec(
            (prop_oneof![Just(0u64), 0u64..20_000_000, 0u64..2 * SECOND], 60u32..1_500), 1..150),
    ) {
        let greatest = 60_000;
        let mut bucket = DynamicBucket::new(rate, plan(3_000, greatest), Time(0));
        let mut now = 0;
        let mut conformed = Vec::new();
        for (gap, bytes) in packets {
            now += gap;
            if bucket.colour(Time(now), bytes) == Colour::Conform {
                conformed.push((now, u128::from(bytes)));
            }
            let (size, level) = bucket.bytes();
            prop_assert!(level <= size && (3_000..=greatest).contains(&size));
        }
        for first in 0..conformed.len() {
            let mut bytes = 0;
            for last in &conformed[first..] {
                bytes += last.1;
                let earned = u128::from(rate) * u128::from(last.0 - conformed[first].0);
                prop_assert!(bytes * 8 * u128::from(SECOND) <= u128::from(greatest) * 8 * u128::from(SECOND) + earned);
            }
        }
    }

    /// (e) Integers, and all work at arrivals: looking at it, or polling the engine at odd times, changes nothing.
    #[test]
    fn reading_and_polling_change_nothing(looks in prop::collection::vec(0u64..40, 300)) {
        let fates = |look: bool| {
            let mut engine = policed_counters(DynamicBucketConfig {
                initial_bytes: Some(3_000),
                first_growth_percent: Some(2),
                growth_percent: Some(1),
                ..DynamicBucketConfig::default()
            });
            let mut outputs = Vec::new();
            let mut now = 0;
            for (number, wait) in (0..).zip(&looks) {
                // Clumps and pauses, so that the bucket grows and shrinks.
                now += if number % 30 == 0 { 900 * MILLI } else { 2 * MILLI };
                if look && wait % 3 == 0 {
                    let early = Time(now - wait * MILLI / 40);
                    engine.poll(early, &mut outputs);
                    let _ = engine.counters(early, None);
                }
                engine.transmit(Time(now), PORT, udp(1_000, 0, Framing::Ethernet), number);
            }
            engine.poll(Time(now + SECOND), &mut outputs);
            let changes = counters(&mut engine, Time(now + SECOND)).changes.clone();
            (common::departures(&outputs), changes)
        };
        let (seen, unseen) = (fates(true), fates(false));
        prop_assert!(unseen.1.len() > 2);
        prop_assert_eq!(seen, unseen);
    }
}

/// A bucket of 10 000 bytes that is filled by a byte each microsecond; a tenth of it is a step, and as much is taken
/// off if a fifth of it was never filled.
struct Steps(DynamicBucket);

impl Steps {
    fn new(monitoring_us: u64) -> Steps {
        let plan = DynamicPlan {
            monitoring: Duration(monitoring_us * 1_000),
            idle: Duration::from_secs(1),
            first_growths: 1,
            shrink_percent: 10,
            spare_percent: 20,
            ..plan(10_000, 50_000)
        };
        Steps(DynamicBucket::new(8_000_000, plan, Time(0)))
    }

    fn packet(&mut self, us: u64, bytes: u32) -> Colour {
        self.0.colour(Time(us * 1_000), bytes)
    }

    /// Packets of 500 bytes until one exceeds; the size then.
    fn empty(&mut self, us: u64) -> u64 {
        while self.packet(us, 500) == Colour::Conform {}
        self.size()
    }

    fn size(&self) -> u64 {
        self.0.bytes().0
    }
}

/// A drop that comes with others, before the level has risen by a step, is of the same burst of losses.
#[test]
fn burst_of_losses_is_evaluated_once() {
    let mut one = Steps::new(500);
    assert_eq!((one.empty(0), one.empty(0)), (10_000, 10_000));
    // Half a step or a whole one does not count as a rise; more than that does, and the bucket was never nearly full.
    assert_eq!(one.empty(500), 10_000);
    let mut whole = Steps::new(500);
    assert_eq!((whole.empty(0), whole.empty(1_000)), (10_000, 10_000));
    let mut more = Steps::new(500);
    assert_eq!((more.empty(0), more.empty(1_001)), (10_000, 9_000));
    // Nor is it checked before the monitoring time ends, only at its end.
    let mut early = Steps::new(5_000);
    assert_eq!((early.empty(0), early.empty(4_999)), (10_000, 10_000));
    let mut at_its_end = Steps::new(5_000);
    assert_eq!((at_its_end.empty(0), at_its_end.empty(5_000)), (10_000, 9_000));
}

/// The overflow before the next drop enlarges the bucket, by twice its size for the first overflow and by its size
/// later, whether or not the level was read in between.
#[test]
fn overflow_enlarges_the_bucket() {
    let mut bucket = Steps::new(1_000_000);
    assert_eq!(bucket.empty(0), 10_000);
    assert_eq!(bucket.empty(12_000), 14_000);
    assert_eq!(bucket.empty(12_000 + 14_000 + 3_000), 17_000);
}

/// After so long without a packet no sender has reacted to the drop; to the nanosecond.
#[test]
fn pause_ends_the_observation() {
    for (pause_ns, grows) in [(SECOND - 1, true), (SECOND, true), (SECOND + 1, false)] {
        let mut bucket = Steps::new(1_000);
        bucket.empty(0);
        bucket.0.colour(Time(pause_ns), 100);
        let size = bucket.empty(pause_ns.div_ceil(1_000));
        assert_eq!(size > 10_000, grows, "{pause_ns}");
    }
}

/// A level that has risen and then falls by more than a step is TCP at the rate again: the size is judged. One that
/// stays, falls by a step or has only been looked at too early is not.
#[test]
fn falling_level_shrinks_the_bucket() {
    // The bucket from which this number of bytes was taken at that time.
    let taken = |bytes: u32, us: u64| {
        let mut bucket = Steps::new(5_000);
        bucket.empty(0);
        // 5000 bytes at the check, 4900 afterwards.
        assert_eq!(bucket.packet(5_000, 100), Colour::Conform);
        for _ in 0..bytes / 100 {
            bucket.packet(us, 100);
        }
        bucket
    };
    for (bytes, us, size) in [
        // 9800 and 5100 at 10 ms, compared with 5000.
        (100, 5_001, 10_000),
        (4_800, 5_001, 10_000),
        // 6900 at 7 ms, less 5900 and with 3000 more: 4000, a step below; 100 less are more than that.
        (5_900, 7_000, 10_000),
        (6_000, 7_000, 9_000),
    ] {
        let mut bucket = taken(bytes, us);
        bucket.packet(10_000, 60);
        assert_eq!(bucket.size(), size, "{bytes}");
    }
    // Before the time of the check, a fall of any size does not count.
    assert_eq!(taken(4_800, 5_100).size(), 10_000);
}

/// A bucket of which a fifth and no more stayed empty is left as it is.
#[test]
fn a_bucket_that_was_nearly_full_keeps_its_size() {
    for (peak_us, size) in [(8_000, 10_000), (7_999, 9_000)] {
        let mut bucket = Steps::new(7_999);
        bucket.empty(0);
        bucket.packet(peak_us, 60);
        assert_eq!(bucket.empty(peak_us), size, "{peak_us}");
    }
}

fn policed_counters(dynamic: DynamicBucketConfig) -> Engine<u64> {
    let mut engine = common::engine(100_000_000, Framing::Ethernet);
    let police = PoliceConfig { dynamic: Some(dynamic), ..police(1_000_000) };
    engine.configure(Time(0), &with_policy(Hqf, 100_000, vec![class_default().police(police)])).unwrap();
    engine
}

fn counters(engine: &mut Engine<u64>, now: Time) -> DynamicCounters {
    common::class(engine, now, 0).police.unwrap().dynamic.unwrap()
}

#[test]
fn a_cut_deeper_than_the_bucket_enlarges_it_by_what_overflowed() {
    let mut engine =
        policed_counters(DynamicBucketConfig { initial_bytes: Some(10_140), ..DynamicBucketConfig::default() });
    // Ten packets of 1014 counted bytes empty the bucket, the eleventh is dropped.
    for number in 0..11 {
        engine.transmit(Time(0), PORT, udp(1_000, 0, Framing::Ethernet), number);
    }
    // It is full after 81.12 ms; the tokens of the next 18.88 ms overflow: 2360 bytes. The packet then finds it full,
    // so the level has risen.
    engine.transmit(Time(100 * MILLI), PORT, udp(1_000, 0, Framing::Ethernet), 20);
    assert_eq!(counters(&mut engine, Time(100 * MILLI)).bucket_bytes, 10_140);
    // A clump that takes the level down, looked at 100 ms later: it is judged at the first packet then.
    for number in 0..9 {
        engine.transmit(Time(101 * MILLI), PORT, udp(1_000, 0, Framing::Ethernet), number);
    }
    engine.transmit(Time(101 * MILLI), PORT, udp(1_000, 0, Framing::Ethernet), 30);
    let shown = counters(&mut engine, Time(101 * MILLI));
    // Twice the overflow, like the first growths. During this time 125 bytes arrived and 1014 were taken.
    assert_eq!(shown.bucket_bytes, 10_140 + 2 * 2_360);
    assert_eq!((shown.growths, shown.shrinks), (1, 0));
    assert_eq!((shown.overflow_bytes, shown.most_overflow_bytes), (2_360, 2_360));
    assert_eq!(shown.changes, [BucketChange { number: 1, time_ns: 101 * MILLI, bucket_bytes: 14_860 }]);
    assert!(shown.watching);
    // Half of the time at each size.
    let later = counters(&mut engine, Time(202 * MILLI));
    assert_eq!(later.mean_bucket_bytes, 12_500);
    // The ten packets took all tokens.
    assert_eq!(later.level_bytes, 125 + 12_625);
    // The counts start again; the bucket does not.
    engine.clear(Time(202 * MILLI), None);
    let cleared = counters(&mut engine, Time(202 * MILLI));
    assert_eq!((cleared.growths, cleared.bucket_bytes), (0, 14_860));
    assert_eq!((cleared.changes, cleared.monitoring_ms), (vec![], 100));
    // At 302 ms it is full, what the next 98 ms bring overflows, and the packets that empty it take the level down: the
    // second growth. Its number goes on. Then it comes nowhere near to being full: it shrinks twice.
    for (ms, packets) in [(400, 1), (401, 40), (501, 1), (502, 20), (603, 20)] {
        for number in 0..packets {
            engine.transmit(Time(ms * MILLI), PORT, udp(1_000, 0, Framing::Ethernet), number);
        }
    }
    let again = counters(&mut engine, Time(603 * MILLI));
    assert_eq!(again.changes[0].number, 2);
    assert_eq!((again.growths, again.shrinks), (1, 2));
}

#[test]
fn defaults_are_filled_in_and_shown() {
    let engine = policed_counters(DynamicBucketConfig { monitoring_ms: Some(200), ..DynamicBucketConfig::default() });
    let filled_in = DynamicBucketConfig {
        initial_bytes: Some(15_000),
        minimum_bytes: Some(3_000),
        maximum_bytes: Some(187_500),
        monitoring_ms: Some(200),
        idle_ms: Some(3_000),
        first_growth_percent: Some(200),
        first_growths: Some(3),
        growth_percent: Some(100),
        shrink_percent: Some(2),
        spare_percent: Some(10),
    };
    let resolved = engine.resolve().policy_maps["P"].classes[0].police.clone().unwrap();
    assert_eq!(resolved.dynamic, Some(filled_in));
    let mut slow = policed_counters(DynamicBucketConfig::default());
    let police = PoliceConfig { dynamic: Some(DynamicBucketConfig::default()), ..police(8_000) };
    slow.configure(Time(0), &with_policy(Classic, 100_000, vec![class_default().police(police)])).unwrap();
    // 1.5 seconds of 8 kb/s would be less than its initial size.
    assert_eq!(counters(&mut slow, Time(0)).maximum_bytes, 15_000);
}

#[test]
fn impossible_buckets_are_refused() {
    let refused = |police: PoliceConfig| {
        let mut engine: Engine<u64> = common::engine(100_000_000, Framing::Ethernet);
        engine.configure(Time(0), &with_policy(Hqf, 100_000, vec![class_default().police(police)])).unwrap_err().path
    };
    let default = DynamicBucketConfig::default();
    let with = |dynamic: DynamicBucketConfig| refused(PoliceConfig { dynamic: Some(dynamic), ..police(1_000_000) });
    let at = |field: &str| format!("policy_maps.P.classes[0].police.dynamic{field}");
    assert_eq!(with(DynamicBucketConfig { initial_bytes: Some(2_999), ..default }), at(".initial_bytes"));
    assert_eq!(
        with(DynamicBucketConfig { initial_bytes: Some(200_000), maximum_bytes: Some(100_000), ..default }),
        at(".maximum_bytes")
    );
    assert_eq!(with(DynamicBucketConfig { minimum_bytes: Some(1_000), ..default }), at(".minimum_bytes"));
    assert_eq!(with(DynamicBucketConfig { monitoring_ms: Some(0), ..default }), at(".monitoring_ms"));
    assert_eq!(with(DynamicBucketConfig { shrink_percent: Some(100), ..default }), at(".shrink_percent"));
    let police = PoliceConfig { dynamic: Some(default), ..police(1_000_000) };
    assert_eq!(refused(police.clone().bytes(15_000)), at(""));
    assert_eq!(refused(PoliceConfig { pir: Some(RateSpec::Bps(2_000_000)), ..police.clone() }), at(""));
    assert_eq!(refused(PoliceConfig { violate: Some(vec![PoliceAction::Drop {}]), ..police }), at(""));
}
