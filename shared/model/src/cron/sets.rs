//! Turns the six fields into bit masks, with the `cron` crate as the parser.
//!
//! The crate is trusted with nothing but sets of numbers: it gets exactly seven fields of plain
//! numbers, ranges and steps inside their bounds, and its `Schedule` is dropped as soon as the sets
//! are read. It counts weekdays from 1 = Sunday, joins numbers across blanks, combines the day
//! fields its own way, forgets whether a field was starred, and its iterator can answer the past;
//! none of that can be reached from here.

use std::collections::BTreeSet;
use std::str::FromStr;

use cron::{Schedule, TimeUnitSpec};

use super::error::{CronError, Field, Reason};
use super::fields::Fields;
use super::item::Item;

/// The numbers that each field selects, bit `n` for number `n`; none of the sets is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sets {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u64,
    /// Bits 1-31.
    pub(super) days_of_month: u64,
    /// Bits 1-12.
    pub(super) months: u64,
    /// Bits 0-6; 0 is Sunday.
    pub(super) days_of_week: u64,
    pub(super) day_rule: DayRule,
}

/// How the two day fields are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DayRule {
    /// A day is selected if either field selects it: neither field's text begins with `*` or `?`.
    Either,
    /// A day is selected if both fields select it.
    Both,
}

impl Sets {
    /// Validates every field and reads the sets.
    ///
    /// # Errors
    ///
    /// The first wrong item, in the order in which the fields are written.
    pub(super) fn read(fields: Fields<'_>) -> Result<Self, CronError> {
        let second = clean(Field::Second, fields.second)?;
        let minute = clean(Field::Minute, fields.minute)?;
        let hour = clean(Field::Hour, fields.hour)?;
        let day_of_month = clean(Field::DayOfMonth, fields.day_of_month)?;
        let month = clean(Field::Month, fields.month)?;
        let day_of_week = clean_weekdays(fields.day_of_week)?;

        let seven = format!("{second} {minute} {hour} {day_of_month} {month} {day_of_week} *");
        let schedule =
            Schedule::from_str(&seven).map_err(|_| CronError::whole(Reason::Unreadable))?;
        Ok(Self {
            seconds: mask(schedule.seconds()),
            minutes: mask(schedule.minutes()),
            hours: mask(schedule.hours()),
            days_of_month: mask(schedule.days_of_month()),
            months: mask(schedule.months()),
            // Back from the crate's 1 = Sunday.
            days_of_week: mask(schedule.days_of_week()) >> 1,
            day_rule: DayRule::of(fields.day_of_month, fields.day_of_week),
        })
    }
}

impl DayRule {
    fn of(day_of_month: &str, day_of_week: &str) -> Self {
        // The text decides, not the set: `*/2` is starred, `0-7` is not.
        let starred = |text: &str| text.starts_with(['*', '?']);
        if starred(day_of_month) || starred(day_of_week) { Self::Both } else { Self::Either }
    }
}

/// The field's items without repetitions, so that the crate's work is bounded by what a field can
/// say and not by how often it is said.
fn items(field: Field, text: &str) -> Result<BTreeSet<Item>, CronError> {
    text.split(',')
        .map(|item| {
            Item::parse(field, item).map_err(|reason| CronError::at(Some(field), item, reason))
        })
        .collect()
}

fn clean(field: Field, text: &str) -> Result<String, CronError> {
    Ok(join(items(field, text)?))
}

/// Spells the weekdays out, counted from 1 = Sunday as the crate does.
fn clean_weekdays(text: &str) -> Result<String, CronError> {
    let days: BTreeSet<u8> = items(Field::DayOfWeek, text)?
        .into_iter()
        .flat_map(Item::numbers)
        .map(|day| day % 7 + 1)
        .collect();
    Ok(join(days))
}

fn join<T: ToString>(parts: BTreeSet<T>) -> String {
    parts.into_iter().map(|part| part.to_string()).collect::<Vec<_>>().join(",")
}

fn mask(set: &impl TimeUnitSpec) -> u64 {
    // The crate's ordinals end at 59, but for years, which are never asked for.
    set.iter().filter(|number| *number < u64::BITS).fold(0, |mask, number| mask | 1 << number)
}
