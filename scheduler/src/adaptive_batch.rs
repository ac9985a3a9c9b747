//! Adapts the number of jobs in one transaction.
//!
//! If the database is too slow for a whole batch within the time limit, repeating the same batch would never
//! succeed: no job would fire, and no incident open. So the size is halved after each batch that was not written in time, and
//! doubled after each one that was.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The size, which persists from round to round.
#[derive(Debug)]
pub(crate) struct AdaptiveBatch {
    max_jobs: usize,
    jobs: AtomicUsize,
}

impl AdaptiveBatch {
    /// Creates it with the largest size.
    pub(crate) const fn with_max(max_jobs: usize) -> Self {
        Self { max_jobs, jobs: AtomicUsize::new(max_jobs) }
    }

    /// Returns the number of jobs for the next transaction.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.load(Ordering::Relaxed)
    }

    /// Records that a batch of `jobs` was written.
    pub(crate) fn grow(&self, jobs: usize) {
        // A batch that was small because few jobs were due shows nothing about larger ones.
        if jobs >= self.jobs() {
            self.jobs.store((jobs * 2).min(self.max_jobs), Ordering::Relaxed);
        }
    }

    /// Records that a batch of `jobs` was not written in time.
    pub(crate) fn shrink(&self, jobs: usize) {
        self.jobs.store((jobs / 2).max(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_takes_too_long_is_halved_until_it_does_not_and_grows_again() {
        let batch = AdaptiveBatch::with_max(1_000);
        batch.shrink(batch.jobs());
        assert_eq!(batch.jobs(), 500);
        batch.shrink(3);
        assert_eq!(batch.jobs(), 1);
        batch.shrink(1);
        assert_eq!(batch.jobs(), 1);
        for size in [2, 4, 8] {
            batch.grow(batch.jobs());
            assert_eq!(batch.jobs(), size);
        }
        batch.grow(3);
        assert_eq!(batch.jobs(), 8, "only three were due");
        for _ in 0..10 {
            batch.grow(batch.jobs());
        }
        assert_eq!(batch.jobs(), 1_000);
    }
}
