//! The least of a fixed number of keys, kept in a tree of winners: a change costs the logarithm of their number, a look
//! nothing.

/// A key, with a value that stands for not taking part.
pub(crate) trait Key: Copy + Ord {
    /// The key of an index that does not take part: the greatest.
    const NONE: Self;
}

impl Key for u64 {
    const NONE: u64 = u64::MAX;
}

impl Key for u128 {
    const NONE: u128 = u128::MAX;
}

/// A tree of winners between as many keys as a power of two.
#[derive(Debug)]
pub(crate) struct WinnerTree<K = u64> {
    keys: Vec<K>,
    /// The inner nodes of a binary tree, root at 1: each holds the index of the lesser key beneath it.
    winners: Vec<u32>,
}

impl<K: Key> WinnerTree<K> {
    /// The key of an index that does not take part.
    pub const NONE: K = K::NONE;

    pub fn new(size: usize) -> WinnerTree<K> {
        let size = size.next_power_of_two().max(2);
        let mut winners = vec![0; size];
        for node in (1..size).rev() {
            // Any index beneath the node will do while no key takes part: the leftmost.
            winners[node] = if node >= size / 2 { (node * 2 - size) as u32 } else { winners[node * 2] };
        }
        WinnerTree { keys: vec![K::NONE; size], winners }
    }

    /// Changes a key.
    pub fn set(&mut self, index: usize, key: K) {
        if self.keys[index] == key {
            return;
        }
        self.keys[index] = key;
        let size = self.keys.len();
        let mut node = (index + size) / 2;
        while node > 0 {
            let (left, right) = if node >= size / 2 {
                ((node * 2 - size) as u32, (node * 2 + 1 - size) as u32)
            } else {
                (self.winners[node * 2], self.winners[node * 2 + 1])
            };
            // The lower index wins a draw, so that the outcome does not depend on history.
            let winner = if self.keys[right as usize] < self.keys[left as usize] { right } else { left };
            // Above a node that another index won and still wins nothing has changed.
            if winner == self.winners[node] && winner != index as u32 {
                return;
            }
            self.winners[node] = winner;
            node /= 2;
        }
    }

    /// The least key, [`NONE`](Self::NONE) if none takes part.
    pub fn least_key(&self) -> K {
        self.keys[self.winners[1] as usize]
    }

    /// The index of the least key, if any takes part.
    pub fn least(&self) -> Option<usize> {
        let winner = self.winners[1] as usize;
        (self.keys[winner] != K::NONE).then_some(winner)
    }

    /// The key of an index.
    pub fn key(&self, index: usize) -> K {
        self.keys[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_search(
            size in 1usize..40, changes in prop::collection::vec((0usize..40, prop::option::of(0u64..20)), 0..200)
        ) {
            let mut tree: WinnerTree = WinnerTree::new(size);
            let mut keys = vec![u64::NONE; size];
            prop_assert_eq!(tree.least(), None);
            for (index, key) in changes {
                let index = index % size;
                keys[index] = key.unwrap_or(u64::NONE);
                tree.set(index, keys[index]);
                let used = keys.iter().enumerate().filter(|(_, key)| **key != u64::NONE);
                let expected = used.min_by_key(|(index, key)| (**key, *index));
                prop_assert_eq!(tree.least(), expected.map(|(index, _)| index));
            }
        }
    }
}
