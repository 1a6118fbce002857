//! What is told of the operations: the reply to `ip_sla` of `docs/control-protocol.md`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::Kind;
use crate::Nanos;

/// All operations, and the responder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// By number.
    pub operations: BTreeMap<u32, OperationReport>,
    /// What the responder did; null where there is none.
    pub responder: Option<ResponderReport>,
}

/// What the responder did since it was configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ResponderReport {
    /// Control messages received.
    pub control_messages: u64,
    /// Of these, refused or not understood.
    pub control_errors: u64,
    /// Datagrams answered.
    pub answered: u64,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OperationReport {
    /// What is sent.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Whether it runs.
    pub state: State,
    /// Seconds until its life ends; null for ever, or where it does not run.
    pub life_left_s: Option<u64>,
    /// When it started.
    pub started_ns: Option<Nanos>,
    /// Its last run that has ended.
    pub latest: Option<Latest>,
    /// Runs that got an answer, since it started.
    pub successes: u64,
    /// Runs that did not.
    pub failures: u64,
    /// Aggregated, oldest hour first.
    pub hours: Vec<Hour>,
}

/// What an operation is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waits for its start.
    Pending,
    /// Runs.
    Active,
    /// Its life is over, or it was never scheduled.
    Inactive,
}

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Latest {
    /// When it started.
    pub started_ns: Nanos,
    /// How it ended.
    pub return_code: ReturnCode,
    /// Round-trip time in ms, of a jitter operation the average.
    pub rtt_ms: Option<u64>,
    /// Its packets.
    pub figures: Figures,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReturnCode {
    /// In time.
    Ok,
    /// Answered, but slower than the threshold.
    OverThreshold,
    /// Not answered.
    Timeout,
    /// The responder did not agree to listen, or nothing could be sent.
    NoConnection,
    /// Not started, as the run before had not ended.
    Busy,
}

/// The runs that started in one hour, counted from the operation's start.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Hour {
    /// Start of the hour.
    pub start_ns: Nanos,
    /// Runs that got an answer.
    pub successes: u64,
    /// Runs that did not.
    pub failures: u64,
    /// All packets of these runs.
    pub figures: Figures,
}

/// Count, sum and extremes of some values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The least; 0 where there is none.
    pub min: u64,
    /// The greatest; 0 where there is none.
    pub max: u64,
}

impl Spread {
    pub(crate) fn add(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += value;
    }

    pub(crate) fn merge(&mut self, other: &Spread) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
    }

    /// The average, truncated as IOS does; 0 where there is none.
    pub fn average(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }
}

/// Differences of transit time between consecutive packets, in ms. Zero is in neither direction (CISCO-RTTMON-MIB).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Jitter {
    /// Pairs of consecutive packets that were both answered.
    pub pairs: u64,
    /// The packet took longer than the one before: by how much.
    pub positive: Spread,
    /// It took less time: by how much.
    pub negative: Spread,
}

impl Jitter {
    pub(crate) fn add(&mut self, difference: i64) {
        self.pairs += 1;
        match difference {
            0 => {}
            1.. => self.positive.add(difference.unsigned_abs()),
            _ => self.negative.add(difference.unsigned_abs()),
        }
    }

    fn merge(&mut self, other: &Jitter) {
        self.pairs += other.pairs;
        self.positive.merge(&other.positive);
        self.negative.merge(&other.negative);
    }
}

/// What the packets of one or more runs came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Figures {
    /// Round-trip times in whole ms, less the time at the target, from stamps of whole ms as IOS has them.
    pub rtt_ms: Spread,
    /// Round-trip times in ns from exact stamps of our own, the time at the target included.
    pub rtt_ns: Spread,
    /// Towards the target.
    pub source_to_destination: Jitter,
    /// On the way back.
    pub destination_to_source: Jitter,
    /// Replies slower than the threshold.
    pub over_threshold: u64,
    /// Packets without an answer in time, by where they were lost as far as that is known.
    pub lost: Lost,
    /// Lengths of the runs of lost packets.
    pub loss_periods: Spread,
    /// Replies that came after the timeout, while the run went on.
    pub late: u64,
    /// Replies in another order than the packets.
    pub out_of_sequence: OutOfSequence,
    /// Packets that could not be sent.
    pub skipped: u64,
    /// Runs that did not start, as the one before had not ended.
    pub busy: u64,
    /// Runs to which the responder did not agree.
    pub no_connection: u64,
    /// Round-trip times by bucket of the distribution; the last one has all that are longer (echo operations).
    pub distribution: Vec<u64>,
}

/// Lost packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lost {
    /// On the way to the target.
    pub source_to_destination: u64,
    /// On the way back.
    pub destination_to_source: u64,
    /// It is not known where.
    pub unknown: u64,
}

/// Packets that overtook others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutOfSequence {
    /// On the way to the target.
    pub source_to_destination: u64,
    /// On the way back.
    pub destination_to_source: u64,
    /// It is not known where, or on both.
    pub both: u64,
}

impl Figures {
    pub(crate) fn merge(&mut self, other: &Figures) {
        self.rtt_ms.merge(&other.rtt_ms);
        self.rtt_ns.merge(&other.rtt_ns);
        self.source_to_destination.merge(&other.source_to_destination);
        self.destination_to_source.merge(&other.destination_to_source);
        self.over_threshold += other.over_threshold;
        self.lost.source_to_destination += other.lost.source_to_destination;
        self.lost.destination_to_source += other.lost.destination_to_source;
        self.lost.unknown += other.lost.unknown;
        self.loss_periods.merge(&other.loss_periods);
        self.late += other.late;
        self.out_of_sequence.source_to_destination += other.out_of_sequence.source_to_destination;
        self.out_of_sequence.destination_to_source += other.out_of_sequence.destination_to_source;
        self.out_of_sequence.both += other.out_of_sequence.both;
        self.skipped += other.skipped;
        self.busy += other.busy;
        self.no_connection += other.no_connection;
        if self.distribution.len() < other.distribution.len() {
            self.distribution.resize(other.distribution.len(), 0);
        }
        for (bucket, count) in self.distribution.iter_mut().zip(&other.distribution) {
            *bucket += count;
        }
    }
}
