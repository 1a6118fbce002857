//! The token buckets of a policer.
//!
//! One bucket (conform, exceed), two buckets with one rate (RFC 2697, colour-blind) or two rates (RFC 2698,
//! colour-blind). Buckets are filled at each packet's arrival, in units of 10⁻⁹ bit, so that no fraction is ever lost.

use crate::config::defaults::POLICE_IDLE_MS;
use crate::counters::buckets::Tokens;
use crate::counters::police::TokensLost;
use crate::meter::token_loss::TokenLoss;
use crate::meter::tokens::{at_most, Colour, UNITS_PER_BYTE};
use crate::plan::police::{Algorithm, PolicePlan};
use crate::time::{Duration, Time};

/// The token buckets of a policer.
#[derive(Clone, Debug)]
pub struct TokenBuckets {
    algorithm: Algorithm,
    cir_bps: u64,
    bc: u64,
    be: u64,
    committed: u64,
    excess: u64,
    last: Time,
    pub(crate) loss: TokenLoss,
}

impl TokenBuckets {
    /// Returns one bucket, full at `start`. The rate is in bits per second, the burst in bytes (at most 512 000 000).
    pub fn single_bucket(cir_bps: u64, bc_bytes: u64, start: Time) -> TokenBuckets {
        TokenBuckets::new(Algorithm::SingleBucket, cir_bps, bc_bytes, 0, start)
    }

    /// Returns two buckets and one rate (RFC 2697), full at `start`.
    pub fn single_rate(cir_bps: u64, bc_bytes: u64, be_bytes: u64, start: Time) -> TokenBuckets {
        TokenBuckets::new(Algorithm::SingleRate, cir_bps, bc_bytes, be_bytes, start)
    }

    /// Returns two buckets and two rates (RFC 2698), full at `start`.
    pub fn two_rate(cir_bps: u64, bc_bytes: u64, pir_bps: u64, be_bytes: u64, start: Time) -> TokenBuckets {
        TokenBuckets::new(Algorithm::TwoRate { pir_bps }, cir_bps, bc_bytes, be_bytes, start)
    }

    pub(crate) fn of(plan: &PolicePlan, start: Time) -> TokenBuckets {
        let bc_bytes = match plan.bc_bytes {
            bytes if mistaken!(PolicerBucketTwice) => bytes * 2,
            bytes if mistaken!(PolicerBucketHalf) => bytes / 2,
            _ if mistaken!(PolicerBucketIgnored) => plan.cir_bps * 3 / 16,
            bytes => bytes,
        };
        let cir_bps = match plan.cir_bps {
            rate if mistaken!(PolicerRateHigh) => rate * 103 / 100,
            rate if mistaken!(PolicerRateLow) => rate * 97 / 100,
            rate => rate,
        };
        TokenBuckets::new(plan.algorithm, cir_bps, bc_bytes, plan.be_bytes, start)
    }

    fn new(algorithm: Algorithm, cir_bps: u64, bc_bytes: u64, be_bytes: u64, start: Time) -> TokenBuckets {
        let bc = bc_bytes.saturating_mul(UNITS_PER_BYTE);
        let be = be_bytes.saturating_mul(UNITS_PER_BYTE);
        let loss = TokenLoss::new(Duration::from_millis(POLICE_IDLE_MS));
        let committed = if mistaken!(PolicerStartsEmpty) { 0 } else { bc };
        TokenBuckets { algorithm, cir_bps, bc, be, committed, excess: be, last: start, loss }
    }

    /// Colours a packet of `bytes` that arrives at `now`, and takes its tokens. An arrival before the last one adds no
    /// tokens.
    pub fn colour(&mut self, now: Time, bytes: u32) -> Colour {
        let now = now.max(self.last);
        let since = now.since(self.last);
        let lost = if mistaken!(PolicerFillsByMillisecond) { since.0 % 1_000_000 } else { 0 };
        let elapsed = u128::from(since.0 - lost);
        self.last = now;
        let filled = u128::from(self.committed) + u128::from(self.cir_bps) * elapsed;
        self.committed = at_most(filled, self.bc);
        let mut overflow = filled.saturating_sub(u128::from(self.bc));
        if self.algorithm == Algorithm::SingleRate {
            // Tokens that the excess bucket takes are not lost.
            let filled = u128::from(self.excess) + overflow;
            self.excess = at_most(filled, self.be);
            overflow = filled.saturating_sub(u128::from(self.be));
        }
        self.loss.arrival(now, since, overflow, self.cir_bps);
        let needed = u64::from(counted(bytes)) * UNITS_PER_BYTE;
        match self.algorithm {
            Algorithm::SingleBucket => {
                if needed <= self.committed {
                    self.committed -= needed;
                    Colour::Conform
                } else if self.committed > 0 && mistaken!(PolicerOverdraft) {
                    self.committed = 0;
                    Colour::Conform
                } else {
                    if mistaken!(PolicerTakesFromExceeding) {
                        self.committed = 0;
                    }
                    Colour::Exceed
                }
            }
            Algorithm::SingleRate => {
                if needed <= self.committed {
                    self.committed -= needed;
                    Colour::Conform
                } else if needed <= self.excess {
                    self.excess -= needed;
                    Colour::Exceed
                } else {
                    Colour::Violate
                }
            }
            Algorithm::TwoRate { pir_bps } => {
                self.excess = at_most(u128::from(self.excess) + u128::from(pir_bps) * elapsed, self.be);
                if needed > self.excess {
                    Colour::Violate
                } else if needed > self.committed {
                    self.excess -= needed;
                    Colour::Exceed
                } else {
                    self.committed -= needed;
                    self.excess -= needed;
                    Colour::Conform
                }
            }
        }
    }

    /// Returns the tokens that arrived while the bucket was full although there was demand.
    pub fn tokens_lost(&self) -> TokensLost {
        self.loss.counters()
    }

    /// Returns the tokens at `now`, with those that have come since the last packet.
    pub(crate) fn tokens_at(&self, now: Time) -> Tokens {
        let mut filled = self.clone();
        filled.colour(now, 0);
        let (committed_bytes, excess_bytes) = filled.tokens();
        Tokens { committed_bytes, excess_bytes }
    }

    /// Returns whole bytes of tokens in the committed and the excess (peak) bucket, as of the last packet.
    pub fn tokens(&self) -> (u64, u64) {
        (self.committed / UNITS_PER_BYTE, self.excess / UNITS_PER_BYTE)
    }
}

/// Returns the bytes of a packet that count: all, unless a deliberate mistake is active.
fn counted(bytes: u32) -> u32 {
    match bytes {
        bytes if mistaken!(PolicerWithoutHeader) => bytes.saturating_sub(14),
        bytes if mistaken!(PolicerWithOverhead) => bytes + 24,
        bytes => bytes,
    }
}
