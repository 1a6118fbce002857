//! Tokens in the buckets of a policy.

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// Token buckets of one class of an attached policy-map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct ClassBuckets {
    /// Names of the classes, outermost first. For subinterfaces the first is the name of the subinterface.
    pub path: Vec<String>,
    /// Buckets of the policer.
    pub police: Option<Tokens>,
    /// Bucket of the conditional policer of a priority class, as the first one.
    pub priority: Option<Tokens>,
}

/// Tokens of a policer at one time, in whole bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
pub struct Tokens {
    /// Tokens of the committed bucket.
    pub committed_bytes: u64,
    /// Tokens of the excess bucket, with two rates of the peak bucket; 0 with one bucket.
    pub excess_bytes: u64,
}
