//! Bulks: one operator action on many executions, carried out batch by batch.
//!
//! This module decides what a bulk may do next: which states follow one another, how many items its pace allows, and
//! whether its canary has passed. All its state is in the bulk's row, so any scheduler can continue where the
//! previous one stopped.

use chrono::{DateTime, Utc};
use serde::Deserialize;

use crate::rate::Rate;
use crate::state::{Cause, State, next};
use crate::text_enum::text_enum;

/// Maximum number of executions in one batch.
pub const MAX_BATCH_EXECUTIONS: u32 = 500;
/// Maximum number of executions in a canary.
pub const MAX_CANARY_EXECUTIONS: u32 = 1_000;

/// The action on each execution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum BulkKind {
    /// Run it again.
    Requeue,
    /// Give it up.
    Discard,
    /// Take its discard back.
    Restore,
    /// End it before it runs, or while it runs.
    Cancel,
}

text_enum!(BulkKind {
    Requeue => "requeue",
    Discard => "discard",
    Restore => "restore",
    Cancel => "cancel",
});

impl BulkKind {
    /// Returns the transition in the table of states.
    pub const fn cause(self) -> Cause {
        match self {
            Self::Requeue => Cause::Requeue,
            Self::Discard => Cause::Discard,
            Self::Restore => Cause::Restore,
            Self::Cancel => Cause::Cancel,
        }
    }

    /// Returns whether an execution in this state can be acted on.
    pub fn acts_on(self, state: State) -> bool {
        next(state, self.cause()).is_some()
    }

    /// Returns whether an execution is acted on only at the attempt number that it had when it was selected: a later
    /// failure is another one. A cancel ends the execution, whichever attempt it has come to.
    pub const fn needs_same_attempt(self) -> bool {
        !matches!(self, Self::Cancel)
    }

    /// Returns the participle for messages.
    pub const fn done(self) -> &'static str {
        match self {
            Self::Requeue => "requeued",
            Self::Discard => "discarded",
            Self::Restore => "restored",
            Self::Cancel => "cancelled",
        }
    }
}

/// The state of a bulk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BulkState {
    /// Its items are being written.
    Preparing,
    /// Schedulers carry it out.
    Running,
    /// Its canary has failed; an operator decides.
    Paused,
    /// An operator has stopped it; it can be resumed.
    Stopped,
    /// No item is left.
    Done,
}

text_enum!(BulkState {
    Preparing => "preparing",
    Running => "running",
    Paused => "paused",
    Stopped => "stopped",
    Done => "done",
});

impl BulkState {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Preparing, Self::Running, Self::Paused, Self::Stopped, Self::Done];

    /// Returns whether schedulers have work for it.
    pub const fn is_alive(self) -> bool {
        matches!(self, Self::Preparing | Self::Running)
    }

    /// Returns the state after an operator's stop; `None`: it cannot be stopped.
    pub const fn stopped(self) -> Option<Self> {
        match self {
            Self::Preparing | Self::Running | Self::Paused => Some(Self::Stopped),
            Self::Stopped | Self::Done => None,
        }
    }

    /// Returns the state after an operator's resume; `None`: it cannot be resumed.
    pub const fn resumed(self, prepared: bool) -> Option<Self> {
        match self {
            Self::Paused | Self::Stopped if prepared => Some(Self::Running),
            Self::Paused | Self::Stopped => Some(Self::Preparing),
            Self::Preparing | Self::Running | Self::Done => None,
        }
    }
}

/// The progress of a pace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// The rate.
    pub rate: Rate,
    /// When it began.
    pub since: DateTime<Utc>,
    /// Number of items begun since then.
    pub begun: u64,
}

/// Returns how many may begin at `now`, at most [`MAX_BATCH_EXECUTIONS`], and when the next after those may. At no
/// instant have more begun than the rate allows since the beginning; after an absence of the schedulers at most one
/// batch is made up for.
pub fn allowance(pace: Pace, now: DateTime<Utc>) -> (u32, Option<DateTime<Utc>>) {
    let count = backlog(pace, now).min(u64::from(MAX_BATCH_EXECUTIONS)) as u32;
    (count, pace.rate.due(pace.since, pace.begun + u64::from(count)))
}

/// Returns the pace after a batch in which this many items began. If more had been due than one batch takes, it
/// counts from `now`, so that time without a scheduler does not come back as a flood. The number begun does not
/// matter: items that a canary or locked rows held back are not made up for either.
pub fn advance_pace(pace: Pace, begun: u32, now: DateTime<Utc>) -> Pace {
    if backlog(pace, now) > u64::from(MAX_BATCH_EXECUTIONS) {
        // The next is due one interval after this instant, as after any that has just begun.
        Pace { since: now, begun: u64::from(begun.min(1)), ..pace }
    } else {
        Pace { begun: pace.begun + u64::from(begun), ..pace }
    }
}

/// Returns the pace after its canary has passed: if any item was due, it counts from `now`, so that items that became
/// due while the canary ran are not made up for.
pub fn reset_pace(pace: Pace, now: DateTime<Utc>) -> Pace {
    if backlog(pace, now) > 0 { Pace { since: now, begun: 0, ..pace } } else { pace }
}

/// Returns how many are due and have not begun.
fn backlog(pace: Pace, now: DateTime<Utc>) -> u64 {
    pace.rate.due_by(pace.since, now).saturating_sub(pace.begun)
}

/// Counts of a canary's executions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CanaryCounts {
    /// Done, and pending or running.
    pub under_way: u64,
    /// Failed again, discarded after that, or cancelled.
    pub failed: u64,
    /// Succeeded.
    pub succeeded: u64,
}

/// The verdict on a canary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CanaryVerdict {
    /// This many more items may begin.
    More(u32),
    /// It has not ended.
    Wait,
    /// All succeeded: the other items may follow.
    Passed,
    /// Some failed again: the bulk pauses.
    Failed,
}

/// Judges a canary of `size` items by their counts; refused items do not count. One failure is enough, even while
/// others are under way. `left`: whether any item waits.
pub const fn judge_canary(size: u32, counts: CanaryCounts, left: bool) -> CanaryVerdict {
    let done = counts.under_way + counts.failed + counts.succeeded;
    if counts.failed > 0 {
        CanaryVerdict::Failed
    } else if done < size as u64 && left {
        CanaryVerdict::More((size as u64 - done) as u32)
    } else if counts.under_way > 0 {
        CanaryVerdict::Wait
    } else {
        CanaryVerdict::Passed
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::milliseconds(millis)
    }

    #[test]
    fn each_kind_is_a_move_of_the_table_from_the_states_that_it_acts_on() {
        for (kind, from, to) in [
            (BulkKind::Requeue, &[State::Failed][..], State::Pending),
            (BulkKind::Discard, &[State::Failed], State::Discarded),
            (BulkKind::Restore, &[State::Discarded], State::Failed),
            (
                BulkKind::Cancel,
                &[State::Pending, State::Running, State::Retrying],
                State::Cancelled,
            ),
        ] {
            for state in State::ALL {
                assert_eq!(kind.acts_on(state), from.contains(&state), "{kind:?} {state:?}");
                if kind.acts_on(state) {
                    assert_eq!(next(state, kind.cause()), Some(to), "{kind:?} {state:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_done_stays_done_and_the_rest_can_be_stopped_and_resumed() {
        for state in BulkState::ALL {
            let ended = state == BulkState::Done;
            assert_eq!(state.stopped().is_none() && state.resumed(true).is_none(), ended);
            if let Some(stopped) = state.stopped() {
                assert!(stopped.resumed(true).is_some_and(BulkState::is_alive));
                assert_eq!(stopped.resumed(false), Some(BulkState::Preparing));
            }
        }
    }

    #[test]
    fn a_canary_waits_for_all_and_one_failure_is_enough() {
        let counts = |under_way, failed, succeeded| CanaryCounts { under_way, failed, succeeded };
        assert_eq!(judge_canary(10, counts(0, 0, 0), true), CanaryVerdict::More(10));
        assert_eq!(judge_canary(10, counts(4, 0, 0), true), CanaryVerdict::More(6));
        assert_eq!(
            judge_canary(10, counts(4, 0, 0), false),
            CanaryVerdict::Wait,
            "there are no more"
        );
        assert_eq!(judge_canary(10, counts(1, 0, 9), true), CanaryVerdict::Wait);
        assert_eq!(judge_canary(10, counts(0, 0, 10), true), CanaryVerdict::Passed);
        assert_eq!(judge_canary(10, counts(9, 1, 0), true), CanaryVerdict::Failed);
        assert_eq!(
            judge_canary(10, counts(0, 0, 0), false),
            CanaryVerdict::Passed,
            "all were refused"
        );
    }

    #[test]
    fn an_absence_is_not_made_up_for_by_a_flood() {
        let pace = Pace { rate: "50/s".parse().unwrap(), since: at(0), begun: 0 };
        let hour = 3_600_000;
        let (count, _) = allowance(pace, at(hour));
        assert_eq!(count, MAX_BATCH_EXECUTIONS);
        let pace = advance_pace(pace, count, at(hour));
        let (count, next) = allowance(pace, at(hour));
        assert_eq!((count, next), (0, Some(at(hour + 20))));
        assert_eq!(allowance(pace, at(hour + 1_000)).0, 50);
    }

    #[test]
    fn what_was_held_back_is_not_made_up_for_by_a_flood_either() {
        let hour = 3_600_000;
        let pace = Pace { rate: "50/s".parse().unwrap(), since: at(0), begun: 10 };
        // One row of the batch was locked, or all of them.
        for (begun, next) in [(MAX_BATCH_EXECUTIONS - 1, 0), (1, 0), (0, 1)] {
            let pace = advance_pace(pace, begun, at(hour));
            assert_eq!(allowance(pace, at(hour)).0, next, "after {begun}");
            assert_eq!(allowance(pace, at(hour + 1_000)).0, 50 + next, "after {begun}");
        }
        let passed = reset_pace(pace, at(hour));
        assert_eq!((allowance(passed, at(hour)).0, allowance(passed, at(hour + 1_000)).0), (1, 51));
        // A pace without a due item gains none.
        let slow = Pace { rate: "1/h".parse().unwrap(), since: at(0), begun: 1 };
        assert_eq!(reset_pace(slow, at(1_000)), slow);
    }

    proptest! {
        /// For any instants of the batches: never more than the rate allows, and no item is lost.
        #[test]
        fn a_pace_is_kept_and_reached(
            count in 1_u32..=200,
            steps in prop::collection::vec(1_i64..=900, 1..60),
        ) {
            let rate: Rate = format!("{count}/s").parse().unwrap();
            let mut pace = Pace { rate, since: at(0), begun: 0 };
            let (mut now, mut begun) = (0, 0_u64);
            for step in steps {
                now += step;
                let (more, next) = allowance(pace, at(now));
                prop_assert!(next.is_none_or(|next| more == MAX_BATCH_EXECUTIONS || next > at(now)));
                pace = advance_pace(pace, more, at(now));
                begun += u64::from(more);
                prop_assert!(begun <= now as u64 * u64::from(count) / 1_000 + 1);
                prop_assert_eq!(begun, now as u64 * u64::from(count) / 1_000 + 1);
            }
        }

        /// For any delays: no stretch of time has more items than the rate allows and one batch.
        #[test]
        fn no_stretch_of_time_begins_more_than_its_rate_and_a_batch(
            count in 1_u32..=5_000,
            steps in prop::collection::vec((0_i64..=4_000, 0_u32..=MAX_BATCH_EXECUTIONS, 0_u8..20), 1..40),
        ) {
            let rate: Rate = format!("{count}/s").parse().unwrap();
            let mut pace = Pace { rate, since: at(0), begun: 0 };
            let (mut now, mut batches) = (0, Vec::new());
            for (step, limit, canary) in steps {
                now += step;
                if canary == 0 {
                    pace = reset_pace(pace, at(now));
                }
                let begun = allowance(pace, at(now)).0.min(limit);
                pace = advance_pace(pace, begun, at(now));
                batches.push((now, u64::from(begun)));
            }
            for (index, (from, _)) in batches.iter().enumerate() {
                let mut begun = 0;
                for (until, more) in &batches[index..] {
                    begun += more;
                    let due = (until - from) as u64 * u64::from(count) / 1_000;
                    prop_assert!(begun <= due + u64::from(MAX_BATCH_EXECUTIONS) + 2, "{begun} from {from} to {until}");
                }
            }
        }
    }
}
