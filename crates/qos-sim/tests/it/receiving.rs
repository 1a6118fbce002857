//! Contents and times of a receiver's acknowledgements.

use qos_core::time::{Duration, Time};
use qos_sim::tcp::{Connection, Segment, Settings, SynOptions};

const MS: u64 = 1_000_000;
const MSS: u64 = 1000;

struct Receiver {
    connection: Connection,
    now: Time,
    out: Vec<Segment>,
}

impl Receiver {
    fn new(settings: Settings) -> Receiver {
        let options = SynOptions { mss: 1000, sack_permitted: settings.sack, window_scale: 7 };
        let syn = Segment { syn: true, window: 65_535, syn_options: Some(options), ..Segment::default() };
        let mut out = Vec::new();
        let connection = Connection::accept(settings, Time(0), &syn, &mut out);
        out.clear();
        let mut receiver = Receiver { connection, now: Time(100 * MS), out };
        let ack = Segment { seq: 1, ack: 1, has_ack: true, window: 65_535, ..Segment::default() };
        receiver.connection.on_segment(receiver.now, &ack, &mut receiver.out);
        receiver
    }

    /// Segment `n` arrives after some time; returns the acknowledgements until then and of it: number and SACK blocks,
    /// in segments.
    fn segment(&mut self, after: u64, n: u64) -> Vec<(u64, Vec<(u64, u64)>)> {
        let mut all = self.wait(after);
        let data = Segment { seq: 1 + n * MSS, len: 1000, ack: 1, has_ack: true, window: 65_535, ..Segment::default() };
        self.connection.on_segment(self.now, &data, &mut self.out);
        all.extend(self.take());
        all
    }

    fn wait(&mut self, ns: u64) -> Vec<(u64, Vec<(u64, u64)>)> {
        let end = self.now + Duration(ns);
        while let Some(at) = self.connection.deadline().filter(|at| *at <= end) {
            self.connection.on_timer(at, &mut self.out);
        }
        self.now = end;
        self.take()
    }

    fn take(&mut self) -> Vec<(u64, Vec<(u64, u64)>)> {
        let blocks = |segment: &Segment| {
            segment.sack.as_slice().iter().map(|block| (block.start / MSS, block.end / MSS)).collect()
        };
        self.out.drain(..).map(|segment| (segment.ack / MSS, blocks(&segment))).collect()
    }
}

fn settings() -> Settings {
    Settings { timestamps: false, mss: 1000, ..Settings::modern(1500) }
}

fn calm_settings() -> Settings {
    Settings { quick_acks: 0, ..settings() }
}

#[test]
fn first_sixteen_segments_are_acknowledged_at_once_then_every_second() {
    // The window does not grow, which would also be reported at once.
    let mut receiver = Receiver::new(Settings { receive_buffer: 65_000, ..settings() });
    let counts: Vec<usize> = (0..24).map(|n| receiver.segment(MS, n).len()).collect();
    assert_eq!(counts[..16], [1; 16]);
    assert_eq!(counts[16..], [0, 1, 0, 1, 0, 1, 0, 1]);
}

#[test]
fn every_segment_is_acknowledged_while_the_window_grows() {
    // From 65,000 to 80,000 bytes by twice a segment each.
    let mut receiver =
        Receiver::new(Settings { quick_acks: 1, initial_receive_clamp: 80_000, receive_buffer: 80_000, ..settings() });
    let counts: Vec<usize> = (0..14).map(|n| receiver.segment(MS, n).len()).collect();
    assert_eq!(counts, [1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0, 1]);
}

#[test]
fn acknowledgement_of_a_single_segment_is_delayed_by_40_ms() {
    let mut receiver = Receiver::new(calm_settings());
    assert_eq!(receiver.segment(0, 0), []);
    assert_eq!(receiver.wait(39 * MS), []);
    assert_eq!(receiver.wait(MS), [(1, vec![])]);
}

#[test]
fn gap_and_its_filling_are_acknowledged_at_once() {
    let mut receiver = Receiver::new(calm_settings());
    assert_eq!(receiver.segment(0, 1), [(0, vec![(1, 2)])]);
    assert_eq!(receiver.segment(MS, 3), [(0, vec![(3, 4), (1, 2)])]);
    assert_eq!(receiver.segment(MS, 0), [(2, vec![(3, 4)])]);
    assert_eq!(receiver.segment(MS, 2), [(4, vec![])]);
    assert_eq!(receiver.connection.received(), 4000);
}

#[test]
fn sack_has_the_latest_four_blocks_and_a_duplicate_first() {
    let mut receiver = Receiver::new(Settings { sack_compression_ns: 0, ..calm_settings() });
    for n in [1, 3, 5, 7] {
        receiver.segment(MS, n);
    }
    assert_eq!(receiver.segment(5 * MS, 9).last(), Some(&(0, vec![(9, 10), (7, 8), (5, 6), (3, 4)])));
    // RFC 2883 section 4: the duplicate, then the block that it is in.
    assert_eq!(receiver.segment(5 * MS, 3), [(0, vec![(3, 4), (3, 4), (9, 10), (7, 8)])]);
}

#[test]
fn the_fourth_and_later_sacks_of_a_gap_wait_together() {
    let mut receiver = Receiver::new(calm_settings());
    for n in 1..4 {
        assert_eq!(receiver.segment(0, n).len(), 1);
    }
    for n in 4..10 {
        assert_eq!(receiver.segment(0, n), []);
    }
    // 1 ms, less than a twentieth of the round trip of 100 ms.
    assert_eq!(receiver.wait(MS - 1), []);
    assert_eq!(receiver.wait(1), [(0, vec![(1, 10)])]);
}

#[test]
fn duplicate_segment_is_acknowledged_at_once() {
    let mut receiver = Receiver::new(calm_settings());
    receiver.segment(0, 0);
    receiver.segment(0, 1);
    assert_eq!(receiver.segment(MS, 0), [(2, vec![(0, 1)])]);
}
