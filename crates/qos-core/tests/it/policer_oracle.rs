//! The policers against their definitions, calculated in rational numbers: every decision is the same.

use num_rational::Ratio;
use proptest::prelude::*;
use qos_core::meter::{Colour, TokenBuckets};
use qos_core::Time;

type Tokens = Ratio<i128>;

/// Metering of a case: its colouring, with the rates in b/s and the bursts in bytes.
#[derive(Clone, Copy, Debug)]
enum Definition {
    /// One bucket, as `police` without a violate action.
    SingleBucket,
    /// RFC 2697, colour-blind: overflow of the committed bucket goes to the excess bucket.
    SingleRate { be: u64 },
    /// RFC 2698, colour-blind: the peak bucket decides first.
    TwoRate { pir: u64, be: u64 },
}

/// Token buckets as the definitions have them, in bytes.
struct Oracle {
    definition: Definition,
    cir: u64,
    bc: Tokens,
    committed: Tokens,
    /// The excess bucket, or the peak bucket.
    second: Tokens,
    last: u64,
}

fn bytes(number: u64) -> Tokens {
    Ratio::from_integer(i128::from(number))
}

/// Tokens of a rate in a time.
fn filled(bps: u64, nanos: u64) -> Tokens {
    Ratio::new(i128::from(bps) * i128::from(nanos), 8_000_000_000)
}

impl Oracle {
    fn new(definition: Definition, cir: u64, bc: u64) -> Oracle {
        let second = match definition {
            Definition::SingleBucket => 0,
            Definition::SingleRate { be } | Definition::TwoRate { be, .. } => be,
        };
        Oracle { definition, cir, bc: bytes(bc), committed: bytes(bc), second: bytes(second), last: 0 }
    }

    fn colour(&mut self, now: u64, packet: u32) -> Colour {
        let waited = now - self.last;
        self.last = now;
        let packet = bytes(u64::from(packet));
        let committed = self.committed + filled(self.cir, waited);
        self.committed = committed.min(self.bc);
        match self.definition {
            Definition::SingleBucket => {}
            Definition::SingleRate { be } => {
                let overflow = committed - self.committed;
                self.second = (self.second + overflow).min(bytes(be));
            }
            Definition::TwoRate { pir, be } => {
                self.second = (self.second + filled(pir, waited)).min(bytes(be));
                if self.second < packet {
                    return Colour::Violate;
                }
                self.second -= packet;
            }
        }
        if self.committed >= packet {
            self.committed -= packet;
            return Colour::Conform;
        }
        match self.definition {
            Definition::SingleRate { .. } if self.second < packet => return Colour::Violate,
            Definition::SingleRate { .. } => self.second -= packet,
            Definition::SingleBucket | Definition::TwoRate { .. } => {}
        }
        Colour::Exceed
    }
}

fn definition() -> impl Strategy<Value = Definition> {
    prop_oneof![
        Just(Definition::SingleBucket),
        (1u64..200_000).prop_map(|be| Definition::SingleRate { be }),
        (1u64..200_000, 8_000u64..10_000_000_000).prop_map(|(be, pir)| Definition::TwoRate { pir, be }),
    ]
}

proptest! {
    #![proptest_config(crate::bounded::cases(512))]

    /// Packets of all sizes come at up to twice the rate, so that all colours are seen, in bunches and after silences.
    #[test]
    fn policer_decisions_match_the_definition(
        definition in definition(),
        cir in 8_000u64..10_000_000_000,
        bc in 1_000u64..200_000,
        packets in prop::collection::vec((40u32..9_000, 0u64..200, prop::bool::weighted(0.02)), 1..400),
    ) {
        let start = Time(0);
        let (cir, mut buckets) = match definition {
            Definition::SingleBucket => (cir, TokenBuckets::single_bucket(cir, bc, start)),
            Definition::SingleRate { be } => (cir, TokenBuckets::single_rate(cir, bc, be, start)),
            Definition::TwoRate { pir, be } => {
                let cir = cir.min(pir);
                (cir, TokenBuckets::two_rate(cir, bc, pir, be, start))
            }
        };
        let mut oracle = Oracle::new(definition, cir, bc);
        let mut now = 0;
        for (number, (packet, percent, silence)) in packets.into_iter().enumerate() {
            // A part of the time in which the rate earns the packet.
            now += u64::from(packet) * 8_000_000_000 / cir * percent / 100;
            now += if silence { 3_000_000_007 } else { 0 };
            let expected = oracle.colour(now, packet);
            prop_assert_eq!(buckets.colour(Time(now), packet), expected, "packet {} at {} ns", number, now);
        }
    }
}

/// Long runs at rates that do not divide anything: 5600 packets of three sizes at each.
#[test]
fn policer_stays_exact_over_long_runs_at_odd_rates() {
    for (cir, bc) in [(999_999, 3_001), (64_007, 1_500), (8_191_817, 31_253)] {
        for definition in [
            Definition::SingleBucket,
            Definition::SingleRate { be: 4_999 },
            Definition::TwoRate { pir: 2 * cir, be: 7_001 },
        ] {
            let mut buckets = match definition {
                Definition::SingleBucket => TokenBuckets::single_bucket(cir, bc, Time(0)),
                Definition::SingleRate { be } => TokenBuckets::single_rate(cir, bc, be, Time(0)),
                Definition::TwoRate { pir, be } => TokenBuckets::two_rate(cir, bc, pir, be, Time(0)),
            };
            let mut oracle = Oracle::new(definition, cir, bc);
            let mut seen = [0; 3];
            for number in 0..5_600u64 {
                let packet = [64, 594, 1_514][(number * number % 7 % 3) as usize];
                // 1.6 times the committed rate in packets of 724 bytes.
                let now = number * 724 * 8_000_000_000 / (cir * 16 / 10);
                let colour = oracle.colour(now, packet);
                assert_eq!(buckets.colour(Time(now), packet), colour, "{definition:?}, packet {number}");
                seen[colour as usize] += 1;
            }
            assert!(seen[0] > 1_000 && seen[1] + seen[2] > 1_000, "{definition:?}: {seen:?}");
        }
    }
}
