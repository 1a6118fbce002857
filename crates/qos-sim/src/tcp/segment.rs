//! Segment from one end of a connection to the other.

/// Bytes of a TCP header without options (RFC 9293).
pub const HEADER_BYTES: u32 = 20;
/// Bytes that the timestamps option takes in every segment: 10, padded to a multiple of four (RFC 7323, appendix A).
pub const TIMESTAMPS_BYTES: u32 = 12;
/// Maximum number of SACK blocks in a segment: those that fit into 40 bytes of options without timestamps (RFC 2018).
const MOST_BLOCKS: usize = 4;
/// Maximum number of SACK blocks in addition to timestamps.
const MOST_BLOCKS_WITH_TIMESTAMPS: usize = 3;

/// Payload from `start` to before `end`, as sequence numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlock {
    /// First byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
}

/// The SACK option of a segment; the first block may report a duplicate (RFC 2883).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [SackBlock; MOST_BLOCKS],
    used: u8,
}

impl SackBlocks {
    /// Adds a block; returns false if the option is full.
    pub fn push(&mut self, block: SackBlock, timestamps: bool) -> bool {
        let most = if timestamps { MOST_BLOCKS_WITH_TIMESTAMPS } else { MOST_BLOCKS };
        let used = usize::from(self.used);
        if used >= most {
            return false;
        }
        self.blocks[used] = block;
        self.used += 1;
        true
    }

    /// Returns the blocks in their order.
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.used)]
    }

    /// Returns whether the segment has no SACK option.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }
}

/// Offers of a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynOptions {
    /// The maximum segment size accepted by its sender: payload and options without the header (RFC 9293).
    pub mss: u16,
    /// SACK permitted (RFC 2018).
    pub sack_permitted: bool,
    /// Shift of the windows of later segments (RFC 7323); the windows of [`Segment`] are already scaled.
    pub window_scale: u8,
}

/// A TCP segment without its payload's bytes. Sequence numbers begin at 0 with the SYN and never wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first byte of payload (of the SYN or the FIN if there is no payload).
    pub seq: u64,
    /// Bytes of payload.
    pub len: u32,
    /// The next byte expected; meaningful with `has_ack`.
    pub ack: u64,
    /// Receive window in bytes, already scaled.
    pub window: u64,
    /// SYN.
    pub syn: bool,
    /// FIN.
    pub fin: bool,
    /// ACK.
    pub has_ack: bool,
    /// PSH.
    pub push: bool,
    /// ECN-Echo: congestion was experienced; in a SYN the offer of explicit congestion notification (RFC 3168).
    pub ece: bool,
    /// Congestion window reduced; in a SYN part of the negotiation.
    pub cwr: bool,
    /// The ECN code point of the IP packet (RFC 3168), at departure or arrival.
    pub ecn: u8,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
    /// Value and echo of the timestamps option in nanoseconds of virtual time.
    pub timestamps: Option<(u64, u64)>,
    /// Options of a SYN.
    pub syn_options: Option<SynOptions>,
    /// Whether it is a retransmission; for counters only, not on the wire.
    pub retransmission: bool,
}

impl Segment {
    /// Returns the sequence number after the segment: SYN and FIN count as one byte each.
    pub fn end(&self) -> u64 {
        self.seq + u64::from(self.len) + u64::from(self.syn) + u64::from(self.fin)
    }

    /// Returns the length of the TCP header with its options in the layout of Linux.
    pub fn header_bytes(&self) -> u32 {
        let mut options = 0;
        if self.timestamps.is_some() {
            options += TIMESTAMPS_BYTES;
        }
        if let Some(syn) = self.syn_options {
            // MSS 4; window scale 3 and a pad. SACK permitted uses the pad of the timestamps, or 4 bytes without them.
            options += 4 + 4;
            if syn.sack_permitted && self.timestamps.is_none() {
                options += 4;
            }
        }
        if !self.sack.is_empty() {
            options += 4 + 8 * u32::from(self.sack.used);
        }
        HEADER_BYTES + options
    }
}
