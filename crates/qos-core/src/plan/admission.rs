//! Plan of the stages ahead of an interface's policy.

use crate::plan::access_groups::AccessGroupsPlan;
use crate::plan::rate_limit::RateLimitPlan;

/// One direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AdmissionPlan {
    pub groups: AccessGroupsPlan,
    pub limits: Vec<RateLimitPlan>,
}

/// Both directions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AdmissionsPlan {
    pub input: AdmissionPlan,
    pub output: AdmissionPlan,
}
