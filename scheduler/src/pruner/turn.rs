//! How far a pass of retention is with one kind of thing.

use sexton_store::StoreError;
use sexton_store::retention::{Position, PrunedBatch, RetentionTarget};

/// By this a portion becomes smaller that the database cannot do in the time of a statement.
const SMALLER: i64 = 10;

/// One kind of thing in a pass.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) thing: RetentionTarget,
    /// Where the next portion begins.
    pub(super) position: Position,
    /// How many rows it has at most.
    pub(super) most: i64,
    /// The same, where nothing takes too long.
    whole: i64,
    last: PrunedBatch,
    given_up: bool,
}

impl Turn {
    pub(super) fn new(thing: RetentionTarget, most: i64) -> Self {
        Self {
            thing,
            position: Position::default(),
            most,
            whole: most,
            last: PrunedBatch::default(),
            given_up: false,
        }
    }

    /// The portion that was asked for was done: the next may be larger again.
    pub(super) fn did(&mut self, portion: PrunedBatch) {
        self.last = portion;
        self.most = (self.most * 2).min(self.whole);
    }

    /// The portion that was asked for failed: a smaller one may do, or the thing is given up for this pass. Returns
    /// whether it is.
    pub(super) fn failed(&mut self, error: &StoreError) -> bool {
        self.last = PrunedBatch::default();
        if matches!(error, StoreError::TooSlow(_)) && self.shrinks() {
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
    fn shrinks(&mut self) -> bool {
        let most = self.most;
        self.most = (most / SMALLER).max(1);
        self.most < most
    }

    /// Whether the last portion removed anything.
    pub(super) fn removed(&self) -> bool {
        self.last.removed + self.last.stripped > 0
    }

    /// Whether nothing is left that could go.
    pub(super) fn has_ended(&self) -> bool {
        self.last.is_last
    }

    /// Whether it has another turn.
    pub(super) fn goes_on(&self) -> bool {
        !self.given_up && !self.last.is_last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portion_that_takes_too_long_becomes_smaller_down_to_a_row_and_large_again() {
        let mut turn = Turn::new(RetentionTarget::Bulks, 1_000);
        for most in [100, 10, 1] {
            assert!(turn.shrinks() && turn.goes_on());
            assert_eq!(turn.most, most);
        }
        assert!(!turn.shrinks());
        for most in [2, 4, 8] {
            turn.did(PrunedBatch::default());
            assert_eq!(turn.most, most);
        }
        (0..20).for_each(|_| turn.did(PrunedBatch::default()));
        assert_eq!(turn.most, 1_000);
    }

    #[test]
    fn a_thing_that_cannot_be_gone_on_with_has_no_further_turn_and_has_not_ended() {
        let mut turn = Turn::new(RetentionTarget::Audit, 1_000);
        turn.did(PrunedBatch { removed: 1_000, ..PrunedBatch::default() });
        assert!(turn.removed() && turn.goes_on());
        assert!(turn.failed(&StoreError::Schema("no such function".to_owned())));
        assert!(!turn.removed() && !turn.goes_on() && !turn.has_ended());
    }
}
