//! Which classes of a policy-map a packet can be in: so that with many classes not all of them are asked.
//!
//! For each code point and each group number there is a set of the classes that do not rule it out, a bit a class; the classes to ask are those
//! in both. A class is left out only if asking it would neither succeed nor count a hit of an access list. What access lists test is not
//! indexed: a class that begins with one is always asked.

use crate::classifier::{Matcher, Test};
use crate::config::MatchMode;
use crate::packet::Descriptor;

/// The row of packets that have no code point.
const NOT_IP: usize = 64;
const ROWS: usize = 65;
const ALL_ROWS: u128 = (1 << ROWS) - 1;

/// What a packet must have for a class-map to be worth asking.
#[derive(Clone)]
struct Needs {
    /// Bit n set: code point n may be in it; bit 64: what is not IP.
    rows: u128,
    /// Group numbers that may be in it; none for all.
    groups: Option<Vec<u16>>,
    /// Asking it may count a hit.
    counts: bool,
}

impl Needs {
    const ALL: Needs = Needs { rows: ALL_ROWS, groups: None, counts: false };

    fn of(matcher: &Matcher) -> Needs {
        let statements = matcher.criteria.iter().map(|statement| {
            let needs = match &statement.test {
                Test::Dscp { values, .. } => Needs { rows: u128::from(*values), ..Needs::ALL },
                Test::Precedence { values, .. } => {
                    let of_row = |dscp: usize| u128::from((values >> (dscp >> 3)) & 1) << dscp;
                    Needs { rows: (0..NOT_IP).map(of_row).fold(0, |rows, row| rows | row), ..Needs::ALL }
                }
                Test::QosGroup(group) => Needs { groups: Some(vec![*group]), ..Needs::ALL },
                Test::Nested(matcher) => Needs::of(matcher),
                Test::AccessGroup(_) => Needs { counts: true, ..Needs::ALL },
                _ => Needs::ALL,
            };
            match statement.negate {
                true => Needs { counts: needs.counts, ..Needs::ALL },
                false => needs,
            }
        });
        match matcher.combine {
            MatchMode::Any => {
                let none = Needs { rows: 0, groups: Some(Vec::new()), counts: false };
                statements.fold(none, |sum, needs| Needs {
                    rows: sum.rows | needs.rows,
                    groups: sum.groups.zip(needs.groups).map(|(sum, groups)| [sum, groups].concat()),
                    counts: sum.counts || needs.counts,
                })
            }
            MatchMode::All => statements.fold(Needs::ALL, |sum, needs| match (sum.counts, needs) {
                // A later statement is asked only after this one has counted.
                (true, _) => sum,
                (false, Needs { rows, groups, counts }) => Needs {
                    rows: sum.rows & rows,
                    groups: match (sum.groups, groups) {
                        (Some(sum), Some(groups)) => Some(sum.into_iter().filter(|g| groups.contains(g)).collect()),
                        (sum, groups) => sum.or(groups),
                    },
                    counts,
                },
            }),
        }
    }
}

/// The classes of one policy-map.
#[derive(Debug)]
pub(crate) struct ClassIndex {
    /// 64 classes each.
    words: usize,
    /// By code point.
    rows: Vec<u64>,
    /// Group numbers that some class wants, in order, with their classes; and those of all other groups.
    groups: Vec<u16>,
    by_group: Vec<u64>,
    other_groups: Vec<u64>,
}

impl ClassIndex {
    pub fn new<'a>(matchers: impl Iterator<Item = &'a Matcher>) -> ClassIndex {
        let needs: Vec<_> = matchers.map(Needs::of).collect();
        let words = needs.len().div_ceil(64);
        let mut groups: Vec<u16> = needs.iter().filter_map(|needs| needs.groups.as_ref()).flatten().copied().collect();
        groups.sort_unstable();
        groups.dedup();
        let mut index = ClassIndex {
            words,
            rows: vec![0; words * ROWS],
            by_group: vec![0; words * groups.len()],
            other_groups: vec![0; words],
            groups,
        };
        for (class, needs) in needs.iter().enumerate() {
            let (word, bit) = (class / 64, 1 << (class % 64));
            for row in (0..ROWS).filter(|row| (needs.rows >> row) & 1 == 1) {
                index.rows[row * words + word] |= bit;
            }
            match &needs.groups {
                None => {
                    index.other_groups[word] |= bit;
                    (0..index.groups.len()).for_each(|group| index.by_group[group * words + word] |= bit);
                }
                Some(wanted) => {
                    for group in wanted.iter().filter_map(|group| index.groups.binary_search(group).ok()) {
                        index.by_group[group * words + word] |= bit;
                    }
                }
            }
        }
        index
    }

    /// The classes to ask, in order.
    pub fn candidates(&self, descriptor: &Descriptor) -> impl Iterator<Item = usize> + '_ {
        let row = if descriptor.is_ip() { usize::from(descriptor.dscp) } else { NOT_IP } * self.words;
        let rows = &self.rows[row..row + self.words];
        let groups = match self.groups.binary_search(&descriptor.qos_group) {
            Ok(group) => &self.by_group[group * self.words..(group + 1) * self.words],
            Err(_) => &self.other_groups[..],
        };
        rows.iter().zip(groups).enumerate().flat_map(|(word, (row, group))| {
            let mut left = row & group;
            std::iter::from_fn(move || {
                let bit = left.trailing_zeros() as usize;
                left &= left.wrapping_sub(1);
                (bit < 64).then_some(word * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classifier::{AccessList, Statement};
    use crate::config::{AccessListEntry, Framing};
    use crate::packet;
    use proptest::prelude::*;

    fn matcher() -> impl Strategy<Value = Matcher> {
        let test = prop_oneof![
            Just(Test::Any),
            (0usize..2).prop_map(Test::AccessGroup),
            (any::<u64>(), any::<bool>()).prop_map(|(values, ip_only)| Test::Dscp { values, ip_only }),
            (any::<u8>(), any::<bool>()).prop_map(|(values, ip_only)| Test::Precedence { values, ip_only }),
            (0u8..4).prop_map(|values| Test::Cos { values }),
            (0u16..5).prop_map(Test::QosGroup),
        ];
        let matcher = |test: BoxedStrategy<Test>| {
            let statement = (prop::bool::weighted(0.2), test).prop_map(|(negate, test)| Statement { negate, test });
            (any::<bool>(), prop::collection::vec(statement, 0..4)).prop_map(|(any, criteria)| Matcher {
                combine: if any { MatchMode::Any } else { MatchMode::All },
                criteria,
            })
        };
        let leaf = test.boxed();
        let nested = matcher(leaf.clone()).prop_map(Test::Nested);
        matcher(prop_oneof![4 => leaf, 1 => nested].boxed())
    }

    proptest! {
        /// The same class and the same hits as when every class is asked in turn.
        #[test]
        fn agrees_with_asking_all(
            matchers in prop::collection::vec(matcher(), 0..150),
            packets in prop::collection::vec((0u8..64, 0u16..6, any::<bool>(), 0u8..3), 1..20),
        ) {
            let entry: AccessListEntry = serde_json::from_value(serde_json::json!({"action": "permit", "protocol": 1,
                "source": {"address": "0.0.0.0", "wildcard": "255.255.255.255"}, "destination": {"address": "0.0.0.0", "wildcard": "255.255.255.255"}})).unwrap();
            let deny = AccessListEntry { action: crate::config::AccessAction::Deny, protocol: Some(2), ..entry.clone() };
            let mut all = vec![AccessList::new("a", &[entry.clone(), deny.clone()]), AccessList::new("b", &[deny, entry])];
            let mut some = all.clone();
            let index = ClassIndex::new(matchers.iter());
            for (dscp, qos_group, ip, protocol) in packets {
                let mut frame = vec![0; 14 + 28];
                frame[12] = if ip { 8 } else { 9 };
                frame[14] = 0x45;
                frame[15] = dscp << 2;
                frame[17] = 28;
                frame[23] = protocol;
                let descriptor = Descriptor { qos_group, ..packet::parse(&frame, Framing::Ethernet) };
                let expected = (0..matchers.len()).find_map(|class| Some((class, matchers[class].matches(&descriptor, &mut all)?)));
                let found = index.candidates(&descriptor).find_map(|class| Some((class, matchers[class].matches(&descriptor, &mut some)?)));
                prop_assert_eq!(found, expected);
                for (all, some) in all.iter().zip(&some) {
                    prop_assert_eq!(&all.hits, &some.hits);
                }
            }
        }
    }
}
