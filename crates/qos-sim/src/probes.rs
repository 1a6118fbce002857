//! IP SLA operations of a scenario, checked. Pure.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ip_sla::packet::icmp::{HEADER, TIMESTAMP_LENGTH};
use ip_sla::packet::ECHO_STAMPS;
use ip_sla::process_level::LONGEST_PROCESS_NS;
use ip_sla::{Kind, OperationConfig};
use qos_core::ConfigError;

use crate::network::LONGEST_NS;
use crate::packet::{ip_header, MTU, UDP_HEADER};
use crate::scenario::{Link, LinkEnd, NodeConfig, NodeKind, Scenario};

fn wrong<T>(path: impl Into<String>, message: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::new(path, message))
}

/// Checks the operations of all nodes, process level, and the probes.
///
/// # Errors
/// The path and reason of the first thing that cannot be simulated.
pub(crate) fn check(scenario: &Scenario) -> Result<(), ConfigError> {
    for (name, node) in &scenario.nodes {
        check_node(node, &scenario.links, &format!("nodes.{name}"))?;
    }
    let mut names = BTreeSet::new();
    for (number, probe) in scenario.probes.iter().enumerate() {
        let path = format!("probes[{number}]");
        if !names.insert(&probe.name) {
            return wrong(format!("{path}.name"), format!("found {:?} a second time", probe.name));
        }
        if probe.end_ns <= probe.start_ns || probe.end_ns > LONGEST_NS {
            let message = format!(
                "found {}, expected more than start_ns, {}, and at most {LONGEST_NS}",
                probe.end_ns, probe.start_ns
            );
            return wrong(format!("{path}.end_ns"), message);
        }
        let Some(node) = scenario.nodes.get(&probe.node) else {
            let known: Vec<_> = scenario.nodes.keys().map(String::as_str).collect();
            let message = format!("found {:?}, not a node: there are {}", probe.node, known.join(", "));
            return wrong(format!("{path}.node"), message);
        };
        let operation = node.ip_sla.as_ref().and_then(|sla| sla.operations.get(&probe.operation));
        let message = match operation {
            None => format!("found {}, expected an operation of nodes.{}.ip_sla", probe.operation, probe.node),
            Some(operation) if operation.schedule.is_some() => {
                format!("found {} with a schedule: omit the schedule, the probe starts it", probe.operation)
            }
            Some(_) => continue,
        };
        return wrong(format!("{path}.operation"), message);
    }
    Ok(())
}

fn check_node(node: &NodeConfig, links: &[Link], path: &str) -> Result<(), ConfigError> {
    if let Some(each) = node.process_ns {
        if node.kind == NodeKind::Host {
            return wrong(format!("{path}.process_ns"), "found this key on a host, expected it on routers only");
        }
        if each > LONGEST_PROCESS_NS {
            let message = format!("found {each}, expected at most {LONGEST_PROCESS_NS} (one second)");
            return wrong(format!("{path}.process_ns"), message);
        }
    }
    let Some(sla) = &node.ip_sla else { return Ok(()) };
    let name = path.trim_start_matches("nodes.");
    sla.check().map_err(|(key, message)| ConfigError::new(format!("{path}.ip_sla.{key}"), message))?;
    for (number, operation) in &sla.operations {
        let ends = || links.iter().flat_map(|link| &link.ends).filter(|end| end.node == name);
        let of_vlans = links.iter().flat_map(|link| &link.vlans).flat_map(|vlan| &vlan.ends);
        if let Some(source) = operation.source {
            let own = ends().flat_map(LinkEnd::addresses).any(|(_, address)| address.addr() == source);
            if !own && !of_vlans.map(|end| IpAddr::V4(end.address.addr())).any(|address| address == source) {
                let message = format!("found {source}, expected an address of {name} on a link");
                return wrong(format!("{path}.ip_sla.operations.{number}.source"), message);
            }
        }
        let length = packet_length(operation);
        if length > MTU {
            let message =
                format!("found a packet of {length} bytes, expected at most {MTU}: fragments are not simulated");
            return wrong(format!("{path}.ip_sla.operations.{number}.request_data_size"), message);
        }
    }
    Ok(())
}

/// Returns the number of bytes of the IP packets of an operation.
fn packet_length(operation: &OperationConfig) -> u32 {
    let size = u32::from(operation.size());
    ip_header(operation.target.is_ipv6())
        + match operation.kind {
            Kind::IcmpEcho => (HEADER + ECHO_STAMPS) as u32 + size,
            Kind::IcmpJitter => TIMESTAMP_LENGTH as u32,
            Kind::UdpEcho | Kind::UdpJitter => UDP_HEADER + size,
        }
}
