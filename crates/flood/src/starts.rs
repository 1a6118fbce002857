//! Random starts of the streams of a flow, such as the users of a page. The generator and the simulator share this
//! rule, so that the same seed overlaps the same pages in every kind of lab.

/// Starts of `streams` streams after that of their flow, in nanoseconds: each is uniformly random from 0 to `spread`.
pub fn starts(seed: u64, streams: usize, spread: u64) -> impl Iterator<Item = u64> {
    let mut random = fastrand::Rng::with_seed(seed);
    (0..streams).map(move |_| random.u64(0..=spread))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_within_the_spread_and_follow_from_the_seed() {
        let drawn: Vec<u64> = starts(7, 1000, 3).collect();
        for value in 0..4 {
            assert!((200..300).contains(&drawn.iter().filter(|each| **each == value).count()), "{value}");
        }
        // A flow with more streams has the starts of one with fewer, and some more.
        assert_eq!(starts(7, 10, 3).collect::<Vec<_>>(), drawn[..10]);
        assert_ne!(starts(8, 10, u64::MAX).next(), starts(7, 10, u64::MAX).next());
        assert!(starts(7, 3, 0).all(|start| start == 0));
    }
}
