//! The planner's decision: the dispositions of a job's due firings.
//!
//! # Guarantees
//!
//! * Every firing between the job's cursor and `now` gets exactly one disposition: it runs, it is recorded as skipped
//!   with the reason, or it is counted in a gap. Gaps count exactly, up to [`Gap::MAX_COUNT`].
//! * The new cursor's firing is due strictly after `now`, so that planning again at once plans nothing.
//! * Nothing is decided before it is due, and lateness is counted from then; cursors, rows and gaps are of nominal
//!   times.
//! * Firings that do not run are counted and not visited, so a plan costs what its rows cost and a few hundred steps
//!   for each year of absence, however often the job fires.
//! * On time, that is at most [`Misfire::ON_TIME_GRACE`] late, means run, whatever the misfire policy.
//!
//! # What it does not do
//!
//! It does not know of excluded days, on which a [`Timetable`] has no firings: [`excluded_gaps()`] accounts for
//! these. It does not know which firings are claimed: two planners with one cursor make the same plan, with the same
//! execution keys, and the unique row lets each firing through once. It does not judge paused jobs; [`plan_as_gap`]
//! accounts for the firings missed meanwhile.

mod count;
mod cursor;
mod excluded;
mod firings;
mod jitter;
mod limit;
mod look_back;
pub mod overlap;
mod rule;
mod timetable;

#[cfg(test)]
mod tests;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::job::{Misfire, MisfirePolicy, Overlap};
use crate::text_enum::text_enum;

pub use cursor::Cursor;
pub use excluded::excluded_gaps;
pub use limit::{plan_at_most, release_at_most};
pub(crate) use look_back::RESOLUTION;
pub use timetable::{Timetable, TimetableError, first_firing};

use firings::{Firings, after};
use overlap::{UnderWay, WaitReason};

/// A job that may be due.
#[derive(Clone, Copy, Debug)]
pub struct PlanInput<'a> {
    /// The job's prepared schedule.
    pub timetable: &'a Timetable,
    /// The job's overlap policy.
    pub overlap: Overlap,
    /// The job's misfire policy, with a limit of at most [`Misfire::MAX_LIMIT`].
    pub misfire: Misfire,
    /// The cursor: the nominal time of the first firing without a disposition. Taken as a firing as it is.
    pub next_fire_at: DateTime<Utc>,
    /// The job's executions that have not ended.
    pub under_way: UnderWay,
    /// Whether catch-up is held: then late firings are set aside, and those on time run.
    pub held: bool,
}

/// The disposition of a firing that gets a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disposition {
    /// It is claimed.
    Run,
    /// It is claimed, and its ticket waits until the job is free.
    Waits(WaitReason),
    /// Its row is `skipped` from the beginning.
    Skipped(SkipReason),
}

/// Why a firing was skipped.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SkipReason {
    /// An earlier execution of the job had not ended.
    Overlap,
    /// A newer firing, claimed at the same time, replaced it.
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
    /// Its disposition.
    pub disposition: Disposition,
    /// How long after the decision it is due, by the rate of a catch-up. Zero for those on time.
    pub after: Duration,
}

/// Consecutive firings that did not run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gap {
    /// The oldest.
    pub first: DateTime<Utc>,
    /// The newest.
    pub last: DateTime<Utc>,
    /// Number of firings, both included.
    pub count: u32,
    /// The reason.
    pub reason: GapReason,
}

impl Gap {
    /// The largest count of the column: seconds for 68 years.
    pub const MAX_COUNT: u32 = i32::MAX as u32;
}

/// Why firings did not run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GapReason {
    /// Noticed later than the job's misfire window allows.
    OutsideWindow,
    /// Noticed late, and the policy skips late firings.
    MisfireSkip,
    /// Noticed late; one newer firing ran for all of them.
    Coalesced,
    /// Noticed late; newer ones used up the limit of the catch-up.
    OverLimit,
    /// The job was paused.
    Paused,
    /// The job was given another schedule before they were noticed.
    Rescheduled,
    /// Catch-up was held, and an operator discarded them.
    Held,
    /// The job was deleted before they were noticed.
    Deleted,
    /// They fell on days that the job excludes.
    Excluded,
    /// The limit of runs was used up.
    PastEnd,
}

impl GapReason {
    /// All reasons.
    pub const ALL: [Self; 10] = [
        Self::OutsideWindow,
        Self::MisfireSkip,
        Self::Coalesced,
        Self::OverLimit,
        Self::Paused,
        Self::Rescheduled,
        Self::Held,
        Self::Deleted,
        Self::Excluded,
        Self::PastEnd,
    ];
}

text_enum!(GapReason {
    OutsideWindow => "outside_window",
    MisfireSkip => "misfire_skip",
    Coalesced => "coalesced",
    OverLimit => "over_limit",
    Paused => "paused",
    Rescheduled => "rescheduled",
    Held => "held",
    Deleted => "deleted",
    Excluded => "excluded",
    PastEnd => "past_end",
});

/// A plan.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    /// Firings that get a row, oldest first.
    pub firings: Vec<Firing>,
    /// Firings that do not, oldest first; none is newer than the first of `firings`.
    pub gaps: Vec<Gap>,
    /// Late firings that are set aside because catch-up is held; a gap once they are discarded.
    pub held: Option<Gap>,
    /// The new cursor, a nominal time; `None`: the job never fires again.
    pub next_fire_at: Option<DateTime<Utc>>,
}

/// Plans the firings that are due at `now`.
///
/// Older firings are never better off than newer ones, so the whole decision is three borders: outside the window |
/// dropped by the policy | late but run, or on time. Only the last part, of [`Misfire::MAX_LIMIT`] and at most the
/// number that can be on time, is visited.
pub fn plan(due: &PlanInput<'_>, now: DateTime<Utc>) -> Plan {
    let firings = Firings::new(due.timetable, due.next_fire_at);
    // Lateness counts from when a firing is due; the borders lie between nominal times.
    let until = firings.due_from(after(now));
    let next_fire_at = firings.first_from(until);
    if due.held {
        let on_time_from = firings.due_from(before(now, Misfire::ON_TIME_GRACE));
        return Plan {
            firings: build_rows(due, 0, firings.list(on_time_from, until), on_time_from),
            held: firings.gap(due.next_fire_at, on_time_from, GapReason::Held),
            next_fire_at,
            ..Plan::default()
        };
    }
    let (rows, gaps) = apply_misfire_policy(due, 0, &firings, now, until);
    Plan { firings: rows, gaps, held: None, next_fire_at }
}

/// Plans late firings that were set aside at `held_at` while catch-up was held: from `due`'s cursor to `last`. They
/// are judged as they would have been then, by the current policy; firings on time then have been claimed. `begun`
/// firings of the same catch-up begin before these, by the job's rate. The plan's cursor must not be used.
pub fn release(
    due: &PlanInput<'_>,
    begun: u64,
    last: DateTime<Utc>,
    held_at: DateTime<Utc>,
) -> Plan {
    let firings = Firings::new(due.timetable, due.next_fire_at);
    let (rows, gaps) = apply_misfire_policy(due, begun, &firings, held_at, after(last));
    Plan { firings: rows, gaps, ..Plan::default() }
}

/// Applies the misfire policy, as of `now`; makes rows of firings before `until`.
fn apply_misfire_policy(
    due: &PlanInput<'_>,
    begun: u64,
    firings: &Firings<'_>,
    now: DateTime<Utc>,
    until: DateTime<Utc>,
) -> (Vec<Firing>, Vec<Gap>) {
    let misfire = &due.misfire;
    let due_until = firings.due_from(after(now));
    let on_time_from = firings.due_from(before(now, Misfire::ON_TIME_GRACE));
    let in_window_from = firings.due_from(before(now, misfire.window.max(Misfire::ON_TIME_GRACE)));
    let superseded = misfire.policy == MisfirePolicy::FireOnce
        && firings.first_from(on_time_from).is_some_and(|firing| firing < due_until);
    let runs_from = match late_runs(misfire) {
        0 => on_time_from,
        _ if superseded => on_time_from,
        limit => firings.nth_last(in_window_from, on_time_from, limit).unwrap_or(in_window_from),
    };
    let given_up = match misfire.policy {
        MisfirePolicy::Skip => GapReason::MisfireSkip,
        MisfirePolicy::FireOnce => GapReason::Coalesced,
        MisfirePolicy::FireAll => GapReason::OverLimit,
    };
    let gaps = [
        firings.gap(due.next_fire_at, in_window_from, GapReason::OutsideWindow),
        firings.gap(in_window_from, runs_from, given_up),
    ];
    let rows = build_rows(due, begun, firings.list(runs_from, until), on_time_from);
    (rows, gaps.into_iter().flatten().collect())
}

/// Accounts for the firings from `next_fire_at` on that are due at `now` as one gap of the given reason, for a job
/// that was paused.
pub fn plan_as_gap(
    timetable: &Timetable,
    next_fire_at: DateTime<Utc>,
    now: DateTime<Utc>,
    reason: GapReason,
) -> Plan {
    let firings = Firings::new(timetable, next_fire_at);
    let until = firings.due_from(after(now));
    Plan {
        firings: Vec::new(),
        gaps: firings.gap(next_fire_at, until, reason).into_iter().collect(),
        held: None,
        next_fire_at: firings.first_from(until),
    }
}

/// Returns the firings from `next_fire_at` to `now` by their nominal times as one gap, due or not: for a job that
/// continues under another schedule from `now` on.
pub fn nominal_gap(
    timetable: &Timetable,
    next_fire_at: DateTime<Utc>,
    now: DateTime<Utc>,
    reason: GapReason,
) -> Option<Gap> {
    Firings::new(timetable, next_fire_at).gap(next_fire_at, after(now), reason)
}

/// Returns how many late firings may run.
fn late_runs(misfire: &Misfire) -> u64 {
    match misfire.policy {
        MisfirePolicy::Skip => 0,
        MisfirePolicy::FireOnce => 1,
        MisfirePolicy::FireAll => u64::from(misfire.limit.min(Misfire::MAX_LIMIT)),
    }
}

/// Returns the instant that lies `age` before `now`.
fn before(now: DateTime<Utc>, age: Duration) -> DateTime<Utc> {
    TimeDelta::from_std(age)
        .ok()
        .and_then(|age| now.checked_sub_signed(age))
        .unwrap_or(DateTime::<Utc>::MIN_UTC)
}

/// Gives each firing its key and its disposition under the overlap policy, oldest first; late ones that run wait for
/// their turn by the rate, after `begun` earlier ones.
fn build_rows(
    due: &PlanInput<'_>,
    begun: u64,
    firings: impl Iterator<Item = DateTime<Utc>>,
    on_time_from: DateTime<Utc>,
) -> Vec<Firing> {
    let mut under_way = due.under_way;
    let mut late = begun;
    let mut firings = firings.peekable();
    let mut rows = Vec::new();
    while let Some(scheduled_for) = firings.next() {
        // Only a job without a schedule has no keys, and it has no firings either.
        let Some(key) = due.timetable.key_of(scheduled_for) else { continue };
        let newest = firings.peek().is_none();
        let disposition = due.overlap.disposition(&mut under_way, newest);
        let mut after = Duration::ZERO;
        if disposition == Disposition::Run && scheduled_for < on_time_from {
            after = due.misfire.rate.map_or(Duration::ZERO, |rate| rate.wait(late));
            late += 1;
        }
        rows.push(Firing { scheduled_for, key, disposition, after });
    }
    rows
}
