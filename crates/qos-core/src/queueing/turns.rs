//! Custom queueing: queues take turns, each until it has sent its byte count or is empty.
//!
//! Source: Cisco, "Congestion Management Overview", custom queueing. Packets are never split, so that a turn ends with
//! the packet that reaches the byte count; what went beyond it is taken from the queue's next turn (since 12.1). A
//! queue that becomes empty ends its turn, and what it did not use is lost.
//!
//! A queue's key among its siblings is the number of its turn's round with its own number behind it, so that the least
//! key is whose turn it is. Queues that are served ahead of all others have their number alone: a key of round 0.

use crate::plan::tree::Turn;

/// Bits of a key for the number of the queue.
const NUMBER_BITS: u32 = 8;

/// The key of a queue that is served ahead of those that take turns.
pub(crate) fn strict(number: u8) -> u128 {
    u128::from(number)
}

/// The key of a queue that gets packets while the turn is `now`: its turn in this round if that is still to come, else
/// in the next; not before `earliest`, where its last turn ended.
pub(crate) fn joins(turn: Turn, now: u128, earliest: u128) -> u128 {
    let round = (now >> NUMBER_BITS).max(1);
    let key = (round << NUMBER_BITS) + u128::from(turn.number);
    let key = if key < now { key + (1 << NUMBER_BITS) } else { key };
    key.max(earliest)
}

/// The key of a queue that has sent `bytes` at its key, and what it has used of that turn; `emptied` when it has no
/// packet left.
pub(crate) fn after(turn: Turn, key: u128, used: u64, bytes: u32, emptied: bool) -> (u128, u64) {
    let used = used + u64::from(bytes);
    let (rounds, used) = (used / u64::from(turn.byte_count), used % u64::from(turn.byte_count));
    if rounds == 0 && emptied {
        return (key + (1 << NUMBER_BITS), 0);
    }
    (key + (u128::from(rounds) << NUMBER_BITS), used)
}
