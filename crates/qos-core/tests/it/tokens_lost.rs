//! Tokens that a policer could not store: all are accounted for, and none counts without demand.

use crate::common::build::*;
use crate::common::{self, udp, with_policy, MILLI, PORT, SECOND};
use proptest::prelude::*;
use qos_core::counters::TokensLost;
use qos_core::meter::{Colour, TokenBuckets};
use qos_core::meter::{DynamicBucket, DynamicPlan};
use qos_core::wire::Framing;
use qos_core::{Duration, Engine, Time};

const IDLE: u64 = 3 * SECOND;

#[derive(Clone, Copy, Debug)]
enum Kind {
    SingleBucket,
    SingleRate,
    TwoRate,
    Dynamic,
}

enum Policer {
    Static(TokenBuckets),
    Dynamic(Box<DynamicBucket>),
}

impl Policer {
    fn new(kind: Kind, rate: u64, burst: u64) -> Policer {
        match kind {
            Kind::SingleBucket => Policer::Static(TokenBuckets::single_bucket(rate, burst, Time(0))),
            Kind::SingleRate => Policer::Static(TokenBuckets::single_rate(rate, burst, burst / 2, Time(0))),
            Kind::TwoRate => Policer::Static(TokenBuckets::two_rate(rate, burst, rate * 2, burst, Time(0))),
            Kind::Dynamic => Policer::Dynamic(Box::new(DynamicBucket::new(rate, plan(burst), Time(0)))),
        }
    }

    fn colour(&mut self, now: u64, bytes: u32) -> Colour {
        match self {
            Policer::Static(buckets) => buckets.colour(Time(now), bytes),
            Policer::Dynamic(bucket) => bucket.colour(Time(now), bytes),
        }
    }

    fn lost_tokens(&self) -> TokensLost {
        match self {
            Policer::Static(buckets) => buckets.tokens_lost(),
            Policer::Dynamic(bucket) => bucket.tokens_lost(),
        }
    }

    /// Whole bytes of the tokens that the committed rate fills, in all buckets that it fills.
    fn level(&self, kind: Kind) -> u64 {
        match (self, kind) {
            (Policer::Static(buckets), Kind::SingleRate) => buckets.tokens().0 + buckets.tokens().1,
            (Policer::Static(buckets), _) => buckets.tokens().0,
            (Policer::Dynamic(bucket), _) => bucket.bytes().1,
        }
    }
}

fn plan(initial_bytes: u64) -> DynamicPlan {
    DynamicPlan {
        initial_bytes,
        minimum_bytes: 3_000,
        maximum_bytes: 200_000,
        monitoring: Duration::from_millis(100),
        idle: Duration(IDLE),
        first_growth_percent: 200,
        first_growths: 3,
        growth_percent: 100,
        shrink_percent: 2,
        spare_percent: 10,
    }
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![Kind::SingleBucket, Kind::SingleRate, Kind::TwoRate, Kind::Dynamic])
}

/// The time in which the rate earns so many bytes, rounded up.
fn earned_tokens(rate: u64, bytes: u32) -> u64 {
    (u64::from(bytes) * 8 * SECOND).div_ceil(rate)
}

proptest! {
    /// Every token is somewhere: lost, spent, or still in a bucket.
    #[test]
    fn lost_spent_and_stored_tokens_add_up_to_the_rate(
        kind in kinds(),
        rate in 64_000u64..10_000_000,
        burst in 3_000u64..60_000,
        packets in prop::collection::vec(
            (prop_oneof![Just(0u64), 0u64..20 * MILLI, 0u64..=IDLE], 60u32..1_500), 1..300),
    ) {
        let mut policer = Policer::new(kind, rate, burst);
        let full = policer.level(kind);
        let (mut now, mut spent) = (0, 0);
        let mut before = TokensLost::default();
        for (gap, bytes) in packets {
            // The first packet arrives at once: before it there was no demand.
            now += if spent == 0 { 0 } else { gap };
            match (policer.colour(now, bytes), kind) {
                (Colour::Conform, _) | (Colour::Exceed, Kind::SingleRate) => spent += u64::from(bytes),
                _ => {}
            }
            let lost = policer.lost_tokens();
            prop_assert!(lost.bytes >= before.bytes && lost.longest_ns >= before.longest_ns && lost.longest_ns <= now);
            before = lost;
            let given = u128::from(rate) * u128::from(now) / (8 * u128::from(SECOND));
            // Two floors may be one less than the floor of the sum, for each bucket.
            let found = u128::from(lost.bytes + spent + policer.level(kind));
            let all = given + u128::from(full);
            let rounding = 1 + u128::from(matches!(kind, Kind::SingleRate));
            prop_assert!(found <= all && all - found <= rounding, "{} of {}", found, all);
        }
    }

    /// A flood that does not react leaves no room to be missed.
    #[test]
    fn flood_loses_no_tokens(
        kind in kinds(),
        rate in 64_000u64..10_000_000,
        burst in 3_000u64..60_000,
        packets in prop::collection::vec((60u32..1_500, 0u64..100), 1..500),
    ) {
        let mut policer = Policer::new(kind, rate, burst);
        let mut now = 0;
        for (bytes, percent) in packets {
            policer.colour(now, bytes);
            prop_assert_eq!(policer.lost_tokens(), TokensLost::default());
            // The next packet arrives before its tokens have been added.
            now += u64::from(bytes) * 8 * SECOND / rate * percent / 100;
        }
    }

    /// An application that asks for less loses just what it does not ask for, all the time; but not while it is idle.
    #[test]
    fn idle_application_loses_unused_tokens(
        kind in kinds(),
        rate in 64_000u64..10_000_000,
        burst in 3_000u64..60_000,
        bytes in 60u32..1_500,
        pauses in prop::collection::vec(1u64..SECOND, 1..100),
        idle in 1u64..1_000 * SECOND,
    ) {
        let mut policer = Policer::new(kind, rate, burst);
        let mut now = idle;
        policer.colour(now, bytes);
        prop_assert_eq!(policer.lost_tokens(), TokensLost::default(), "no packet before the first");
        let full = now + u64::from(bytes) * 8 * SECOND / rate;
        let mut given = 0;
        for pause in pauses {
            let gap = earned_tokens(rate, bytes) + pause;
            now += gap;
            prop_assert_eq!(policer.colour(now, bytes), Colour::Conform);
            given += u128::from(rate) * u128::from(gap) - u128::from(bytes) * 8 * u128::from(SECOND);
            let lost = policer.lost_tokens();
            prop_assert_eq!(u128::from(lost.bytes), given / (8 * u128::from(SECOND)));
            prop_assert!(lost.longest_ns.abs_diff(now - full) <= 1, "{} for {}", lost.longest_ns, now - full);
        }
        let before = policer.lost_tokens();
        policer.colour(now + IDLE + earned_tokens(rate, bytes) + idle, bytes);
        prop_assert_eq!(policer.lost_tokens(), before, "nobody wanted them");
    }
}

#[test]
fn longest_loss_covers_consecutive_packets() {
    // A byte a microsecond; 3000 bytes.
    let mut policer = TokenBuckets::single_bucket(8_000_000, 3_000, Time(0));
    let mut at = |ms: u64, bytes: u32| {
        policer.colour(Time(ms * MILLI), bytes);
        let lost = policer.tokens_lost();
        (lost.bytes, lost.longest_ns)
    };
    assert_eq!(at(0, 1_000), (0, 0));
    // Full at 1 ms.
    assert_eq!(at(3, 1_000), (2_000, 2 * MILLI));
    assert_eq!(at(5, 3_000), (3_000, 4 * MILLI));
    // This packet finds too few tokens, which ends the run; it is dropped.
    assert_eq!(at(7, 3_000), (3_000, 4 * MILLI));
    // Full at 8 ms: another run, shorter than the first.
    assert_eq!(at(9, 1_000), (4_000, 4 * MILLI));
    assert_eq!(at(13, 1_000), (7_000, 5 * MILLI));
}

#[test]
fn policers_show_lost_tokens_since_clearing() {
    let dynamic = DynamicBucketConfig { initial_bytes: Some(3_000), ..DynamicBucketConfig::default() };
    let one = police(8_000_000);
    for police in [one.clone().bytes(3_000), PoliceConfig { dynamic: Some(dynamic), ..one }] {
        let mut engine: Engine<u64> = common::engine(100_000_000, Framing::Ethernet);
        engine.configure(Time(0), &with_policy(Hqf, 100_000, vec![class_default().police(police)])).unwrap();
        let mut after = |clear: bool, packets: &[u64]| {
            for ms in packets {
                engine.transmit(Time(ms * MILLI), PORT, udp(986, 0, Framing::Ethernet), *ms);
            }
            let now = Time(packets[packets.len() - 1] * MILLI);
            let lost = common::class(&mut engine, now, 0).police.unwrap().tokens_lost;
            if clear {
                engine.clear(now, None);
            }
            (lost.bytes, lost.longest_ns)
        };
        assert_eq!(after(false, &[5, 7]), (1_000, MILLI));
        // At 5006 there had been no demand for 4999 ms.
        assert_eq!(after(true, &[5_006, 5_008]), (2_000, MILLI));
        assert_eq!(after(false, &[5_100]), (0, 0));
        assert_eq!(after(false, &[5_103]), (2_000, 2 * MILLI));
    }
}
