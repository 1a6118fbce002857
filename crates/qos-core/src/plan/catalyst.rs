//! The plan of a Catalyst's port.

use crate::config::catalyst::{ExceedAction, Trust};
use crate::config::catalyst_constants::{QUEUES, THRESHOLDS};
use crate::time::Rate;

/// A queue and one of its thresholds, both from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueAt {
    pub queue: u8,
    pub threshold: u8,
}

/// Plan of a port of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CatalystPlan {
    pub ingress: IngressPlan,
    pub egress: EgressPlan,
}

/// Source of the internal DSCP of a port's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Untrusted,
    Trust(Trust),
    /// The port's class of service, regardless of the frame's.
    Override,
    /// The input policy's classes.
    Policy,
}

/// Action of a class of an input policy on the code point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Neither `set` nor `trust`: code point 0 and class of service 0.
    Zero,
    Trust(Trust),
    Dscp(u8),
    /// The port's class of service, regardless of the frame's.
    PortCos,
}

/// Action of a class of an input policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassAction {
    pub mark: Mark,
    /// Index of its policer; classes with an aggregate policer share one.
    pub policer: Option<usize>,
}

/// A policer of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PolicerPlan {
    pub rate_bps: u64,
    pub burst_bytes: u64,
    pub exceed: ExceedAction,
}

/// Plan of the input side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IngressPlan {
    pub qos: bool,
    pub source: Source,
    pub default_cos: u8,
    pub cos_dscp: [u8; 8],
    pub ip_prec_dscp: [u8; 8],
    pub policed_dscp: [u8; 64],
    pub mutation: Option<[u8; 64]>,
    pub cos_queue: [QueueAt; 8],
    pub dscp_queue: [QueueAt; 64],
    /// Markings by class of the input policy.
    pub actions: Vec<ClassAction>,
    pub policers: Vec<PolicerPlan>,
}

/// Limits of an egress queue in cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueLimits {
    pub reserved: u32,
    /// Weighted tail drop thresholds; the last is the queue's maximum.
    pub thresholds: [u32; THRESHOLDS],
}

impl QueueLimits {
    pub fn maximum(&self) -> u32 {
        self.thresholds[THRESHOLDS - 1]
    }
}

/// Plan of the output side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EgressPlan {
    pub qos: bool,
    pub rewrite: bool,
    pub dscp_cos: [u8; 64],
    pub cos_queue: [QueueAt; 8],
    pub dscp_queue: [QueueAt; 64],
    pub limits: [QueueLimits; QUEUES],
    pub shape: [u32; QUEUES],
    pub share: [u32; QUEUES],
    pub priority_queue: bool,
    /// The port's physical speed.
    pub speed: Rate,
    /// Hundredths of a per cent of the speed that the port may use, and the displayed value.
    pub operational: u32,
    pub shown_operational: u32,
    /// ASIC whose memory the port uses.
    pub asic: usize,
}

impl EgressPlan {
    /// Returns the rate at which frames follow each other.
    pub fn operational_rate(&self) -> Rate {
        let operational = match u64::from(self.operational) {
            limit @ ..10_000 if mistaken!(LimitLow) => limit * 67 / 70,
            limit @ ..10_000 if mistaken!(LimitHigh) => limit * 73 / 70,
            limit => limit,
        };
        Rate((self.speed.0 * operational / 10_000).max(1))
    }
}
