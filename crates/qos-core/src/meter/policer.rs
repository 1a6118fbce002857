//! The policer of a class: token buckets of a fixed size, or one bucket that adapts its size.

use crate::config::policy::PoliceAction;
use crate::counters::buckets::Tokens;
use crate::counters::police::{DynamicCounters, TokensLost};
use crate::meter::dynamic_bucket::DynamicBucket;
use crate::meter::token_bucket::TokenBuckets;
use crate::meter::tokens::Colour;
use crate::plan::police::PolicePlan;
use crate::time::Time;

impl PolicePlan {
    pub fn actions(&self, colour: Colour) -> &[PoliceAction] {
        match colour {
            Colour::Conform => &self.conform,
            Colour::Exceed => &self.exceed,
            Colour::Violate => &self.violate,
        }
    }
}

/// State of a policer.
#[derive(Clone, Debug)]
pub(crate) enum Meter {
    Static(TokenBuckets),
    Dynamic(Box<DynamicBucket>),
}

impl Meter {
    pub fn of(plan: &PolicePlan, start: Time) -> Meter {
        match &plan.dynamic {
            None => Meter::Static(TokenBuckets::of(plan, start)),
            Some(dynamic) => Meter::Dynamic(Box::new(DynamicBucket::new(plan.cir_bps, dynamic.clone(), start))),
        }
    }

    pub fn colour(&mut self, now: Time, bytes: u32) -> Colour {
        match self {
            Meter::Static(buckets) => buckets.colour(now, bytes),
            Meter::Dynamic(bucket) => bucket.colour(now, bytes),
        }
    }

    /// Returns the tokens at `now`.
    pub fn tokens_at(&self, now: Time) -> Tokens {
        match self {
            Meter::Static(buckets) => buckets.tokens_at(now),
            Meter::Dynamic(bucket) => Tokens { committed_bytes: bucket.counters(now).level_bytes, ..Tokens::default() },
        }
    }

    /// Returns the same policer with its counters at zero.
    pub fn cleared(mut self, now: Time) -> Meter {
        match &mut self {
            Meter::Static(buckets) => buckets.loss.clear(),
            Meter::Dynamic(bucket) => bucket.clear(now),
        }
        self
    }

    pub fn tokens_lost(&self) -> TokensLost {
        match self {
            Meter::Static(buckets) => buckets.tokens_lost(),
            Meter::Dynamic(bucket) => bucket.tokens_lost(),
        }
    }

    pub fn dynamic(&self, now: Time) -> Option<DynamicCounters> {
        match self {
            Meter::Static(_) => None,
            Meter::Dynamic(bucket) => Some(bucket.counters(now)),
        }
    }
}
