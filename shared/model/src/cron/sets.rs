//! Turns the six fields into bit masks, with the `cron` crate as the parser.
//!
//! The crate only computes sets of numbers: its input is exactly seven fields of plain numbers, ranges and steps
//! inside their bounds, and its `Schedule` is dropped once the sets are read. It counts weekdays from 1 = Sunday,
//! joins numbers across blanks, combines the day fields its own way, forgets whether a field was starred, and its
//! iterator can return past instants; none of that reaches this program.

use std::collections::BTreeSet;
use std::str::FromStr;

use chrono::{Datelike, NaiveDate};
use cron::{Schedule, TimeUnitSpec};

use super::day_rule::DayRule;
use super::error::{CronError, Field, Reason};
use super::fields::{Fields, is_starred};
use super::item::Item;
use super::month::Month;
use super::relative::{RelativeDay, RelativeDays};
use crate::steps::step;

/// The numbers that each field selects, bit `n` for number `n`. Only the sets of the day fields may be empty, and
/// only if there are `relative_days`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sets {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u64,
    /// Bits 1-31.
    days_of_month: u64,
    /// Bits 1-12.
    months: u64,
    /// Bits 0-6; 0 is Sunday.
    days_of_week: u8,
    relative_days: RelativeDays,
    pub(super) day_rule: DayRule,
}

impl Sets {
    /// Validates every field and computes the sets, for the job called `name` that says `days`, or nothing about them.
    ///
    /// # Errors
    ///
    /// The first wrong item, in the order of the fields.
    pub(super) fn read(
        fields: Fields<'_>,
        name: &str,
        days: Option<DayRule>,
    ) -> Result<Self, CronError> {
        let list = |field, text| ItemList::read(field, text, name);
        let second = list(Field::Second, fields.second)?;
        let minute = list(Field::Minute, fields.minute)?;
        let hour = list(Field::Hour, fields.hour)?;
        let day_of_month = list(Field::DayOfMonth, fields.day_of_month)?;
        let month = list(Field::Month, fields.month)?;
        let day_of_week = list(Field::DayOfWeek, fields.day_of_week)?;

        let seven = format!(
            "{} {} {} {} {} {} *",
            second.clean(),
            minute.clean(),
            hour.clean(),
            day_of_month.clean(),
            month.clean(),
            day_of_week.clean_weekdays()
        );
        let schedule =
            Schedule::from_str(&seven).map_err(|_| CronError::whole(Reason::Unreadable))?;
        let mut relative_days = RelativeDays::default();
        for day in day_of_month.relative.iter().chain(&day_of_week.relative) {
            relative_days.insert(*day);
        }
        Ok(Self {
            seconds: mask(schedule.seconds()),
            minutes: mask(schedule.minutes()),
            hours: mask(schedule.hours()),
            days_of_month: day_of_month.only_if_numbers(mask(schedule.days_of_month())),
            months: mask(schedule.months()),
            // Converts from the crate's 1 = Sunday.
            days_of_week: day_of_week.only_if_numbers(mask(schedule.days_of_week()) >> 1) as u8,
            relative_days,
            day_rule: DayRule::of(days, fields),
        })
    }

    /// Returns whether the month that begins at `first` is selected; it may have none of the days.
    pub(crate) fn selects_month(&self, first: NaiveDate) -> bool {
        self.months & (1 << first.month()) != 0
    }

    /// Returns the selected days of the month that begins at `first`, bit `n` for day `n`.
    pub(crate) fn days_in(&self, first: NaiveDate) -> u64 {
        step();
        if !self.selects_month(first) {
            return 0;
        }
        let month = Month::beginning(first);
        let by_month = self.days_of_month & month.days() | self.relative_days.by_month(month);
        let by_week = month.spread(self.days_of_week) | self.relative_days.by_week(month);
        match self.day_rule {
            DayRule::Both => by_month & by_week,
            DayRule::Either => by_month | by_week,
        }
    }
}

/// The items of one field.
struct ItemList {
    /// Without repetitions, so that the crate's work is bounded by the field's range and not by its text.
    items: BTreeSet<Item>,
    relative: Vec<RelativeDay>,
}

impl ItemList {
    fn read(field: Field, text: &str, name: &str) -> Result<Self, CronError> {
        let mut list = Self { items: BTreeSet::new(), relative: Vec::new() };
        let mut starred = false;
        for item in text.split(',') {
            let refused = |reason| CronError::at(Some(field), item, reason);
            if let Some(day) = RelativeDay::parse(field, item).map_err(refused)? {
                list.relative.push(day);
            } else {
                list.items.insert(Item::parse(field, item, name).map_err(refused)?);
                starred |= is_starred(item);
            }
            if starred && !list.relative.is_empty() {
                return Err(refused(Reason::BesideStar));
            }
        }
        Ok(list)
    }

    /// Returns the numbers for the crate, at least one.
    fn clean(&self) -> String {
        if self.items.is_empty() { "*".to_owned() } else { join(&self.items) }
    }

    /// Returns the weekdays spelt out, counted from 1 = Sunday as the crate does.
    fn clean_weekdays(&self) -> String {
        let days: BTreeSet<u8> =
            self.items.iter().flat_map(|item| item.numbers()).map(|day| day % 7 + 1).collect();
        if days.is_empty() { "*".to_owned() } else { join(&days) }
    }

    /// Returns the crate's mask, unless the field has no numbers.
    fn only_if_numbers(&self, mask: u64) -> u64 {
        if self.items.is_empty() { 0 } else { mask }
    }
}

fn join<T: ToString>(parts: &BTreeSet<T>) -> String {
    parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn mask(set: &impl TimeUnitSpec) -> u64 {
    // The crate's ordinals end at 59, except for years, which no caller needs.
    set.iter().filter(|number| *number < u64::BITS).fold(0, |mask, number| mask | 1 << number)
}
