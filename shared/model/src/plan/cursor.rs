//! A job's cursor: a nominal time, and when its firing becomes due.

use chrono::{DateTime, TimeDelta, Utc};

use super::Timetable;
use crate::job::{Schedule, ScheduleConstraints};

/// The first firing of a job that is not accounted for yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// The nominal time, which its key, its row and a gap use.
    pub nominal: DateTime<Utc>,
    /// When it is due: at its nominal time or later.
    pub due: DateTime<Utc>,
}

impl Cursor {
    /// Returns the cursor for the firing at `nominal`.
    pub fn on(timetable: &Timetable, nominal: DateTime<Utc>) -> Self {
        Self { nominal, due: timetable.due(nominal) }
    }

    /// Returns the cursor in a job's columns `next_fire_at` and `next_nominal_at`.
    ///
    /// Programs without jitter, and people with psql, move only `next_fire_at`. So an impossible nominal time is
    /// ignored: then the firing's nominal time is when it is due.
    pub fn from_columns(
        next_fire_at: DateTime<Utc>,
        next_nominal_at: Option<DateTime<Utc>>,
        schedule: &Schedule,
        constraints: &ScheduleConstraints,
    ) -> Self {
        // An instant that was past when the job was applied is due since then.
        let once = matches!(schedule, Schedule::At { .. });
        let max_jitter =
            constraints.jitter.and_then(|max_jitter| TimeDelta::from_std(max_jitter).ok());
        let possible = |nominal: &DateTime<Utc>| {
            let later = next_fire_at - *nominal;
            later >= TimeDelta::zero()
                && (once || max_jitter.is_some_and(|max_jitter| later < max_jitter))
        };
        let nominal = next_nominal_at.filter(possible).unwrap_or(next_fire_at);
        Self { nominal, due: next_fire_at }
    }

    /// Returns the column `next_nominal_at`, if it differs from `next_fire_at`.
    pub fn distinct_nominal(self) -> Option<DateTime<Utc>> {
        Some(self.nominal).filter(|nominal| *nominal != self.due)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_nominal_time_is_believed_only_if_the_firing_can_be_spread_as_far() {
        let at = |second| DateTime::from_timestamp(second, 0).unwrap();
        let cron = Schedule::Cron { expression: "* * * * *".into() };
        let once = Schedule::At { at: at(60).into() };
        let jitter = |seconds| ScheduleConstraints {
            jitter: Some(seconds).filter(|s| *s > 0).map(Duration::from_secs),
            ..ScheduleConstraints::default()
        };
        for (schedule, jitter, due, nominal, read) in [
            (&cron, jitter(0), 100, None, 100),
            (&cron, jitter(0), 100, Some(60), 100), // the jitter was taken away
            (&cron, jitter(50), 100, Some(60), 60),
            (&cron, jitter(40), 100, Some(60), 100), // moved on by who knows no jitter
            (&cron, jitter(50), 50, Some(60), 50),   // moved back
            (&once, jitter(0), 100, Some(60), 60),
        ] {
            let cursor = Cursor::from_columns(at(due), nominal.map(at), schedule, &jitter);
            assert_eq!(cursor, Cursor { nominal: at(read), due: at(due) });
            let again = cursor.distinct_nominal();
            assert_eq!(Cursor::from_columns(at(due), again, schedule, &jitter), cursor);
        }
    }
}
