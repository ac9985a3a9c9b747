//! Limits the pings of one check.
//!
//! Each check has a bucket that holds the pings of a minute and fills evenly. It is this process's memory alone: every replica limits for itself,
//! and a restart begins with full buckets.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::address::Addressee;

/// Buckets that are kept. A full bucket is as good as none; if all have been used lately, they begin anew.
const MAX_BUCKETS: usize = 200_000;
const MINUTE: Duration = Duration::from_mins(1);

/// The buckets of all checks.
#[derive(Debug)]
pub struct RateLimit {
    per_minute: u32,
    hasher: RandomState,
    buckets: Mutex<HashMap<u64, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    pings: f64,
    at: Instant,
}

impl RateLimit {
    /// Allows each check `per_minute` pings in a minute.
    pub fn new(per_minute: u32) -> Self {
        Self { per_minute, hasher: RandomState::new(), buckets: Mutex::default() }
    }

    /// Takes a ping out of the check's bucket.
    ///
    /// # Errors
    ///
    /// The time until it holds one again.
    pub fn take(&self, addressee: &Addressee, now: Instant) -> Result<(), Duration> {
        let key = match addressee {
            Addressee::Id(id) => self.hasher.hash_one(id),
            Addressee::Name { key, name } => self.hasher.hash_one((key, name)),
        };
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(&key) {
            buckets
                .retain(|_, bucket| self.filled(*bucket, now).pings < f64::from(self.per_minute));
            if buckets.len() >= MAX_BUCKETS / 2 {
                buckets.clear();
            }
        }
        let full = Bucket { pings: f64::from(self.per_minute), at: now };
        let bucket = buckets.entry(key).or_insert(full);
        *bucket = self.filled(*bucket, now);
        if bucket.pings >= 1.0 {
            bucket.pings -= 1.0;
            return Ok(());
        }
        Err(MINUTE.mul_f64((1.0 - bucket.pings) / f64::from(self.per_minute)))
    }

    fn filled(&self, bucket: Bucket, now: Instant) -> Bucket {
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64() / MINUTE.as_secs_f64();
        let limit = f64::from(self.per_minute);
        Bucket { pings: (bucket.pings + passed * limit).min(limit), at: now }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_check_s_pings_of_a_minute_pass_and_then_one_after_the_other() {
        let limit = RateLimit::new(60);
        let check = Addressee::Id(Uuid::from_u128(1));
        let now = Instant::now();
        assert!((0..60).all(|_| limit.take(&check, now).is_ok()));
        let wait = limit.take(&check, now).unwrap_err();
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
        assert_eq!(limit.take(&check, now + Duration::from_secs(1)), Ok(()));
        assert!(limit.take(&check, now + Duration::from_secs(1)).is_err());
        // Another check has a bucket of its own.
        assert_eq!(limit.take(&Addressee::Id(Uuid::from_u128(2)), now), Ok(()));
    }

    #[test]
    fn buckets_are_bounded() {
        let limit = RateLimit::new(1);
        let now = Instant::now();
        for number in 0..2 * MAX_BUCKETS as u128 {
            limit.take(&Addressee::Id(Uuid::from_u128(number)), now).unwrap();
        }
        assert!(limit.buckets.lock().unwrap().len() <= MAX_BUCKETS);
    }
}
