//! Common properties of both ends of a connection, from their SYNs.

use super::segment::{Segment, TIMESTAMPS_BYTES};
use super::settings::Settings;

/// Segment size of an end with a SYN that does not specify one (RFC 9293 section 3.7.1).
const DEFAULT_MSS: u16 = 536;

/// Options in use, and the size of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// Selective acknowledgements (RFC 2018).
    pub sack: bool,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Payload bytes of a full segment.
    pub mss: u32,
}

impl Agreed {
    /// Returns the properties of one end, before it knows those of the other.
    pub fn offered(settings: &Settings) -> Agreed {
        Agreed { sack: settings.sack, timestamps: settings.timestamps, ecn: settings.ecn, mss: settings.mss }
    }

    /// Returns the properties of both ends, those of the other one from its SYN.
    pub fn with(settings: &Settings, syn: &Segment) -> Agreed {
        let options = syn.syn_options;
        let sack = settings.sack && options.is_some_and(|options| options.sack_permitted);
        let timestamps = settings.timestamps && syn.timestamps.is_some();
        // A SYN offers with both flags, its answer accepts with ECE alone (RFC 3168 section 6.1.1).
        let ecn = settings.ecn && syn.ece && syn.cwr != syn.has_ack;
        let own = if settings.timestamps && !timestamps { settings.mss + TIMESTAMPS_BYTES } else { settings.mss };
        let taken = if timestamps { TIMESTAMPS_BYTES } else { 0 };
        let theirs = u32::from(options.map_or(DEFAULT_MSS, |options| options.mss)).saturating_sub(taken);
        Agreed { sack, timestamps, ecn, mss: own.min(theirs) }
    }
}
