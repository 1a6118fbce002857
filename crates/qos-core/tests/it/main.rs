//! The engine's integration tests, one program: each file is a module, `common` what they share.

mod admission;
mod behaviour;
mod classic_queueing;
mod common;
mod dynamic_bucket;
mod error_kinds;
mod examples;
mod fairness;
mod lateness;
mod later_queueing;
mod links;
mod packets;
mod policer_oracle;
mod priority;
mod programs;
mod published_shares;
mod queueing_delay;
mod random_detect;
mod random_detect_idle;
mod rates;
mod shares;
mod srr;
mod switch;
mod switch_config;
mod tokens_lost;
mod tx_ring_delays;
