//! Which of some deadlines comes first: a tournament, since each of them moves at nearly every event.

use qos_core::Time;

/// A deadline, and what decides between two of the same time: the smaller number comes first.
pub(crate) type Deadline = (Time, u64);

/// Comes after all others.
pub(crate) const NEVER: Deadline = (Time(u64::MAX), u64::MAX);

/// So many deadlines, by number.
#[derive(Debug)]
pub(crate) struct Deadlines {
    deadlines: Vec<Deadline>,
    /// A binary tree: below the root, number 1, each node has the one of its two children that comes first.
    winners: Vec<u32>,
}

impl Deadlines {
    /// So many that never come.
    pub fn new(count: usize) -> Self {
        let leaves = count.next_power_of_two();
        let first = |node: usize| (node << (leaves.ilog2() - node.max(1).ilog2())) - leaves;
        let winners = (0..2 * leaves).map(|node| if node == 0 { 0 } else { first(node) as u32 }).collect();
        Self { deadlines: vec![NEVER; leaves], winners }
    }

    /// The deadline of that number.
    pub fn get(&self, number: usize) -> Deadline {
        self.deadlines[number]
    }

    /// Moves a deadline.
    pub fn set(&mut self, number: usize, deadline: Deadline) {
        self.deadlines[number] = deadline;
        let mut node = (self.deadlines.len() + number) / 2;
        while node > 0 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            let ahead = self.deadlines[right as usize] < self.deadlines[left as usize];
            self.winners[node] = if ahead { right } else { left };
            node /= 2;
        }
    }

    /// The first to come, with its number; [`NEVER`] where none comes.
    pub fn first(&self) -> (Deadline, usize) {
        let number = self.winners[1] as usize;
        (self.deadlines[number], number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_list(count in 1usize..20, steps in prop::collection::vec((0usize..20, 0u64..9), 0..100)) {
            let mut deadlines = Deadlines::new(count);
            let mut list = vec![NEVER; count];
            prop_assert_eq!(deadlines.first().0, NEVER);
            for (number, (which, time)) in (0..).zip(steps) {
                let deadline = if time == 0 { NEVER } else { (Time(time), number) };
                list[which % count] = deadline;
                deadlines.set(which % count, deadline);
                let (first, at) = deadlines.first();
                prop_assert_eq!(Some(&first), list.iter().min());
                prop_assert_eq!(list[at], first);
                prop_assert_eq!(deadlines.get(which % count), deadline);
            }
        }
    }

    #[test]
    fn there_may_be_none() {
        assert_eq!(Deadlines::new(0).first().0, NEVER);
    }
}
