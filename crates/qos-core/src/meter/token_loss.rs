//! Tokens lost by a policer although there was demand: the cost of a bucket that is too small.

use crate::counters::police::TokensLost;
use crate::meter::tokens::UNITS_PER_BYTE;
use crate::time::{Duration, Time};

/// Counter of overflowing tokens, updated only at arrivals, like the bucket.
#[derive(Clone, Debug)]
pub(crate) struct TokenLoss {
    /// Longest gap between packets with demand; after a longer gap the tokens would have stayed unused anyway.
    idle: Duration,
    /// Whether a packet has arrived since the counters were cleared.
    demand: bool,
    units: u128,
    /// Start of the present period of loss, during which each packet found lost tokens.
    since: Option<Time>,
    longest: Duration,
}

impl TokenLoss {
    pub fn new(idle: Duration) -> TokenLoss {
        TokenLoss { idle, demand: false, units: 0, since: None, longest: Duration::ZERO }
    }

    /// Records a packet that arrives at `now`, `elapsed` after the previous one, and finds that `overflow` units at
    /// `rate_bps` could not be stored.
    pub fn arrival(&mut self, now: Time, elapsed: Duration, overflow: u128, rate_bps: u64) {
        let demand = std::mem::replace(&mut self.demand, true) && elapsed <= self.idle;
        if !demand || overflow == 0 {
            self.since = None;
            return;
        }
        self.units += overflow;
        // A unit takes a nanosecond divided by the rate, so this is the time at which the bucket was full.
        let full = || now - Duration(u64::try_from(overflow / u128::from(rate_bps)).unwrap_or(u64::MAX));
        let since = *self.since.get_or_insert_with(full);
        self.longest = self.longest.max(now.since(since));
    }

    /// Restarts counting: the next packet has no predecessor.
    pub fn clear(&mut self) {
        *self = TokenLoss::new(self.idle);
    }

    pub fn counters(&self) -> TokensLost {
        let bytes = u64::try_from(self.units / u128::from(UNITS_PER_BYTE)).unwrap_or(u64::MAX);
        TokensLost { bytes, longest_ns: self.longest.0 }
    }
}
