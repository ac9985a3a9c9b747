//! An independent implementation of the rules: expressions as parts, matched by arithmetic, walked by day and second.
//! Slow, obvious, and without a single mask.

#[path = "naive_days.rs"]
mod days;

use std::fmt;

use chrono::{DateTime, Datelike, Duration, NaiveDate, NaiveTime, Timelike, Utc};
use proptest::prelude::*;

use crate::cron::DayRule;
use days::Day;

/// One item, as its writer thinks of it.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Any(char),
    AnyStep(char, u32),
    One(u32),
    Range(u32, u32),
    RangeStep(u32, u32, u32),
    From(u32, u32),
}

impl Part {
    fn selects(&self, number: u32, min: u32) -> bool {
        let hit = |from: u32, step: u32| number >= from && (number - from).is_multiple_of(step);
        match *self {
            Self::Any(_) => true,
            Self::AnyStep(_, step) => hit(min, step),
            Self::One(one) => number == one,
            Self::Range(from, to) => number <= to && hit(from, 1),
            Self::RangeStep(from, to, step) => number <= to && hit(from, step),
            Self::From(from, step) => hit(from, step),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any(star) => write!(f, "{star}"),
            Self::AnyStep(star, step) => write!(f, "{star}/{step}"),
            Self::One(one) => write!(f, "{one}"),
            Self::Range(from, to) => write!(f, "{from}-{to}"),
            Self::RangeStep(from, to, step) => write!(f, "{from}-{to}/{step}"),
            Self::From(from, step) => write!(f, "{from}/{step}"),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct List {
    min: u32,
    parts: Vec<Part>,
    /// In the day fields; then no part is starred.
    days: Vec<Day>,
}

impl List {
    fn selects(&self, number: u32) -> bool {
        self.parts.iter().any(|part| part.selects(number, self.min))
    }

    fn selects_day(&self, day: NaiveDate) -> bool {
        self.days.iter().any(|relative| relative.is(day))
    }

    fn starred(&self) -> bool {
        matches!(self.parts.first(), Some(Part::Any(_) | Part::AnyStep(..)))
    }

    /// Returns whether it is a star alone.
    fn plain(&self) -> bool {
        matches!(self.parts[..], [Part::Any(_)]) && self.days.is_empty()
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<_> = self
            .parts
            .iter()
            .map(ToString::to_string)
            .chain(self.days.iter().map(ToString::to_string))
            .collect();
        f.write_str(&parts.join(","))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Naive {
    /// `None` in five fields.
    second: Option<List>,
    minute: List,
    hour: List,
    day_of_month: List,
    month: List,
    day_of_week: List,
    /// What a job says beside the text.
    days: Option<DayRule>,
}

impl fmt::Display for Naive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(second) = &self.second {
            write!(f, "{second} ")?;
        }
        let Self { minute, hour, day_of_month, month, day_of_week, .. } = self;
        write!(f, "{minute} {hour} {day_of_month} {month} {day_of_week}")
    }
}

impl Naive {
    fn selects_day(&self, day: NaiveDate) -> bool {
        let by_month = self.day_of_month.selects(day.day()) || self.day_of_month.selects_day(day);
        let weekday = day.weekday().num_days_from_sunday();
        let by_week = self.day_of_week.selects(weekday)
            || weekday == 0 && self.day_of_week.selects(7)
            || self.day_of_week.selects_day(day);
        let (day_of_month, day_of_week) = (&self.day_of_month, &self.day_of_week);
        let both = match self.days {
            // A star alone is no choice of days.
            Some(DayRule::Either) => day_of_month.plain() || day_of_week.plain(),
            Some(DayRule::Both) => true,
            None => day_of_month.starred() || day_of_week.starred(),
        };
        self.month.selects(day.month())
            && if both { by_month && by_week } else { by_month || by_week }
    }

    /// Returns the same for a job that says this.
    pub(super) fn with_days(self, days: Option<DayRule>) -> Self {
        Self { days, ..self }
    }

    /// Returns the same with the day fields of another.
    pub(super) fn on_days_of(self, other: Self) -> Self {
        let Self { day_of_month, day_of_week, days, .. } = other;
        Self { day_of_month, day_of_week, days, ..self }
    }

    /// Returns what a job says about the day fields.
    pub(super) fn days(&self) -> Option<DayRule> {
        self.days
    }

    fn selects_second(&self, second: u32) -> bool {
        self.second.as_ref().map_or(second == 0, |list| list.selects(second))
    }

    /// Returns whether C8 applies, as the texts say.
    pub(super) fn wildcard(&self) -> bool {
        self.minute.starred() || self.hour.starred()
    }

    /// Returns the same with five fields.
    pub(super) fn without_seconds(self) -> Self {
        Self { second: None, ..self }
    }

    /// Returns whether it has a second of its own.
    pub(super) fn has_seconds(&self) -> bool {
        self.second.is_some()
    }

    pub(super) fn selects(&self, instant: DateTime<Utc>) -> bool {
        instant.nanosecond() == 0
            && self.selects_day(instant.date_naive())
            && self.hour.selects(instant.hour())
            && self.minute.selects(instant.minute())
            && self.selects_second(instant.second())
    }

    /// Returns the first match strictly after `from`, checking second by second for `seconds`.
    pub(super) fn walk_seconds(&self, from: DateTime<Utc>, seconds: i64) -> Option<DateTime<Utc>> {
        let start = from.with_nanosecond(0)?;
        (1..=seconds).map(|n| start + Duration::seconds(n)).find(|instant| self.selects(*instant))
    }

    /// Returns the first match strictly after `from`, checking day by day for `days`, then by the minute and second.
    pub(super) fn walk_days(&self, from: DateTime<Utc>, days: usize) -> Option<DateTime<Utc>> {
        let selected = from.date_naive().iter_days().take(days).filter(|d| self.selects_day(*d));
        for day in selected {
            let minutes = (0..24).flat_map(|hour| (0..60).map(move |minute| (hour, minute)));
            let found = minutes
                .filter(|(hour, minute)| self.hour.selects(*hour) && self.minute.selects(*minute))
                .flat_map(|(hour, minute)| (0..60).map(move |second| (hour, minute, second)))
                .filter(|(_, _, second)| self.selects_second(*second))
                .filter_map(|(h, m, s)| NaiveTime::from_hms_opt(h, m, s))
                .map(|time| day.and_time(time).and_utc())
                .find(|instant| *instant > from);
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

fn part(min: u32, max: u32, stars: &'static [char]) -> impl Strategy<Value = Part> {
    let star = prop::sample::select(stars);
    let number = min..=max;
    let range = (number.clone(), number.clone()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    // Steps beyond the field's maximum are valid, and select only the start.
    let step = 1..=2 * max;
    prop_oneof![
        2 => star.clone().prop_map(Part::Any),
        2 => (star, step.clone()).prop_map(|(star, step)| Part::AnyStep(star, step)),
        4 => number.clone().prop_map(Part::One),
        2 => range.clone().prop_map(|(from, to)| Part::Range(from, to)),
        2 => (range, step.clone()).prop_map(|((a, b), step)| Part::RangeStep(a, b, step)),
        2 => (number, step).prop_map(|(from, step)| Part::From(from, step)),
    ]
}

fn list(min: u32, max: u32, stars: &'static [char]) -> impl Strategy<Value = List> {
    let parts = prop_oneof![
        3 => prop::collection::vec(part(min, max, stars), 1),
        1 => prop::collection::vec(part(min, max, stars), 2..=4),
    ];
    parts.prop_map(move |parts| List { min, parts, days: Vec::new() })
}

/// A list of a day field, sometimes with relative days.
fn day_list(
    min: u32,
    max: u32,
    day: impl Strategy<Value = Day> + 'static,
) -> impl Strategy<Value = List> {
    let plain = list(min, max, &['*', '?']);
    let relative = (list(min, max, &['*', '?']), prop::collection::vec(day, 1..=3)).prop_map(
        |(list, days)| {
            let plain = |part: &Part| !matches!(part, Part::Any(_) | Part::AnyStep(..));
            let parts = list.parts.into_iter().filter(plain).collect();
            List { parts, days, ..list }
        },
    );
    prop_oneof![2 => plain, 1 => relative]
}

/// Any valid expression that fires on every day, often at an hour at which clocks change.
pub(super) fn daily(seconds: bool) -> impl Strategy<Value = Naive> {
    let night = prop_oneof![
        1 => list(0, 23, &['*']),
        3 => (0..4_u32).prop_map(|hour| List { min: 0, parts: vec![Part::One(hour)], days: vec![] }),
    ];
    let every = |min| List { min, parts: vec![Part::Any('*')], days: Vec::new() };
    let second =
        if seconds { list(0, 59, &['*']).prop_map(Some).boxed() } else { Just(None).boxed() };
    (second, list(0, 59, &['*']), night).prop_map(move |(second, minute, hour)| Naive {
        second,
        minute,
        hour,
        day_of_month: every(1),
        month: every(1),
        day_of_week: every(0),
        days: None,
    })
}

/// Any valid expression of five or six fields, without names and macros.
pub(crate) fn expressions() -> impl Strategy<Value = Naive> {
    (
        prop::option::of(list(0, 59, &['*'])),
        list(0, 59, &['*']),
        list(0, 23, &['*']),
        day_list(1, 31, days::of_month()),
        list(1, 12, &['*']),
        day_list(0, 7, days::of_week()),
    )
        .prop_map(|(second, minute, hour, day_of_month, month, day_of_week)| Naive {
            second,
            minute,
            hour,
            day_of_month,
            month,
            day_of_week,
            days: None,
        })
}

/// Any valid expression, of a job that says nothing about its day fields or either word.
pub(super) fn expressions_with_days() -> impl Strategy<Value = Naive> {
    let days = prop::sample::select(&[None, Some(DayRule::Both), Some(DayRule::Either)][..]);
    (expressions(), days).prop_map(|(naive, days)| naive.with_days(days))
}
