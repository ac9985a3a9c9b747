//! The dispositions of firings by planners and operators, computed once by the real functions.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::cron::Dst;
use sexton_model::job::{Misfire, MisfirePolicy, Overlap, Schedule};
use sexton_model::plan::overlap::UnderWay;
use sexton_model::plan::{Plan, PlanInput, Timetable, plan, release};
use sexton_model::time_jump;
use sexton_model::zone::Zone;

use super::FIRINGS;

const HOURS: usize = FIRINGS + 1;

/// The dispositions of some firings.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Outcome {
    /// Executions.
    pub(super) executed: u8,
    /// Gaps.
    pub(super) gaps: u8,
    /// Set aside.
    pub(super) held: u8,
    /// The new cursor.
    pub(super) next: u8,
}

/// All results.
#[derive(Clone, Debug)]
pub(super) struct Plans {
    /// By cursor, hour, and whether catch-up is held.
    planned: [[[Outcome; 2]; HOURS]; HOURS],
    /// By first and last firing, and the hour at which they were set aside.
    released: [[[Outcome; HOURS]; FIRINGS]; FIRINGS],
}

/// Returns the instant of an hour; `firing` number `n` is nominal at hour `n + 1`.
fn at(hour: usize) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::hours(500_000 + hour as i64)
}

/// Returns the firing that is nominal at `instant`.
fn firing(instant: DateTime<Utc>) -> usize {
    ((instant - at(1)).num_hours() as usize).min(FIRINGS)
}

/// Returns whether the time from `seen` to `now` is a jump, where an hour is the longest absence.
pub(super) fn is_jump(seen: u8, now: u8) -> bool {
    let limit = Duration::from_hours(1);
    time_jump::detect_jump(Some(at(seen.into())), at(now.into()), limit).is_some()
}

impl Plans {
    /// Computes all results, for jobs of this policy.
    ///
    /// # Panics
    ///
    /// Never: an hourly schedule is a timetable.
    pub(super) fn new(policy: MisfirePolicy) -> Self {
        let hourly = Schedule::Every { period: Duration::from_hours(1), phase: Duration::ZERO };
        #[expect(clippy::expect_used, reason = "a constant")]
        let timetable =
            Timetable::new("a", &hourly, Zone::UTC, Dst::default(), None).expect("hourly");
        let due = |cursor: usize, held| PlanInput {
            timetable: &timetable,
            overlap: Overlap::Allow,
            misfire: Misfire { policy, ..Misfire::default() },
            next_fire_at: at(cursor + 1),
            under_way: UnderWay::default(),
            held,
        };
        let mut planned = [[[Outcome::default(); 2]; HOURS]; HOURS];
        let mut released = [[[Outcome::default(); HOURS]; FIRINGS]; FIRINGS];
        #[expect(clippy::needless_range_loop, reason = "the indices are instants")]
        for cursor in 0..FIRINGS {
            for hour in cursor + 1..HOURS {
                for held in [false, true] {
                    let plan = plan(&due(cursor, held), at(hour));
                    planned[cursor][hour][usize::from(held)] = Outcome::of(&plan);
                }
                for last in cursor..hour - 1 {
                    let plan = release(&due(cursor, false), 0, at(last + 1), at(hour));
                    released[cursor][last][hour] = Outcome::of(&plan);
                }
            }
        }
        Self { planned, released }
    }

    /// Returns a planner's decision about a job whose cursor is due.
    pub(super) fn planned(&self, cursor: u8, now: u8, held: bool) -> Outcome {
        self.planned[usize::from(cursor)][usize::from(now)][usize::from(held)]
    }

    /// Returns a release's decision about all held firings of a job, run by run.
    pub(super) fn released(&self, held_at: [u8; FIRINGS]) -> Outcome {
        let mut all = Outcome::default();
        let mut first = 0;
        while first < FIRINGS {
            let hour = held_at[first];
            let run = held_at[first..].iter().take_while(|at| **at == hour).count();
            if hour > 0 {
                let one = self.released[first][first + run - 1][usize::from(hour)];
                all.executed |= one.executed;
                all.gaps |= one.gaps;
            }
            first += run;
        }
        all
    }
}

impl Outcome {
    fn of(plan: &Plan) -> Self {
        let bits = |from, to| (from..=to).fold(0, |all: u8, firing: usize| all | (1_u8 << firing));
        let run = |first, last| bits(firing(first), firing(last));
        let rows = plan.firings.iter().map(|one| run(one.scheduled_for, one.scheduled_for));
        Self {
            executed: rows.fold(0, |all, bit| all | bit),
            gaps: plan.gaps.iter().fold(0, |all, gap| all | run(gap.first, gap.last)),
            held: plan.held.as_ref().map_or(0, |gap| run(gap.first, gap.last)),
            next: plan.next_fire_at.map_or(FIRINGS, firing) as u8,
        }
    }
}
