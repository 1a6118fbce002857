//! A policer with a bucket that adapts its size: small enough to keep bursts short, large enough for TCP to reach the
//! rate.
//!
//! After R. van Haalen and R. Malhotra, "Improving TCP performance with bufferless token bucket policing: A TCP
//! friendly policer" (IEEE LANMAN 2007). Its algorithm is not public; this one is inferred from the claims of the
//! authors' patent US 8,743,693: a drop happens when the bucket is empty; TCP slows down and tokens gather; when TCP
//! sends more than the rate again the level begins to fall. If the bucket overflows between these two times, it was too
//! small for the reduction of TCP's rate, and grows by the overflow. If it does not even become nearly full, it is
//! larger than needed and shrinks a little. The steps and constants are our interpretation.
//!
//! All work is done at arrivals, in integers; there is no timer.

use std::collections::VecDeque;

use crate::counters::police::{BucketChange, DynamicCounters, TokensLost};
use crate::meter::token_loss::TokenLoss;
use crate::meter::tokens::{at_most, Colour, UNITS_PER_BYTE};
use crate::plan::police::DynamicPlan;
use crate::time::Time;

/// Maximum number of recorded changes of size.
const CHANGES_KEPT: usize = 32;

/// TCP's reaction to a drop, while it is monitored.
#[derive(Clone, Copy, Debug)]
struct Watch {
    /// Overflow since the drop.
    overflow: u128,
    /// The level at the last comparison, and the highest one since the drop.
    reference: u64,
    peak: u64,
    /// Whether the level has risen since the drop.
    rising: bool,
    next: Time,
}

/// A token bucket with a size that adapts to TCP.
#[derive(Clone, Debug)]
pub struct DynamicBucket {
    plan: DynamicPlan,
    rate_bps: u64,
    size: u64,
    level: u64,
    last: Time,
    watch: Option<Watch>,
    /// Growths since the start; decides which share is added.
    grown: u32,
    shown: Shown,
    loss: TokenLoss,
}

/// Counters since they were last cleared.
#[derive(Clone, Debug)]
struct Shown {
    since: Time,
    changed: Time,
    /// Size times nanoseconds until `changed`.
    area: u128,
    growths: u64,
    shrinks: u64,
    /// Overflow while monitored: the total and the largest single one.
    overflow: u128,
    most_overflow: u128,
    /// Changes since the start.
    number: u64,
    changes: VecDeque<BucketChange>,
}

impl DynamicBucket {
    /// Returns a bucket that is full at `start`. The rate is in bits per second, sizes are at most 512 000 000 bytes.
    pub fn new(rate_bps: u64, plan: DynamicPlan, start: Time) -> DynamicBucket {
        let size = match plan.initial_bytes {
            _ if mistaken!(DynamicBucketStatic) => rate_bps / 32,
            _ if mistaken!(DynamicBucketStartsLargest) => plan.maximum_bytes,
            initial => initial,
        };
        let size = size.saturating_mul(UNITS_PER_BYTE);
        DynamicBucket {
            loss: TokenLoss::new(plan.idle),
            plan,
            rate_bps,
            size,
            level: size,
            last: start,
            watch: None,
            grown: 0,
            shown: Shown::new(start),
        }
    }

    /// Returns the colour of a packet of `bytes` that arrives at `now`, and takes its tokens if it conforms. An arrival
    /// before the last one adds no tokens.
    pub fn colour(&mut self, now: Time, bytes: u32) -> Colour {
        let now = now.max(self.last);
        let elapsed = now.since(self.last);
        self.last = now;
        let filled = u128::from(self.level) + u128::from(self.rate_bps) * u128::from(elapsed.0);
        self.level = at_most(filled, self.size);
        if elapsed > self.plan.idle {
            self.watch = None;
        }
        let overflow = filled.saturating_sub(u128::from(self.size));
        self.loss.arrival(now, elapsed, overflow, self.rate_bps);
        if let Some(watch) = &mut self.watch {
            watch.overflow += overflow;
        }
        self.compare(now);
        let needed = u64::from(bytes) * UNITS_PER_BYTE;
        if needed <= self.level {
            self.level -= needed;
            return Colour::Conform;
        }
        match self.watch {
            None => self.begin(now),
            Some(watch) if watch.rising || watch.overflow > 0 => {
                self.finish(now);
                self.begin(now);
            }
            // This drop belongs to the same burst of losses.
            Some(_) => {}
        }
        Colour::Exceed
    }

    /// Checks whether the level has turned, at most once per monitoring time: a window that arrives in one burst moves
    /// it up and down within a round trip.
    fn compare(&mut self, now: Time) {
        let (level, size) = (self.level, self.size);
        // Unconfirmed, like the whole comparison: a packet, or a tenth of a small bucket.
        let step = (1_500 * UNITS_PER_BYTE).min(size / 10);
        let Some(watch) = &mut self.watch else { return };
        watch.peak = watch.peak.max(level);
        if now < watch.next {
            return;
        }
        if level > watch.reference.saturating_add(step) || level >= size {
            watch.rising = true;
        } else if level.saturating_add(step) < watch.reference && watch.rising {
            return self.finish(now);
        }
        watch.reference = level;
        watch.next = now + self.plan.monitoring;
    }

    fn begin(&mut self, now: Time) {
        let (reference, peak) = (self.level, self.level);
        self.watch = Some(Watch { overflow: 0, reference, peak, rising: false, next: now + self.plan.monitoring });
    }

    /// Judges the size after the level has turned.
    fn finish(&mut self, now: Time) {
        let Some(watch) = self.watch.take() else { return };
        let maximum = self.plan.maximum_bytes.saturating_mul(UNITS_PER_BYTE);
        let minimum = self.plan.minimum_bytes.saturating_mul(UNITS_PER_BYTE);
        let share = |of: u64, percent: u32| at_most(u128::from(of) * u128::from(percent) / 100, u64::MAX);
        if watch.overflow > 0 {
            self.shown.overflow += watch.overflow;
            self.shown.most_overflow = self.shown.most_overflow.max(watch.overflow);
            let first = self.grown < self.plan.first_growths;
            let percent = if first { self.plan.first_growth_percent } else { self.plan.growth_percent };
            let added = watch.overflow.saturating_mul(u128::from(percent)) / 100;
            let added = if mistaken!(DynamicBucketGrowsTwice) { added * 2 } else { added };
            self.grown = self.grown.saturating_add(1);
            self.resize(now, at_most(u128::from(self.size).saturating_add(added), maximum));
        } else if self.size - watch.peak > share(self.size, self.plan.spare_percent) {
            self.resize(now, (self.size - share(self.size, self.plan.shrink_percent)).max(minimum));
            self.level = self.level.min(self.size);
        }
    }

    fn resize(&mut self, now: Time, size: u64) {
        let size = match size {
            _ if mistaken!(DynamicBucketStatic) => self.size,
            size if size < self.size && mistaken!(DynamicBucketNeverShrinks) => self.size,
            size => size,
        };
        if size != self.size {
            self.shown.note(now, self.size, size);
            self.size = size;
        }
    }

    /// Returns whole bytes of the bucket's size, and of its tokens as of the last packet.
    pub fn bytes(&self) -> (u64, u64) {
        (self.size / UNITS_PER_BYTE, self.level / UNITS_PER_BYTE)
    }

    /// Returns the tokens that arrived while the bucket was full although there was demand.
    pub fn tokens_lost(&self) -> TokensLost {
        self.loss.counters()
    }

    /// Restarts the displayed counters; bucket and algorithm continue.
    pub(crate) fn clear(&mut self, now: Time) {
        self.shown = Shown { number: self.shown.number, ..Shown::new(now) };
        self.loss.clear();
    }

    /// Returns the displayed counters, with the level as of `now`.
    pub(crate) fn counters(&self, now: Time) -> DynamicCounters {
        let (shown, plan) = (&self.shown, &self.plan);
        let filled = u128::from(self.level) + u128::from(self.rate_bps) * u128::from(now.since(self.last).0);
        let whole = |units: u128| u64::try_from(units / u128::from(UNITS_PER_BYTE)).unwrap_or(u64::MAX);
        let size = u128::from(self.size);
        let area = shown.area + size * u128::from(now.since(shown.changed).0);
        let time = u128::from(now.since(shown.since).0);
        let mean = area.checked_div(time).unwrap_or(size);
        DynamicCounters {
            bucket_bytes: whole(size),
            level_bytes: whole(filled.min(size)),
            mean_bucket_bytes: whole(mean),
            initial_bytes: plan.initial_bytes,
            minimum_bytes: plan.minimum_bytes,
            maximum_bytes: plan.maximum_bytes,
            monitoring_ms: plan.monitoring.0 / 1_000_000,
            watching: self.watch.is_some(),
            growths: shown.growths,
            shrinks: shown.shrinks,
            overflow_bytes: whole(shown.overflow),
            most_overflow_bytes: whole(shown.most_overflow),
            changes: shown.changes.iter().copied().collect(),
        }
    }
}

impl Shown {
    fn new(now: Time) -> Shown {
        Shown {
            since: now,
            changed: now,
            area: 0,
            growths: 0,
            shrinks: 0,
            overflow: 0,
            most_overflow: 0,
            number: 0,
            changes: VecDeque::new(),
        }
    }

    fn note(&mut self, now: Time, old: u64, new: u64) {
        // A change that becomes known late counts from the last clearing at the earliest.
        let now = now.max(self.changed);
        self.area += u128::from(old) * u128::from(now.since(self.changed).0);
        self.changed = now;
        if new > old {
            self.growths += 1;
        } else {
            self.shrinks += 1;
        }
        self.number += 1;
        if self.changes.len() == CHANGES_KEPT {
            self.changes.pop_front();
        }
        self.changes.push_back(BucketChange {
            number: self.number,
            time_ns: now.0,
            bucket_bytes: new / UNITS_PER_BYTE,
        });
    }
}
