//! Adds jitter to pauses, so that replicas do not return at the same instant.

use std::time::Duration;

/// Returns `pause`, changed at random by up to a half to either side.
pub fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + fastrand::f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_varied_by_a_half_to_either_side() {
        let pauses: Vec<_> = (0..1_000).map(|_| jittered(Duration::from_secs(2))).collect();
        assert!(pauses.iter().all(|pause| (1.0..3.0).contains(&pause.as_secs_f64())));
        assert!(pauses.iter().any(|pause| pause.as_secs_f64() < 1.5));
        assert!(pauses.iter().any(|pause| pause.as_secs_f64() > 2.5));
    }
}
