//! The relative days, computed for one date at a time.

use std::fmt;

use chrono::{Datelike, Days, NaiveDate};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
pub(super) enum Day {
    BeforeLast(u32),
    LastWorkday,
    WorkdayNear(u32),
    LastWeekday(u32),
    Nth(u32, u32),
}

impl Day {
    pub(super) fn is(self, day: NaiveDate) -> bool {
        let later = |days: u64| day.checked_add_days(Days::new(days)).unwrap();
        let weekday = day.weekday().num_days_from_sunday();
        match self {
            Self::BeforeLast(0) => later(1).month() != day.month(),
            Self::BeforeLast(n) => {
                let last = later(u64::from(n));
                last.month() == day.month() && Self::BeforeLast(0).is(last)
            }
            Self::LastWorkday => {
                is_workday(day)
                    && !(1..=3).map(later).any(|d| d.month() == day.month() && is_workday(d))
            }
            Self::WorkdayNear(n) => nearest_workday(day, n) == Some(day),
            Self::LastWeekday(n) => weekday == n % 7 && later(7).month() != day.month(),
            Self::Nth(n, k) => weekday == n % 7 && (day.day() - 1) / 7 + 1 == k,
        }
    }
}

fn is_workday(day: NaiveDate) -> bool {
    (1..=5).contains(&day.weekday().num_days_from_sunday())
}

/// Stays in the month of `any`.
fn nearest_workday(any: NaiveDate, n: u32) -> Option<NaiveDate> {
    let there = any.with_day(n)?;
    (1..=31)
        .filter_map(|day| any.with_day(day))
        .filter(|day| is_workday(*day))
        .min_by_key(|day| (*day - there).num_days().abs())
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BeforeLast(0) => f.write_str("L"),
            Self::BeforeLast(n) => write!(f, "L-{n}"),
            Self::LastWorkday => f.write_str("LW"),
            Self::WorkdayNear(n) => write!(f, "{n}W"),
            Self::LastWeekday(n) => write!(f, "{n}L"),
            Self::Nth(n, k) => write!(f, "{n}#{k}"),
        }
    }
}

pub(super) fn of_month() -> impl Strategy<Value = Day> {
    prop_oneof![
        Just(Day::BeforeLast(0)),
        (0..=30_u32).prop_map(Day::BeforeLast),
        Just(Day::LastWorkday),
        (1..=31_u32).prop_map(Day::WorkdayNear),
    ]
}

pub(super) fn of_week() -> impl Strategy<Value = Day> {
    prop_oneof![
        (0..=7_u32).prop_map(Day::LastWeekday),
        (0..=7_u32, 1..=5_u32).prop_map(|(day, k)| Day::Nth(day, k)),
    ]
}
