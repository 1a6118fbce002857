//! The minimum of a fixed number of keys, in a tree of winners: a change takes logarithmic time, reading the minimum
//! constant time.

/// A key type with a value for indexes that do not take part.
pub trait Key: Copy + Ord {
    /// The key of an index that does not take part: the greatest.
    const NONE: Self;
}

impl Key for u64 {
    const NONE: u64 = u64::MAX;
}

impl Key for u128 {
    const NONE: u128 = u128::MAX;
}

/// A key and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry<K> {
    key: K,
    index: u32,
}

/// A tree of winners between as many keys as a power of two.
#[derive(Debug)]
pub struct WinnerTree<K = u64> {
    /// A binary tree with its root at 1: at the leaves, which are its second half, the keys, and at each inner node the
    /// least of those beneath it.
    nodes: Vec<Entry<K>>,
    /// Copy of the entry at the root, which is read several times per packet.
    root: Entry<K>,
}

impl<K: Key> WinnerTree<K> {
    /// The key of an index that does not take part.
    pub const NONE: K = K::NONE;

    /// Returns the tree of this many keys, none of which takes part.
    pub fn new(size: usize) -> WinnerTree<K> {
        let size = size.next_power_of_two();
        let mut nodes = vec![Entry { key: K::NONE, index: 0 }; 2 * size];
        for node in (1..2 * size).rev() {
            // If no key takes part the leftmost wins, as in every draw.
            nodes[node].index = if node >= size { (node - size) as u32 } else { nodes[node * 2].index };
        }
        let root = nodes[1];
        WinnerTree { nodes, root }
    }

    /// Changes a key.
    ///
    /// # Panics
    /// If there is no such index; similarly [`key`](Self::key).
    #[inline]
    pub fn set(&mut self, index: usize, key: K) {
        let node = index + self.nodes.len() / 2;
        if self.nodes[node].key != key {
            self.replay(node, Entry { key, index: index as u32 });
        }
    }

    /// Recalculates the winners from a leaf to the root.
    fn replay(&mut self, mut node: usize, mut winner: Entry<K>) {
        self.nodes[node] = winner;
        while node > 1 {
            let sibling = self.nodes[node ^ 1];
            // The lower index wins a draw, so that the outcome does not depend on history.
            let draw = node % 2 == 1 && sibling.key == winner.key;
            if sibling.key < winner.key || draw {
                winner = sibling;
            }
            node /= 2;
            // Above a node whose winner is unchanged, nothing has changed.
            if self.nodes[node] == winner {
                return;
            }
            self.nodes[node] = winner;
        }
        self.root = winner;
    }

    /// Returns the least key; [`NONE`](Self::NONE) without competitors.
    #[inline]
    pub fn least_key(&self) -> K {
        self.root.key
    }

    /// Returns the index of the minimum key, if any takes part.
    #[inline]
    pub fn least(&self) -> Option<usize> {
        let Entry { key, index } = self.root;
        (key != K::NONE).then_some(index as usize)
    }

    /// Returns the key of an index.
    #[inline]
    pub fn key(&self, index: usize) -> K {
        self.nodes[index + self.nodes.len() / 2].key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_linear_search(
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
