//! Deliberate mistakes: switches in the engine and in IP SLA; a build with the feature `mistakes` can activate one of
//! them.
//!
//! Programs are built without the feature and contain neither the switches nor their names. `tox -e prove` builds the
//! simulator with it, makes each mistake in turn and writes to `docs/internals/proof.md` which expectations notice.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// No mistake is made.
const NONE: usize = usize::MAX;

/// The active mistake.
static MADE: AtomicUsize = AtomicUsize::new(NONE);

macro_rules! catalogue {
    ($($mistake:ident, $name:literal, $what:literal;)*) => {
        /// A mistake.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mistake { $(#[doc = $what] $mistake,)* }

        /// All mistakes: the mistake, its name, and its effect on a router.
        pub const CATALOGUE: &[(Mistake, &str, &str)] = &[$((Mistake::$mistake, $name, $what),)*];
    };
}

catalogue! {
    PolicerBucketTwice, "policer-bucket-twice", "a policer's bucket is twice as large as configured";
    PolicerBucketHalf, "policer-bucket-half", "a policer's bucket is half as large as configured";
    PolicerBucketIgnored, "policer-bucket-ignored", "a policer's bucket always holds 1.5 s of its rate";
    PolicerRateHigh, "policer-rate-high", "a policer's rate is 3 % too high";
    PolicerRateLow, "policer-rate-low", "a policer's rate is 3 % too low";
    PolicerStartsEmpty, "policer-starts-empty", "a policer's bucket is empty at first";
    PolicerWithoutHeader, "policer-without-header", "a policer does not count 14 bytes of each packet";
    PolicerWithOverhead, "policer-with-overhead", "a policer counts 24 bytes too many for each packet";
    PolicerTakesFromExceeding, "policer-takes-from-exceeding", "an exceeding packet takes the remaining tokens";
    PolicerOverdraft, "policer-overdraft", "a packet conforms if the bucket is not empty";
    PolicerFillsByMillisecond, "policer-fills-by-millisecond", "a policer loses fractions of a millisecond";
    ShaperQueueFifo, "shaper-queue-fifo", "the queue of a classic shaper is first in, first out";
    ShaperRateHigh, "shaper-rate-high", "a shaper's rate is 5 % too high";
    ShaperRateSlightlyHigh, "shaper-rate-slightly-high", "a shaper's rate is 1 % too high";
    ShaperIntervalShort, "shaper-interval-short", "a shaper's interval is 4 ms";
    ShaperWithoutExcess, "shaper-without-excess", "a shaper has no excess burst";
    ShaperWithoutAccount, "shaper-without-account", "a shaper ignores the configured overhead accounting";
    DynamicBucketStatic, "dynamic-bucket-static", "the dynamic bucket is a static one of 250 ms";
    DynamicBucketNeverShrinks, "dynamic-bucket-never-shrinks", "the dynamic bucket never shrinks";
    DynamicBucketGrowsTwice, "dynamic-bucket-grows-twice", "the dynamic bucket grows by twice the overflow";
    DynamicBucketStartsLargest, "dynamic-bucket-starts-largest", "the dynamic bucket starts at its maximum size";
    FairQueueMissing, "fair-queue-missing", "a class with fair-queue is first in, first out";
    FairQueueUnasked, "fair-queue-unasked", "a class without fair-queue has flow queues";
    FlowLimitWhole, "flow-limit-whole", "a flow may hold the whole limit of its class instead of a quarter";
    FairQueueSumLimited, "fair-queue-sum-limited", "the limit of a class with fair-queue applies to all flows together";
    FlowQueuesFew, "flow-queues-few", "a class has 64 flow queues instead of 256";
    FlowsByAddress, "flows-by-address", "flows are distinguished by addresses only";
    PacketFair, "packet-fair", "flows of a class get equal numbers of packets instead of bytes";
    UnreservedWhole, "unreserved-whole", "class-default has the weight of the whole line bandwidth";
    SerialOverheadShort, "serial-overhead-short", "a serial line adds 4 bytes to a packet instead of 7";
    SerialOverheadLong, "serial-overhead-long", "a serial line adds 9 bytes to a packet instead of 7";
    EthernetOverheadShort, "ethernet-overhead-short", "preamble and gap take no time on the line";
    TagUncounted, "tag-uncounted", "the bytes of VLAN tags are not counted";
    CellsRoundedDown, "cells-rounded-down", "a partly filled cell is not counted";
    WeightsFlat, "weights-flat", "precedence 5 weighs 5 times as much as 0 instead of 6";
    WeightsSteep, "weights-steep", "precedence 5 weighs 7 times as much as 0 instead of 6";
    InterfaceQueueFifo, "interface-queue-fifo", "weighted fair queueing of an interface is first in, first out";
    DiscardThresholdIgnored, "discard-threshold-ignored", "weighted fair queueing has no congestive discard threshold";
    RingLonger, "ring-longer", "the transmit ring holds one packet too many";
    RingShorter, "ring-shorter", "a transmit ring of two packets holds one too few";
    QueueLimitHalf, "queue-limit-half", "a first-in, first-out queue holds half of its limit";
    LastClassWins, "last-class-wins", "the last matching class gets a packet instead of the first";
    MatchAnyAll, "match-any-all", "a class-map with match-any requires all of its statements";
    MatchAllAny, "match-all-any", "a class-map with match-all requires only one of its statements";
    ClassWeightTwice, "class-weight-twice", "a class of the classic generation weighs half as much as it should";
    PriorityLast, "priority-last", "a class with priority is served only when all other queues are empty";
    PriorityUnlimited, "priority-unlimited", "a priority class exceeds its rate on a busy line";
    RandomDetectSeldom, "random-detect-seldom", "random early detection drops a tenth of the expected packets";
    RandomDetectEarly, "random-detect-early", "random early detection uses half of its thresholds";
    MarkingMissing, "marking-missing", "`set` counts packets as marked but does not change them";
    ShapedQueueShared, "shaped-queue-shared", "queue 1 of a switch's port is shared instead of shaped";
    ShapeWeightLow, "shape-weight-low", "a queue that is shaped to 1/25 is shaped to 1/22";
    ShapeWeightHigh, "shape-weight-high", "a queue that is shaped to 1/25 is shaped to 1/26";
    ShareLow, "share-low", "queue 1 gets 2 % too little and queue 2 gets 2 % too much";
    ShareHigh, "share-high", "queue 1 gets 2 % too much and queue 2 gets 2 % too little";
    ShareOthersEqual, "share-others-equal", "queues 3 and 4 have the weight of queue 1";
    ShapeByLimit, "shape-by-limit", "the share of a shaped queue refers to the limited speed";
    LimitLow, "limit-low", "a limit of 70 % is applied as 67 %";
    LimitHigh, "limit-high", "a limit of 70 % is applied as 73 %";
    BuffersHalf, "buffers-half", "a queue of a switch's port drops at half of its cells";
    BuffersTwice, "buffers-twice", "a queue of a switch's port drops at twice its cells";
    SwitchPolicerRateHigh, "switch-policer-rate-high", "a switch's policer has a rate 3 % too high";
    SwitchPolicerBurstHalf, "switch-policer-burst-half", "a switch's policer has half of its configured burst";
    SwitchPolicerWithoutCheck, "switch-policer-without-check", "a switch's policer does not count the FCS";
    TrustIgnored, "trust-ignored", "a trusted port is treated as untrusted";
    ExpeditedElsewhere, "expedited-elsewhere", "DSCP 46 goes to queue 2";
    ProcessLevelFree, "process-level-free", "process switching takes no time";
    JitterCountsZeros, "jitter-counts-zeros", "zero differences count in the jitter";
    JitterSmoothed, "jitter-smoothed", "a sixteenth of each difference counts in the jitter, as in RFC 3550";
    JitterReversed, "jitter-reversed", "the two directions of jitter are swapped";
    RoundTripOneWay, "round-trip-one-way", "a round trip is only the outward delay if the responder stamps";
    RoundTripLater, "round-trip-later", "the arrival of every 50th answer is stamped 20 ms late, as on a busy machine";
    TimestampRounded, "timestamp-rounded", "ICMP timestamps have a resolution of ten milliseconds";
}

/// Mistakes whose switches a run has executed.
static REACHED: [AtomicBool; CATALOGUE.len()] = [const { AtomicBool::new(false) }; CATALOGUE.len()];

/// Returns whether this mistake is active.
pub fn made(mistake: Mistake) -> bool {
    let number = mistake as usize;
    REACHED[number].store(true, Relaxed);
    MADE.load(Relaxed) == number
}

/// Activates the mistake of that name. Returns false if there is none.
pub fn make(name: &str) -> bool {
    let found = CATALOGUE.iter().position(|(_, known, _)| *known == name);
    MADE.store(found.unwrap_or(NONE), Relaxed);
    found.is_some()
}

/// Returns the names of the mistakes whose switches the process has executed: no other mistake can affect the run.
pub fn reached() -> impl Iterator<Item = &'static str> {
    CATALOGUE.iter().zip(&REACHED).filter(|(_, reached)| reached.load(Relaxed)).map(|((_, name, _), _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistake_is_enabled_by_its_name() {
        assert!(!made(Mistake::RingLonger));
        assert!(make("ring-longer") && made(Mistake::RingLonger) && !made(Mistake::RingShorter));
        assert_eq!(reached().collect::<Vec<_>>(), ["ring-longer", "ring-shorter"]);
        assert!(!make("ring") && !made(Mistake::RingLonger));
    }

    #[test]
    fn mistake_names_are_distinct() {
        for (number, (mistake, name, _)) in CATALOGUE.iter().enumerate() {
            assert_eq!(*mistake as usize, number);
            assert_eq!(CATALOGUE.iter().filter(|(_, other, _)| other == name).count(), 1, "{name}");
        }
    }
}
