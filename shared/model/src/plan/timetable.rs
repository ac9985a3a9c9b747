//! A schedule made ready to be asked "when next?".

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::cron::{CronError, Dialect, Dst, Expression};
use crate::duration::to_millis;
use crate::job::{JobSpec, MAX_PERIOD, MIN_PERIOD, Schedule};
use crate::key;
use crate::zone::Zone;

/// Why a schedule cannot be made ready. The jobs file refuses all of these; a row that has one was
/// written by hand or by another version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimetableError {
    /// The expression does not parse.
    #[error(transparent)]
    Cron(#[from] CronError),
    /// The period is outside [`MIN_PERIOD`] to [`MAX_PERIOD`].
    #[error("a period of {0:?} is not between 1s and 366d")]
    Period(Duration),
}

/// A schedule made ready: parsed, its limits checked.
#[derive(Clone, PartialEq, Debug)]
pub struct Timetable {
    schedule: Schedule,
    rule: Rule,
}

#[derive(Clone, PartialEq, Debug)]
enum Rule {
    Cron { expression: Expression, zone: Zone, dst: Dst },
    Every { period_ms: i64 },
    Once(DateTime<Utc>),
    Never,
}

impl Timetable {
    /// Makes the schedule of the job called `name` ready. `zone` and `dst` are what its cron
    /// expression is meant in; of other kinds they say nothing.
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
        let rule = match schedule {
            Schedule::Cron { expression } => {
                let expression = Expression::parse(expression, Dialect::Any, name)?;
                Rule::Cron { expression, zone, dst }
            }
            Schedule::Every { period } if (MIN_PERIOD..=MAX_PERIOD).contains(period) => {
                Rule::Every { period_ms: to_millis(*period) }
            }
            Schedule::Every { period } => return Err(TimetableError::Period(*period)),
            Schedule::At { at } => Rule::Once(*at),
            Schedule::None => Rule::Never,
        };
        Ok(Self { schedule: schedule.clone(), rule })
    }

    /// Makes the schedule of a job ready.
    ///
    /// # Errors
    ///
    /// As [`Timetable::new`].
    pub fn of(job: &JobSpec) -> Result<Self, TimetableError> {
        Self::new(&job.name, &job.schedule, job.timezone, job.dst)
    }

    /// The first firing strictly after `from`.
    ///
    /// A period counts from the Unix epoch, so everybody who asks gets the same instants. `None` if
    /// there is none: the one instant is past, the expression fires nowhere within 100 years, or
    /// the job has no schedule.
    pub fn next_after(&self, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match &self.rule {
            Rule::Cron { expression, zone, dst } => expression.next_after(from, *zone, *dst),
            Rule::Every { period_ms } => {
                let periods = from.timestamp_millis().div_euclid(*period_ms).checked_add(1)?;
                DateTime::from_timestamp_millis(periods.checked_mul(*period_ms)?)
            }
            Rule::Once(at) => (from < *at).then_some(*at),
            Rule::Never => None,
        }
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

/// Where a job's cursor starts when it is applied or its schedule changes: the first firing strictly
/// after `now`; for a job that fires once its instant, past or not, because the past is refused
/// where jobs are applied, by a clock that may be ahead of this one.
pub fn first_firing(timetable: &Timetable, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    match timetable.rule {
        Rule::Once(at) => Some(at),
        _ => timetable.next_after(now),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn ready(schedule: &Schedule) -> Result<Timetable, TimetableError> {
        Timetable::new("a.b", schedule, Zone::UTC, Dst::default())
    }

    fn every(ms: u64) -> Timetable {
        ready(&Schedule::Every { period: Duration::from_millis(ms) }).unwrap()
    }

    #[test]
    fn a_period_counts_from_the_epoch_whenever_it_is_asked() {
        let table = every(900_000);
        for from in
            ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000001Z", "2026-01-01T00:14:59.9Z"]
        {
            assert_eq!(table.next_after(at(from)), Some(at("2026-01-01T00:15:00Z")));
        }
        assert_eq!(
            table.next_after(at("1969-12-31T23:59:59.9999Z")),
            Some(at("1970-01-01T00:00:00Z"))
        );
    }

    #[test]
    fn one_instant_fires_once() {
        let instant = at("2026-01-01T00:00:00Z");
        let table = ready(&Schedule::At { at: instant }).unwrap();
        assert_eq!(table.next_after(at("2025-12-31T23:59:59.999Z")), Some(instant));
        assert_eq!(table.next_after(instant), None);
        assert_eq!(first_firing(&table, at("2027-01-01T00:00:00Z")), Some(instant));
    }

    #[test]
    fn a_job_without_a_schedule_never_fires() {
        let table = ready(&Schedule::None).unwrap();
        assert_eq!(first_firing(&table, DateTime::UNIX_EPOCH), None);
        assert_eq!(table.key_of(DateTime::UNIX_EPOCH), None);
    }

    #[test]
    fn the_first_firing_is_strictly_after_now() {
        let cron = Schedule::Cron { expression: "0 8 * * *".into() };
        let table = ready(&cron).unwrap();
        assert_eq!(
            first_firing(&table, at("2025-12-12T08:00:00Z")),
            Some(at("2025-12-13T08:00:00Z"))
        );
        assert_eq!(
            table.key_of(at("2025-12-13T08:00:00Z")).as_deref(),
            Some("cron-2025-12-13T08:00:00Z")
        );
    }

    #[test]
    fn a_schedule_outside_the_limits_is_refused() {
        let cron = Schedule::Cron { expression: "every day".into() };
        assert!(matches!(ready(&cron), Err(TimetableError::Cron(_))));
        for period in [Duration::from_millis(999), MAX_PERIOD + Duration::from_millis(1)] {
            let every = Schedule::Every { period };
            assert_eq!(ready(&every), Err(TimetableError::Period(period)));
        }
    }

    proptest! {
        #[test]
        fn no_two_firings_of_a_period_share_an_execution_key(
            ms in 1_000_u64..5_000,
            from_ms in 0_i64..4_000_000_000_000,
        ) {
            let table = every(ms);
            let from = DateTime::from_timestamp_millis(from_ms).unwrap();
            let first = table.next_after(from).unwrap();
            let second = table.next_after(first).unwrap();
            prop_assert!(from < first);
            prop_assert_eq!((second - first).num_milliseconds(), i64::try_from(ms).unwrap());
            prop_assert_ne!(table.key_of(first), table.key_of(second));
        }
    }

    #[test]
    fn the_end_of_representable_time_is_no_panic() {
        assert_eq!(every(1_000).next_after(DateTime::<Utc>::MAX_UTC), None);
    }
}
