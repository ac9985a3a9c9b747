//! When a job fires.

use chrono::{DateTime, Utc};
pub use sexton_model::cron::DayRule as Days;
use sexton_model::cron::{Dialect, Dst, Expression, restricts_days_twice};
use sexton_model::zone::Zone;

/// Firings that are counted one by one.
const MAX_COUNTED: u64 = 1_000_000;

/// When a job fires: a cron expression of five fields, or of six with the second first, in a time zone.
///
/// ```
/// use sexton_guard::{Days, Schedule};
///
/// let friday_13 = Schedule::new("0 0 8 13 * FRI").days(Days::Both).timezone("Europe/Vienna");
/// ```
///
/// Where both day fields are restricted, say how they are combined: Spring and Unix differ. The page on cron
/// expressions of the platform says what else can be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    expression: String,
    days: Option<Days>,
    timezone: Option<String>,
}

impl Schedule {
    /// Takes the expression. It is checked when the jobs begin to run.
    pub fn new(expression: impl Into<String>) -> Self {
        Self { expression: expression.into(), days: None, timezone: None }
    }

    /// Says how the two day fields are combined.
    #[must_use]
    pub const fn days(mut self, days: Days) -> Self {
        self.days = Some(days);
        self
    }

    /// Sets the zone whose clocks it follows, by its name in the IANA database; `UTC` unless it is set.
    #[must_use]
    pub fn timezone(mut self, zone: impl Into<String>) -> Self {
        self.timezone = Some(zone.into());
        self
    }

    /// Reads it for a job of this name.
    ///
    /// # Errors
    ///
    /// The field and what is wrong with it.
    pub(super) fn timetable(&self, job: &str) -> Result<Timetable, (&'static str, String)> {
        let zone = match &self.timezone {
            None => Zone::UTC,
            Some(name) => Zone::parse(name).map_err(|error| ("timezone", error.to_string()))?,
        };
        Timetable::read(&self.expression, job, self.days, zone)
    }
}

impl From<&str> for Schedule {
    fn from(expression: &str) -> Self {
        Self::new(expression)
    }
}

impl From<String> for Schedule {
    fn from(expression: String) -> Self {
        Self::new(expression)
    }
}

/// A schedule that was read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timetable {
    expression: Expression,
    zone: Zone,
}

impl Timetable {
    pub(super) fn read(
        text: &str,
        job: &str,
        days: Option<Days>,
        zone: Zone,
    ) -> Result<Self, (&'static str, String)> {
        let expression = Expression::parse_with_days(text, Dialect::Any, job, days)
            .map_err(|error| ("schedule", error.to_string()))?;
        if days.is_none() && restricts_days_twice(text) {
            let message = "must be \"both\" or \"either\", since the schedule restricts day of month and day of week: \
                           \"both\" fires on days that both select, as Spring does, \"either\" as cron does";
            return Err(("days", message.to_owned()));
        }
        let read = Self { expression, zone };
        // An expression has no years: whether it ever fires is the same from every instant.
        match read.next_after(DateTime::UNIX_EPOCH) {
            Some(_) => Ok(read),
            None => Err(("schedule", "never fires".to_owned())),
        }
    }

    /// The first firing strictly after an instant.
    pub(super) fn next_after(&self, instant: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.expression.next_after(instant, self.zone, Dst::default())
    }

    /// How many firings are after the one of `tick` and not after `now`, and the last of them.
    ///
    /// Of more than a million the first ones.
    pub(super) fn passed(
        &self,
        tick: DateTime<Utc>,
        now: DateTime<Utc>,
    ) -> (u64, Option<DateTime<Utc>>) {
        let (mut count, mut last) = (0, None);
        let mut after = tick;
        while count < MAX_COUNTED
            && let Some(firing) = self.next_after(after).filter(|firing| *firing <= now)
        {
            (count, last, after) = (count + 1, Some(firing), firing);
        }
        (count, last)
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike as _, TimeDelta, Weekday};

    use super::*;

    /// Compared with a walk through the days.
    #[test]
    fn two_day_fields_fire_as_a_walk_through_the_days_says() {
        let from = at("2026-01-01T00:00:00Z");
        for (days, is_fired) in [
            (Days::Both, (|month, week| month && week) as fn(bool, bool) -> bool),
            (Days::Either, |month, week| month || week),
        ] {
            let timetable = Schedule::new("0 7 1-7,20 * TUE,6").days(days).timetable("a").unwrap();
            let mut expected = Vec::new();
            for day in 0..1_000 {
                let date = from + TimeDelta::days(day) + TimeDelta::hours(7);
                let month = matches!(date.day(), 1..=7 | 20);
                let week = matches!(date.weekday(), Weekday::Tue | Weekday::Sat);
                if is_fired(month, week) {
                    expected.push(date);
                }
            }
            let mut found = Vec::new();
            let mut after = from;
            while found.len() < expected.len() {
                after = timetable.next_after(after).unwrap();
                found.push(after);
            }
            assert_eq!(found, expected, "{days:?}");
        }
    }

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn problem(schedule: &Schedule) -> (&'static str, String) {
        schedule.timetable("a").unwrap_err()
    }

    #[test]
    fn springs_and_crons_meaning_of_two_day_fields_must_be_chosen() {
        let schedule = Schedule::new("0 0 8 13 * FRI");
        let (field, message) = problem(&schedule);
        assert_eq!(field, "days");
        assert!(
            message.contains("as Spring does") && message.contains("as cron does"),
            "{message}"
        );
        let from = at("2026-01-01T00:00:00Z");
        let both = schedule.clone().days(Days::Both).timetable("a").unwrap();
        assert_eq!(both.next_after(from), Some(at("2026-02-13T08:00:00Z")), "a Friday the 13th");
        let either = schedule.days(Days::Either).timetable("a").unwrap();
        assert_eq!(either.next_after(from), Some(at("2026-01-02T08:00:00Z")), "a Friday");
        // Where cron itself looks for a star.
        let odd_mondays = Schedule::new("0 0 */2 * MON").days(Days::Both).timetable("a").unwrap();
        assert_eq!(odd_mondays.next_after(from), Some(at("2026-01-05T00:00:00Z")));
        let odd_or_monday =
            Schedule::new("0 0 */2 * MON").days(Days::Either).timetable("a").unwrap();
        assert_eq!(
            odd_or_monday.next_after(at("2026-01-11T00:00:00Z")),
            Some(at("2026-01-12T00:00:00Z"))
        );
        Schedule::new("0 8 13 * *").timetable("a").unwrap();
        Schedule::new("0 */1 * * * ?").timetable("a").unwrap();
    }

    #[test]
    fn what_does_not_fire_is_refused_with_its_field() {
        assert_eq!(problem(&"0 0 30 2 *".into()), ("schedule", "never fires".to_owned()));
        assert_eq!(problem(&"61 * * * *".into()).0, "schedule");
        let never = Schedule::new("0 0 1 * MON#2").days(Days::Both);
        assert_eq!(problem(&never), ("schedule", "never fires".to_owned()));
        assert_eq!(problem(&"".into()).0, "schedule");
        assert_eq!(problem(&Schedule::new("* * * * *").timezone("Mars/Base")).0, "timezone");
    }

    #[test]
    fn firings_that_passed_are_counted_to_the_instant() {
        let minutely = Schedule::new("* * * * *").timetable("a").unwrap();
        let tick = at("2026-01-01T00:00:00Z");
        let passed = |now: &str| minutely.passed(tick, at(now));
        assert_eq!(passed("2026-01-01T00:00:00Z"), (0, None));
        assert_eq!(passed("2025-12-31T23:00:00Z"), (0, None), "a clock that was set back");
        assert_eq!(passed("2026-01-01T00:00:59.999Z"), (0, None));
        let first = Some(at("2026-01-01T00:01:00Z"));
        assert_eq!(passed("2026-01-01T00:01:00Z"), (1, first));
        assert_eq!(passed("2026-01-01T00:01:59.5Z"), (1, first));
        assert_eq!(passed("2026-01-01T01:00:00Z"), (60, Some(at("2026-01-01T01:00:00Z"))));
    }
}
