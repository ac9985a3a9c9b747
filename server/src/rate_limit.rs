//! Limits how often something is done for one key: pings of a check, requests of a token, log-ins from an address.
//!
//! Each key has a bucket that holds a burst and fills evenly. It is this process's memory alone: every replica limits for itself, and a
//! restart begins with full buckets.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Buckets that are kept. A full bucket is as good as none; if all have been used lately, they begin anew.
const MAX_BUCKETS: usize = 200_000;

/// The buckets of all keys.
#[derive(Debug)]
pub struct RateLimit {
    burst: u32,
    interval: Duration,
    hasher: RandomState,
    buckets: Mutex<HashMap<u64, Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    permits: f64,
    at: Instant,
}

impl RateLimit {
    /// Allows each key `permits` in `period`, and `burst` at once.
    pub fn new(permits: u32, period: Duration, burst: u32) -> Self {
        let interval = period / permits.max(1);
        Self { burst, interval, hasher: RandomState::new(), buckets: Mutex::default() }
    }

    /// Takes a permit out of the key's bucket.
    ///
    /// # Errors
    ///
    /// The time until it holds one again.
    pub fn take(&self, key: &impl Hash, now: Instant) -> Result<(), Duration> {
        let key = self.hasher.hash_one(key);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_BUCKETS && !buckets.contains_key(&key) {
            buckets.retain(|_, bucket| self.filled(*bucket, now).permits < f64::from(self.burst));
            if buckets.len() >= MAX_BUCKETS / 2 {
                buckets.clear();
            }
        }
        let full = Bucket { permits: f64::from(self.burst), at: now };
        let bucket = buckets.entry(key).or_insert(full);
        *bucket = self.filled(*bucket, now);
        if bucket.permits >= 1.0 {
            bucket.permits -= 1.0;
            return Ok(());
        }
        Err(self.interval.mul_f64(1.0 - bucket.permits))
    }

    /// Puts a permit back that turned out not to be needed.
    pub fn give_back(&self, key: &impl Hash) {
        let key = self.hasher.hash_one(key);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(&key) {
            bucket.permits = (bucket.permits + 1.0).min(f64::from(self.burst));
        }
    }

    fn filled(&self, bucket: Bucket, now: Instant) -> Bucket {
        let passed = now.saturating_duration_since(bucket.at);
        let permits = bucket.permits + passed.div_duration_f64(self.interval);
        Bucket { permits: permits.min(f64::from(self.burst)), at: now }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn a_burst_passes_and_then_one_after_the_other() {
        let limit = RateLimit::new(60, MINUTE, 60);
        let now = Instant::now();
        assert!((0..60).all(|_| limit.take(&1, now).is_ok()));
        let wait = limit.take(&1, now).unwrap_err();
        assert!(wait <= Duration::from_secs(1), "{wait:?}");
        assert_eq!(limit.take(&1, now + Duration::from_secs(1)), Ok(()));
        assert!(limit.take(&1, now + Duration::from_secs(1)).is_err());
        // Another key has a bucket of its own.
        assert_eq!(limit.take(&2, now), Ok(()));
    }

    #[test]
    fn a_permit_that_was_not_needed_is_put_back_and_no_more() {
        let limit = RateLimit::new(2, MINUTE, 2);
        let now = Instant::now();
        limit.take(&1, now).unwrap();
        limit.give_back(&1);
        limit.give_back(&1);
        limit.give_back(&2);
        assert!((0..2).all(|_| limit.take(&1, now).is_ok()));
        assert_eq!(limit.take(&1, now), Err(Duration::from_secs(30)));
    }

    #[test]
    fn buckets_are_bounded() {
        let limit = RateLimit::new(1, MINUTE, 1);
        let now = Instant::now();
        for number in 0..2 * MAX_BUCKETS {
            limit.take(&number, now).unwrap();
        }
        assert!(limit.buckets.lock().unwrap().len() <= MAX_BUCKETS);
    }
}
