//! Computes a job's cursor after an apply, and the gaps for the firings that it leaves behind. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::job::JobSpec;
use sexton_model::plan::{
    Cursor, Gap, GapReason, Timetable, excluded_gaps, first_firing, nominal_gap,
};
use sexton_model::zone::tz_data_version;

use crate::StoreError;
use crate::firing::CLAIM_LEAD_MS;
use crate::jobs::Job;

/// A job to apply, and its prepared schedule; `None` if that cannot be read.
#[derive(Clone, Copy)]
pub(super) struct PreparedJob<'a> {
    pub(super) spec: &'a JobSpec,
    pub(super) timetable: Option<&'a Timetable>,
}

/// A job's cursor, the version of the data that computed it, and the number of runs used.
pub(super) struct CursorPlacement {
    pub(super) cursor: Option<Cursor>,
    pub(super) planned_until: Option<DateTime<Utc>>,
    pub(super) tz_version: Option<String>,
    pub(super) runs_used: i32,
}

impl CursorPlacement {
    /// Places the cursor of a job that starts under its schedule; an unreadable one is refused elsewhere.
    pub(super) fn start(ready: PreparedJob<'_>, runs_used: i32, at: DateTime<Utc>) -> Self {
        let PreparedJob { spec, timetable } = ready;
        let timetable = timetable.map(|timetable| timetable.clone().since(Some(at)));
        let cursor = timetable.and_then(|timetable| {
            first_firing(&timetable, at).map(|nominal| Cursor::on(&timetable, nominal))
        });
        Self {
            cursor: cursor.filter(|_| runs_left(spec, runs_used) != Some(0)),
            planned_until: Some(at),
            tz_version: Some(tz_data_version().to_owned()),
            runs_used,
        }
    }
}

fn runs_left(spec: &JobSpec, used: i32) -> Option<u32> {
    spec.constraints.runs_left(used.max(0) as u32)
}

/// Returns the firings due by `at` and not accounted for, of a job that does not continue them: one gap with that
/// reason, and those of excluded days.
pub(in crate::jobs) fn left_behind(
    job: &Job,
    cursor: Option<Cursor>,
    reason: GapReason,
    at: DateTime<Utc>,
) -> Vec<Gap> {
    // A schedule that cannot be read has no countable firings.
    let (Ok(timetable), Some(cursor)) = (job.timetable(), cursor) else { return Vec::new() };
    let from = job.planned_until.unwrap_or(cursor.nominal);
    let excluded = excluded_gaps(&timetable, from, at, false);
    nominal_gap(&timetable, cursor.nominal, at, reason).into_iter().chain(excluded).collect()
}

/// Places the cursor of `job`, which was `old`, and returns its gaps.
///
/// The number of runs used stays as long as there is a limit, even another one: a larger one lets a finished job
/// continue.
pub(super) fn reschedule(
    job: &Job,
    old: &JobSpec,
    ready: PreparedJob<'_>,
    at: DateTime<Utc>,
) -> Result<(CursorPlacement, Vec<Gap>), StoreError> {
    let spec = ready.spec;
    let cursor = job.cursor()?;
    let limited = old.constraints.max_runs.is_some() && spec.constraints.max_runs.is_some();
    let runs_used = if limited { job.runs_used } else { 0 };
    let given_up = |reason| left_behind(job, cursor, reason, at);
    let had_ended = runs_left(old, job.runs_used) == Some(0);
    let is_over = runs_left(spec, runs_used) == Some(0);
    if !old.has_same_firings(spec) || (had_ended && !is_over) {
        let reason = match job.status.as_str() {
            "paused" => GapReason::Paused,
            _ => GapReason::Rescheduled,
        };
        // A firing that was claimed before it is due must not fire again under the new schedule.
        let lead = TimeDelta::milliseconds(CLAIM_LEAD_MS as i64);
        let claimed = job.planned_until.filter(|until| (at..=at + lead).contains(until));
        let start = CursorPlacement::start(ready, runs_used, claimed.unwrap_or(at));
        return Ok((start, given_up(reason)));
    }
    let mut place = CursorPlacement {
        cursor,
        planned_until: job.planned_until,
        tz_version: job.tz_version.clone(),
        runs_used,
    };
    if is_over {
        place.cursor = None;
        return Ok((place, given_up(GapReason::PastEnd)));
    }
    if old.constraints.jitter != spec.constraints.jitter
        && let (Some(cursor), Some(timetable)) = (cursor, ready.timetable)
    {
        place.cursor =
            Some(Cursor::on(&timetable.clone().since(job.planned_until), cursor.nominal));
    }
    Ok((place, Vec::new()))
}
