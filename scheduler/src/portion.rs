//! How many jobs one claim transaction takes.
//!
//! A database that is too slow for a whole batch within the limit would be asked for the same batch
//! over and over, and nothing would ever fire. So a batch that was not written in time is followed by
//! one of half its size, and each one that was by one of twice its size.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Kept from round to round.
#[derive(Debug)]
pub(crate) struct Portion {
    most: usize,
    jobs: AtomicUsize,
}

impl Portion {
    /// Begins with the most.
    pub(crate) const fn up_to(most: usize) -> Self {
        Self { most, jobs: AtomicUsize::new(most) }
    }

    /// Jobs for the next transaction.
    pub(crate) fn jobs(&self) -> usize {
        self.jobs.load(Ordering::Relaxed)
    }

    /// A batch of `jobs` was written.
    pub(crate) fn written(&self, jobs: usize) {
        // One that was small because little was due tells nothing about larger ones.
        if jobs >= self.jobs() {
            self.jobs.store((jobs * 2).min(self.most), Ordering::Relaxed);
        }
    }

    /// A batch of `jobs` was not written in time.
    pub(crate) fn too_much(&self, jobs: usize) {
        self.jobs.store((jobs / 2).max(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_takes_too_long_is_halved_until_it_does_not_and_grows_again() {
        let portion = Portion::up_to(1_000);
        portion.too_much(portion.jobs());
        assert_eq!(portion.jobs(), 500);
        portion.too_much(3);
        assert_eq!(portion.jobs(), 1);
        portion.too_much(1);
        assert_eq!(portion.jobs(), 1);
        for size in [2, 4, 8] {
            portion.written(portion.jobs());
            assert_eq!(portion.jobs(), size);
        }
        portion.written(3);
        assert_eq!(portion.jobs(), 8, "only three were due");
        for _ in 0..10 {
            portion.written(portion.jobs());
        }
        assert_eq!(portion.jobs(), 1_000);
    }
}
