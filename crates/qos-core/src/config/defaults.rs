//! Default values of the platform. "Unconfirmed" marks those without a known published value.

/// `load-interval`, seconds.
pub const LOAD_INTERVAL_S: u32 = 300;

/// Class of service in the tag that a router adds to forwarded frames; `set cos` changes it. \[I\]: no output or
/// document of a router for a plain subinterface is known.
pub const DOT1Q_COS: u8 = 0;

/// Share of a congested port's line for each subinterface with queues, and for all other traffic together, in the later
/// generation; `bandwidth remaining ratio` in the outermost class-default changes it. It is IOS XE's default for
/// subinterfaces; for the routers here \[I\].
pub const SUBINTERFACE_RATIO: u32 = 1;

/// Whether the port's trust setting applies to a packet whose class in the policy of a VLAN interface neither trusts
/// nor sets (class-default, for example). \[I\]: the 3750's guide applies both on a port, the policy-map first; for a
/// port policy it says that such a class gives code point 0.
pub const VLAN_CLASS_KEEPS_PORT_TRUST: bool = true;

/// `hold-queue out` of a FIFO interface, packets (`Output queue: 0/40` on a 2811).
pub const FIFO_HOLD_QUEUE: u32 = 40;

/// `hold-queue out` of an interface with weighted fair or class-based queueing, packets (`0/1000` on a 2811).
pub const FAIR_HOLD_QUEUE: u32 = 1000;

/// Congestive discard threshold of weighted fair queueing: number of packets in all conversations together above which
/// a packet that would leave last is dropped. A class in addition to them has a separate queue limit and does not count
/// (unconfirmed).
pub const CONGESTIVE_DISCARD_THRESHOLD: u32 = 64;

/// `queue-limit` of a class, packets.
pub const QUEUE_LIMIT: u32 = 64;

/// Default of `queue-limit` if thresholds are in bytes or milliseconds, bytes: the equivalent of packets of 1500 bytes
/// \[I\].
pub const QUEUE_LIMIT_BYTES: u64 = 96_000;

/// Flow queues of fair queueing within a class. Unconfirmed for the later generation; results with eleven flows exclude
/// small numbers.
pub const CLASS_FLOW_QUEUES: u32 = 256;

/// Share of the queue limit that one flow can take under fair queueing within a class: a quarter.
pub const FLOW_LIMIT_DIVISOR: u32 = 4;

/// Maximum number of levels of nested policy-maps.
pub const MAX_LEVELS: usize = 3;

/// Per cent of the bandwidth that classes of the classic generation can reserve together, without class-default
/// (`max-reserved-bandwidth`).
pub const CLASSIC_RESERVABLE_PERCENT: u32 = 75;

/// Per cent of the bandwidth that classes of the later generation can reserve together: one per cent remains for
/// class-default.
pub const HQF_RESERVABLE_PERCENT: u32 = 99;

/// Default burst of a priority class: this many milliseconds of its rate (25 bytes per kb/s).
pub const PRIORITY_BURST_MS: u64 = 200;

/// Granularity in kb/s to which IOS-XE rounds the rate down for the default burst of a priority class: 29961 kb/s have
/// 749000 bytes.
pub const XE_PRIORITY_BURST_STEP_KBPS: u64 = 8;

/// Maximum number of waiting packets of all priority classes of one level. Known for the later generation (`queue limit
/// 64 packets`); unconfirmed for the hidden queue of the classic one.
pub const PRIORITY_QUEUE_LIMIT: u32 = 64;

/// Conversations reserved for the system, between those of flows and those of classes: on an interface with N flow
/// queues the priority conversation is N + 8 and the first class N + 9.
pub const SYSTEM_CONVERSATIONS: u32 = 8;

/// Returns the factor of the weight of a class in classic class-based queueing, by the number of flow queues;
/// multiplied by the interface's bandwidth divided by the class's. Unconfirmed: remembered from a study of it.
pub const fn class_weight_constant(flow_queues: u32) -> u64 {
    match flow_queues {
        0..=32 => 64,
        33..=64 => 57,
        65..=128 => 30,
        129..=256 => 16,
        257..=512 => 8,
        513..=1024 => 4,
        1025..=2048 => 2,
        _ => 1,
    }
}

/// Exponential weighting constant of random early detection.
pub const RANDOM_DETECT_WEIGHT: u8 = 9;

/// Maximum threshold of random early detection, packets.
pub const RANDOM_DETECT_MAX: u32 = 40;

/// Mark probability denominator: just below the maximum threshold one packet in this many is dropped.
pub const RANDOM_DETECT_DENOMINATOR: u32 = 10;

/// Minimum thresholds by precedence, later generation (output of a router).
pub const HQF_RANDOM_DETECT_MIN: [u32; 8] = [20, 22, 24, 26, 28, 30, 32, 34];

/// Minimum thresholds by precedence, classic generation. Unconfirmed.
pub const CLASSIC_RANDOM_DETECT_MIN: [u32; 8] = [20, 22, 24, 26, 28, 31, 33, 35];

/// Minimum thresholds of assured forwarding by drop precedence, and of EF, later generation: those of an ISR G2 with
/// 15.x, except for EF, which is from memory.
pub const HQF_RANDOM_DETECT_MIN_BY_DSCP: ([u32; 3], u32) = ([32, 28, 24], 36);

/// Minimum thresholds of assured forwarding by drop precedence, and of EF, classic generation. Unconfirmed.
pub const CLASSIC_RANDOM_DETECT_MIN_BY_DSCP: ([u32; 3], u32) = ([33, 28, 24], 37);

/// Returns the thresholds of early detection by precedence, or by code point, for a queue of that `limit`, in its unit:
/// the maximum is half of it, the minimum (8 + precedence)/16 of the maximum. IOS XE prints these by precedence in
/// tables of bytes; those by drop precedence (14/16, 12/16 and 10/16; expedited forwarding 15/16) are from memory
/// \[I\], and so is their use on older routers.
pub fn random_detect_by_limit(value: u8, by_dscp: bool, limit: u64) -> (u32, u32) {
    let parts = match (by_dscp, value >> 3, value & 7) {
        (false, _, precedence) => 8 + precedence,
        (true, 5, 6) => 15,
        (true, 1..=4, drop @ (2 | 4 | 6)) => 16 - drop,
        (true, precedence, 0) => 8 + precedence,
        (true, ..) => 8,
    };
    let max = (limit / 2).clamp(1, u64::from(u32::MAX));
    ((max * u64::from(parts) / 16) as u32, max as u32)
}

/// Returns the minimum threshold of a code point, from those of the generation by precedence and by drop precedence.
pub const fn random_detect_min_by_dscp(dscp: u8, by_precedence: [u32; 8], by_drop: ([u32; 3], u32)) -> u32 {
    match (dscp >> 3, dscp & 7) {
        // EF.
        (5, 6) => by_drop.1,
        // Assured forwarding.
        (1..=4, drop @ (2 | 4 | 6)) => by_drop.0[drop as usize / 2 - 1],
        // Class selectors.
        (class @ 1..=7, 0) => by_precedence[class as usize],
        _ => 20,
    }
}

/// Serial interfaces up to this bandwidth (E1) have weighted fair queueing by default. Unconfirmed to the last bit.
pub const WEIGHTED_FAIR_UP_TO_KBPS: u64 = 2_048;

/// Transmit ring of a serial interface with fair queueing or a queueing policy, packets in addition to the one on the
/// wire (`tx_limited = 1(2)` on a 2811).
pub const SERIAL_TX_RING_FAIR: u32 = 2;

/// Transmit ring of a serial FIFO interface (`tx_limited = 0(128)` on a 2811).
pub const SERIAL_TX_RING_FIFO: u32 = 128;

/// Transmit ring of an Ethernet interface up to [`ETHERNET_FAST_ABOVE_BPS`]. Unconfirmed: between the ends of the rule
/// of thumb, one or two entries below 2 Mb/s and 128 above 100 Mb/s.
pub const ETHERNET_TX_RING: u32 = 64;

/// Transmit ring of a faster Ethernet interface, by the same rule of thumb.
pub const ETHERNET_TX_RING_FAST: u32 = 128;

/// Rate above which an Ethernet interface has [`ETHERNET_TX_RING_FAST`] entries.
pub const ETHERNET_FAST_ABOVE_BPS: u64 = 100_000_000;

/// Transmit ring of a virtual circuit of a PA-A3, particles. From memory of Cisco's documents for a circuit without a
/// configured rate; for one with a rate IOS uses an unknown rule (unconfirmed).
pub const ATM_TX_RING: u32 = 40;

/// Size of a particle of a PA-A3's transmit ring, bytes: a packet with its encapsulation takes as many as it needs.
/// Document 6142: 576, or 580 with the header that the router carries with the packet.
pub const ATM_PARTICLE: u32 = 576;

/// Burst of `vbr-nrt` without a configured one, cells. From memory (unconfirmed).
pub const ATM_MAXIMUM_BURST: u32 = 94;

/// Minimum default burst of a policer, bytes.
pub const POLICE_LEAST_BURST: u64 = 1_500;

/// Divisor of the default burst of a policer: a fraction of a second of its rate in *bits*, taken as bytes; CIR/32 is
/// 250 ms.
pub const POLICE_BURST_DIVISOR: u64 = 32;

// The dynamic bucket. The authors published none of these values: they come from a prototype of the algorithm, inferred
// from the claims of US 8,743,693, in simulations of the scenarios of the LANMAN 2007 slides.

/// Initial size of the dynamic bucket, bytes. The result does not depend on it from 3 000 to 187 500 bytes at 1 Mb/s.
pub const DYNAMIC_INITIAL_BYTES: u64 = 15_000;

/// Minimum size of the dynamic bucket, bytes: two packets of 1 500.
pub const DYNAMIC_MINIMUM_BYTES: u64 = 3_000;

/// Maximum size of the dynamic bucket, milliseconds of the rate: it must not grow without limit during a long timeout
/// of TCP.
pub const DYNAMIC_MAXIMUM_MS: u64 = 1_500;

/// Interval at which the level of the dynamic bucket is compared, ms. Fixed, like in the authors' algorithm: they name
/// a coupling to the round-trip time as future work.
pub const DYNAMIC_MONITORING_MS: u64 = 100;

/// Time without a packet after which demand counts as ended, ms: longer than the TCP timeouts within one episode.
pub const DYNAMIC_IDLE_MS: u64 = 3_000;

/// Time without a packet, ms, after which the tokens of a bucket of fixed size count as unwanted instead of lost, like
/// those of the dynamic bucket.
pub const POLICE_IDLE_MS: u64 = DYNAMIC_IDLE_MS;

/// First growths, per cent of the overflowed tokens: the patent's abstract describes a faster initial adaptation.
pub const DYNAMIC_FIRST_GROWTH_PERCENT: u32 = 200;

/// Number of first growths.
pub const DYNAMIC_FIRST_GROWTHS: u32 = 3;

/// Later growths, per cent of the overflowed tokens.
pub const DYNAMIC_GROWTH_PERCENT: u32 = 100;

/// Reduction when the dynamic bucket shrinks, per cent.
pub const DYNAMIC_SHRINK_PERCENT: u32 = 2;

/// Unused share of the dynamic bucket above which it shrinks, per cent.
pub const DYNAMIC_SPARE_PERCENT: u32 = 10;

/// Interval of the classic shaper, ms.
pub const CLASSIC_SHAPE_INTERVAL_MS: u64 = 25;

/// Minimum committed burst of the classic shaper if 25 ms would give less, bits: below 320 kb/s. Rounding is
/// unconfirmed for some rates.
pub const CLASSIC_LOW_RATE_BURST_BITS: u64 = 8_000;

/// Whether the packets that a classic shaper releases each interval join the interface's queues, as one conversation
/// with the weight of the class, whether or not the line is free \[C\]. Otherwise they wait behind the shaper for the
/// transmit ring, and only the ring takes them.
pub const CLASSIC_SHAPER_RELEASES_TO_INTERFACE: bool = true;

/// Maximum number of packets per class that a classic shaper has released and that wait for the line; the next one is
/// dropped \[I\].
pub const CLASSIC_RELEASED_QUEUE_LIMIT: u32 = 64;

/// Interval of the later generation's shaper, ms.
pub const HQF_SHAPE_INTERVAL_MS: u64 = 4;

/// Per cent of the bandwidth that classes can reserve together in IOS-XE. From memory \[R\].
pub const XE_RESERVABLE_PERCENT: u32 = 100;

/// Queue limit of a class of IOS-XE, ms of its reference rate, in packets of [`XE_QUEUE_LIMIT_PACKET`] \[C\]. The
/// reference rate is the class's bandwidth, else its shape rate, else that of its parent \[D\].
pub const XE_QUEUE_LIMIT_MS: u64 = 50;

/// Packet size of the default queue limit of IOS-XE, bytes \[C\]. Two published outputs fit only a larger divisor,
/// which may be the interface's MTU \[U\].
pub const XE_QUEUE_LIMIT_PACKET: u64 = 1_500;

/// Minimum default queue limit of IOS-XE, packets \[C\].
pub const XE_QUEUE_LIMIT_LEAST: u32 = 64;

/// Queue limit of each priority level of IOS-XE, packets, at any rate \[C\].
pub const XE_PRIORITY_QUEUE_LIMIT: u32 = 512;

/// Flow queues of `fair-queue` in a class of IOS-XE. From memory \[R\].
pub const XE_CLASS_FLOW_QUEUES: u32 = 16;

/// Whether the queue limit of a class of IOS-XE applies to all flows of its `fair-queue` together. From memory \[R\].
///
/// - true: the class's queue limit bounds the sum, and a flow has a quarter of it;
/// - false: like with HQF, only the limit of each flow applies.
pub const XE_FLOWS_SHARE_LIMIT: bool = true;

/// Weight of a class of IOS-XE without `bandwidth remaining` in the excess above the minimum rates \[C\].
pub const XE_EXCESS_WEIGHT: u32 = 1;

/// Maximum deficit of a class of IOS-XE to its minimum rate that it can still recover, bytes: two full frames \[I\].
pub const XE_MINIMUM_CATCH_UP: u64 = 3_200;

/// Interval in which a shaper of IOS-XE adds credit, microseconds. The hardware gives each schedule a time for its next
/// packet \[R\]; 1 ms is an interpretation of it \[I\]. `show policy-map interface` prints bursts of 4 ms.
pub const XE_SHAPE_TICK_US: u64 = 1_000;

/// Maximum credit of a shaper of IOS-XE, bytes: one full frame with two tags \[I\].
pub const XE_SHAPE_CREDIT: u64 = 1_522;

/// Frames that wait for the wire behind the schedule of IOS-XE, which has no configurable transmit ring \[I\].
pub const XE_TX_RING: u32 = 2;

/// Maximum number of frames that wait for the arrival side of a link whose sender is not paced. The sender's queue is
/// not modelled, so this only bounds memory; further frames are dropped as `overrun`.
pub const LINK_BACKLOG_FRAMES: usize = 16_384;

/// Returns the flow queues of weighted fair queueing by the interface's bandwidth.
pub const fn dynamic_queues(bandwidth_kbps: u64) -> u32 {
    match bandwidth_kbps {
        0..=64 => 16,
        65..=128 => 32,
        129..=256 => 64,
        257..=512 => 128,
        _ => 256,
    }
}

/// Numerator of the weight of a conversation: 32384/(precedence + 1).
pub const WEIGHT_NUMERATOR: u64 = 32_384;

/// Buffers of `traffic-shape`: maximum number of packets that wait for a shaper (`traffic-shape rate 8000` is printed
/// with 1000).
pub const GTS_BUFFERS: u32 = 1_000;

/// `priority-list N queue-limit`: packets of the queues high, medium, normal and low.
pub const PRIORITY_LIST_LIMITS: [u32; 4] = [20, 40, 60, 80];

/// `queue-list N queue Q limit`, packets.
pub const CUSTOM_QUEUE_LIMIT: u32 = 20;

/// `queue-list N queue Q byte-count`, bytes per turn.
pub const CUSTOM_BYTE_COUNT: u32 = 1_500;

// Alternatives if sources disagree or are missing; both can be run. docs/internals/ask-a-device.md describes the
// experiment on a real router that would decide each.

/// Packets counted in the depth of a class in `show policy-map interface` of the later generation. A published output
/// has a parent class with 174 = 107 + 64 + 3 packets, where a ring of 2 and the packet on the line make 3, next to a
/// flow of at most 16 packets with 18.
///
/// - true: packets in the transmit ring and on the line: this explains the 3, and the 18 if one of the three belongs to
///   another class or the flow is one below its limit;
/// - false: packets in the transmit ring alone: this explains the 18, but not the 3.
pub const HQF_DEPTH_COUNTS_WIRE: bool = true;

/// Whether `shape` in a class without `bandwidth` guarantees its rate in the later generation.
///
/// - true: a reader's comment by P. Lapukhov on the article about HQF says so;
/// - false: no other source says so, and the class shares the excess with all classes without `bandwidth`.
pub const HQF_SHAPE_IS_A_GUARANTEE: bool = false;

/// Whether the classes of a child policy match a packet after the parent's `set`.
///
/// - true: the parent acts first, and the child classifies the marked packet;
/// - false: all levels classify the packet as it arrived at the policy. No document settles it.
pub const CHILD_MATCHES_PARENTS_MARK: bool = false;

/// Whether the drop rate of a class includes drops of its policer, in the classic generation.
///
/// - true: like in Cisco's example of a two-rate policer: a drop rate of 249000 of 1249000 b/s offered, all of it the
///   policer's;
/// - false: like in the output of a single-rate policer, which shows 0, unless that was before the first sample.
pub const CLASSIC_DROP_RATE_COUNTS_POLICE: bool = false;

/// Whether `Total output drops` of an interface includes drops by policers of its output policy. No source is known.
///
/// - true: all packets that the interface received for output and did not send;
/// - false: only drops of queues.
pub const OUTPUT_DROPS_COUNT_POLICE: bool = true;

/// Whether `police` with a peak rate and without `violate-action` has two rates.
///
/// - true: violating packets are treated like exceeding ones;
/// - false: like without a peak rate, one bucket, unless `violate-action` is typed.
pub const PEAK_RATE_ALONE_MAKES_TWO_RATES: bool = true;

/// Whether the conditional policer of a priority class meters packets without congestion.
///
/// - true: a burst before congestion has emptied the bucket when congestion begins;
/// - false: the bucket is full then.
pub const CONDITIONAL_POLICER_METERS_ALWAYS: bool = false;

/// Whether a packet that arrived with CE counts in `ECN Mark` if it would be marked again.
///
/// - true: the column counts packets that early detection would have dropped;
/// - false: it counts packets marked by this router: Cisco's guide says that the others need no further marking.
pub const ECN_COUNTS_WHAT_CAME_MARKED: bool = false;

/// Whether a priority class below another class precedes all non-priority traffic at every level above it, in the later
/// generation.
///
/// - true: as in Cisco's documents on hierarchical queueing ("priority propagation"); shapers above it apply, and it
///   takes no bandwidth that its parents share with their siblings;
/// - false: parents share by their weights, regardless of their load.
pub const HQF_PRIORITY_PROPAGATES: bool = true;

/// Comparison value of the extended burst of `rate-limit` \[I\].
///
/// - true: the debt alone, as in Cisco's worked example ("Policing and Shaping Overview", from memory: normal burst 2,
///   extended burst 4, and packets that leave a debt of 4 conform), and as an excerpt of Cisco Press words it, which
///   compares compounded debt and actual debt with it: a burst can be as long as both together;
/// - false: normal burst and debt together, as the command reference says: beyond the extended burst all packets
///   exceed.
pub const CAR_EXTENDED_BURST_IS_DEBT: bool = true;

/// Packets of `rate-limit` that borrow and so compound the debt \[I\].
///
/// - true: each packet that leaves a debt, as the rule is worded;
/// - false: each packet that leaves a greater debt than before, as Cisco's worked example counts (from memory).
pub const CAR_EVERY_PACKET_IN_DEBT_BORROWS: bool = false;
