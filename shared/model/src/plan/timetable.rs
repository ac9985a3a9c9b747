//! A job's schedule and its terms, parsed, ready to compute the next firing.

use std::time::Duration;

use chrono::{DateTime, Months, TimeDelta, Utc};

use super::jitter::Jitter;
use super::rule::Rule;
use crate::cron::{CronError, Dst};
use crate::job::{Exclusions, JobSpec, Schedule, ScheduleConstraints};
use crate::key;
use crate::zone::Zone;

/// How far ahead a day that is not excluded is looked for.
const HORIZON: Months = Months::new(100 * 12);

/// Why a schedule cannot be made ready. The jobs file refuses all of these; a row that has one was
/// written by hand or by another version.
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

/// A schedule made ready: parsed, its limits checked.
///
/// A nominal time outside of `start` to `end` is no firing, nor is one on an excluded day:
/// that one becomes a gap ([`super::excluded_gaps()`]).
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
    /// Makes the schedule of the job called `name` ready. `zone` is the one whose clocks it is about,
    /// and `dst` what a change of them means for a cron expression.
    ///
    /// # Errors
    ///
    /// [`TimetableError`]; the job cannot fire until its schedule is corrected.
    pub fn new(
        name: &str,
        schedule: &Schedule,
        zone: Zone,
        dst: Dst,
    ) -> Result<Self, TimetableError> {
        Ok(Self {
            rule: Rule::new(name, schedule, zone, dst)?,
            schedule: schedule.clone(),
            zone,
            start: None,
            end: None,
            exclude: Exclusions::default(),
            jitter: None,
            since: None,
        })
    }

    /// The same under terms, for the job called `name`.
    #[must_use]
    pub fn with_constraints(self, constraints: &ScheduleConstraints, name: &str) -> Self {
        Self {
            start: constraints.start.map(|start| start.instant(self.zone)),
            end: constraints.end.map(|end| end.instant(self.zone)),
            exclude: constraints.exclude.clone(),
            jitter: constraints.jitter.map(|most| Jitter::new(name, most)),
            ..self
        }
    }

    /// The same of a job that was given this schedule at `since`: an instant that was past then is due
    /// from then on, and as late as that.
    #[must_use]
    pub fn since(self, since: Option<DateTime<Utc>>) -> Self {
        Self { since, ..self }
    }

    /// Makes the schedule of a job ready.
    ///
    /// # Errors
    ///
    /// As [`Timetable::new`].
    pub fn of(job: &JobSpec) -> Result<Self, TimetableError> {
        let timetable = Self::new(&job.name, &job.schedule, job.timezone, job.dst)?;
        Ok(timetable.with_constraints(&job.constraints, &job.name))
    }

    /// The first firing strictly after `from`, by its nominal time.
    ///
    /// A period counts from the Unix epoch, so every caller gets the same instants. `None` if
    /// nothing follows: the one instant is past, the end comes before, the expression fires nowhere
    /// within 100 years, or the job has no schedule.
    pub fn next_after(&self, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let mut from = self.start.map_or(from, |start| from.max(before(start)));
        let horizon = from.checked_add_months(HORIZON);
        loop {
            let firing = self.rule.next_after(from)?;
            if self.end.is_some_and(|end| firing > end) {
                return None;
            }
            // Each step passes over a range of days, of which there are few.
            match self.exclude.end_of(firing, self.zone) {
                None => return Some(firing),
                Some(end) if horizon.is_some_and(|horizon| end > horizon) => return None,
                Some(end) => from = before(end),
            }
        }
    }

    /// The first nominal time strictly after `from`, also of an excluded day.
    pub fn nominal_after(&self, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let from = self.start.map_or(from, |start| from.max(before(start)));
        self.rule.next_after(from).filter(|nominal| self.end.is_none_or(|end| *nominal <= end))
    }

    /// The instant of a job that fires once.
    pub const fn once(&self) -> Option<DateTime<Utc>> {
        match self.rule {
            Rule::Once(at) => Some(at),
            _ => None,
        }
    }

    /// When a firing becomes due: its nominal time, or so much later as it is spread by, but before
    /// the next nominal time.
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

    /// From when on a firing can be nominal that is due at `at` or later, and is before it; `None`: none
    /// is due later than at its nominal time.
    pub(super) fn spread_from(&self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match (&self.rule, &self.jitter) {
            (Rule::Once(_), _) => Some(DateTime::<Utc>::MIN_UTC),
            (_, Some(jitter)) => Some(at.checked_sub_signed(jitter.most()).unwrap_or(at)),
            (_, None) => None,
        }
    }

    /// Whether a firing at `at` would be one of an excluded day.
    pub fn excludes(&self, at: DateTime<Utc>) -> bool {
        self.exclude.hold(at, self.zone)
    }

    /// The execution key of `firing`; `None` for a job without a schedule.
    pub fn key_of(&self, firing: DateTime<Utc>) -> Option<String> {
        key::of_firing(&self.schedule, firing)
    }

    /// The schedule this was made from.
    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }
}

/// The last instant before `at`.
pub(super) fn before(at: DateTime<Utc>) -> DateTime<Utc> {
    at.checked_sub_signed(TimeDelta::nanoseconds(1)).unwrap_or(at)
}

/// Where a job's cursor starts when it is applied or its schedule changes: the first firing strictly
/// after `now`; for a job that fires once its instant, past or not, because the past is judged where
/// jobs are applied, by a clock that may be ahead of this one. Also where a cursor stands by newer data
/// of the zones that was computed at `now`.
pub fn first_firing(timetable: &Timetable, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    match timetable.rule {
        Rule::Once(at) => Some(at),
        _ => timetable.next_after(now),
    }
}

#[cfg(test)]
mod tests;
