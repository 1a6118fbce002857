//! The other end of a connection by hand: acknowledgements with their times.

use qos_core::time::{Duration, Time};
use qos_sim::tcp::{Connection, SackBlock, SackBlocks, Segment, Settings, Statistics, SynOptions};

pub const MS: u64 = 1_000_000;

pub struct Peer {
    pub connection: Connection,
    pub now: Time,
    out: Vec<Segment>,
    /// Segments sent since the last look: when, first byte, byte after the last.
    sent: Vec<(Time, u64, u64)>,
    /// Times of segments without a sequence number: acknowledgements and probes of a closed window.
    pub bare: Vec<Time>,
    pub window: u64,
    /// The timestamp to echo, in a connection that has them.
    pub echo: u64,
}

impl Peer {
    /// A client with the given options whose acknowledgement arrives `rtt` after the server's answer.
    pub fn open(settings: &Settings, mss: u16, sack: bool, window: u64, rtt_ms: u64) -> Peer {
        let syn = Segment {
            syn: true,
            window: 32_792,
            timestamps: settings.timestamps.then_some((0, 0)),
            syn_options: Some(SynOptions { mss, sack_permitted: sack, window_scale: 7 }),
            ..Segment::default()
        };
        let mut out = Vec::new();
        let connection = Connection::accept(settings.clone(), Time(0), &syn, &mut out);
        assert!(out[0].syn && out[0].has_ack && out[0].ack == 1);
        out.clear();
        let mut peer = Peer { connection, now: Time(0), out, sent: Vec::new(), bare: Vec::new(), window, echo: 0 };
        peer.wait(rtt_ms * MS);
        peer.ack(1, &[]);
        peer.sent();
        peer
    }

    fn collect(&mut self) {
        for segment in self.out.drain(..) {
            if segment.end() > segment.seq {
                self.sent.push((self.now, segment.seq, segment.end()));
            } else {
                self.bare.push(self.now);
            }
        }
    }

    /// Advances the time; timers act.
    pub fn wait(&mut self, ns: u64) {
        let end = self.now + Duration(ns);
        while let Some(at) = self.connection.deadline().filter(|at| *at <= end) {
            assert!(at >= self.now);
            self.now = at;
            self.connection.on_timer(at, &mut self.out);
            self.collect();
        }
        self.now = end;
    }

    pub fn write(&mut self, bytes: u64) {
        self.connection.offer(self.now, bytes, &mut self.out);
        self.collect();
    }

    pub fn close(&mut self) {
        self.connection.close(self.now, &mut self.out);
        self.collect();
    }

    pub fn ack(&mut self, ack: u64, sacks: &[(u64, u64)]) {
        let mut sack = SackBlocks::default();
        for (start, end) in sacks {
            sack.push(SackBlock { start: *start, end: *end }, false);
        }
        let timestamps = (self.echo > 0).then_some((self.now.0, self.echo));
        let segment =
            Segment { seq: 1, ack, has_ack: true, window: self.window, sack, timestamps, ..Segment::default() };
        self.connection.on_segment(self.now, &segment, &mut self.out);
        self.collect();
    }

    /// An acknowledgement after some time.
    pub fn ack_after(&mut self, ns: u64, ack: u64, sacks: &[(u64, u64)]) {
        self.wait(ns);
        self.ack(ack, sacks);
    }

    /// Segments sent since the last call, without times.
    pub fn sent(&mut self) -> Vec<(u64, u64)> {
        self.sent.drain(..).map(|(_, start, end)| (start, end)).collect()
    }

    /// Segments sent since the last call.
    pub fn sent_when(&mut self) -> Vec<(Time, u64, u64)> {
        self.sent.drain(..).collect()
    }

    pub fn statistics(&self) -> Statistics {
        self.connection.statistics()
    }

    pub fn cwnd(&self) -> u32 {
        self.statistics().cwnd
    }
}

/// Segments of `mss` from `start` to `end`.
pub fn segments(start: u64, end: u64, mss: u64) -> Vec<(u64, u64)> {
    (start..end).step_by(mss as usize).map(|at| (at, (at + mss).min(end))).collect()
}
