//! Tracks the progress of a retention pass with one target.

use sexton_store::StoreError;
use sexton_store::retention::{Position, PrunedBatch, RetentionTarget};

/// The batch size is divided by this when a batch exceeds the statement's time limit.
const SHRINK_FACTOR: i64 = 10;

/// The state of one target in a pass.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) thing: RetentionTarget,
    /// Where the next batch begins.
    pub(super) position: Position,
    /// The most rows in the next batch.
    pub(super) batch_rows: i64,
    /// The most rows in a batch if no statement takes too long.
    max_batch_rows: i64,
    last: PrunedBatch,
    given_up: bool,
}

impl Turn {
    pub(super) fn new(thing: RetentionTarget, batch_rows: i64) -> Self {
        Self {
            thing,
            position: Position::default(),
            batch_rows,
            max_batch_rows: batch_rows,
            last: PrunedBatch::default(),
            given_up: false,
        }
    }

    /// Records a successful batch: the next may be larger again.
    pub(super) fn record_batch(&mut self, batch: PrunedBatch) {
        self.last = batch;
        self.batch_rows = (self.batch_rows * 2).min(self.max_batch_rows);
    }

    /// Records a failed batch: a smaller one may succeed, or the target is left out of this pass. Returns
    /// whether it is left out.
    pub(super) fn record_failure(&mut self, error: &StoreError) -> bool {
        self.last = PrunedBatch::default();
        if matches!(error, StoreError::TooSlow(_)) && self.shrink_batch() {
            return false;
        }
        tracing::error!(
            retention.thing = self.thing.as_str(),
            "retention leaves out {} for now: {error}",
            self.thing.as_str()
        );
        self.given_up = true;
        true
    }

    /// Makes the next batch smaller, if possible.
    fn shrink_batch(&mut self) -> bool {
        let batch_rows = self.batch_rows;
        self.batch_rows = (batch_rows / SHRINK_FACTOR).max(1);
        self.batch_rows < batch_rows
    }

    /// Returns whether the last batch removed anything.
    pub(super) fn has_removed(&self) -> bool {
        self.last.removed + self.last.stripped > 0
    }

    /// Returns whether nothing is left to remove.
    pub(super) fn is_finished(&self) -> bool {
        self.last.is_last
    }

    /// Returns whether it has another turn.
    pub(super) fn has_further_turn(&self) -> bool {
        !self.given_up && !self.last.is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_that_takes_too_long_becomes_smaller_down_to_a_row_and_large_again() {
        let mut turn = Turn::new(RetentionTarget::Bulks, 1_000);
        for batch_rows in [100, 10, 1] {
            assert!(turn.shrink_batch() && turn.has_further_turn());
            assert_eq!(turn.batch_rows, batch_rows);
        }
        assert!(!turn.shrink_batch());
        for batch_rows in [2, 4, 8] {
            turn.record_batch(PrunedBatch::default());
            assert_eq!(turn.batch_rows, batch_rows);
        }
        (0..20).for_each(|_| turn.record_batch(PrunedBatch::default()));
        assert_eq!(turn.batch_rows, 1_000);
    }

    #[test]
    fn a_thing_that_cannot_be_gone_on_with_has_no_further_turn_and_has_not_ended() {
        let mut turn = Turn::new(RetentionTarget::Audit, 1_000);
        turn.record_batch(PrunedBatch { removed: 1_000, ..PrunedBatch::default() });
        assert!(turn.has_removed() && turn.has_further_turn());
        assert!(turn.record_failure(&StoreError::Schema("no such function".to_owned())));
        assert!(!turn.has_removed() && !turn.has_further_turn() && !turn.is_finished());
    }
}
