//! Shaped and shared round robin: which egress queue is served next, and when.
//!
//! A shaped queue is served at most at one part in `w` of the port's physical speed: after a frame it is not served for
//! `w` times the frame's time on the wire. When it had to wait for its turn that time counts, up to one longest frame.
//! So in any window of `T` seconds that begins with one of its frames, frames of at most `(T + longest)/w` seconds of
//! wire time start before the last one. Shaped queues come before shared ones.
//!
//! Shared queues divide the remaining bandwidth by their weights: start-time fair queueing (Goyal, Vin and Cheng, 1996)
//! over bytes on the wire. For two busy queues, the sent bytes divided by their weights never differ by more than a
//! frame of each divided by its weight.

use crate::config::catalyst_constants::{LONGEST_ON_WIRE, QUEUES};
use crate::link::serialiser::Serialiser;
use crate::plan::catalyst::EgressPlan;
use crate::time::{Duration, Time};

/// Virtual time of a byte at weight 1.
const SCALE: u64 = 1 << 16;

/// Value at which virtual time is rebased.
const REBASE: u64 = 1 << 62;

/// Bit set of the queues that have frames to send.
pub(crate) type Busy = u8;

/// The scheduler of a port.
#[derive(Debug)]
pub(crate) struct Srr {
    shape: [u32; QUEUES],
    share: [u32; QUEUES],
    priority: bool,
    /// Waiting time that counts for a shaped queue: at most that of one longest frame.
    slack: Duration,
    /// Time at which each shaped queue may send again.
    eligible: [Serialiser; QUEUES],
    /// Virtual time at which the last frame of each shared queue ended.
    finish: [u64; QUEUES],
    /// Virtual start of the shared frame that was served last.
    virtual_time: u64,
}

impl Srr {
    pub fn new(plan: &EgressPlan, now: Time) -> Srr {
        let mut srr = Srr {
            shape: [0; QUEUES],
            share: [1; QUEUES],
            priority: false,
            slack: Duration::ZERO,
            eligible: std::array::from_fn(|_| Serialiser::new(plan.speed, now)),
            finish: [0; QUEUES],
            virtual_time: 0,
        };
        srr.configure(plan);
        srr
    }

    pub fn configure(&mut self, plan: &EgressPlan) {
        self.shape = plan.shape.map(|weight| match weight {
            25 if mistaken!(ShapeWeightLow) => 22,
            25 if mistaken!(ShapeWeightHigh) => 26,
            weight => weight,
        });
        self.share = match plan.share {
            [one, two, three, four] if one > 2 && mistaken!(ShareLow) => [one - 2, two + 2, three, four],
            [one, two, three, four] if two > 2 && mistaken!(ShareHigh) => [one + 2, two - 2, three, four],
            [one, two, ..] if mistaken!(ShareOthersEqual) => [one, two, one, one],
            share => share,
        };
        self.priority = plan.priority_queue;
        self.slack = plan.operational_rate().time_for_bytes(u64::from(LONGEST_ON_WIRE));
        let of = if mistaken!(ShapeByLimit) { plan.operational_rate() } else { plan.speed };
        self.eligible.iter_mut().for_each(|each| each.set_rate(of));
    }

    fn is_shaped(&self, queue: usize) -> bool {
        self.shape[queue] > 0 && !(self.priority && queue == 0) && !(queue == 0 && mistaken!(ShapedQueueShared))
    }

    fn eligible(&self, queue: usize) -> Time {
        self.eligible[queue].start(Time(0))
    }

    /// Returns the start of the next frame on a port that is free at `free`.
    pub fn next(&self, free: Time, busy: Busy) -> Option<Time> {
        let mut earliest = None;
        for queue in (0..QUEUES).filter(|queue| busy & (1 << queue) != 0) {
            if !self.is_shaped(queue) {
                return Some(free);
            }
            let eligible = self.eligible(queue).max(free);
            earliest = Some(earliest.map_or(eligible, |other: Time| other.min(eligible)));
        }
        earliest
    }

    /// Returns the queue of the frame that starts at `now`.
    pub fn pick(&self, now: Time, busy: Busy) -> Option<usize> {
        if self.priority && busy & 1 != 0 {
            return Some(0);
        }
        let mut shaped: Option<(Time, usize)> = None;
        let mut shared: Option<(u64, usize)> = None;
        for queue in (0..QUEUES).filter(|queue| busy & (1 << queue) != 0) {
            if self.is_shaped(queue) {
                let eligible = self.eligible(queue);
                if eligible <= now && shaped.is_none_or(|(earliest, _)| eligible < earliest) {
                    shaped = Some((eligible, queue));
                }
            } else {
                let start = self.finish[queue].max(self.virtual_time);
                if shared.is_none_or(|(least, _)| start < least) {
                    shared = Some((start, queue));
                }
            }
        }
        shaped.map(|(_, queue)| queue).or(shared.map(|(_, queue)| queue))
    }

    /// Records that a frame of `line_len` bytes on the wire of `queue` starts at `now`; `busy` are the queues that
    /// still have frames.
    pub fn record_served(&mut self, now: Time, queue: usize, line_len: u32, busy: Busy) {
        if self.is_shaped(queue) {
            self.eligible[queue].take(now - self.slack, line_len.saturating_mul(self.shape[queue]));
        } else if !(self.priority && queue == 0) {
            self.virtual_time = self.finish[queue].max(self.virtual_time);
            self.finish[queue] = self.virtual_time + u64::from(line_len) * SCALE / u64::from(self.share[queue]);
            if busy == 0 {
                // No queue waits: no queue has a deficit to compensate.
                self.virtual_time = 0;
                self.finish = [0; QUEUES];
            } else if self.virtual_time > REBASE {
                self.finish.iter_mut().for_each(|finish| *finish = finish.saturating_sub(self.virtual_time));
                self.virtual_time = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::catalyst_constants::THRESHOLDS;
    use crate::plan::catalyst::{QueueAt, QueueLimits};

    /// Bytes of a full frame on the wire.
    const FULL: u32 = 1_538;
    const MILLI: u64 = 1_000_000;

    /// Returns the scheduler of a port of 100 Mb/s.
    fn srr(shape: [u32; QUEUES], share: [u32; QUEUES], priority_queue: bool) -> Srr {
        let plan = EgressPlan {
            qos: true,
            rewrite: true,
            dscp_cos: [0; 64],
            cos_queue: [QueueAt::default(); 8],
            dscp_queue: [QueueAt::default(); 64],
            limits: [QueueLimits { reserved: 0, thresholds: [0; THRESHOLDS] }; QUEUES],
            shape,
            share,
            priority_queue,
            speed: crate::time::Rate(100_000_000),
            operational: 10_000,
            shown_operational: 10_000,
            asic: 0,
        };
        Srr::new(&plan, Time(0))
    }

    #[test]
    fn the_earliest_shaped_queue_is_served_first() {
        let mut srr = srr([10, 20, 20, 0], [1; QUEUES], false);
        let at = |tenths: u64| Time(tenths * MILLI / 10);
        assert_eq!(srr.pick(at(100), 0b0110), Some(1), "in a draw the lower number");
        srr.record_served(at(100), 0, FULL, 0b0111);
        srr.record_served(at(100), 1, FULL, 0b0111);
        // One part in 10 of the port, less the time of a longest frame: the first waits 1.1 ms, the second 2.3 ms.
        assert_eq!(srr.pick(at(110), 0b0011), None);
        assert_eq!(srr.pick(at(115), 0b0011), Some(0));
        assert_eq!(srr.pick(at(130), 0b0011), Some(0), "it might have sent 1.2 ms before the other");
        srr.record_served(at(130), 0, FULL, 0b0011);
        assert_eq!(srr.pick(at(150), 0b0011), Some(1), "it waits since 12.3 ms, the first since 14.1 ms");
        assert_eq!(srr.pick(at(150), 0b0111), Some(2), "nothing has left it yet");
        assert_eq!(srr.pick(at(150), 0b1111), Some(2), "shared queues come after shaped ones");
    }

    /// Returns the number of times each queue is served, for frames of one length.
    fn served(srr: &mut Srr, busy: Busy, frames: usize) -> ([usize; QUEUES], Vec<usize>) {
        let order: Vec<_> = (0..frames)
            .map(|_| {
                let queue = srr.pick(Time(0), busy).unwrap();
                srr.record_served(Time(0), queue, FULL, busy);
                queue
            })
            .collect();
        (std::array::from_fn(|queue| order.iter().filter(|picked| **picked == queue).count()), order)
    }

    #[test]
    fn queues_next_to_a_priority_queue_share_by_weight() {
        assert_eq!(srr([0; QUEUES], [1; QUEUES], false).pick(Time(0), 0b1100), Some(2), "in a draw the lower number");
        let mut srr = srr([0; QUEUES], [200, 1, 2, 3], true);
        assert_eq!(served(&mut srr, 0b1110, 600).0, [0, 100, 200, 300]);
        assert_eq!(served(&mut srr, 0b1111, 10).0, [10, 0, 0, 0]);
        assert_eq!(served(&mut srr, 0b1110, 600).0, [0, 100, 200, 300], "what it sent is nobody's part");
    }

    /// Queues that always have something to send never let virtual time restart.
    #[test]
    fn virtual_time_is_rebased_before_overflow() {
        let shares = [30, 70, 1, 5];
        let mut late = srr([0; QUEUES], shares, false);
        late.virtual_time = REBASE + 1;
        late.finish = [REBASE + 1; QUEUES];
        let order = served(&mut late, 0b1111, 1_000).1;
        assert!(late.virtual_time < REBASE);
        assert_eq!(order, served(&mut srr([0; QUEUES], shares, false), 0b1111, 1_000).1);
    }
}
