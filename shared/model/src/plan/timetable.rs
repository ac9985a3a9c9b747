//! A job's schedule and its limits, parsed, ready to compute the next firing.

use std::time::Duration;

use chrono::{DateTime, Months, TimeDelta, Utc};

use super::jitter::Jitter;
use super::rule::Rule;
use crate::cron::{CronError, DayRule, Dst};
use crate::job::{Exclusions, JobSpec, Schedule, ScheduleConstraints};
use crate::key;
use crate::zone::Zone;

/// How far ahead a day that is not excluded is searched.
const HORIZON: Months = Months::new(100 * 12);

/// Why a schedule cannot be prepared. The jobs file refuses all of these; a row that has one was written by hand or
/// by another version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimetableError {
    /// The expression does not parse.
    #[error(transparent)]
    Cron(#[from] CronError),
    /// The period is outside [`MIN_PERIOD`](crate::job::MIN_PERIOD) to
    /// [`MAX_PERIOD`](crate::job::MAX_PERIOD), or the phase not below it.
    #[error("a period of {0:?} is not between 1s and 366d, or its phase not below it")]
    Period(Duration),
}

/// A prepared schedule: parsed, its limits checked.
///
/// A nominal time outside of `start` to `end` is no firing, nor is one on an excluded day: that one becomes a gap
/// ([`super::excluded_gaps()`]).
#[derive(Clone, PartialEq, Debug)]
pub struct Timetable {
    schedule: Schedule,
    pub(super) rule: Rule,
    pub(super) zone: Zone,
    pub(super) start: Option<DateTime<Utc>>,
    pub(super) end: Option<DateTime<Utc>>,
    pub(super) exclude: Exclusions,
    pub(super) jitter: Option<Jitter>,
    since: Option<DateTime<Utc>>,
}

impl Timetable {
    /// Prepares the schedule of the job called `name`. `zone` is its time zone, `dst` the policy for clock changes of
    /// a cron expression, and `days` the combination of its day fields.
    ///
    /// # Errors
    ///
    /// [`TimetableError`]; the job cannot fire until its schedule is corrected.
    pub fn new(
        name: &str,
        schedule: &Schedule,
        zone: Zone,
        dst: Dst,
        days: Option<DayRule>,
    ) -> Result<Self, TimetableError> {
        Ok(Self {
            rule: Rule::new(name, schedule, zone, dst, days)?,
            schedule: schedule.clone(),
            zone,
            start: None,
            end: None,
            exclude: Exclusions::default(),
            jitter: None,
            since: None,
        })
    }

    /// Returns the same with limits, for the job called `name`.
    #[must_use]
    pub fn with_constraints(self, constraints: &ScheduleConstraints, name: &str) -> Self {
        Self {
            start: constraints.start.map(|start| start.instant(self.zone)),
            end: constraints.end.map(|end| end.instant(self.zone)),
            exclude: constraints.exclude.clone(),
            jitter: constraints.jitter.map(|max| Jitter::new(name, max)),
            ..self
        }
    }

    /// Returns the same for a job that got this schedule at `since`: an instant that was past then is due from then
    /// on, and its lateness counts from then.
    #[must_use]
    pub fn since(self, since: Option<DateTime<Utc>>) -> Self {
        Self { since, ..self }
    }

    /// Prepares the schedule of a job.
    ///
    /// # Errors
    ///
    /// As [`Timetable::new`].
    pub fn of(job: &JobSpec) -> Result<Self, TimetableError> {
        let timetable = Self::new(&job.name, &job.schedule, job.timezone, job.dst, job.days)?;
        Ok(timetable.with_constraints(&job.constraints, &job.name))
    }

    /// Returns the first firing strictly after `from`, by its nominal time.
    ///
    /// A period counts from the Unix epoch, so every caller gets the same instants. `None` if nothing follows: the
    /// one instant is past, the end comes before, the expression fires nowhere within 100 years, or the job has no
    /// schedule.
    pub fn next_after(&self, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut from = self.start.map_or(from, |start| from.max(before(start)));
        let horizon = from.checked_add_months(HORIZON);
        loop {
            let firing = self.rule.next_after(from)?;
            if self.end.is_some_and(|end| firing > end) {
                return None;
            }
            // Each step skips a range of days, of which there are few.
            match self.exclude.end_of(firing, self.zone) {
                None => return Some(firing),
                Some(end) if horizon.is_some_and(|horizon| end > horizon) => return None,
                Some(end) => from = before(end),
            }
        }
    }

    /// Returns the first nominal time strictly after `from`, also on an excluded day.
    pub fn nominal_after(&self, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let from = self.start.map_or(from, |start| from.max(before(start)));
        self.rule.next_after(from).filter(|nominal| self.end.is_none_or(|end| *nominal <= end))
    }

    /// Returns the instant of a job that fires once.
    pub const fn once(&self) -> Option<DateTime<Utc>> {
        match self.rule {
            Rule::Once(at) => Some(at),
            _ => None,
        }
    }

    /// Returns when a firing becomes due: its nominal time plus its jitter, before the next nominal time.
    pub fn due(&self, firing: DateTime<Utc>) -> DateTime<Utc> {
        let due = match &self.jitter {
            None => firing,
            Some(jitter) => jitter.due(firing, self.rule.next_after(firing)),
        };
        match self.rule {
            Rule::Once(_) => self.since.map_or(due, |since| due.max(since)),
            _ => due,
        }
    }

    /// Returns the earliest possible nominal time before `at` of a firing that is due at `at` or later; `None`
    /// without jitter.
    pub(super) fn spread_from(&self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match (&self.rule, &self.jitter) {
            (Rule::Once(_), _) => Some(DateTime::<Utc>::MIN_UTC),
            (_, Some(jitter)) => Some(at.checked_sub_signed(jitter.max_delay()).unwrap_or(at)),
            (_, None) => None,
        }
    }

    /// Returns whether `at` is on an excluded day.
    pub fn excludes(&self, at: DateTime<Utc>) -> bool {
        self.exclude.hold(at, self.zone)
    }

    /// Returns the execution key of `firing`; `None` for a job without a schedule.
    pub fn key_of(&self, firing: DateTime<Utc>) -> Option<String> {
        key::of_firing(&self.schedule, firing)
    }

    /// Returns the schedule.
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }
}

/// Returns the last instant before `at`.
pub(super) fn before(at: DateTime<Utc>) -> DateTime<Utc> {
    at.checked_sub_signed(TimeDelta::nanoseconds(1)).unwrap_or(at)
}

/// Returns a job's first cursor when it is applied or its schedule changes: the first firing strictly after `now`;
/// for a job that fires once its instant, past or not, because the apply judges past instants, by a clock that may be
/// ahead of this one. Also the cursor by newer time zone data of one that was computed at `now`.
pub fn first_firing(timetable: &Timetable, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    match timetable.rule {
        Rule::Once(at) => Some(at),
        _ => timetable.next_after(now),
    }
}

#[cfg(test)]
mod tests;
