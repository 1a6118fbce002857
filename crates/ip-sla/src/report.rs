//! Report of a router or host on its operations and its responder.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::responder::{Counts, Responder};
use crate::{Nanos, OperationReport, Prober};

/// The reply to `ip_sla`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "IpSlaReport")]
pub struct Report {
    /// Time of the report.
    pub time_ns: u64,
    /// Reports by operation number.
    pub operations: BTreeMap<u32, OperationReport>,
    /// The responder; null if it is off.
    pub responder: Option<ResponderReport>,
}

/// Counters of the responder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResponderReport {
    /// Counters.
    #[serde(flatten)]
    pub counts: Counts,
    /// The latest senders of control messages, newest first.
    pub recent: Vec<RecentSource>,
}

/// A sender of a control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecentSource {
    /// Address.
    pub address: IpAddr,
    /// Time of the report.
    pub time_ns: u64,
}

impl Report {
    /// Returns the report as of `now` for one operation or all, with the stamps of each packet if `samples` is set.
    pub fn new(
        now: Nanos,
        prober: &Prober,
        responder: Option<&Responder>,
        operation: Option<u32>,
        samples: bool,
    ) -> Report {
        let recent = |(address, time_ns): &(IpAddr, Nanos)| RecentSource { address: *address, time_ns: *time_ns };
        Report {
            time_ns: now,
            operations: prober.report(now, operation, samples),
            responder: responder.map(|responder| ResponderReport {
                counts: responder.counts,
                recent: responder.recent().iter().map(recent).collect(),
            }),
        }
    }
}
