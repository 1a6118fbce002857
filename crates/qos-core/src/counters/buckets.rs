//! What the token buckets of a policy hold.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// The token buckets of one class of an attached policy-map.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ClassBuckets {
    /// Names of the classes, outermost first. Of subinterfaces the first is the subinterface's name.
    pub path: Vec<String>,
    /// Those of the policer.
    pub police: Option<Tokens>,
    /// That of the conditional policer of a priority class, in the first bucket.
    pub priority: Option<Tokens>,
}

/// Tokens of a policer at one moment, in whole bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Tokens {
    /// Of the committed bucket.
    pub committed_bytes: u64,
    /// Of the excess bucket, with two rates the peak one; 0 where there is one bucket.
    pub excess_bytes: u64,
}
