//! Checks of access lists.

use crate::config::classification::{AccessListEntry, PortMatch, PortOperator};
use crate::error::ConfigError;
use crate::wire::ip::protocol;

/// Checks a list.
pub(crate) fn check_list(name: &str, entries: &[AccessListEntry]) -> Result<(), ConfigError> {
    for (index, entry) in entries.iter().enumerate() {
        check_families(entry, &entries[0])
            .and_then(|()| check_entry(entry))
            .map_err(|error| error.under(&format!("access_lists.{name}[{index}]")))?;
    }
    Ok(())
}

/// Checks that all addresses of an entry are of the family of the list's first entry. Paths are relative to it.
fn check_families(entry: &AccessListEntry, first: &AccessListEntry) -> Result<(), ConfigError> {
    let ipv6 = first.source.address.is_ipv6();
    let addresses = [
        ("source.address", entry.source.address),
        ("source.wildcard", entry.source.wildcard),
        ("destination.address", entry.destination.address),
        ("destination.wildcard", entry.destination.wildcard),
    ];
    match addresses.into_iter().find(|(_, address)| address.is_ipv6() != ipv6) {
        Some((path, address)) => {
            let family = if ipv6 { "IPv6" } else { "IPv4" };
            let message = format!(
                "{address} is not an {family} address like the first one in the list: use one list per address family"
            );
            Err(ConfigError::new(path, message))
        }
        None => Ok(()),
    }
}

fn check_entry(entry: &AccessListEntry) -> Result<(), ConfigError> {
    let ranged = |field: &str, value: Option<u8>, greatest: u8| match value {
        Some(value) if value > greatest => {
            Err(ConfigError::out_of_range(field, format!("{value} is out of range: expected 0 to {greatest}")))
        }
        _ => Ok(()),
    };
    ranged("dscp", entry.dscp, 63)?;
    ranged("precedence", entry.precedence, 7)?;
    let needs = |field: &str, asked: bool, protocols: &[u8], names: &str| {
        if asked && !entry.protocol.is_some_and(|protocol| protocols.contains(&protocol)) {
            return Err(ConfigError::new(
                field,
                format!("only {names} packets have this field: set the protocol accordingly"),
            ));
        }
        Ok(())
    };
    let with_ports = [protocol::TCP, protocol::UDP];
    needs("source_port", entry.source_port.is_some(), &with_ports, "TCP (6) and UDP (17)")?;
    needs("destination_port", entry.destination_port.is_some(), &with_ports, "TCP (6) and UDP (17)")?;
    needs("established", entry.established, &[protocol::TCP], "TCP (6)")?;
    let (icmp, name) =
        if entry.source.address.is_ipv6() { (protocol::ICMPV6, "ICMPv6 (58)") } else { (protocol::ICMP, "ICMP (1)") };
    needs("icmp_type", entry.icmp_type.is_some(), &[icmp], name)?;
    needs("icmp_code", entry.icmp_code.is_some(), &[icmp], name)?;
    if entry.icmp_code.is_some() && entry.icmp_type.is_none() {
        return Err(ConfigError::new("icmp_code", "a code needs a type: set icmp_type too"));
    }
    if entry.fragments && (entry.source_port.is_some() || entry.destination_port.is_some()) {
        return Err(ConfigError::new(
            "fragments",
            "fragments other than the first have no ports: remove one of the two",
        ));
    }
    check_ports("source_port", entry.source_port.as_ref())?;
    check_ports("destination_port", entry.destination_port.as_ref())
}

fn check_ports(field: &str, ports: Option<&PortMatch>) -> Result<(), ConfigError> {
    let Some(PortMatch { op, ports }) = ports else { return Ok(()) };
    let fits = match op {
        PortOperator::Eq | PortOperator::Neq => !ports.is_empty(),
        PortOperator::Gt | PortOperator::Lt => ports.len() == 1,
        PortOperator::Range => ports.len() == 2 && ports[0] <= ports[1],
    };
    if fits {
        return Ok(());
    }
    let message =
        format!("{ports:?} does not fit {op:?}: eq and neq take ports, gt and lt one port, range two ports in order");
    Err(ConfigError::new(format!("{field}.ports"), message))
}
