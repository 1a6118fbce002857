//! Effects of a link on its frames: propagation delay, jitter and loss.
//!
//! Reproducible: two generators seeded from the link's configuration, one for jitter and one for loss, are used once
//! for each frame in the order of the wire (loss by bursts: once or twice). The same seed and the same number of frames
//! give the same results, regardless of the frames and their times; and a change of the loss leaves the jitter as it
//! was. The functions are those of `libm`, so all machines agree.

use rand_distr::{Distribution, StandardNormal, StandardUniform};
use rand_xoshiro::rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::config::wiring::{most_early, JitterConfig, JitterDistribution, LinkConfig, LossConfig, NORMAL_JITTER_CUT};
use crate::frame::port_number::Side;
use crate::time::{Duration, Time};

/// Effects of one direction of a link on its frames.
#[derive(Clone, Debug)]
pub(crate) struct Impairment {
    delay: Duration,
    /// The minimum time of a frame.
    least: Duration,
    /// Varying parts of the impairment; none if there are none.
    varying: Option<Box<Varying>>,
}

/// Varying parts of the impairment.
#[derive(Clone, Debug)]
struct Varying {
    jitter: Option<Jitter>,
    loss: Option<Loss>,
}

/// Fate of a frame: its arrival time, or the time at which it would have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    pub arrives: Time,
    pub lost: bool,
}

impl Impairment {
    /// Returns the impairment of the direction of `link` that leads to `side` of the port.
    pub fn of(link: &LinkConfig, side: Side) -> Impairment {
        // Each jump goes 2¹²⁸ numbers ahead, so that no two sequences of a port meet.
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(link.seed);
        if side == Side::Inside {
            generator.jump();
            generator.jump();
        }
        let loss = link.loss.map(|config| Loss::new(config, generator.clone()));
        generator.jump();
        let jitter = link.jitter.map(|config| Jitter::new(config, generator));
        Impairment::new(Duration(link.delay_ns), jitter, loss)
    }

    fn new(delay: Duration, jitter: Option<Jitter>, loss: Option<Loss>) -> Impairment {
        let early = jitter.as_ref().map_or(0, Jitter::most_early);
        let varies = jitter.is_some() || loss.is_some();
        Impairment {
            delay,
            least: Duration(delay.0.saturating_sub(early)),
            varying: varies.then(|| Box::new(Varying { jitter, loss })),
        }
    }

    /// Returns the first half of a link between two engines, computed by the sender: half of the minimum delay. The
    /// sender then need not pass on a frame exactly in time.
    pub fn first_half(link: &LinkConfig) -> Impairment {
        Impairment::new(Duration(Self::of(link, Side::Wire).least.0 / 2), None, None)
    }

    /// Returns the second half of such a link, computed by the receiver, so that the kernel's wake-up time is part of
    /// the delay and does not add to it.
    pub fn second_half(link: &LinkConfig) -> Impairment {
        let whole = Self::of(link, Side::Inside);
        let (jitter, loss) = whole.varying.map_or((None, None), |varying| (varying.jitter, varying.loss));
        Impairment::new(Duration(whole.delay.0 - Self::first_half(link).delay.0), jitter, loss)
    }

    /// Returns the minimum time of a frame.
    #[inline]
    pub fn least(&self) -> Duration {
        self.least
    }

    /// Returns the time of each frame; `None` if it varies.
    pub fn always(&self) -> Option<Duration> {
        let varies = self.varying.as_ref().is_some_and(|varying| varying.jitter.is_some());
        (!varies).then_some(self.delay)
    }

    /// Passes on a frame whose last bit is sent at `sent`. Frames come in order.
    #[inline]
    pub fn pass(&mut self, sent: Time) -> Fate {
        let punctual = sent + self.delay;
        match &mut self.varying {
            None => Fate { arrives: punctual, lost: false },
            Some(varying) => varying.pass(punctual),
        }
    }
}

impl Varying {
    /// Returns the fate of a frame that would arrive at `punctual`.
    fn pass(&mut self, punctual: Time) -> Fate {
        let lost = self.loss.as_mut().is_some_and(Loss::next);
        let arrives = self.jitter.as_mut().map_or(punctual, |jitter| jitter.next(punctual, lost));
        Fate { arrives, lost }
    }
}

/// Delays that vary.
#[derive(Clone, Debug)]
struct Jitter {
    config: JitterConfig,
    generator: Xoshiro256PlusPlus,
    /// The last value of the standard normal sequence behind the delays.
    normal: Option<f64>,
    /// Arrival of the last frame, for frames that may not overtake it.
    last: Time,
}

impl Jitter {
    fn new(config: JitterConfig, generator: Xoshiro256PlusPlus) -> Jitter {
        Jitter { config, generator, normal: None, last: Time(0) }
    }

    /// Returns the maximum time by which a frame can be earlier than the delay, in nanoseconds.
    fn most_early(&self) -> u64 {
        most_early(&self.config)
    }

    fn next(&mut self, punctual: Time, lost: bool) -> Time {
        let offset = self.offset();
        let arrives = if offset < 0 {
            Time(punctual.0.saturating_sub(offset.unsigned_abs()))
        } else {
            punctual + Duration(offset.unsigned_abs())
        };
        if self.config.reorder {
            return arrives;
        }
        let arrives = arrives.max(self.last);
        if !lost {
            self.last = arrives;
        }
        arrives
    }

    /// Returns the next offset from the delay. A normal sequence with correlated neighbours is transformed by its
    /// distribution function to a uniform one, and from there to the configured distribution, which is unaffected by
    /// the correlation.
    fn offset(&mut self) -> i64 {
        let fresh: f64 = StandardNormal.sample(&mut self.generator);
        let rho = self.config.correlation;
        let z = self.normal.map_or(fresh, |before| rho * before + (1.0 - rho * rho).sqrt() * fresh);
        self.normal = Some(z);
        let scale = self.config.ns as f64;
        let offset = match self.config.distribution {
            JitterDistribution::Uniform => scale * (1.0 - 2.0 * upper_tail(z)),
            JitterDistribution::Normal => scale * z.clamp(-NORMAL_JITTER_CUT, NORMAL_JITTER_CUT),
            JitterDistribution::Exponential => -scale * libm::log(upper_tail(z)),
        };
        offset.round() as i64
    }
}

/// Returns the probability that a standard normal variable is above `z`.
fn upper_tail(z: f64) -> f64 {
    libm::erfc(z * std::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// Loss pattern of frames.
#[derive(Clone, Debug)]
struct Loss {
    config: LossConfig,
    generator: Xoshiro256PlusPlus,
    /// Gilbert-Elliott: the channel is in the bad state. It starts in the good one.
    bad: bool,
}

impl Loss {
    fn new(config: LossConfig, generator: Xoshiro256PlusPlus) -> Loss {
        Loss { config, generator, bad: false }
    }

    fn chance(&mut self, probability: f64) -> bool {
        let value: f64 = StandardUniform.sample(&mut self.generator);
        value < probability
    }

    /// Returns whether the next frame is lost. The state of the bursty channel changes before each frame.
    fn next(&mut self) -> bool {
        match self.config {
            LossConfig::Random { probability } => self.chance(probability),
            LossConfig::GilbertElliott { p, r, loss_good, loss_bad } => {
                self.bad = if self.bad { !self.chance(r) } else { self.chance(p) };
                self.chance(if self.bad { loss_bad } else { loss_good })
            }
        }
    }
}
