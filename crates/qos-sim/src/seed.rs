//! Seeds: each random process has a separate sequence, so that a change in one part of a scenario does not affect the
//! others.

use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seed from which named seeds are derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seed(u64);

impl Seed {
    pub fn new(seed: u64) -> Seed {
        // The offset basis of FNV-1a.
        Seed(0xcbf2_9ce4_8422_2325).bytes(&seed.to_le_bytes())
    }

    /// Returns the seed of the part with a name.
    #[must_use]
    pub fn with(self, name: &str) -> Seed {
        // The length first, so that ("a", "bc") is not ("ab", "c").
        self.bytes(&(name.len() as u64).to_le_bytes()).bytes(name.as_bytes())
    }

    fn bytes(self, bytes: &[u8]) -> Seed {
        Seed(bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    pub fn number(self) -> u64 {
        self.0
    }

    pub fn random(self) -> Random {
        Random(Xoshiro256PlusPlus::seed_from_u64(self.0))
    }
}

/// Random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Returns a uniform random number from 0 to `most`.
    pub fn up_to(&mut self, most: u64) -> u64 {
        // The high half of a product; its bias is below most / 2⁶⁴.
        ((u128::from(self.0.next_u64()) * (u128::from(most) + 1)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_independent_sequences() {
        let seed = Seed::new(1);
        assert_ne!(seed.with("a").with("bc"), seed.with("ab").with("c"));
        assert_ne!(seed.with("a"), Seed::new(2).with("a"));
        let mut random = seed.random();
        let drawn: Vec<u64> = (0..1000).map(|_| random.up_to(3)).collect();
        for value in 0..4 {
            assert!((200..300).contains(&drawn.iter().filter(|each| **each == value).count()), "{value}");
        }
    }
}
