//! The wiring: ports and their links, which is hardware rather than configuration.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

#[cfg(feature = "serde")]
use crate::config::json::from_json;
#[cfg(feature = "serde")]
use crate::error::ConfigError;
use crate::time::Duration;
use crate::wire::framing::Framing;

/// The wiring of the ports: hardware, given once when the engine is made.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PortsConfig {
    /// Ports by their IOS name, e.g. `FastEthernet0/1`.
    pub ports: BTreeMap<String, PortConfig>,
    /// Seed of the flow hash of fair queueing.
    #[cfg_attr(feature = "serde", serde(default))]
    pub seed: u64,
}

impl PortsConfig {
    /// No ports yet.
    pub fn new() -> PortsConfig {
        PortsConfig::default()
    }

    /// With a port, by its IOS name.
    #[must_use]
    pub fn port(mut self, name: impl Into<String>, port: PortConfig) -> PortsConfig {
        self.ports.insert(name.into(), port);
        self
    }

    /// Reads the wiring from JSON text.
    ///
    /// # Errors
    /// The path and reason when the text is not JSON or not of this shape.
    #[cfg(feature = "serde")]
    pub fn from_json(text: &str) -> Result<PortsConfig, ConfigError> {
        from_json(text)
    }
}

/// The wiring of one port.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct PortConfig {
    /// The interface that leads to the router's own IP stack. Two ports of which each names the other's `wire` here are
    /// a line: what comes from the one link leaves on the other, after the first one's rate, delay, jitter and loss.
    /// The engine only carries it.
    pub inside: String,
    /// The interface that is the end of the link. The engine only carries it.
    pub wire: String,
    /// The link.
    pub link: LinkConfig,
    /// The other end serialises its frames on the link's clock already (it is an engine too), so that arrival times are
    /// used as they are.
    pub paced_by_peer: bool,
}

impl PortConfig {
    /// A port at the end of a link whose other end is no engine.
    pub fn new(link: LinkConfig) -> PortConfig {
        PortConfig { inside: String::new(), wire: String::new(), link, paced_by_peer: false }
    }
}

/// A link.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct LinkConfig {
    /// Bits per second on the wire, framing included.
    pub rate_bps: u64,
    /// How frames are framed on the wire.
    pub framing: Framing,
    /// Propagation delay in nanoseconds, each way.
    #[cfg_attr(feature = "serde", serde(default))]
    pub delay_ns: u64,
    /// How much the delay varies; null for not at all.
    #[cfg_attr(feature = "serde", serde(default))]
    pub jitter: Option<JitterConfig>,
    /// Which frames are lost on the way; null for none.
    #[cfg_attr(feature = "serde", serde(default))]
    pub loss: Option<LossConfig>,
    /// Seed of jitter and loss. Each direction of the port draws numbers of its own; give each port another seed.
    #[cfg_attr(feature = "serde", serde(default))]
    pub seed: u64,
}

impl LinkConfig {
    /// A link of so many bits per second, framing included, without delay, jitter or loss.
    pub fn new(rate_bps: u64, framing: Framing) -> LinkConfig {
        LinkConfig { rate_bps, framing, delay_ns: 0, jitter: None, loss: None, seed: 0 }
    }

    /// With a propagation delay, each way.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> LinkConfig {
        self.delay_ns = delay.0;
        self
    }
}

/// Jitter: variation of the delay of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
pub struct JitterConfig {
    /// How the delays are distributed.
    pub distribution: JitterDistribution,
    /// Size in nanoseconds: what the distribution makes of it.
    pub ns: u64,
    /// Correlation of each frame with the one before, of the normal sequence behind the delays (a Gaussian copula): at
    /// least 0, less than 1.
    #[cfg_attr(feature = "serde", serde(default))]
    pub correlation: f64,
    /// Frames may overtake one another. Where they may not, one that would waits for the one before it, which makes the
    /// mean delay longer when frames come closer together than the jitter.
    #[cfg_attr(feature = "serde", serde(default))]
    pub reorder: bool,
}

/// How delays are distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum JitterDistribution {
    /// Evenly from delay - size to delay + size.
    Uniform,
    /// Normally around the delay, the size being the standard deviation; cut at
    /// [`crate::config::wiring::NORMAL_JITTER_CUT`] of them.
    Normal,
    /// The delay is the least, and the size the mean of what is added.
    Exponential,
}

/// Which frames are lost on a link.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "serde", serde(tag = "model", rename_all = "snake_case", deny_unknown_fields))]
pub enum LossConfig {
    /// Each with the same probability.
    Random {
        /// From 0 to 1.
        probability: f64,
    },
    /// Bursts: a channel with a good and a bad state (Gilbert 1960, Elliott 1963; the letters are those of Haßlinger
    /// and Hohlfeld, MMB 2008, and of Linux' netem). In the long run p/(p + r) of the frames find it bad, for 1/r
    /// frames on end.
    GilbertElliott {
        /// Probability of going from good to bad before a frame.
        p: f64,
        /// Probability of going from bad to good before a frame.
        r: f64,
        /// Probability of loss in the good state (1-k of the sources).
        #[cfg_attr(feature = "serde", serde(default))]
        loss_good: f64,
        /// Probability of loss in the bad state (1-h of the sources).
        #[cfg_attr(feature = "serde", serde(default = "certain"))]
        loss_bad: f64,
    },
}

#[cfg(feature = "serde")]
fn certain() -> f64 {
    1.0
}

/// Standard deviations to which normally distributed jitter is cut; one frame in 16 000 is beyond.
pub const NORMAL_JITTER_CUT: f64 = 4.0;

pub(crate) fn most_early(config: &JitterConfig) -> u64 {
    match config.distribution {
        JitterDistribution::Uniform => config.ns,
        JitterDistribution::Normal => config.ns.saturating_mul(NORMAL_JITTER_CUT as u64),
        JitterDistribution::Exponential => 0,
    }
}
