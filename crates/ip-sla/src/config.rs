//! Configuration `ip sla N` and `ip sla schedule N`, checked against the ranges of the MIB.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::packet::{CONTROL_PORT, JITTER_HEADER};
use crate::responder::MOST_PORTS;

/// All operations of a router, and the settings of its responder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `ip sla responder`.
    pub responder: bool,
    /// Ports on which the responder answers without having been asked by a control message.
    pub responder_ports: Vec<u16>,
    /// Prefixes of the senders that the responder answers; anyone if empty.
    #[schemars(with = "Vec<String>")]
    pub responder_allow: Vec<IpNet>,
    /// Whether the clocks of both ends are synchronised, so that one-way latencies are meaningful.
    pub synchronised: bool,
    /// Operations by number.
    pub operations: BTreeMap<u32, OperationConfig>,
}

/// The type of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One ICMP or ICMPv6 echo request.
    IcmpEcho,
    /// A burst of ICMP timestamp requests, which do not exist in ICMPv6.
    IcmpJitter,
    /// One UDP packet that is returned unchanged.
    UdpEcho,
    /// A burst of UDP packets, stamped by the responder.
    UdpJitter,
}

impl Kind {
    /// Returns whether the operation sends bursts.
    pub fn is_jitter(self) -> bool {
        matches!(self, Kind::IcmpJitter | Kind::UdpJitter)
    }

    /// Returns whether the operation runs over UDP.
    pub fn is_udp(self) -> bool {
        matches!(self, Kind::UdpEcho | Kind::UdpJitter)
    }

    /// Returns the least, default and greatest request data size in bytes; ICMP jitter has none.
    pub fn sizes(self) -> Option<(u16, u16, u16)> {
        match self {
            Kind::IcmpEcho => Some((28, 28, 16384)),
            Kind::IcmpJitter => None,
            Kind::UdpEcho => Some((4, 16, 1500)),
            Kind::UdpJitter => Some((JITTER_HEADER as u16, 32, 1500)),
        }
    }
}

/// One operation. Defaults are those of CISCO-RTTMON-MIB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationConfig {
    /// Type of the sent packets.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Destination, over IPv4 or IPv6.
    pub target: IpAddr,
    /// UDP: destination port.
    pub target_port: Option<u16>,
    /// Source address, one of the router's, of the target's family; chosen by the router if null.
    pub source: Option<IpAddr>,
    /// UDP: source port; any if null.
    pub source_port: Option<u16>,
    /// UDP: whether to ask the responder to listen before each run.
    #[serde(default = "yes")]
    pub control: bool,
    /// Jitter: packets of a burst.
    #[serde(default = "ten")]
    pub packets: u32,
    /// Jitter: time between them.
    #[serde(default = "twenty")]
    pub interval_ms: u32,
    /// Time between the starts of two runs.
    #[serde(default = "minute")]
    pub frequency_s: u32,
    /// Time after which a reply no longer counts.
    #[serde(default = "five_thousand")]
    pub timeout_ms: u32,
    /// Round trips above this are counted.
    #[serde(default = "five_thousand")]
    pub threshold_ms: u32,
    /// Bytes of request data; the default of the type if null.
    pub request_data_size: Option<u16>,
    /// The type-of-service byte, or the traffic class of IPv6.
    #[serde(default)]
    pub tos: u8,
    /// Hours of stored statistics. Jitter operations store two.
    #[serde(default = "two")]
    pub hours: u8,
    /// Distribution buckets. Not for jitter operations.
    #[serde(default = "one")]
    pub buckets: u8,
    /// Width of a bucket.
    #[serde(default = "bucket")]
    pub bucket_ms: u8,
    /// Schedule; the operation never runs if null.
    pub schedule: Option<Schedule>,
}

fn yes() -> bool {
    true
}
fn one() -> u8 {
    1
}
fn two() -> u8 {
    2
}
fn bucket() -> u8 {
    20
}
fn ten() -> u32 {
    10
}
fn twenty() -> u32 {
    20
}
fn minute() -> u32 {
    60
}
fn five_thousand() -> u32 {
    5000
}

impl OperationConfig {
    /// Returns the number of packets of a run.
    pub fn count(&self) -> u32 {
        if self.kind.is_jitter() {
            self.packets
        } else {
            1
        }
    }

    /// Returns the number of bytes of request data.
    pub fn size(&self) -> u16 {
        self.request_data_size.or(self.kind.sizes().map(|s| s.1)).unwrap_or(0)
    }
}

/// `ip sla schedule N`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Lifetime in seconds; unlimited if null.
    pub life_s: Option<u32>,
    /// Start time.
    pub start: Start,
    /// Seconds without running after which the operation and its statistics are deleted; 0: never.
    #[serde(default)]
    pub ageout_s: u32,
    /// Start again every day.
    #[serde(default)]
    pub recurring: bool,
}

/// Start time of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// Immediately when the schedule takes effect.
    Now,
    /// Not before another schedule starts it.
    Pending,
    /// Seconds after the schedule took effect.
    After(u32),
    /// At a time of day, UTC.
    At(TimeOfDay),
}

/// Time of day, optionally of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct TimeOfDay {
    pub hour: u8,
    pub minute: u8,
    pub second: u8,
    /// Month and day of the month, from 1.
    pub date: Option<(u8, u8)>,
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

impl Config {
    /// Checks ranges and combinations.
    ///
    /// # Errors
    /// The path within the configuration, and a message with the found and expected value and the remedy.
    pub fn check(&self) -> Result<(), (String, String)> {
        let mut ports: BTreeMap<u16, u32> = BTreeMap::new();
        if self.responder_ports.len() > MOST_PORTS {
            let text = format!("found {} ports; expected at most {MOST_PORTS}", self.responder_ports.len());
            return Err(("responder_ports".into(), text));
        }
        for (number, operation) in &self.operations {
            operation.check().map_err(|(key, text)| (format!("operations.{number}.{key}"), text))?;
            if let Some(port) = operation.source_port {
                if self.responder && (port == CONTROL_PORT || self.responder_ports.contains(&port)) {
                    let text = format!("port {port} belongs to the responder; give the operation another port");
                    return Err((format!("operations.{number}.source_port"), text));
                }
                if let Some(other) = ports.insert(port, *number) {
                    let text =
                        format!("port {port} is already used by operation {other}; give each operation its own port");
                    return Err((format!("operations.{number}.source_port"), text));
                }
            }
        }
        Ok(())
    }
}

impl OperationConfig {
    fn check(&self) -> Result<(), (String, String)> {
        let within = |key: &str, value: u64, low: u64, high: u64| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err((key.to_owned(), format!("found {value}; expected {low} to {high}")))
            }
        };
        self.check_addresses().map_err(|(key, text)| (key.to_owned(), text))?;
        within("packets", self.packets.into(), 1, 60_000)?;
        within("interval_ms", self.interval_ms.into(), 4, 60_000)?;
        within("frequency_s", self.frequency_s.into(), 1, 604_800)?;
        within("timeout_ms", self.timeout_ms.into(), 0, 604_800_000)?;
        within("threshold_ms", self.threshold_ms.into(), 0, 2_147_483_647)?;
        within("hours", self.hours.into(), 0, 25)?;
        within("buckets", self.buckets.into(), 1, 20)?;
        within("bucket_ms", self.bucket_ms.into(), 1, 100)?;
        if u64::from(self.timeout_ms) > u64::from(self.frequency_s) * 1000 {
            let text = format!("found {} ms; expected at most the frequency, {} s", self.timeout_ms, self.frequency_s);
            return Err(("timeout_ms".into(), text));
        }
        match (self.kind.sizes(), self.request_data_size) {
            (Some((low, _, high)), Some(size)) => {
                within("request_data_size", size.into(), low.into(), high.into())?;
            }
            (None, Some(size)) => {
                let text = format!("found {size}; an ICMP timestamp request has no data: leave it out");
                return Err(("request_data_size".into(), text));
            }
            _ => {}
        }
        if self.kind.is_udp() != self.target_port.is_some() {
            let expected = if self.kind.is_udp() { "the responder's port" } else { "null, because ICMP has no ports" };
            return Err(("target_port".into(), format!("found {:?}; expected {expected}", self.target_port)));
        }
        if !self.kind.is_udp() && self.source_port.is_some() {
            return Err(("source_port".into(), "found a port; expected null, because ICMP has no ports".into()));
        }
        if let Some(Schedule { start: Start::At(at), .. }) = &self.schedule {
            within("schedule.start.at.hour", at.hour.into(), 0, 23)?;
            within("schedule.start.at.minute", at.minute.into(), 0, 59)?;
            within("schedule.start.at.second", at.second.into(), 0, 59)?;
            if let Some((month, day)) = at.date {
                within("schedule.start.at.date[0]", month.into(), 1, 12)?;
                within("schedule.start.at.date[1]", day.into(), 1, 31)?;
            }
        }
        Ok(())
    }

    fn check_addresses(&self) -> Result<(), (&'static str, String)> {
        let target = self.target;
        if self.kind == Kind::IcmpJitter && target.is_ipv6() {
            let text =
                format!("found {target}; expected an IPv4 address, because ICMPv6 has no timestamps: use udp-jitter");
            return Err(("target", text));
        }
        for (key, address) in [("target", Some(target)), ("source", self.source)] {
            // A link-local address would also need an interface.
            if let Some(IpAddr::V6(address)) = address.filter(|each| is_link_local(*each)) {
                return Err((
                    key,
                    format!("found the link-local address {address}, expected an address of wider scope"),
                ));
            }
        }
        if let Some(source) = self.source.filter(|source| source.is_ipv6() != target.is_ipv6()) {
            return Err(("source", format!("found {source}; expected an address of the family of {target}")));
        }
        Ok(())
    }
}
