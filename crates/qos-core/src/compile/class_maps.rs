//! Compiler from class-maps to tests of a packet.

use crate::compile::context::Context;
use crate::config::classification::{Criterion, MatchMode};
use crate::error::ConfigError;
use crate::plan::classes::{Matcher, Statement, Test, CLASS_DEFAULT};

/// Range of valid VLANs (IEEE 802.1Q).
pub(crate) const VLANS: std::ops::RangeInclusive<u16> = 1..=4_094;

/// Maximum number of levels of nested class-maps.
const MAX_NESTED_CLASS_MAPS: usize = 8;

/// Maximum number of match statements of a class-map and of those that it refers to, together.
const MAX_STATEMENTS: usize = 4_096;

/// Compiles a class-map, with those that it refers to.
pub(crate) fn matcher(context: &Context<'_>, name: &str) -> Result<Matcher, ConfigError> {
    nested_matcher(context, name, 0, &mut { MAX_STATEMENTS })
}

/// Compiles a single statement at `path`.
pub(crate) fn single(context: &Context<'_>, criterion: &Criterion, path: &str) -> Result<Statement, ConfigError> {
    statement(context, criterion, path, 0, &mut { MAX_STATEMENTS })
}

fn nested_matcher(context: &Context<'_>, name: &str, depth: usize, left: &mut usize) -> Result<Matcher, ConfigError> {
    let class_map = &context.config.class_maps[name];
    let mut criteria = Vec::new();
    for (index, criterion) in class_map.criteria.iter().enumerate() {
        let path = format!("class_maps.{name}.criteria[{index}]");
        *left = left.checked_sub(1).ok_or_else(|| {
            let message = format!("more than {MAX_STATEMENTS} match statements, nested class-maps included");
            ConfigError::too_much(path.as_str(), message)
        })?;
        criteria.push(statement(context, criterion, &path, depth, left)?);
    }
    Ok(Matcher { combine: class_map.combine, criteria })
}

fn statement(
    context: &Context<'_>,
    criterion: &Criterion,
    path: &str,
    depth: usize,
    left: &mut usize,
) -> Result<Statement, ConfigError> {
    let missing = |field: &str, what: &str, name: &str| {
        ConfigError::unknown(format!("{path}.{field}"), format!("there is no {what} {name:?}: define it first"))
    };
    let (negate, test) = match criterion {
        Criterion::Any { negate } => (negate, Test::Any),
        Criterion::AccessGroup { name, negate } => {
            let list = context.access_lists.get(name).filter(|_| context.config.access_lists.contains_key(name));
            (negate, Test::AccessGroup(*list.ok_or_else(|| missing("name", "access list", name))?))
        }
        Criterion::Dscp { values, ip_only, negate } => {
            (negate, Test::Dscp { values: bit_set(values, 63, path)?, ip_only: *ip_only })
        }
        Criterion::Precedence { values, ip_only, negate } => {
            (negate, Test::Precedence { values: bit_set(values, 7, path)? as u8, ip_only: *ip_only })
        }
        Criterion::Cos { values, negate } => (negate, Test::Cos { values: bit_set(values, 7, path)? as u8 }),
        Criterion::Vlan { ranges, negate } => (negate, Test::Vlan { ranges: vlans(ranges, path)? }),
        Criterion::Protocol { name, negate } => (negate, Test::Protocol(*name)),
        Criterion::PacketLength { min, max, negate } => (negate, packet_length(*min, *max, path)?),
        Criterion::InputInterface { name, negate } => {
            let port = context.ports.get(name).ok_or_else(|| missing("name", "port", name))?;
            (negate, Test::InputInterface(*port))
        }
        Criterion::InputInterfaces { names } => (&false, one_of(context, names)),
        Criterion::QosGroup { value, negate } => (negate, Test::QosGroup(*value)),
        Criterion::DiscardClass { value, negate } => (negate, discard_class(*value, path)?),
        Criterion::ClassMap { name, negate } => {
            let nested = if name == CLASS_DEFAULT {
                Matcher::any()
            } else if !context.config.class_maps.contains_key(name) {
                return Err(missing("name", "class-map", name));
            } else if depth >= MAX_NESTED_CLASS_MAPS {
                let message = format!(
                    "class-map {name:?} is nested deeper than {MAX_NESTED_CLASS_MAPS} levels, or contains itself"
                );
                return Err(ConfigError::too_much(path, message));
            } else {
                nested_matcher(context, name, depth + 1, left)?
            };
            (negate, Test::Nested(nested))
        }
    };
    Ok(Statement { negate: *negate, test })
}

fn packet_length(min: Option<u32>, max: Option<u32>, path: &str) -> Result<Test, ConfigError> {
    let (least, most) = (min.unwrap_or(0), max.unwrap_or(u32::MAX));
    if least > most || (min.is_none() && max.is_none()) {
        let message =
            format!("{least} to {most} bytes matches no packet or every packet: set min, max or both, in order");
        return Err(ConfigError::new(path, message));
    }
    Ok(Test::PacketLength { min: least, max: most })
}

fn discard_class(value: u8, path: &str) -> Result<Test, ConfigError> {
    if value > 7 {
        let message = format!("{value} is out of range: expected 0 to 7");
        return Err(ConfigError::out_of_range(format!("{path}.value"), message));
    }
    Ok(Test::DiscardClass(value))
}

/// Returns the test for any of several input ports. A switch may have ports without a cable, which receive no frames.
fn one_of(context: &Context<'_>, names: &[String]) -> Test {
    let ports = names.iter().filter_map(|name| context.ports.get(name));
    let criteria = ports.map(|port| Statement { negate: false, test: Test::InputInterface(*port) }).collect();
    Test::Nested(Matcher { combine: MatchMode::Any, criteria })
}

/// Returns the ranges of `match vlan`.
fn vlans(ranges: &[(u16, u16)], path: &str) -> Result<Box<[(u16, u16)]>, ConfigError> {
    if ranges.is_empty() {
        return Err(ConfigError::new(format!("{path}.ranges"), "no VLAN: expected at least one"));
    }
    for (index, (first, last)) in ranges.iter().enumerate() {
        if first > last || !VLANS.contains(first) || !VLANS.contains(last) {
            let message = format!("{first} to {last} is not a range of VLANs: expected 1 to 4094, in order");
            return Err(ConfigError::out_of_range(format!("{path}.ranges[{index}]"), message));
        }
    }
    Ok(ranges.into())
}

fn bit_set(values: &[u8], greatest: u8, path: &str) -> Result<u64, ConfigError> {
    if values.is_empty() {
        return Err(ConfigError::new(format!("{path}.values"), "no value: expected at least one"));
    }
    let mut set = 0;
    for (index, value) in values.iter().enumerate() {
        if *value > greatest {
            let message = format!("{value} is out of range: expected 0 to {greatest}");
            return Err(ConfigError::out_of_range(format!("{path}.values[{index}]"), message));
        }
        set |= 1 << value;
    }
    Ok(set)
}
