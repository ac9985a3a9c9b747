//! How far a pass of retention is with one kind of thing.

use sexton_store::StoreError;
use sexton_store::retention::{Position, PrunedBatch, RetentionTarget};

/// By this a portion becomes smaller that the database cannot do in the time of a statement.
const SHRINK_FACTOR: i64 = 10;

/// One kind of thing in a pass.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) thing: RetentionTarget,
    /// Where the next portion begins.
    pub(super) position: Position,
    /// How many rows it has at most.
    pub(super) batch_rows: i64,
    /// The same, where nothing takes too long.
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

    /// The portion that was asked for was done: the next may be larger again.
    pub(super) fn record_batch(&mut self, portion: PrunedBatch) {
        self.last = portion;
        self.batch_rows = (self.batch_rows * 2).min(self.max_batch_rows);
    }

    /// The portion that was asked for failed: a smaller one may do, or the thing is given up for this pass. Returns
    /// whether it is.
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

    /// Makes the next portion smaller, if that can be.
    fn shrink_batch(&mut self) -> bool {
        let batch_rows = self.batch_rows;
        self.batch_rows = (batch_rows / SHRINK_FACTOR).max(1);
        self.batch_rows < batch_rows
    }

    /// Whether the last portion removed anything.
    pub(super) fn has_removed(&self) -> bool {
        self.last.removed + self.last.stripped > 0
    }

    /// Whether nothing is left that could go.
    pub(super) fn is_finished(&self) -> bool {
        self.last.is_last
    }

    /// Whether it has another turn.
    pub(super) fn has_further_turn(&self) -> bool {
        !self.given_up && !self.last.is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_that_takes_too_long_becomes_smaller_down_to_a_row_and_large_again() {
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
