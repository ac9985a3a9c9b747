//! The only place of this crate that draws random numbers.

use chrono::{DateTime, Utc};
use sexton_model::id::ExecutionId;
use uuid::{Builder, Uuid};

/// Uniform in [0, 1): the jitter of retries and polls.
pub(crate) fn fraction() -> f64 {
    // The first six bytes of a version 4 UUID are random throughout.
    let bytes = Uuid::new_v4().into_bytes();
    let number = bytes[..6].iter().fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
    number as f64 / (1_u64 << 48) as f64
}

/// A fresh id of an execution claimed at `at`. Retention finds old rows by their ids, so `at` is the
/// instant of the claim by the database's clock, not this host's.
pub(crate) fn execution_id(at: DateTime<Utc>) -> ExecutionId {
    let drawn = Uuid::new_v4().into_bytes();
    let mut random = [0; 10];
    // Around the version and variant bits, which are not random.
    random[..6].copy_from_slice(&drawn[..6]);
    random[6..].copy_from_slice(&drawn[9..13]);
    let millis = u64::try_from(at.timestamp_millis()).unwrap_or(0);
    ExecutionId::new(Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_in_its_range_and_not_always_the_same() {
        let drawn: Vec<f64> = (0..1_000).map(|_| fraction()).collect();
        assert!(drawn.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        assert!(drawn.iter().any(|fraction| *fraction < 0.25));
        assert!(drawn.iter().any(|fraction| *fraction > 0.75));
    }

    #[test]
    fn ids_are_in_the_order_of_their_instants() {
        let at: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
        let later = at + chrono::Duration::milliseconds(1);
        for _ in 0..100 {
            assert!(execution_id(at) < execution_id(later));
            assert_eq!(execution_id(at).get().get_version_num(), 7);
        }
    }
}
