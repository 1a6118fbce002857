//! A host's interface: a token bucket with a queue in front of a line, as in the virtual lab. Pure.

use std::collections::VecDeque;

use qos_core::link::Serialiser;
use qos_core::{Duration, Rate, Time};

use crate::packet::MTU;
use crate::seed::Random;

/// Size of an interface's queue in bytes of frames without FCS: 1000 full frames, as in the virtual lab.
pub const QUEUE_BYTES: u64 = 1000 * (MTU + ETHERNET_HEADER) as u64;
const ETHERNET_HEADER: u32 = 14;
/// Depth of the token bucket in line time: frames leave the host's queue this much ahead of the line's clock, and wait
/// at the line. At least two full frames. It is the virtual lab's, whose kernel needs it to make up for late timers; so
/// a connection's small queue holds the same number of bytes there.
const BURST_NS: u64 = 5_000_000;
/// Bytes of a full frame on the line, with Ethernet's overhead of 38 bytes.
const FULL_FRAME: u64 = MTU as u64 + 38;

/// A host's interface.
#[derive(Debug)]
pub(crate) struct Interface {
    line: Serialiser,
    burst: Duration,
    /// Departure times of the frames that may still wait in the queue, and their bytes.
    waiting: VecDeque<(Time, u32)>,
    bytes: u64,
    jitter_ns: u64,
    random: Random,
    /// Time at which the last packet was passed on.
    last: Time,
}

/// Times of a frame that the interface accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Time at which it entered the interface's queue.
    pub entered: Time,
    /// Time at which it left that queue.
    pub leaves: Time,
    /// Time at which its first bit is on the line.
    pub starts: Time,
}

impl Interface {
    /// Creates an interface; `jitter_ns` of `None` is the time of a full frame.
    pub fn new(rate_bps: u64, jitter_ns: Option<u64>, random: Random, start: Time) -> Interface {
        let rate = Rate(rate_bps);
        Interface {
            line: Serialiser::new(rate, start),
            burst: rate.time_for_bytes(2 * FULL_FRAME).max(Duration(BURST_NS)),
            waiting: VecDeque::new(),
            bytes: 0,
            jitter_ns: jitter_ns.unwrap_or_else(|| rate.time_for_bytes(FULL_FRAME).0),
            random,
            last: start,
        }
    }

    /// Sends a packet of `counted_len` bytes with its Ethernet header and `line_len` on the line. `None`: the queue is
    /// full.
    pub fn send(&mut self, now: Time, counted_len: u32, line_len: u32) -> Option<Taken> {
        let entered = match self.jitter_ns {
            0 => now,
            most => (now + Duration(self.random.up_to(most))).max(self.last),
        };
        self.last = entered;
        while let Some((_, bytes)) = self.waiting.front().filter(|(leaves, _)| *leaves <= entered) {
            self.bytes -= u64::from(*bytes);
            self.waiting.pop_front();
        }
        if self.bytes + u64::from(counted_len) > QUEUE_BYTES {
            return None;
        }
        let passage = self.line.pass(entered, line_len);
        self.line.enter(passage, line_len);
        // The line would finish the packet at this time if it were ahead by the burst: the tokens are then complete.
        let leaves = (passage.end - self.burst).max(entered);
        if leaves > entered {
            self.waiting.push_back((leaves, counted_len));
            self.bytes += u64::from(counted_len);
        }
        Some(Taken { entered, leaves, starts: passage.start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    fn interface(jitter_ns: Option<u64>) -> Interface {
        Interface::new(100_000_000, jitter_ns, Seed::new(1).random(), Time(0))
    }

    #[test]
    fn a_burst_leaves_at_line_rate_and_a_thousand_full_frames_wait() {
        let mut interface = interface(Some(0));
        let taken: Vec<_> = (0..1041).map(|_| interface.send(Time(7), 1514, 1538)).collect();
        for (number, taken) in taken[..1040].iter().enumerate() {
            let starts = Time(7 + number as u64 * 123_040);
            // 40 frames take 4.9 ms.
            let leaves = if number < 40 { Time(7) } else { Time(starts.0 + 123_040 - 5_000_000) };
            assert_eq!(*taken, Some(Taken { entered: Time(7), leaves, starts }));
        }
        // A thousand wait behind the bucket.
        assert_eq!((taken[1040], taken.iter().filter(|taken| taken.is_none()).count()), (None, 1));
        assert!(interface.send(Time(7 + 41 * 123_040 - 5_000_000), 1514, 1538).is_some());
    }

    #[test]
    fn jitter_keeps_the_order_and_its_bounds() {
        let mut interface = interface(None);
        let mut last = Time(0);
        let mut late = Vec::new();
        for number in 0..1000 {
            let now = Time(number * 10_000);
            let Some(taken) = interface.send(now, 60, 84) else { panic!("dropped") };
            assert!(taken.entered >= last.max(now) && taken.entered <= last.max(now + Duration(123_040)));
            last = taken.entered;
            late.push(taken.entered.since(now).0);
        }
        assert!(late.iter().any(|each| *each < 60_000) && late.iter().any(|each| *each > 60_000));
    }
}
