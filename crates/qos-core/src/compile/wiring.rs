//! Checks of the wiring.

use crate::config::wiring::{most_early, LinkConfig, LossConfig};
use crate::error::ConfigError;

/// Refuses impossible properties of a link.
pub(crate) fn check(link: &LinkConfig, path: &str) -> Result<(), ConfigError> {
    let wrong = |field: &str, message: String| Err(ConfigError::out_of_range(format!("{path}.{field}"), message));
    if link.rate_bps == 0 {
        return wrong("rate_bps", "0 b/s: set the rate of the link, including framing".to_owned());
    }
    if let Some(jitter) = link.jitter {
        if jitter.ns == 0 {
            return wrong("jitter.ns", "0 ns: set the size of the jitter, or null for none".to_owned());
        }
        if !(0.0..1.0).contains(&jitter.correlation) {
            return wrong("jitter.correlation", format!("{}: expected at least 0 and less than 1", jitter.correlation));
        }
        let early = most_early(&jitter);
        if early > link.delay_ns {
            let message = format!(
                "a frame could be {early} ns earlier than the delay of {} ns: use at least that delay, \
                 or exponential jitter",
                link.delay_ns
            );
            return wrong("jitter.ns", message);
        }
    }
    let probabilities = match link.loss {
        None => vec![],
        Some(LossConfig::Random { probability }) => vec![("probability", probability)],
        Some(LossConfig::GilbertElliott { p, r, loss_good, loss_bad }) => {
            if r == 0.0 && p > 0.0 {
                return wrong("loss.r", "0: the channel would never leave the bad state; use more than 0".to_owned());
            }
            vec![("p", p), ("r", r), ("loss_good", loss_good), ("loss_bad", loss_bad)]
        }
    };
    for (field, value) in probabilities {
        if !(0.0..=1.0).contains(&value) {
            return wrong(&format!("loss.{field}"), format!("{value}: expected a probability from 0 to 1"));
        }
    }
    Ok(())
}
