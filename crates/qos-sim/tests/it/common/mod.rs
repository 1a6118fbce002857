//! Connections over a path in virtual time: a fast network, a policer, a slower link, and faults of the network.
#![allow(dead_code, clippy::disallowed_macros)]

pub mod peer;

use qos_core::time::{Duration, Rate, Time};
use qos_core::wire::ip::ecn;
use qos_sim::tcp::{Connection, Segment, Settings};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Bytes of an IPv4 header.
const IPV4: u32 = 20;
/// Segments that the slow link's queue holds.
const QUEUE: usize = 1000;

/// SplitMix64: enough for a network that errs.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// One bucket, filled at arrivals, in 10⁻⁹ bits.
#[derive(Clone, Debug)]
pub struct Policer {
    rate_bps: u64,
    size: u128,
    level: u128,
    filled: Time,
    pub passed: u64,
    pub dropped: u64,
}

impl Policer {
    pub fn new(rate_bps: u64, bucket_bytes: u64) -> Policer {
        let size = u128::from(bucket_bytes) * 8_000_000_000;
        Policer { rate_bps, size, level: size, filled: Time(0), passed: 0, dropped: 0 }
    }

    fn conforms(&mut self, now: Time, bytes: u32) -> bool {
        let added = u128::from(now.since(self.filled).0) * u128::from(self.rate_bps);
        self.level = (self.level + added).min(self.size);
        self.filled = now;
        let cost = u128::from(bytes) * 8_000_000_000;
        let conforms = self.level >= cost;
        if conforms {
            self.level -= cost;
            self.passed += 1;
        } else {
            self.dropped += 1;
        }
        conforms
    }
}

/// The path from the clients to the servers; back it is the same without policer.
#[derive(Clone, Debug)]
pub struct Path {
    /// Before the policer.
    pub lan: Rate,
    pub policer: Option<Policer>,
    pub link: Rate,
    /// Each way.
    pub delay: Duration,
    /// Probability that a segment is lost, each way.
    pub loss: f64,
    /// Probability that a segment takes longer by `detour`.
    pub reorder: f64,
    pub detour: Duration,
    /// Probability that a segment arrives twice.
    pub duplicate: f64,
    /// Acknowledgements are lost and reordered too.
    pub both_ways: bool,
}

impl Path {
    pub fn new(link_bps: u64, delay_ns: u64) -> Path {
        Path {
            lan: Rate(100_000_000),
            policer: None,
            link: Rate(link_bps),
            delay: Duration(delay_ns),
            loss: 0.0,
            reorder: 0.0,
            detour: Duration(0),
            duplicate: 0.0,
            both_ways: true,
        }
    }
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// At the policer, with the segment's number.
    Police(usize, u64),
    /// At the end `to` (0: client) of a flow.
    Arrive(usize, usize, u64),
    Timer(usize, usize),
    Start(usize),
}

/// Fault for a segment of the client before it enters the path; true: it is lost.
pub type Script = Box<dyn FnMut(&Segment, u64) -> bool>;

/// Called with the time, the flow and the end (0: client) after each of its events.
pub type Watch = Box<dyn FnMut(Time, usize, usize, &Connection)>;

pub struct Net {
    pub now: Time,
    pub path: Path,
    pub ends: Vec<[Option<Connection>; 2]>,
    settings: Settings,
    queue: BinaryHeap<Reverse<(Time, u64, Event)>>,
    segments: BTreeMap<u64, Segment>,
    number: u64,
    lan_free: Time,
    link_free: [Time; 2],
    link_queue: std::collections::VecDeque<Time>,
    random: Random,
    pub script: Option<Script>,
    /// The same for marking; true: the network marks it as having met congestion, if it is ECN-capable.
    pub marks: Option<Script>,
    data_number: u64,
    timers: Vec<[Option<Time>; 2]>,
    pub events: u64,
    pub data_segments: u64,
    out: Vec<Segment>,
    /// Called after every event of a flow's end.
    pub watch: Option<Watch>,
    pub trace: bool,
    /// For each flow: the right edge that the client was offered, and the data that reached the server, tracked
    /// separately.
    edges: Vec<u64>,
    arrived: Vec<Vec<(u64, u64)>>,
}

impl Net {
    pub fn new(path: Path, settings: &Settings, seed: u64) -> Net {
        Net {
            now: Time(0),
            path,
            ends: Vec::new(),
            settings: settings.clone(),
            queue: BinaryHeap::new(),
            segments: BTreeMap::new(),
            number: 0,
            lan_free: Time(0),
            link_free: [Time(0); 2],
            link_queue: Default::default(),
            random: Random(seed),
            script: None,
            marks: None,
            data_number: 0,
            timers: Vec::new(),
            events: 0,
            data_segments: 0,
            out: Vec::new(),
            watch: None,
            trace: false,
            edges: Vec::new(),
            arrived: Vec::new(),
        }
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.number += 1;
        self.queue.push(Reverse((at, self.number, event)));
    }

    /// A client that will connect at `at`.
    pub fn flow(&mut self, at: Time) -> usize {
        self.ends.push([None, None]);
        self.timers.push([None, None]);
        self.edges.push(0);
        self.arrived.push(Vec::new());
        let flow = self.ends.len() - 1;
        self.schedule(at, Event::Start(flow));
        flow
    }

    pub fn offer(&mut self, flow: usize, bytes: u64) {
        self.act(flow, 0, |connection, now, out| connection.offer(now, bytes, out));
    }

    pub fn close(&mut self, flow: usize) {
        self.act(flow, 0, |connection, now, out| connection.close(now, out));
    }

    fn act(&mut self, flow: usize, end: usize, act: impl FnOnce(&mut Connection, Time, &mut Vec<Segment>)) {
        let mut out = std::mem::take(&mut self.out);
        if let Some(connection) = &mut self.ends[flow][end] {
            act(connection, self.now, &mut out);
        }
        self.after(flow, end, &mut out);
        self.out = out;
    }

    fn after(&mut self, flow: usize, end: usize, out: &mut Vec<Segment>) {
        for segment in out.drain(..) {
            self.carry(flow, end, segment);
        }
        let Some(connection) = &self.ends[flow][end] else { return };
        if let Some(watch) = &mut self.watch {
            watch(self.now, flow, end, connection);
        }
        if let Some(at) = connection.deadline() {
            assert!(at >= self.now, "timer of {at} set at {}", self.now);
            // One event for the earliest deadline; a later one is scheduled when that has passed.
            if self.timers[flow][end].is_none_or(|known| at < known) {
                self.timers[flow][end] = Some(at);
                self.schedule(at, Event::Timer(flow, end));
            }
        }
    }

    fn carry(&mut self, flow: usize, from: usize, mut segment: Segment) {
        self.number += 1;
        let id = self.number;
        let bytes = IPV4 + segment.header_bytes() + segment.len;
        if from == 0 {
            if segment.len > 0 {
                self.data_number += 1;
                self.data_segments += 1;
                let end = segment.seq + u64::from(segment.len);
                assert!(end <= self.edges[flow], "sent to {end}, the window ends at {}", self.edges[flow]);
            }
            if let Some(script) = &mut self.script {
                if script(&segment, self.data_number) {
                    return;
                }
            }
            if let Some(marks) = &mut self.marks {
                if marks(&segment, self.data_number) && segment.ecn != ecn::NOT_ECT {
                    segment.ecn = ecn::CE;
                }
            }
            self.lan_free = self.lan_free.max(self.now) + self.path.lan.time_for_bytes(u64::from(bytes));
            self.segments.insert(id, segment);
            self.schedule(self.lan_free, Event::Police(flow, id));
        } else {
            self.segments.insert(id, segment);
            self.link(flow, 1, id, bytes);
        }
    }

    fn link(&mut self, flow: usize, from: usize, id: u64, bytes: u32) {
        if from == 0 {
            while self.link_queue.front().is_some_and(|at| *at <= self.now) {
                self.link_queue.pop_front();
            }
            if self.link_queue.len() >= QUEUE {
                self.segments.remove(&id);
                return;
            }
        }
        let free = &mut self.link_free[from];
        *free = (*free).max(self.now) + self.path.link.time_for_bytes(u64::from(bytes));
        let departure = *free;
        if from == 0 {
            self.link_queue.push_back(departure);
        }
        let faulty = from == 0 || self.path.both_ways;
        if faulty && self.path.loss > 0.0 && self.random.unit() < self.path.loss {
            self.segments.remove(&id);
            return;
        }
        let mut arrival = departure + self.path.delay;
        if faulty && self.path.reorder > 0.0 && self.random.unit() < self.path.reorder {
            arrival += self.path.detour;
        }
        if faulty && self.path.duplicate > 0.0 && self.random.unit() < self.path.duplicate {
            self.number += 1;
            let copy = self.number;
            let segment = self.segments[&id];
            self.segments.insert(copy, segment);
            self.schedule(arrival + Duration(1_000_000), Event::Arrive(flow, 1 - from, copy));
        }
        self.schedule(arrival, Event::Arrive(flow, 1 - from, id));
    }

    /// Runs until `end`, or until no event is pending.
    pub fn run(&mut self, end: Time) {
        while let Some(Reverse((at, ..))) = self.queue.peek() {
            if *at > end {
                break;
            }
            let Some(Reverse((at, _, event))) = self.queue.pop() else { break };
            self.now = at;
            self.events += 1;
            self.handle(event);
        }
        self.now = self.now.max(end);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Start(flow) => {
                let mut out = std::mem::take(&mut self.out);
                self.ends[flow][0] = Some(Connection::connect(self.settings.clone(), self.now, &mut out));
                self.after(flow, 0, &mut out);
                self.out = out;
            }
            Event::Police(flow, id) => {
                let bytes = IPV4 + self.segments[&id].header_bytes() + self.segments[&id].len;
                let now = self.now;
                if self.path.policer.as_mut().is_some_and(|policer| !policer.conforms(now, bytes)) {
                    self.segments.remove(&id);
                    return;
                }
                self.link(flow, 0, id, bytes);
            }
            Event::Arrive(flow, to, id) => {
                let Some(segment) = self.segments.remove(&id) else { return };
                if self.trace {
                    println!("{} to {to}: {segment:?}", self.now);
                }
                self.note_arrival(flow, to, &segment);
                let mut out = std::mem::take(&mut self.out);
                match &mut self.ends[flow][to] {
                    Some(connection) => connection.on_segment(self.now, &segment, &mut out),
                    none if segment.syn => {
                        *none = Some(Connection::accept(self.settings.clone(), self.now, &segment, &mut out));
                    }
                    _ => {}
                }
                if to == 1 && !segment.syn {
                    let arrived =
                        self.arrived[flow].first().filter(|(start, _)| *start <= 1).map_or(0, |(_, end)| end - 1);
                    assert_eq!(self.received(flow), arrived, "what was received is not what has arrived in order");
                }
                self.after(flow, to, &mut out);
                self.out = out;
            }
            Event::Timer(flow, end) => {
                if self.timers[flow][end] != Some(self.now) {
                    return;
                }
                self.timers[flow][end] = None;
                let mut out = std::mem::take(&mut self.out);
                if let Some(connection) = &mut self.ends[flow][end] {
                    if connection.deadline().is_some_and(|at| at <= self.now) {
                        connection.on_timer(self.now, &mut out);
                    }
                }
                self.after(flow, end, &mut out);
                self.out = out;
            }
        }
    }

    /// Keeps account of what has arrived, apart from the connections.
    fn note_arrival(&mut self, flow: usize, to: usize, segment: &Segment) {
        if to == 0 {
            let first = u64::from(segment.syn);
            self.edges[flow] = self.edges[flow].max(segment.ack.max(first) + segment.window);
            return;
        }
        if segment.len == 0 {
            return;
        }
        let (mut start, mut end) = (segment.seq, segment.seq + u64::from(segment.len));
        let blocks = &mut self.arrived[flow];
        let first = blocks.partition_point(|block| block.1 < start);
        let last = blocks.partition_point(|block| block.0 <= end);
        if first < last {
            start = start.min(blocks[first].0);
            end = end.max(blocks[last - 1].1);
        }
        blocks.splice(first..last, [(start, end)]);
    }

    pub fn client(&self, flow: usize) -> &Connection {
        self.ends[flow][0].as_ref().expect("the client has started")
    }

    pub fn server(&self, flow: usize) -> &Connection {
        self.ends[flow][1].as_ref().expect("the server has answered")
    }

    pub fn received(&self, flow: usize) -> u64 {
        self.ends[flow][1].as_ref().map_or(0, Connection::received)
    }
}
