//! Settings of one end, from the experiment's TCP profile and Linux's defaults.

use super::segment::{HEADER_BYTES, TIMESTAMPS_BYTES};
use super::ticks::Ticks;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of an IPv4 header without options.
const IPV4_HEADER_BYTES: u32 = 20;
const MS: u64 = 1_000_000;
/// Share of payload in the memory of full segments, in 256ths, as measured on Linux 6.18 behind a virtual Ethernet (its
/// scaling_ratio; before Linux 6.6 it is a half).
const PAYLOAD_SHARE: u64 = 157;

/// Congestion control algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CongestionControl {
    /// RFC 5681 as Linux's `reno`.
    Reno,
    /// RFC 9438 as Linux's `cubic`.
    Cubic,
}

/// The experiment's TCP profile (`tcp`): the sysctls and route attributes of a Linux host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// `reno` or `cubic`.
    pub congestion_control: CongestionControl,
    /// sysctl tcp_sack; with it D-SACK (tcp_dsack).
    pub sack: bool,
    /// sysctl tcp_timestamps.
    pub timestamps: bool,
    /// sysctl tcp_ecn: 1, or 0 for false.
    pub ecn: bool,
    /// sysctl tcp_recovery: bit 0 RACK, bit 1 a fixed reordering window, bit 2 no duplicate threshold in RACK.
    pub recovery: u8,
    /// sysctl tcp_early_retrans: 3 and 4 are tail loss probe.
    pub early_retrans: u8,
    /// sysctl tcp_frto: zero is off.
    pub frto: u8,
    /// Route attribute initcwnd, segments.
    pub initcwnd: u32,
    /// Route attribute rto_min, nanoseconds.
    pub rto_min_ns: u64,
}

impl Default for Profile {
    /// Returns the profile of a current Linux with its defaults.
    fn default() -> Profile {
        Profile {
            congestion_control: CongestionControl::Cubic,
            sack: true,
            timestamps: true,
            ecn: false,
            recovery: 1,
            early_retrans: 3,
            frto: 2,
            initcwnd: 10,
            rto_min_ns: 200 * MS,
        }
    }
}

/// Settings of one end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Congestion control algorithm.
    pub congestion_control: CongestionControl,
    /// Payload bytes of a full segment, without options.
    pub mss: u32,
    /// Selective acknowledgements (RFC 2018), if the other end has them too.
    pub sack: bool,
    /// Reports of duplicates (RFC 2883); effective only with `sack`.
    pub dsack: bool,
    /// Timestamps option (RFC 7323), if the other end has it too.
    pub timestamps: bool,
    /// Explicit congestion notification (RFC 3168), if the other end has it too.
    pub ecn: bool,
    /// RACK (RFC 8985) rather than counting SACKed segments (RFC 6675); effective only with `sack`.
    pub rack: bool,
    /// Whether RACK's reordering window stays a quarter of the minimum round trip (bit 1 of tcp_recovery).
    pub rack_static_window: bool,
    /// Whether RACK waits for its reordering window even if a duplicate threshold of segments is SACKed (bit 2 of
    /// tcp_recovery).
    pub rack_no_threshold: bool,
    /// Tail loss probe (RFC 8985); effective only with `sack`.
    pub tail_loss_probe: bool,
    /// Detection of spurious timeouts (RFC 5682).
    pub frto: bool,
    /// Whether slow start ends when round trips grow (Linux `cubic`'s hystart=1).
    pub hystart: bool,
    /// Whether HyStart's rounds begin when the window has reached 16 segments (Linux 5.16 to 6.13) instead of with the
    /// first segment.
    pub hystart_late_rounds: bool,
    /// Whether the window grows per acknowledged segment (RFC 3465 without its limit, as in Linux); otherwise per
    /// acknowledgement (RFC 5681).
    pub byte_counting: bool,
    /// Initial and restart window in segments.
    pub initial_window: u32,
    /// Whether the window restarts after an idle time (sysctl tcp_slow_start_after_idle).
    pub slow_start_after_idle: bool,
    /// Initial duplicate threshold (sysctl tcp_reordering).
    pub reordering: u32,
    /// The ticks on which timers expire.
    pub ticks: Ticks,
    /// Minimum retransmission timeout; with `rto_floor_on_variance`, the minimum variance term.
    pub min_rto_ns: u64,
    /// Whether the minimum timeout is added to the round trip as in Linux; in RFC 6298 it is the minimum of the sum.
    pub rto_floor_on_variance: bool,
    /// Acknowledgements at the start and after gaps that are not delayed (Linux TCP_MAX_QUICKACKS); zero: none.
    pub quick_acks: u32,
    /// Initial delay of an acknowledgement (Linux TCP_ATO_MIN, TCP_DELACK_MIN).
    pub delayed_ack_min_ns: u64,
    /// Longest delay of an acknowledgement (Linux TCP_DELACK_MAX).
    pub delayed_ack_max_ns: u64,
    /// Maximum delay of SACKs that are combined (sysctl tcp_comp_sack_delay_ns); zero: each is sent.
    pub sack_compression_ns: u64,
    /// Maximum number of SACKs that are combined (sysctl tcp_comp_sack_nr).
    pub sack_compression_count: u32,
    /// Window of the SYN (Linux: 64 KiB minus one, because it is not scaled there).
    pub initial_receive_window: u64,
    /// Maximum receive window in bytes before the round trip is known.
    pub initial_receive_clamp: u64,
    /// Maximum receive window in bytes.
    pub receive_buffer: u64,
    /// TCP small queues: whether little data waits in the host's own queue. The caller must report the departure of
    /// segments from it ([`super::Connection::leaves_queue`]).
    pub small_queue: bool,
    /// Maximum number of sent and unacknowledged bytes.
    pub send_buffer: u64,
}

impl Settings {
    /// Returns the settings of a current Linux with its defaults, on an interface with an MTU of `mtu` bytes.
    pub fn modern(mtu: u32) -> Settings {
        Settings {
            congestion_control: CongestionControl::Cubic,
            mss: mss_for(mtu, true),
            sack: true,
            dsack: true,
            timestamps: true,
            ecn: false,
            rack: true,
            rack_static_window: false,
            rack_no_threshold: false,
            tail_loss_probe: true,
            frto: true,
            hystart: true,
            hystart_late_rounds: false,
            byte_counting: true,
            initial_window: 10,
            slow_start_after_idle: true,
            reordering: 3,
            ticks: Ticks::NONE,
            min_rto_ns: 200 * MS,
            rto_floor_on_variance: true,
            quick_acks: 16,
            delayed_ack_min_ns: 40 * MS,
            delayed_ack_max_ns: 200 * MS,
            sack_compression_ns: MS,
            sack_compression_count: 44,
            initial_receive_window: 65_535,
            // The second and third value of sysctl tcp_rmem; the share of payload in a segment's memory becomes the
            // window.
            initial_receive_clamp: 131_072 * PAYLOAD_SHARE / 256,
            receive_buffer: 6_291_456 * PAYLOAD_SHARE / 256,
            small_queue: false,
            // The third value of sysctl tcp_wmem. Linux counts its own structures in it too.
            send_buffer: 4_194_304,
        }
    }

    /// Returns the window of the SYN: whole segments, if it has room for one.
    pub(crate) fn offered_at_first(&self) -> u64 {
        let window = self.initial_receive_window.min(self.receive_buffer);
        let mss = u64::from(self.mss.max(1));
        if window > mss {
            window / mss * mss
        } else {
            window
        }
    }

    /// Returns the settings of the profile on an interface of `mtu` bytes.
    pub fn from_profile(profile: &Profile, mtu: u32) -> Settings {
        Settings {
            congestion_control: profile.congestion_control,
            mss: mss_for(mtu, profile.timestamps),
            sack: profile.sack,
            dsack: profile.sack,
            timestamps: profile.timestamps,
            ecn: profile.ecn,
            rack: (profile.recovery & 1) != 0,
            rack_static_window: (profile.recovery & 2) != 0,
            rack_no_threshold: (profile.recovery & 4) != 0,
            tail_loss_probe: matches!(profile.early_retrans, 3 | 4),
            frto: profile.frto != 0,
            initial_window: profile.initcwnd,
            min_rto_ns: profile.rto_min_ns,
            ..Settings::modern(mtu)
        }
    }
}

/// Returns the payload bytes of a full segment over an interface of `mtu` bytes.
pub fn mss_for(mtu: u32, timestamps: bool) -> u32 {
    let options = if timestamps { TIMESTAMPS_BYTES } else { 0 };
    mtu.saturating_sub(IPV4_HEADER_BYTES + HEADER_BYTES + options)
}
