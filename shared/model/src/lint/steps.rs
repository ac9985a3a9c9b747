//! Lints steps: those past their range, and those that do not divide their field.

use super::{Code, Finding, Severity};
use crate::cron::{Field, Fields, Item, parse_number};
use crate::duration;
use crate::job::MAX_PERIOD;
use crate::quoting::escaped;

/// Finds in each field the first item whose step leaves only its start, as `*/90` of minutes.
pub(super) fn too_large(fields: Fields<'_>, name: &str) -> Vec<Finding> {
    let all = [
        (Field::Second, fields.second),
        (Field::Minute, fields.minute),
        (Field::Hour, fields.hour),
        (Field::DayOfMonth, fields.day_of_month),
        (Field::Month, fields.month),
        (Field::DayOfWeek, fields.day_of_week),
    ];
    let found = all.into_iter().filter_map(|(field, text)| {
        text.split(',')
            .find_map(|item| single_number(field, item, name).map(|first| (field, item, first)))
    });
    found.map(|(field, item, first)| step_too_large(field, item, first)).collect()
}

/// Returns the only number of an item with a step of more than 1.
fn single_number(field: Field, item: &str, name: &str) -> Option<u8> {
    let (_, step) = item.split_once('/')?;
    if parse_number(step).ok()? == 1 {
        return None;
    }
    // Relative days have no step, so they are no such items.
    let mut numbers = Item::parse(field, item, name).ok()?.numbers();
    let first = numbers.next()?;
    // The week has two Sundays.
    let same = |number: u8| field == Field::DayOfWeek && number % 7 == first % 7;
    numbers.all(same).then_some(first)
}

fn step_too_large(field: Field, item: &str, first: u8) -> Finding {
    let message = format!(
        "{} in the {field} selects {first} alone: the step leads past the end of the range",
        escaped(item)
    );
    let instead = match period(field, item) {
        Some(period) => format!("{first}, or another schedule: every = \"{period}\""),
        None => format!("{first}, or a smaller step"),
    };
    Finding::new(Code::StepTooLarge, Severity::Warning, message, instead)
}

/// Returns the step as `every` writes it, if it covers the whole field and no period is longer.
fn period(field: Field, item: &str) -> Option<String> {
    let unit = match field {
        Field::Second => "s",
        Field::Minute => "m",
        Field::Hour => "h",
        Field::DayOfMonth => "d",
        Field::Month | Field::DayOfWeek => return None,
    };
    let step: u64 = item.strip_prefix("*/")?.parse().ok()?;
    let period = format!("{step}{unit}");
    duration::parse(&period).is_ok_and(|length| length <= MAX_PERIOD).then_some(period)
}

/// Finds uneven steps in cyclic fields: every 25 minutes is not `*/25`.
pub(super) fn uneven(fields: Fields<'_>) -> Vec<Finding> {
    let round = [
        (fields.second, 60_u32, "second", "s"),
        (fields.minute, 60, "minute", "m"),
        (fields.hour, 24, "hour", "h"),
    ];
    let uneven = round.iter().filter_map(|(text, size, field, unit)| {
        let step: u32 = text.strip_prefix("*/")?.parse().ok()?;
        if step >= *size || size.is_multiple_of(step) {
            return None;
        }
        let remaining = size - (size - 1) / step * step;
        let message = format!(
            "*/{step} in the {field} begins anew at 0, so the last step is {remaining}{unit} in place of {step}{unit}"
        );
        let instead = format!("every = \"{step}{unit}\", or a step that divides {size}");
        Some(Finding::new(Code::UnevenStep, Severity::Warning, message, instead))
    });
    uneven.collect()
}
