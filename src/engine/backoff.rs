//! The wait before a retry: exponential backoff with a cap and jitter; deterministic for a given seed.

use std::time::Duration;

/// Computes growing waits.
#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    random: fastrand::Rng,
}

impl Backoff {
    pub(crate) fn new(first: Duration, longest: Duration, seed: u64) -> Self {
        Self {
            first,
            longest,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    /// The wait after `failures` consecutive failures. Jitter of up to 20 % keeps many loops from retrying at the same
    /// instant.
    pub(crate) fn after(&mut self, failures: u64) -> Duration {
        let doublings = u32::try_from(failures.saturating_sub(1))
            .unwrap_or(u32::MAX)
            .min(31);
        let wait = self.first.saturating_mul(1 << doublings).min(self.longest);
        wait.mul_f64(0.8 + 0.4 * self.random.f64()).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_cap_within_jitter() {
        let (first, longest) = (Duration::from_secs(2), Duration::from_secs(300));
        let mut backoff = Backoff::new(first, longest, 7);
        for (failures, ideal) in [(1, 2.0), (2, 4.0), (3, 8.0), (9, 300.0), (u64::MAX, 300.0)] {
            let wait = backoff.after(failures).as_secs_f64();
            assert!(
                (ideal * 0.8..=ideal * 1.2).contains(&wait) && wait <= 300.0,
                "{failures}: {wait}"
            );
        }
    }

    #[test]
    fn same_seed_gives_same_waits() {
        let series = |seed| {
            let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60), seed);
            (1..6).map(|failures| backoff.after(failures)).collect::<Vec<_>>()
        };
        assert_eq!(series(3), series(3));
        assert_ne!(series(3), series(4));
    }
}
