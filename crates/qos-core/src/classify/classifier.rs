//! An index of the classes of a policy-map by one field of the packet, so that classification does not test every
//! class.
//!
//! If many classes ask for a value of the same field (a port, a code point, a group …), only those that ask for the
//! packet's value or for none are tried, in their order. A class is left out only if trying it would change nothing: it
//! would not match, and no entry of an access list would count a hit. With few classes, or if no field distinguishes
//! them, all are tried.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use crate::classify::access_list::AccessList;
use crate::config::classification::{AccessListEntry, AddressMatch, MatchMode, PortMatch, PortOperator};
use crate::frame::descriptor::{Descriptor, Network};
use crate::plan::classes::{Matcher, Statement, Test};

/// Minimum number of classes for which an index is faster than a linear search.
const LEAST_CLASSES: usize = 8;

/// Maximum number of indexed values of a class; a class with more is tested for every packet.
const MOST_VALUES: usize = 256;

/// Maximum span of values in a table, from the least to the greatest.
const MOST_DENSE: u32 = 4_096;

/// A field of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Dscp,
    Cos,
    Vlan,
    QosGroup,
    InputPort,
    Source,
    Destination,
    SourcePort,
    DestinationPort,
}

const FIELDS: [Field; 9] = [
    Field::Dscp,
    Field::Cos,
    Field::Vlan,
    Field::QosGroup,
    Field::InputPort,
    Field::Source,
    Field::Destination,
    Field::SourcePort,
    Field::DestinationPort,
];

impl Field {
    /// Returns the value of the packet's field; none if it has no such field.
    fn of(self, descriptor: &Descriptor) -> Option<u32> {
        let address = |address: IpAddr| match address {
            IpAddr::V4(_) if descriptor.network != Network::Ipv4 => None,
            address => Some(folded(address)),
        };
        match self {
            Field::Dscp => descriptor.is_ip().then_some(u32::from(descriptor.dscp)),
            Field::Cos => Some(u32::from(descriptor.cos & 7)),
            Field::Vlan => Some(u32::from(descriptor.vlan)),
            Field::QosGroup => Some(u32::from(descriptor.qos_group)),
            Field::InputPort => descriptor.input_port.map(|port| u32::from(port.0)),
            Field::Source => address(descriptor.source),
            Field::Destination => address(descriptor.destination),
            Field::SourcePort => descriptor.source_port.map(u32::from),
            Field::DestinationPort => descriptor.destination_port.map(u32::from),
        }
    }

    /// Returns whether an access list that requires a value may match a later fragment, which lacks the field.
    fn is_missing_in_fragments(self) -> bool {
        matches!(self, Field::SourcePort | Field::DestinationPort)
    }
}

/// The values of a field required for a match or a hit; none: any value.
type Values = Option<BTreeSet<u32>>;

fn limited(values: BTreeSet<u32>) -> Values {
    (values.len() <= MOST_VALUES).then_some(values)
}

fn union(all: impl Iterator<Item = Values>) -> Values {
    let mut values = BTreeSet::new();
    for some in all {
        values.extend(some?);
    }
    limited(values)
}

fn bits(set: u64) -> BTreeSet<u32> {
    (0..64).filter(|bit| (set >> bit) & 1 == 1).collect()
}

/// Returns an address as a value of its field. An IPv6 address is folded to 32 bits, so classes with other addresses
/// may be tested in vain.
fn folded(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(address) => u32::from(address),
        IpAddr::V6(address) => {
            let bits = u128::from(address);
            (bits ^ (bits >> 32) ^ (bits >> 64) ^ (bits >> 96)) as u32
        }
    }
}

fn host(wanted: &AddressMatch) -> Values {
    wanted.wildcard.is_unspecified().then(|| BTreeSet::from([folded(wanted.address)]))
}

fn ports(wanted: Option<&PortMatch>) -> Values {
    let PortMatch { op, ports } = wanted?;
    match op {
        PortOperator::Eq => limited(ports.iter().map(|port| u32::from(*port)).collect()),
        PortOperator::Range if usize::from(ports[1] - ports[0]) < MOST_VALUES => {
            Some((u32::from(ports[0])..=u32::from(ports[1])).collect())
        }
        PortOperator::Range | PortOperator::Neq | PortOperator::Gt | PortOperator::Lt => None,
    }
}

fn entry_values(field: Field, entry: &AccessListEntry) -> Values {
    match field {
        Field::Dscp => match (entry.dscp, entry.precedence) {
            (Some(dscp), _) => Some(BTreeSet::from([u32::from(dscp)])),
            (None, precedence) => {
                let first = u32::from(precedence?) * 8;
                Some((first..first + 8).collect())
            }
        },
        Field::Source => host(&entry.source),
        Field::Destination => host(&entry.destination),
        Field::SourcePort => ports(entry.source_port.as_ref()),
        Field::DestinationPort => ports(entry.destination_port.as_ref()),
        Field::Cos | Field::Vlan | Field::QosGroup | Field::InputPort => None,
    }
}

fn statement_values(field: Field, statement: &Statement, lists: &[AccessList]) -> Values {
    if statement.negate {
        return None;
    }
    match (&statement.test, field) {
        (Test::AccessGroup(list), _) => union(lists[*list].entries.iter().map(|entry| entry_values(field, entry))),
        (Test::Nested(matcher), _) => matcher_values(field, matcher, lists),
        (Test::Dscp { values, .. }, Field::Dscp) => Some(bits(*values)),
        (Test::Precedence { values, .. }, Field::Dscp) => {
            Some((0..64).filter(|dscp| (values >> (dscp >> 3)) & 1 == 1).collect())
        }
        (Test::Cos { values }, Field::Cos) => Some(bits(u64::from(*values))),
        (Test::Vlan { ranges }, Field::Vlan) => {
            let all = ranges.iter().flat_map(|(first, last)| u32::from(*first)..=u32::from(*last));
            limited(all.take(MOST_VALUES + 1).collect())
        }
        (Test::QosGroup(group), Field::QosGroup) => Some(BTreeSet::from([u32::from(*group)])),
        (Test::InputInterface(port), Field::InputPort) => Some(BTreeSet::from([u32::from(port.0)])),
        _ => None,
    }
}

/// Returns whether testing a statement may count hits.
fn counts(statement: &Statement) -> bool {
    match &statement.test {
        Test::AccessGroup(_) => true,
        Test::Nested(matcher) => matcher.criteria.iter().any(counts),
        _ => false,
    }
}

fn matcher_values(field: Field, matcher: &Matcher, lists: &[AccessList]) -> Values {
    match matcher.combine {
        MatchMode::Any => union(matcher.criteria.iter().map(|statement| statement_values(field, statement, lists))),
        MatchMode::All if matcher.criteria.is_empty() => Some(BTreeSet::new()),
        MatchMode::All => {
            // A statement after an access list does not skip the access list, because its hits are counted.
            let asked = matcher.criteria.iter().position(counts).map_or(matcher.criteria.len(), |first| first + 1);
            matcher.criteria[..asked].iter().find_map(|statement| statement_values(field, statement, lists))
        }
    }
}

/// The positions of classes, in order, by their required value.
#[derive(Debug)]
enum ByValue {
    /// Values that are close together, from the minimum on: a table lookup instead of a search.
    Dense {
        least: u32,
        positions: Vec<Vec<usize>>,
    },
    Sparse(BTreeMap<u32, Vec<usize>>),
}

impl ByValue {
    fn of(sparse: BTreeMap<u32, Vec<usize>>) -> ByValue {
        let ends = sparse.first_key_value().zip(sparse.last_key_value());
        match ends.map(|((least, _), (greatest, _))| (*least, *greatest)) {
            Some((least, greatest)) if greatest - least < MOST_DENSE => {
                let mut positions = vec![Vec::new(); (greatest - least) as usize + 1];
                sparse.into_iter().for_each(|(value, classes)| positions[(value - least) as usize] = classes);
                ByValue::Dense { least, positions }
            }
            _ => ByValue::Sparse(sparse),
        }
    }

    #[inline]
    fn get(&self, value: u32) -> &[usize] {
        let found = match self {
            ByValue::Dense { least, positions } => positions.get(value.wrapping_sub(*least) as usize),
            ByValue::Sparse(positions) => positions.get(&value),
        };
        found.map_or(&[], Vec::as_slice)
    }
}

/// The classes of a policy-map by the values of a field.
#[derive(Debug)]
pub(crate) struct ClassIndex {
    field: Field,
    by_value: ByValue,
    /// Classes without a value for the field.
    others: Vec<usize>,
    /// Maximum number of classes that are tested for a packet.
    most: usize,
}

impl ClassIndex {
    /// Builds the index of classes in their order; `None` if an index would not help.
    pub fn new<'a>(matchers: impl Iterator<Item = &'a Matcher> + Clone, lists: &[AccessList]) -> Option<ClassIndex> {
        let classes = matchers.clone().count();
        if classes < LEAST_CLASSES {
            return None;
        }
        let indexes = FIELDS.into_iter().map(|field| ClassIndex::by(field, matchers.clone(), lists));
        indexes.min_by_key(|index| index.most).filter(|index| index.most <= classes / 2)
    }

    fn by<'a>(field: Field, matchers: impl Iterator<Item = &'a Matcher>, lists: &[AccessList]) -> ClassIndex {
        let (mut by_value, mut others) = (BTreeMap::<u32, Vec<usize>>::new(), Vec::new());
        for (position, matcher) in matchers.enumerate() {
            match matcher_values(field, matcher, lists) {
                None => others.push(position),
                Some(values) => {
                    values.into_iter().for_each(|value| by_value.entry(value).or_default().push(position));
                }
            }
        }
        let most = others.len() + by_value.values().map(Vec::len).max().unwrap_or(0);
        ClassIndex { field, by_value: ByValue::of(by_value), others, most }
    }

    /// Returns the positions of the classes to test, in order; `None` to test all.
    #[inline]
    pub fn candidates(&self, descriptor: &Descriptor) -> Option<Candidates<'_>> {
        if descriptor.later_fragment && self.field.is_missing_in_fragments() {
            return None;
        }
        let asked = self.field.of(descriptor).map_or(&[][..], |value| self.by_value.get(value));
        Some(Candidates { asked, others: &self.others })
    }
}

/// Two lists of positions as one, in order.
pub(crate) struct Candidates<'a> {
    asked: &'a [usize],
    others: &'a [usize],
}

impl Iterator for Candidates<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let list = match (self.asked, self.others) {
            ([asked, ..], [other, ..]) if other < asked => &mut self.others,
            ([], _) => &mut self.others,
            _ => &mut self.asked,
        };
        let (first, rest) = list.split_first()?;
        *list = rest;
        Some(*first)
    }
}

#[cfg(test)]
mod tests;
