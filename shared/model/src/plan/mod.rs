//! The planner's decision: what becomes of the firings of a job that are due.
//!
//! # Guarantees
//!
//! * Every firing between the job's cursor and `now` gets exactly one disposition: it runs, it is
//!   recorded as skipped with the reason, or it is counted in a gap. Gaps count exactly.
//! * The new cursor lies strictly after `now`, so that planning again at once plans nothing; except
//!   after more firings than one call looks at ([`MAX_LOOKED_AT`]). Then the plan holds gaps for the
//!   oldest and the cursor stands on the first firing that was not decided; the planner calls again
//!   until the cursor is past `now`. At one `now`, the calls together decide what a single one over
//!   all firings would have: which of the late ones run is left to the call that sees the newest.
//!   If `now` moves on between the calls, a firing can be late that was on time before, no more.
//! * On time, that is at most [`Misfire::ON_TIME`] late, means run, whatever the misfire policy.
//!
//! # What it does not do
//!
//! It does not know what has been claimed: two planners with one cursor make the same plan, with the
//! same execution keys, and the unique row lets each firing through once. It does not judge paused
//! jobs; [`pass_over`] accounts for what passed meanwhile.

mod timetable;

#[cfg(test)]
mod tests;

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::job::{Misfire, MisfirePolicy, Overlap, Schedule, text_enum};
use crate::overlap::{UnderWay, Waits};

pub use timetable::{Timetable, TimetableError, first_firing};

/// The most firings of one job that one call looks at.
pub const MAX_LOOKED_AT: usize = 10_000;

/// The most firings that can be on time at once: one a second, both ends included.
const MAX_ON_TIME: usize = Misfire::ON_TIME.as_secs() as usize + 1;

/// A job whose cursor may have been reached.
#[derive(Clone, Copy, Debug)]
pub struct Due<'a> {
    /// The job's schedule, ready.
    pub timetable: &'a Timetable,
    /// The job's overlap policy.
    pub overlap: Overlap,
    /// The job's misfire policy. Its limit counts up to [`Misfire::MAX_LIMIT`].
    pub misfire: Misfire,
    /// The cursor: the first firing without a disposition. Taken as a firing as it stands.
    pub next_fire_at: DateTime<Utc>,
    /// What of the job has not ended.
    pub under_way: UnderWay,
}

/// What becomes of a firing that gets a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// It is claimed.
    Run,
    /// It is claimed, and its ticket is held back until the job is free.
    Waits(Waits),
    /// Its row is `skipped` from the beginning.
    Skipped(SkipReason),
}

/// Why a firing was skipped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SkipReason {
    /// An earlier execution of the job had not ended.
    Overlap,
    /// A newer firing, claimed at the same time, took its place.
    Replaced,
}

text_enum!(SkipReason { Overlap => "overlap", Replaced => "replaced" });

/// A firing that gets a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Firing {
    /// The nominal time.
    pub scheduled_for: DateTime<Utc>,
    /// The execution key.
    pub key: String,
    /// What becomes of it.
    pub disposition: Disposition,
}

/// A run of firings that were not executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The oldest.
    pub first: DateTime<Utc>,
    /// The newest.
    pub last: DateTime<Utc>,
    /// How many, both included.
    pub count: u32,
    /// Why.
    pub reason: GapReason,
}

/// Why firings were not executed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GapReason {
    /// Noticed later than the job's misfire window allows.
    OutsideWindow,
    /// Noticed late, and the policy is to skip those.
    MisfireSkip,
    /// Noticed late; one newer firing ran for all of them.
    Coalesced,
    /// Noticed late; newer ones used up the limit of the catch-up.
    OverLimit,
    /// The job was paused.
    Paused,
}

text_enum!(GapReason {
    OutsideWindow => "outside_window",
    MisfireSkip => "misfire_skip",
    Coalesced => "coalesced",
    OverLimit => "over_limit",
    Paused => "paused",
});

/// What one call decided.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// Firings that get a row, oldest first.
    pub firings: Vec<Firing>,
    /// Firings that do not, oldest first; none is newer than the first of `firings`.
    pub gaps: Vec<Gap>,
    /// The new cursor; `None`: the job never fires again.
    pub next_fire_at: Option<DateTime<Utc>>,
}

/// Decides what becomes of the firings that are due at `now`.
pub fn plan(due: &Due<'_>, now: DateTime<Utc>) -> Plan {
    plan_at_most(due, now, MAX_LOOKED_AT)
}

/// [`plan`], looking at no more than `most` firings, for a planner that has many jobs to get through
/// in one transaction. It looks at no fewer than twice what could still run, so as to get on.
pub fn plan_at_most(due: &Due<'_>, now: DateTime<Utc>, most: usize) -> Plan {
    let undecided = MAX_ON_TIME + late_runs(&due.misfire);
    let Stretch { mut firings, mut next } =
        Stretch::look(due.timetable, due.next_fire_at, now, most.max(2 * undecided));
    let cut = next.is_some_and(|next| next <= now);
    if cut {
        // The newest of these could still run: how many newer ones there are is not known yet.
        let decided = firings.len() - undecided;
        next = Some(firings[decided]);
        firings.truncate(decided);
    }
    let (kept_from, gaps) = not_executed(&firings, &due.misfire, now, cut);
    Plan { firings: with_overlap(due, &firings[kept_from..]), gaps, next_fire_at: next }
}

/// Accounts for the firings from `next_fire_at` to `now` as one gap of the given reason, for a job
/// that was paused. As with [`plan`], the cursor is still due after more than [`MAX_LOOKED_AT`].
pub fn pass_over(
    timetable: &Timetable,
    next_fire_at: DateTime<Utc>,
    now: DateTime<Utc>,
    reason: GapReason,
) -> Plan {
    let Stretch { firings, next } = Stretch::look(timetable, next_fire_at, now, MAX_LOOKED_AT);
    let gaps = gap(&firings, reason).into_iter().collect();
    Plan { firings: Vec::new(), gaps, next_fire_at: next }
}

/// The oldest firings that are due, and the first one after them.
struct Stretch {
    firings: Vec<DateTime<Utc>>,
    next: Option<DateTime<Utc>>,
}

impl Stretch {
    fn look(timetable: &Timetable, first: DateTime<Utc>, now: DateTime<Utc>, most: usize) -> Self {
        let mut firings = Vec::new();
        // A cursor on a job without a schedule is left from an earlier one: nothing is due.
        let mut next = Some(first).filter(|_| *timetable.schedule() != Schedule::None);
        while let Some(firing) = next.filter(|firing| *firing <= now && firings.len() < most) {
            firings.push(firing);
            next = timetable.next_after(firing);
        }
        Self { firings, next }
    }
}

/// How many late firings may run.
fn late_runs(misfire: &Misfire) -> usize {
    match misfire.policy {
        MisfirePolicy::Skip => 0,
        MisfirePolicy::FireOnce => 1,
        MisfirePolicy::FireAll => misfire.limit.min(Misfire::MAX_LIMIT) as usize,
    }
}

/// The gaps at the old end of `firings`, and the index of the first firing that gets a row.
///
/// Older firings are never better off than newer ones, so the whole decision is three borders:
/// outside the window | given up by the policy | late but run, or on time.
fn not_executed(
    firings: &[DateTime<Utc>],
    misfire: &Misfire,
    now: DateTime<Utc>,
    cut: bool,
) -> (usize, Vec<Gap>) {
    let older_than = |age: Duration| {
        firings.partition_point(|firing| (now - *firing).to_std().is_ok_and(|late| late > age))
    };
    let on_time_from = older_than(Misfire::ON_TIME);
    let in_window_from = older_than(misfire.window).min(on_time_from);
    let superseded =
        cut || (misfire.policy == MisfirePolicy::FireOnce && on_time_from < firings.len());
    let late_runs = if superseded { 0 } else { late_runs(misfire) };
    let runs_from = on_time_from.saturating_sub(late_runs).max(in_window_from);
    let given_up = match misfire.policy {
        MisfirePolicy::Skip => GapReason::MisfireSkip,
        MisfirePolicy::FireOnce => GapReason::Coalesced,
        MisfirePolicy::FireAll => GapReason::OverLimit,
    };
    let gaps = [
        gap(&firings[..in_window_from], GapReason::OutsideWindow),
        gap(&firings[in_window_from..runs_from], given_up),
    ];
    (runs_from, gaps.into_iter().flatten().collect())
}

fn gap(firings: &[DateTime<Utc>], reason: GapReason) -> Option<Gap> {
    let (&first, &last) = (firings.first()?, firings.last()?);
    let count = u32::try_from(firings.len()).unwrap_or(u32::MAX);
    Some(Gap { first, last, count, reason })
}

/// Gives each its key, and what the overlap policy makes of it, oldest first.
fn with_overlap(due: &Due<'_>, firings: &[DateTime<Utc>]) -> Vec<Firing> {
    let mut under_way = due.under_way;
    firings
        .iter()
        .enumerate()
        .filter_map(|(index, &scheduled_for)| {
            // Only a job without a schedule has no keys, and it has no firings either.
            let key = due.timetable.key_of(scheduled_for)?;
            let newest = index + 1 == firings.len();
            let disposition = due.overlap.disposition(&mut under_way, newest);
            Some(Firing { scheduled_for, key, disposition })
        })
        .collect()
}
