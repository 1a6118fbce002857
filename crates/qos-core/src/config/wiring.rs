//! Wiring: ports and their links, which are hardware, not configuration.

use std::collections::BTreeMap;

#[cfg(feature = "serde")]
use schemars::JsonSchema;
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

#[cfg(feature = "serde")]
use crate::config::json::from_json;
#[cfg(feature = "serde")]
use crate::error::ConfigError;
use crate::time::Duration;
use crate::wire::framing::Framing;

/// Wiring of the ports: hardware, given once when the engine is created.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct PortsConfig {
    /// Ports by their IOS name, e.g. `FastEthernet0/1`.
    pub ports: BTreeMap<String, PortConfig>,
    /// Seed of the flow hash of fair queueing.
    #[cfg_attr(feature = "serde", serde(default))]
    pub seed: u64,
}

impl PortsConfig {
    /// Returns a wiring without ports.
    pub fn new() -> PortsConfig {
        PortsConfig::default()
    }

    /// Adds a port, by its IOS name.
    #[must_use]
    pub fn port(mut self, name: impl Into<String>, port: PortConfig) -> PortsConfig {
        self.ports.insert(name.into(), port);
        self
    }

    /// Parses the wiring from JSON text.
    ///
    /// # Errors
    /// The path and reason if the text is not JSON or not of this shape.
    #[cfg(feature = "serde")]
    pub fn from_json(text: &str) -> Result<PortsConfig, ConfigError> {
        from_json(text)
    }
}

/// Wiring of one port.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct PortConfig {
    /// Interface that leads to the router's IP stack. Two ports that name each other's `wire` here form a line: frames
    /// from one link leave on the other, after the rate, delay, jitter and loss of the first. The engine only carries
    /// it.
    pub inside: String,
    /// Interface at the end of the link. The engine only carries it.
    pub wire: String,
    /// Link.
    pub link: LinkConfig,
    /// The other end already serialises its frames on the link's clock (it is an engine too), so arrival times are used
    /// unchanged.
    pub paced_by_peer: bool,
}

impl PortConfig {
    /// Returns a port at the end of a link whose other end is not an engine.
    pub fn new(link: LinkConfig) -> PortConfig {
        PortConfig { inside: String::new(), wire: String::new(), link, paced_by_peer: false }
    }
}

/// Link.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct LinkConfig {
    /// Bits per second on the wire, including framing.
    pub rate_bps: u64,
    /// Framing of frames on the wire.
    pub framing: Framing,
    /// Propagation delay in nanoseconds, in each direction.
    #[cfg_attr(feature = "serde", serde(default))]
    pub delay_ns: u64,
    /// Variation of the delay; null for none.
    pub jitter: Option<JitterConfig>,
    /// Loss of frames; null for none.
    pub loss: Option<LossConfig>,
    /// Seed of jitter and loss. Each direction of the port draws a separate sequence; give each port another seed.
    #[cfg_attr(feature = "serde", serde(default))]
    pub seed: u64,
}

impl LinkConfig {
    /// Returns a link with a rate in bits per second, including framing, without delay, jitter or loss.
    pub fn new(rate_bps: u64, framing: Framing) -> LinkConfig {
        LinkConfig { rate_bps, framing, delay_ns: 0, jitter: None, loss: None, seed: 0 }
    }

    /// Sets a propagation delay, in each direction.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> LinkConfig {
        self.delay_ns = delay.0;
        self
    }
}

/// Variation of the delay of a link (jitter).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(deny_unknown_fields))]
pub struct JitterConfig {
    /// Distribution of the delays.
    pub distribution: JitterDistribution,
    /// Size in nanoseconds; its meaning depends on the distribution.
    pub ns: u64,
    /// Correlation of each frame with the previous one, of the normal sequence behind the delays (a Gaussian copula):
    /// at least 0, less than 1.
    #[cfg_attr(feature = "serde", serde(default))]
    pub correlation: f64,
    /// Whether frames can overtake one another. If not, a faster frame waits for the one before it, which increases the
    /// mean delay if frames are closer together than the jitter.
    #[cfg_attr(feature = "serde", serde(default))]
    pub reorder: bool,
}

/// Distribution of delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema), serde(rename_all = "snake_case"))]
pub enum JitterDistribution {
    /// Uniform from delay - size to delay + size.
    Uniform,
    /// Normal around the delay, with the size as standard deviation; cut at
    /// [`crate::config::wiring::NORMAL_JITTER_CUT`] of them.
    Normal,
    /// Exponential: the delay is the minimum, and the size the mean of the added time.
    Exponential,
}

/// Loss of frames on a link.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize, JsonSchema))]
#[cfg_attr(feature = "serde", serde(tag = "model", rename_all = "snake_case", deny_unknown_fields))]
pub enum LossConfig {
    /// Each frame with the same probability.
    Random {
        /// Probability from 0 to 1.
        probability: f64,
    },
    /// Bursts: a channel with a good and a bad state (Gilbert 1960, Elliott 1963; the letters are those of Haßlinger
    /// and Hohlfeld, MMB 2008, and of Linux' netem). In the long run it is bad for p/(p + r) of the frames, for 1/r
    /// consecutive frames.
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

/// Standard deviations at which normally distributed jitter is cut; one frame in 16 000 is beyond.
pub const NORMAL_JITTER_CUT: f64 = 4.0;

pub(crate) fn most_early(config: &JitterConfig) -> u64 {
    match config.distribution {
        JitterDistribution::Uniform => config.ns,
        JitterDistribution::Normal => config.ns.saturating_mul(NORMAL_JITTER_CUT as u64),
        JitterDistribution::Exponential => 0,
    }
}
