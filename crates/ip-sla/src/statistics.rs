//! Statistics of one run and of the runs of an hour, in integer milliseconds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Number, sum, sum of squares, minimum and maximum of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Summary {
    pub count: u64,
    pub sum: u64,
    pub sum2: u64,
    pub min: u64,
    pub max: u64,
}

impl Summary {
    /// Counts one value.
    pub fn add(&mut self, value: u64) {
        self.merge(&Summary { count: 1, sum: value, sum2: value.saturating_mul(value), min: value, max: value });
    }

    /// Adds the values of another summary.
    pub fn merge(&mut self, other: &Summary) {
        if other.count == 0 {
            return;
        }
        self.min = if self.count == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.count += other.count;
        self.sum += other.sum;
        self.sum2 = self.sum2.saturating_add(other.sum2);
    }

    /// Returns the mean, truncated, as IOS divides.
    pub fn average(&self) -> u64 {
        self.sum.checked_div(self.count).unwrap_or(0)
    }
}

/// Jitter of one direction: positive and negative differences separately; zero is in neither (CISCO-RTTMON-MIB).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Jitter {
    /// Pairs of consecutive packets that were both answered, zeros included.
    pub pairs: u64,
    /// Differences above zero.
    pub positive: Summary,
    /// Differences below zero, by their size.
    pub negative: Summary,
}

impl Jitter {
    fn add(&mut self, difference: i64) {
        self.pairs += 1;
        let difference = if mistaken!(JitterSmoothed) { difference / 16 } else { difference };
        match difference {
            0 if mistaken!(JitterCountsZeros) => self.positive.add(0),
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

/// Packets that did not return in time or in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Losses {
    /// Not answered at all.
    pub total: u64,
    /// Packets lost on the outward path; known if the responder counts packets.
    pub source_to_destination: u64,
    /// Packets lost on the return path.
    pub destination_to_source: u64,
    /// Packets lost in an unknown direction.
    pub missing: u64,
    /// Answered after the timeout.
    pub late: u64,
    /// Could not be sent.
    pub skipped: u64,
    /// Packets out of order on the outward path.
    pub out_of_sequence_sd: u64,
    /// Packets out of order on the return path.
    pub out_of_sequence_ds: u64,
    /// Packets out of order on both paths.
    pub out_of_sequence_both: u64,
    /// Shortest and longest run of lost packets; 0 without loss.
    pub period_min: u64,
    /// See `period_min`.
    pub period_max: u64,
}

impl Losses {
    fn merge(&mut self, other: &Losses) {
        self.total += other.total;
        self.source_to_destination += other.source_to_destination;
        self.destination_to_source += other.destination_to_source;
        self.missing += other.missing;
        self.late += other.late;
        self.skipped += other.skipped;
        self.out_of_sequence_sd += other.out_of_sequence_sd;
        self.out_of_sequence_ds += other.out_of_sequence_ds;
        self.out_of_sequence_both += other.out_of_sequence_both;
        if other.period_max > 0 {
            self.period_min =
                if self.period_max == 0 { other.period_min } else { self.period_min.min(other.period_min) };
            self.period_max = self.period_max.max(other.period_max);
        }
    }
}

/// Statistics of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Statistics {
    /// Packets sent.
    pub sent: u64,
    /// Round trips of the packets that were answered in time.
    pub rtt: Summary,
    /// Round trips above the threshold.
    pub over_threshold: u64,
    /// Jitter from source to destination.
    pub jitter_sd: Jitter,
    /// Jitter from destination to source.
    pub jitter_ds: Jitter,
    /// One-way latency from source to destination; only with synchronised clocks.
    pub one_way_sd: Summary,
    /// One-way latency from destination to source.
    pub one_way_ds: Summary,
    /// Packets that did not return in time or in order.
    pub losses: Losses,
}

impl Statistics {
    /// Adds the statistics of another run. `sent = rtt.count + losses.total + losses.late` holds for the sum when it
    /// holds for both.
    pub fn merge(&mut self, other: &Statistics) {
        self.sent += other.sent;
        self.rtt.merge(&other.rtt);
        self.over_threshold += other.over_threshold;
        self.jitter_sd.merge(&other.jitter_sd);
        self.jitter_ds.merge(&other.jitter_ds);
        self.one_way_sd.merge(&other.one_way_sd);
        self.one_way_ds.merge(&other.one_way_ds);
        self.losses.merge(&other.losses);
    }
}

/// Millisecond time stamps of a packet that returned in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Answered {
    /// Position in the run, from 0.
    pub index: usize,
    pub sent: u32,
    pub arrived: u32,
    /// Arrival at full resolution, for the order.
    pub arrived_ns: Nanos,
    pub remote: Option<(u32, u32)>,
    pub received: Option<u16>,
}

impl Answered {
    /// Returns the round-trip time: (T4 - T1) - (T3 - T2), not below zero.
    pub fn rtt(&self) -> u64 {
        let whole = match self.remote {
            Some((_, t3)) if mistaken!(RoundTripOneWay) => crate::difference_ms(t3, self.sent),
            _ => crate::difference_ms(self.arrived, self.sent),
        };
        let inside = self.remote.map_or(0, |(t2, t3)| crate::difference_ms(t3, t2));
        (whole - inside).max(0).unsigned_abs()
    }
}

/// Returns the statistics of one run of packets. `fate` has the outcome of each packet, in the order of sending.
pub fn of_run(fate: &[Fate], threshold_ms: u32, synchronised: bool) -> Statistics {
    let mut found = Statistics::default();
    let mut before: Option<&Answered> = None;
    let mut period = 0;
    for each in fate {
        match each {
            Fate::Skipped => found.losses.skipped += 1,
            Fate::Lost | Fate::Late => {
                found.sent += 1;
                *(if *each == Fate::Lost { &mut found.losses.total } else { &mut found.losses.late }) += 1;
            }
            Fate::Answered(_) => found.sent += 1,
        }
        if *each == Fate::Lost {
            period += 1;
            continue;
        }
        close_period(&mut found.losses, &mut period);
        let Fate::Answered(packet) = each else { continue };
        let rtt = packet.rtt();
        found.rtt.add(rtt);
        found.over_threshold += u64::from(rtt > u64::from(threshold_ms));
        if let (true, Some((t2, t3))) = (synchronised, packet.remote) {
            let (there, back) = (crate::difference_ms(t2, packet.sent), crate::difference_ms(packet.arrived, t3));
            // Clocks that put an arrival before the departure are not synchronised after all.
            if there >= 0 && back >= 0 {
                found.one_way_sd.add(there.unsigned_abs());
                found.one_way_ds.add(back.unsigned_abs());
            }
        }
        if let Some(earlier) = before {
            out_of_sequence(&mut found.losses, earlier, packet);
            if earlier.index + 1 == packet.index {
                jitter(&mut found, earlier, packet);
            }
        }
        before = Some(packet);
    }
    close_period(&mut found.losses, &mut period);
    directions(&mut found.losses, fate);
    found
}

fn close_period(losses: &mut Losses, period: &mut u64) {
    if *period > 0 {
        let this = Losses { period_min: *period, period_max: *period, ..Losses::default() };
        losses.merge(&this);
        *period = 0;
    }
}

fn jitter(found: &mut Statistics, earlier: &Answered, packet: &Answered) {
    use crate::difference_ms as minus;
    let (sd, ds) = (&mut found.jitter_sd, &mut found.jitter_ds);
    let (sd, ds) = if mistaken!(JitterReversed) { (ds, sd) } else { (sd, ds) };
    if let (Some((t2, t3)), Some((t2_before, t3_before))) = (packet.remote, earlier.remote) {
        sd.add(minus(t2, t2_before) - minus(packet.sent, earlier.sent));
        ds.add(minus(packet.arrived, earlier.arrived) - minus(t3, t3_before));
    }
}

fn out_of_sequence(losses: &mut Losses, earlier: &Answered, packet: &Answered) {
    let there = match (packet.received, earlier.received, packet.remote, earlier.remote) {
        (Some(now), Some(before), ..) => now < before,
        (_, _, Some((now, _)), Some((before, _))) => crate::difference_ms(now, before) < 0,
        _ => false,
    };
    let at_home = packet.arrived_ns < earlier.arrived_ns;
    match (there, at_home) {
        (true, true) => losses.out_of_sequence_sd += 1,
        (false, true) => losses.out_of_sequence_ds += 1,
        (true, false) => losses.out_of_sequence_both += 1,
        (false, false) => {}
    }
}

/// Splits the losses by direction, from the responder's count in the last answer: packets up to that one that it did
/// not receive were lost on the outward path.
fn directions(losses: &mut Losses, fate: &[Fate]) {
    let last = fate.iter().rev().find_map(|each| match each {
        Fate::Answered(packet) => packet.received.map(|count| (packet.index, u64::from(count))),
        _ => None,
    });
    let Some((index, received)) = last else {
        losses.missing = losses.total;
        return;
    };
    let (head, _) = fate.split_at(index + 1);
    let sent = head.iter().filter(|each| **each != Fate::Skipped).count() as u64;
    let lost = head.iter().filter(|each| **each == Fate::Lost).count() as u64;
    losses.source_to_destination = sent.saturating_sub(received).min(lost);
    losses.destination_to_source = lost - losses.source_to_destination;
    losses.missing = losses.total - lost;
}

/// Outcome of a packet of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Returned in time.
    Answered(Answered),
    /// Returned after the timeout.
    Late,
    /// Did not return.
    Lost,
    /// Could not be sent.
    Skipped,
}

/// Result of a run (rttMonLatestRttOperSense, as far as it applies to these operations).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReturnCode {
    /// No run has ended yet.
    #[default]
    Unknown,
    /// Answered.
    Ok,
    /// Answered, and the round trip (of a burst: the mean) above the threshold.
    OverThreshold,
    /// No answer in time.
    Timeout,
    /// The previous run was still in progress.
    Busy,
    /// No responder.
    NoConnection,
}

/// The latest run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Start time.
    pub start_ns: Nanos,
    /// Result.
    pub return_code: ReturnCode,
    /// Round trip; for a burst the mean.
    pub rtt_ms: Option<u64>,
    /// Packets.
    pub statistics: Statistics,
}

/// One bucket of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Bucket {
    /// Answered runs, by their round trip.
    pub rtt: Summary,
    /// Round trips above the threshold.
    pub over_threshold: u64,
}

/// The runs that started within an hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hour {
    /// Start of the hour: the operation's start plus whole hours.
    pub start_ns: Nanos,
    /// Runs that were answered.
    pub successes: u64,
    /// Runs that were not answered, or could not be started.
    pub failures: u64,
    /// Failures by reason.
    pub timeouts: u64,
    /// See `timeouts`.
    pub busies: u64,
    /// See `timeouts`.
    pub no_connections: u64,
    /// Their packets.
    pub statistics: Statistics,
    /// Round trips by size; the last bucket counts all larger ones.
    pub distribution: Vec<Bucket>,
}

impl Hour {
    /// Returns an hour without runs.
    pub fn new(start_ns: Nanos, buckets: u8) -> Self {
        Self {
            start_ns,
            successes: 0,
            failures: 0,
            timeouts: 0,
            busies: 0,
            no_connections: 0,
            statistics: Statistics::default(),
            distribution: vec![Bucket::default(); usize::from(buckets)],
        }
    }

    /// Counts the result of a run.
    pub fn count_run(&mut self, code: ReturnCode) {
        match code {
            ReturnCode::Ok | ReturnCode::OverThreshold => self.successes += 1,
            ReturnCode::Timeout => self.timeouts += 1,
            ReturnCode::Busy => self.busies += 1,
            ReturnCode::NoConnection => self.no_connections += 1,
            ReturnCode::Unknown => {}
        }
        self.failures = self.timeouts + self.busies + self.no_connections;
    }
}

/// Time stamps of a packet that returned in time, at full resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Number of the run, from 1.
    pub run: u64,
    /// Position in the run, from 1.
    pub packet: u32,
    /// Time at which the packet left the router's IP stack.
    pub sent_ns: Nanos,
    /// Time at which the last bit of the reply arrived.
    pub arrived_ns: Nanos,
    /// The counted round trip, ms.
    pub rtt_ms: u64,
}

/// State of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Waiting for its start, or without a schedule.
    Pending,
    /// Running.
    Active,
    /// The lifetime of the operation is over.
    Inactive,
}

/// All of one operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationReport {
    /// Returns whether it runs.
    pub state: State,
    /// Time at which it started or will start; null without a start.
    pub start_ns: Option<Nanos>,
    /// Seconds until the end of its lifetime; null if it never ends.
    pub time_to_live_s: Option<u64>,
    /// The latest run that has ended.
    pub latest: Run,
    /// Runs since the start that were answered.
    pub successes: u64,
    /// Runs since the start that were not.
    pub failures: u64,
    /// Whether any round trip exceeded the threshold.
    pub over_thresholds_occurred: bool,
    /// Statistics by hour, oldest first.
    pub hours: Vec<Hour>,
    /// Newest packets that returned in time, oldest first; only if requested.
    pub samples: Vec<Sample>,
}
