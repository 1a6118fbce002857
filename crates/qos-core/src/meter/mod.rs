//! Meters: token buckets and policers, average rates, waiting times.

pub(crate) mod access_rate;
pub(crate) mod dynamic_bucket;
pub(crate) mod load_average;
pub(crate) mod policer;
pub(crate) mod queueing_delay;
pub(crate) mod token_bucket;
pub(crate) mod token_loss;
pub(crate) mod tokens;

pub use crate::plan::police::DynamicPlan;
pub use access_rate::AccessRate;
pub use dynamic_bucket::DynamicBucket;
pub use token_bucket::TokenBuckets;
pub use tokens::Colour;
