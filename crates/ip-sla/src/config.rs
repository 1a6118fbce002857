//! The configuration, as `docs/control-protocol.md` describes it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// IP SLA of a router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IpSlaConfig {
    /// `ip sla responder`.
    #[serde(default)]
    pub responder: bool,
    /// Operations by their number.
    #[serde(default)]
    pub operations: BTreeMap<u32, OperationConfig>,
}

/// One operation with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationConfig {
    /// What is sent.
    #[serde(rename = "type")]
    pub kind: Kind,
    /// Whom to ask.
    pub destination: Ipv4Addr,
    /// Source address; null for that of the interface by which the probe leaves.
    #[serde(default)]
    pub source: Option<Ipv4Addr>,
    /// UDP operations: the target's port.
    #[serde(default)]
    pub destination_port: Option<u16>,
    /// UDP operations: our port; null for any.
    #[serde(default)]
    pub source_port: Option<u16>,
    /// UDP operations: ask the responder to listen before each run.
    #[serde(default = "yes")]
    pub control: bool,
    /// Jitter operations: packets of a run, 1 to 60000.
    pub num_packets: u32,
    /// Jitter operations: time between them, 4 to 60000 ms.
    pub interval_ms: u32,
    /// Time between the starts of runs, 1 to 604800 s.
    pub frequency_s: u32,
    /// Time to wait for a reply, ms.
    pub timeout_ms: u32,
    /// Round-trip time above which a reply counts as over threshold, ms.
    pub threshold_ms: u32,
    /// Bytes that the operation's packet carries beside its own fields; icmp-jitter has a fixed size.
    pub request_data_size: u32,
    /// The whole TOS byte.
    #[serde(default)]
    pub tos: u8,
    /// Hours of aggregated statistics that are kept, 0 to 25.
    pub hours_kept: u32,
    /// Buckets of the distribution of round-trip times, 1 to 20 (echo operations).
    pub distributions_kept: u32,
    /// Width of a bucket, 1 to 100 ms.
    pub distribution_interval_ms: u32,
    /// When it runs; null for never.
    #[serde(default)]
    pub schedule: Option<Schedule>,
}

fn yes() -> bool {
    true
}

/// Type of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One ICMP echo request a run.
    IcmpEcho,
    /// ICMP timestamp requests in a row.
    IcmpJitter,
    /// One UDP datagram a run.
    UdpEcho,
    /// UDP datagrams in a row.
    UdpJitter,
}

impl Kind {
    /// Whether a run sends several packets and looks at their spacing.
    pub fn jitter(self) -> bool {
        matches!(self, Kind::IcmpJitter | Kind::UdpJitter)
    }

    /// Whether it uses UDP.
    pub fn udp(self) -> bool {
        matches!(self, Kind::UdpEcho | Kind::UdpJitter)
    }
}

/// `ip sla schedule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// When it starts.
    pub start: Start,
    /// How long it runs, seconds; null for ever.
    #[serde(default)]
    pub life_s: Option<u32>,
    /// Starts again every 24 hours.
    #[serde(default)]
    pub recurring: bool,
}

/// When an operation starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// When the configuration takes effect.
    Now,
    /// Not before it is scheduled otherwise.
    Pending,
    /// At this second of the Unix epoch.
    At(u64),
}

/// Why an operation cannot be used: the field, and what is wrong with it.
pub type Fault = (&'static str, String);

impl OperationConfig {
    /// Packets of a run.
    pub fn packets(&self) -> u32 {
        if self.kind.jitter() {
            self.num_packets
        } else {
            1
        }
    }

    /// Checks the ranges (CISCO-RTTMON-MIB).
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn check(&self) -> Result<(), Fault> {
        let within = |field: &'static str, value: u32, least: u32, greatest: u32| {
            if (least..=greatest).contains(&value) {
                Ok(())
            } else {
                Err((field, format!("{value}: give {least} to {greatest}")))
            }
        };
        within("frequency_s", self.frequency_s, 1, 604_800)?;
        within("timeout_ms", self.timeout_ms, 0, 604_800_000)?;
        if u64::from(self.timeout_ms) > u64::from(self.frequency_s) * 1_000 {
            return Err((
                "timeout_ms",
                format!("{} ms is longer than the frequency of {} s", self.timeout_ms, self.frequency_s),
            ));
        }
        within("hours_kept", self.hours_kept, 0, 25)?;
        within("distributions_kept", self.distributions_kept, 1, 20)?;
        within("distribution_interval_ms", self.distribution_interval_ms, 1, 100)?;
        if self.kind.jitter() {
            within("num_packets", self.num_packets, 1, 60_000)?;
            within("interval_ms", self.interval_ms, 4, 60_000)?;
        }
        match self.kind {
            Kind::IcmpEcho => within("request_data_size", self.request_data_size, 0, 16_384)?,
            Kind::UdpEcho => within("request_data_size", self.request_data_size, 4, 1_500)?,
            Kind::UdpJitter => within("request_data_size", self.request_data_size, 16, 1_500)?,
            Kind::IcmpJitter => {}
        }
        if self.kind.udp() && self.destination_port.is_none_or(|port| port == 0) {
            return Err(("destination_port", "a UDP operation needs the target's port, 1 to 65535".to_owned()));
        }
        Ok(())
    }
}
