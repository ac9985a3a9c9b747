//! Adapts the size of a batch to what the database takes in time.
//!
//! If a whole batch takes longer than its time limit, repeating the same batch would never succeed: no job would fire, and no incident
//! open. So the size is halved after each batch that was not written in time, and doubled after each one that was.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The size, which persists from round to round.
#[derive(Debug)]
pub(crate) struct AdaptiveBatch {
    max: usize,
    size: AtomicUsize,
}

impl AdaptiveBatch {
    /// Creates it with the largest size.
    pub(crate) const fn with_max(max: usize) -> Self {
        Self { max, size: AtomicUsize::new(max) }
    }

    /// Returns the most that the next batch may hold.
    pub(crate) fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Records that a batch of `written` was written.
    pub(crate) fn grow(&self, written: usize) {
        // A batch that was small because little was due shows nothing about larger ones.
        if written >= self.size() {
            self.size.store((written * 2).min(self.max), Ordering::Relaxed);
        }
    }

    /// Records that a batch of `refused` was not written in time.
    pub(crate) fn shrink(&self, refused: usize) {
        self.size.store((refused / 2).max(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_takes_too_long_is_halved_until_it_does_not_and_grows_again() {
        let batch = AdaptiveBatch::with_max(1_000);
        batch.shrink(batch.size());
        assert_eq!(batch.size(), 500);
        batch.shrink(3);
        assert_eq!(batch.size(), 1);
        batch.shrink(1);
        assert_eq!(batch.size(), 1);
        for size in [2, 4, 8] {
            batch.grow(batch.size());
            assert_eq!(batch.size(), size);
        }
        batch.grow(3);
        assert_eq!(batch.size(), 8, "only three were due");
        for _ in 0..10 {
            batch.grow(batch.size());
        }
        assert_eq!(batch.size(), 1_000);
    }
}
