//! One end of a connection: handshake, sending and receiving halves, close.

use super::agreed::Agreed;
use super::receive::ack_policy::{AckPolicy, Decision};
use super::receive::congestion_echo::{CongestionEcho, Heard};
use super::receive::receiver::{Arrival, Receiver};
use super::segment::{Segment, SynOptions};
use super::send::rto::{INITIAL_RTO, MAX_RTO};
use super::send::{Emit, Header, Outgoing, Sender};
use super::settings::Settings;
use super::ticks::Alarm;
use qos_core::time::{Duration, Time};
use qos_core::wire::ip::ecn;

/// The first byte of payload: the SYN is number 0.
const FIRST: u64 = 1;
/// Window scale offered in a SYN: the choice of Linux for its default of 6 MiB. It is only displayed; windows here are
/// not rounded.
const WINDOW_SCALE: u8 = 7;

/// State of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A SYN was sent.
    SynSent,
    /// A SYN was answered.
    SynReceived,
    /// Data may flow.
    Established,
    /// [`Connection::close`] was called, but not everything is acknowledged yet.
    Closing,
    /// The other end has acknowledged everything, including the FIN.
    Closed,
}

/// Report of a connection. Windows in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Congestion window.
    pub cwnd: u32,
    /// Slow start threshold; `None` before the first congestion.
    pub ssthresh: Option<u32>,
    /// Segments in flight (RFC 6675's pipe).
    pub pipe: u32,
    /// Smoothed round trip; `None` before the first sample.
    pub srtt_ns: Option<u64>,
    /// Minimum round trip of the last five minutes.
    pub min_rtt_ns: Option<u64>,
    /// Retransmission timeout with its back-off.
    pub rto_ns: u64,
    /// Sent segments with data or FIN, including retransmissions.
    pub sent_segments: u64,
    /// Retransmissions, including tail loss probes.
    pub retransmitted_segments: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast recoveries begun.
    pub fast_recoveries: u64,
    /// Tail loss probes sent.
    pub probes: u64,
    /// Number of undone reductions of the window.
    pub undone: u64,
    /// Reductions of the window because congestion was echoed (RFC 3168).
    pub ecn_reductions: u64,
    /// Bytes that the other end has acknowledged.
    pub acknowledged_bytes: u64,
    /// State of the connection.
    pub state: State,
}

/// State of an unfinished handshake.
#[derive(Clone, Debug)]
struct Handshake {
    /// The SYN, for retransmission.
    syn: Segment,
    sent: Time,
    timeout: Duration,
    alarm: Alarm,
    retransmissions: u32,
}

/// One end of a TCP connection.
#[derive(Debug)]
pub struct Connection {
    settings: Settings,
    handshake: Option<Handshake>,
    agreed: Agreed,
    sender: Sender,
    receiver: Receiver,
    policy: AckPolicy,
    echo: CongestionEcho,
    /// Timestamp to be echoed.
    recent: u64,
    acknowledged: u64,
    passive: bool,
}

impl Connection {
    /// Opens a connection: its SYN is put in `out`.
    pub fn connect(settings: Settings, now: Time, out: &mut Vec<Segment>) -> Connection {
        let agreed = Agreed::offered(&settings);
        let mut connection = Connection::new(settings, now, agreed, false);
        connection.send_syn(now, out);
        connection
    }

    /// Answers a SYN. Only options of both ends are used; segments are at most as large as the other end accepts.
    pub fn accept(settings: Settings, now: Time, syn: &Segment, out: &mut Vec<Segment>) -> Connection {
        let agreed = Agreed::with(&settings, syn);
        let mut connection = Connection::new(settings, now, agreed, true);
        connection.recent = syn.timestamps.map_or(0, |(value, _)| value);
        connection.send_syn(now, out);
        connection
    }

    fn new(settings: Settings, now: Time, agreed: Agreed, passive: bool) -> Connection {
        Connection {
            handshake: None,
            agreed,
            sender: Sender::new(&settings, agreed, now, Outgoing::new(FIRST, settings.send_buffer), None),
            receiver: Receiver::new(&settings, FIRST, &agreed),
            policy: AckPolicy::new(&settings, FIRST, agreed.sack),
            echo: CongestionEcho::default(),
            settings,
            recent: 0,
            acknowledged: FIRST,
            passive,
        }
    }

    fn send_syn(&mut self, now: Time, out: &mut Vec<Segment>) {
        let options = if self.agreed.timestamps { super::TIMESTAMPS_BYTES } else { 0 };
        let syn = Segment {
            seq: 0,
            syn: true,
            has_ack: self.passive,
            ece: self.agreed.ecn,
            cwr: self.agreed.ecn && !self.passive,
            ack: if self.passive { FIRST } else { 0 },
            window: self.settings.offered_at_first(),
            timestamps: self.agreed.timestamps.then_some((now.0, self.recent)),
            syn_options: Some(SynOptions {
                mss: u16::try_from(self.settings.mss + options).unwrap_or(u16::MAX),
                sack_permitted: self.agreed.sack,
                window_scale: WINDOW_SCALE,
            }),
            ..Segment::default()
        };
        out.push(syn);
        let alarm = self.settings.ticks.after(now, INITIAL_RTO);
        self.handshake = Some(Handshake { syn, sent: now, timeout: INITIAL_RTO, alarm, retransmissions: 0 });
    }

    /// Offers further bytes of the application. `u64::MAX / 2` and more count as endless.
    pub fn offer(&mut self, now: Time, bytes: u64, out: &mut Vec<Segment>) {
        self.sender.stream_mut().offer(bytes);
        self.send_new(now, out);
    }

    /// Withdraws offered data that has not been sent yet.
    pub fn drop_unsent(&mut self) {
        self.sender.stream_mut().drop_unsent();
    }

    /// Sends a FIN after the offered data.
    pub fn close(&mut self, now: Time, out: &mut Vec<Segment>) {
        if !self.sender.stream().is_closing() {
            self.sender.stream_mut().close();
            self.send_new(now, out);
        }
    }

    fn send_new(&mut self, now: Time, out: &mut Vec<Segment>) {
        if self.handshake.is_none() {
            self.with_sender(now, out, Sender::send_new);
        }
    }

    /// Handles a segment from the network.
    pub fn on_segment(&mut self, now: Time, segment: &Segment, out: &mut Vec<Segment>) {
        if segment.syn {
            self.on_syn(now, segment, out);
            return;
        }
        if let Some((value, _)) = segment.timestamps.filter(|_| self.agreed.timestamps) {
            // RFC 7323 section 4.3.
            if segment.seq <= self.acknowledged && value >= self.recent {
                self.recent = value;
            }
        }
        if self.handshake.is_some() {
            if !self.passive || !segment.has_ack || segment.ack < FIRST {
                return;
            }
            self.establish(now, segment);
            self.send_new(now, out);
        }
        if segment.has_ack {
            self.with_sender(now, out, |sender, emit| sender.on_ack(segment, emit));
        }
        self.receive(now, segment, out);
    }

    fn on_syn(&mut self, now: Time, segment: &Segment, out: &mut Vec<Segment>) {
        if self.passive {
            if let Some(handshake) = &self.handshake {
                out.push(Segment { retransmission: true, ..handshake.syn });
            }
            return;
        }
        if !segment.has_ack {
            return;
        }
        if self.handshake.is_some() {
            self.agreed = Agreed::with(&self.settings, segment);
            self.recent = segment.timestamps.map_or(0, |(value, _)| value);
            self.establish(now, segment);
        }
        self.acknowledge(now, out);
        self.send_new(now, out);
    }

    /// Completes the handshake.
    fn establish(&mut self, now: Time, segment: &Segment) {
        let Some(handshake) = self.handshake.take() else { return };
        let echo = segment.timestamps.map(|(_, echo)| Time(echo)).filter(|_| self.agreed.timestamps);
        let measured = match (handshake.retransmissions, echo) {
            (0, _) => Some(now.since(handshake.sent)),
            (_, Some(echo)) => Some(now.since(echo)),
            _ => None,
        };
        let stream = self.sender.stream().clone().open(FIRST + segment.window);
        self.sender = Sender::new(&self.settings, self.agreed, now, stream, measured);
        if handshake.retransmissions > 1 {
            // RFC 5681 section 3.1: after a lost SYN; Linux: after the second.
            self.sender.begin_with_one();
        }
        self.receiver = Receiver::new(&self.settings, FIRST, &self.agreed);
        self.policy = AckPolicy::new(&self.settings, FIRST, self.agreed.sack);
    }

    fn receive(&mut self, now: Time, segment: &Segment, out: &mut Vec<Segment>) {
        let arrival = self.receiver.accept(now, segment);
        let heard = if self.agreed.ecn { self.echo.receive_mark(segment) } else { Heard::Nothing };
        if heard == Heard::Congestion {
            self.policy.hurry();
        }
        let rto = self.sender.rtt().timeout();
        let window = self.receiver.offer_window();
        if self.receiver.window_grew() {
            self.policy.window_grew();
        }
        let decision = match arrival {
            Arrival::Empty => {
                // Before the expected byte: a probe of the window or of the connection.
                if segment.seq >= self.receiver.next() {
                    return;
                }
                Decision::Now
            }
            Arrival::Duplicate | Arrival::BeyondWindow => {
                self.policy.enter_quick_ack_mode(window);
                Decision::Now
            }
            Arrival::OutOfOrder => self.policy.acknowledge_gap(now, self.receiver.next(), self.round_trip()),
            Arrival::InOrder { filled } => {
                self.policy.on_data(now, segment.len, window, rto);
                if self.receiver.has_gaps() {
                    self.policy.acknowledge_gap(now, self.receiver.next(), self.round_trip())
                } else {
                    self.policy.note_in_order_data(
                        now,
                        self.receiver.next(),
                        filled || segment.fin,
                        self.sender.rtt().smoothed(),
                    )
                }
            }
        };
        // A sender that has reduced its window may have sent everything that it allows.
        if decision == Decision::Now || heard == Heard::Reduced {
            self.acknowledge(now, out);
        }
    }

    /// Returns the round trip known to the receiver, from arriving segments or from the sender.
    fn round_trip(&self) -> Option<Duration> {
        match (self.receiver.round_trip(), self.sender.rtt().smoothed()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn header(&mut self, now: Time) -> Header {
        Header {
            ack: self.receiver.next(),
            window: self.receiver.offer_window(),
            ece: self.echo.echoes(),
            ecn: if self.agreed.ecn { ecn::ECT_0 } else { ecn::NOT_ECT },
            timestamps: self.agreed.timestamps.then_some((now.0, self.recent)),
        }
    }

    /// Runs the sending half; its segments also acknowledge. Segments with data carry no SACK blocks, because there is
    /// no room for them.
    fn with_sender(&mut self, now: Time, out: &mut Vec<Segment>, act: impl FnOnce(&mut Sender, &mut Emit<'_>)) {
        let header = self.header(now);
        let mut emit = Emit::new(now, out, header);
        act(&mut self.sender, &mut emit);
        if emit.is_used() {
            self.note_acknowledged();
        }
    }

    fn acknowledge(&mut self, now: Time, out: &mut Vec<Segment>) {
        // Bare acknowledgements are not sent as ECN-capable (RFC 3168 section 6.1.4).
        let header = Header { ecn: ecn::NOT_ECT, ..self.header(now) };
        let (seq, sack) = (self.sender.stream().next(), self.receiver.sack_blocks());
        out.push(Segment { seq, sack, ..header.segment() });
        self.note_acknowledged();
    }

    fn note_acknowledged(&mut self) {
        self.acknowledged = self.receiver.next();
        self.policy.record_sent(self.acknowledged);
    }

    /// Handles the deadline of [`Connection::deadline`].
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Segment>) {
        if let Some(handshake) = &mut self.handshake {
            if handshake.alarm.at <= now {
                handshake.sent = now;
                handshake.timeout = Duration(handshake.timeout.0 * 2).min(MAX_RTO);
                handshake.alarm = self.settings.ticks.after(now, handshake.timeout);
                handshake.retransmissions += 1;
                if !self.passive {
                    // Otherwise a node on the path might drop segments that offer ECN (RFC 3168 section 6.1.1.1).
                    (handshake.syn.ece, handshake.syn.cwr) = (false, false);
                }
                let mut syn = Segment { retransmission: true, ..handshake.syn };
                syn.timestamps = syn.timestamps.map(|(_, echo)| (now.0, echo));
                handshake.syn.timestamps = syn.timestamps;
                out.push(syn);
            }
            return;
        }
        self.with_sender(now, out, |sender, emit| sender.on_deadline(emit));
        if self.policy.is_due(now, self.sender.rtt().timeout()) {
            self.acknowledge(now, out);
        }
    }

    /// Returns the time at which [`Connection::on_timer`] must be called, regardless of earlier arrivals.
    pub fn deadline(&self) -> Option<Time> {
        if let Some(handshake) = &self.handshake {
            return Some(handshake.alarm.at);
        }
        match (self.sender.deadline(), self.policy.deadline()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Reports that a segment leaves the host's queue at `at` (at once if the queue dropped it): the first unreported
    /// one with payload or FIN of those put in `out`. With [`Settings::small_queue`], each must be reported, in order,
    /// before [`Connection::deadline`] is called.
    pub fn leaves_queue(&mut self, at: Time) {
        self.sender.leaves_queue(at);
    }

    /// Returns the number of bytes of payload handed to the application, in order and complete.
    pub fn received(&self) -> u64 {
        self.receiver.payload_since(FIRST)
    }

    /// Returns whether the other end has closed and all of its data has arrived.
    pub fn is_peer_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    /// Returns the state of the connection.
    pub fn state(&self) -> State {
        if self.handshake.is_some() {
            return if self.passive { State::SynReceived } else { State::SynSent };
        }
        let stream = self.sender.stream();
        match (stream.is_closing(), stream.is_finished()) {
            (true, true) => State::Closed,
            (true, false) => State::Closing,
            _ => State::Established,
        }
    }

    /// Returns the payload bytes of a full segment, as both ends agreed.
    pub fn mss(&self) -> u32 {
        self.agreed.mss
    }

    /// Returns the report of the connection.
    pub fn statistics(&self) -> Statistics {
        let sender = &self.sender;
        let (rtt, counts) = (sender.rtt(), sender.counts());
        Statistics {
            cwnd: sender.congestion().cwnd(),
            ssthresh: sender.congestion().known_ssthresh(),
            pipe: sender.pipe(),
            srtt_ns: rtt.smoothed().map(|rtt| rtt.0),
            min_rtt_ns: rtt.least().map(|rtt| rtt.0),
            rto_ns: rtt.timeout().0,
            sent_segments: counts.sent,
            retransmitted_segments: counts.retransmitted,
            timeouts: counts.timeouts,
            fast_recoveries: counts.recoveries,
            probes: counts.probes,
            undone: counts.undone,
            ecn_reductions: counts.ecn_reductions,
            acknowledged_bytes: sender.stream().una() - FIRST - u64::from(self.state() == State::Closed),
            state: self.state(),
        }
    }
}
