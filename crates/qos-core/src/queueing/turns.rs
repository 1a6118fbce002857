//! Custom queueing: queues take turns, each until it has sent its byte count or is empty.
//!
//! Source: Cisco, "Congestion Management Overview", custom queueing. Packets are never split, so that a turn ends with
//! the packet that reaches the byte count; the excess is subtracted from the queue's next turn (since 12.1). A queue
//! that becomes empty ends its turn, and loses the unused part.
//!
//! A queue's key among its siblings is the number of its turn's round with its own number behind it, so that the least
//! key is whose turn it is. Queues that are served ahead of all others have their number alone: a key of round 0.

use crate::plan::tree::Turn;

/// Number of bits of a key that hold the number of the queue.
const NUMBER_BITS: u32 = 8;

/// Returns the key of a queue that is served before those that take turns.
pub(crate) fn strict(number: u8) -> u128 {
    u128::from(number)
}

/// Returns the key of a queue that gets its first packet while the turn is `now`: its turn in this round if it is still
/// ahead, otherwise in the next; not before `earliest`, the end of its last turn.
pub(crate) fn joins(turn: Turn, now: u128, earliest: u128) -> u128 {
    let round = (now >> NUMBER_BITS).max(1);
    let key = (round << NUMBER_BITS) + u128::from(turn.number);
    let key = if key < now { key + (1 << NUMBER_BITS) } else { key };
    key.max(earliest)
}

/// Returns the key of a queue that has sent `bytes` at its key, and the used part of that turn; `emptied` if it has no
/// packet left.
pub(crate) fn after(turn: Turn, key: u128, used: u64, bytes: u32, emptied: bool) -> (u128, u64) {
    let used = used + u64::from(bytes);
    let (rounds, used) = (used / u64::from(turn.byte_count), used % u64::from(turn.byte_count));
    if rounds == 0 && emptied {
        return (key + (1 << NUMBER_BITS), 0);
    }
    (key + (u128::from(rounds) << NUMBER_BITS), used)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Turn = Turn { number: 5, byte_count: 1_500 };

    #[test]
    fn queue_in_turn_has_the_smallest_key() {
        assert_eq!(strict(0), 0);
        assert_eq!(strict(15), 15);
        assert!(strict(15) < joins(Turn { number: 0, ..TURN }, 0, 0), "ahead of all turns");
    }

    #[test]
    fn queue_joins_the_current_or_next_round() {
        assert_eq!(joins(TURN, 0, 0), 0x105, "the first round");
        assert_eq!(joins(TURN, 0x104, 0), 0x105, "its turn is still to come");
        assert_eq!(joins(TURN, 0x105, 0), 0x105, "it is its turn");
        assert_eq!(joins(TURN, 0x106, 0), 0x205, "its turn is over");
        assert_eq!(joins(TURN, 0x104, 0x305), 0x305, "its last turn took more than it had");
    }

    #[test]
    fn a_turn_ends_at_the_byte_count() {
        assert_eq!(after(TURN, 0x105, 0, 1_499, false), (0x105, 1_499));
        assert_eq!(after(TURN, 0x105, 0, 1_500, false), (0x205, 0));
        assert_eq!(after(TURN, 0x105, 1_000, 1_000, false), (0x205, 500), "the rest is of the next turn");
        assert_eq!(after(TURN, 0x105, 1_000, 3_000, false), (0x305, 1_000), "and of the one after that");
    }

    #[test]
    fn an_empty_queue_gives_up_the_rest_of_its_turn() {
        assert_eq!(after(TURN, 0x105, 0, 1_000, true), (0x205, 0));
        assert_eq!(after(TURN, 0x105, 1_000, 1_000, true), (0x205, 500), "and owes what it had of the next");
    }
}
