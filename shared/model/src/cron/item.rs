//! Reads one item of a field's comma list: `*`, `*/n`, `a`, `a-b`, `a-b/n`, `a/n`.
//!
//! An item leaves here as plain numbers inside the field's bounds with a step that is smaller than
//! its span, which is what makes it safe to hand to the `cron` crate: names, `?`, `a/n`, steps
//! above the maximum (one hit, the start) and Sunday at the end of a range are all settled here.
//!
//! It does not know about other items, other fields or what day of the week 0 is.

use std::fmt;

use super::error::{Field, Reason};

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The numbers `start`, `start + step`, … up to `end`, all inside the field's bounds.
///
/// `step` is at least 1, and 1 where there is a single number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    start: u8,
    end: u8,
    step: u8,
}

impl Item {
    /// Reads `text` as an item of `field`.
    ///
    /// # Errors
    ///
    /// The first reason from the left why it is not one.
    pub(super) fn parse(field: Field, text: &str) -> Result<Self, Reason> {
        if text.is_empty() {
            return Err(Reason::EmptyItem);
        }
        if is_extension(field, text) {
            return Err(Reason::NotSupportedYet);
        }
        let (base, step) = match text.split_once('/') {
            Some((base, step)) => (base, Some(step)),
            None => (text, None),
        };
        let (_, max) = field.bounds();
        let (start, end) = parse_base(field, base)?;
        let Some(step) = step else {
            return Ok(Self { start, end: end.unwrap_or(start), step: 1 });
        };
        let end = end.unwrap_or(max);
        match parse_number(step)? {
            0 => Err(Reason::ZeroStep),
            step => Ok(match u8::try_from(step) {
                Ok(step) if step <= end - start => Self { start, end, step },
                _ => Self { start, end: start, step: 1 },
            }),
        }
    }

    /// The item's numbers, ascending.
    pub(super) fn numbers(self) -> impl Iterator<Item = u8> {
        (self.start..=self.end).step_by(usize::from(self.step))
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { start, end, step } = self;
        match (start == end, step) {
            (true, _) => write!(f, "{start}"),
            (false, 1) => write!(f, "{start}-{end}"),
            (false, _) => write!(f, "{start}-{end}/{step}"),
        }
    }
}

impl Field {
    /// The least and the greatest number of the field.
    fn bounds(self) -> (u8, u8) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (0, 7),
        }
    }

    fn is_day(self) -> bool {
        matches!(self, Self::DayOfMonth | Self::DayOfWeek)
    }
}

/// What stands before the step: the start, and the end unless it is a single number.
fn parse_base(field: Field, base: &str) -> Result<(u8, Option<u8>), Reason> {
    let (min, max) = field.bounds();
    if base.starts_with('?') && !field.is_day() {
        return Err(Reason::QuestionMark);
    }
    if let Some(rest) = base.strip_prefix(['*', '?']) {
        return if rest.is_empty() { Ok((min, Some(max))) } else { Err(Reason::Trailing) };
    }
    let Some((start, end)) = base.split_once('-') else {
        return Ok((parse_value(field, base)?, None));
    };
    let (from, mut to) = (parse_value(field, start)?, parse_value(field, end)?);
    // `FRI-SUN` means the Sunday that follows; by number that Sunday is written 7.
    if field == Field::DayOfWeek && from > 0 && end.eq_ignore_ascii_case(WEEKDAYS[0]) {
        to = max;
    }
    if to < from { Err(Reason::Reversed) } else { Ok((from, Some(to))) }
}

fn parse_value(field: Field, text: &str) -> Result<u8, Reason> {
    if text.starts_with(|first: char| first.is_ascii_alphabetic()) {
        return parse_name(field, text);
    }
    let (min, max) = field.bounds();
    u8::try_from(parse_number(text)?)
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or(Reason::OutOfRange { min, max })
}

fn parse_name(field: Field, text: &str) -> Result<u8, Reason> {
    let (names, first, known): (&[&str], u8, _) = match field {
        Field::Month => (&MONTHS, 1, "JAN-DEC"),
        Field::DayOfWeek => (&WEEKDAYS, 0, "SUN-SAT"),
        _ => return Err(Reason::NameElsewhere),
    };
    (first..)
        .zip(names)
        .find(|(_, name)| name.eq_ignore_ascii_case(text))
        .map(|(number, _)| number)
        .ok_or(Reason::UnknownName { known })
}

/// Reads decimal digits; too many of them give `u32::MAX`, which is outside every field.
fn parse_number(text: &str) -> Result<u32, Reason> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match digits {
        0 => Err(Reason::Malformed),
        n if n < text.len() => Err(Reason::Trailing),
        _ => Ok(text.bytes().fold(0_u32, |number, digit| {
            number.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
        })),
    }
}

/// Whether the item means one of the extensions that are refused as not supported yet, so that
/// its writer is not told about a typing mistake that is none.
fn is_extension(field: Field, text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    let begins_with_digit = text.starts_with(|first: char| first.is_ascii_digit());
    if let Some(rest) = text.strip_prefix('H') {
        return rest.is_empty() || rest.starts_with(['/', '(']);
    }
    match field {
        Field::DayOfMonth => {
            matches!(text.as_str(), "L" | "LW")
                || text.starts_with("L-")
                || begins_with_digit && text.ends_with('W')
        }
        Field::DayOfWeek => {
            text.contains('#')
                || text.strip_suffix('L').is_some_and(|day| {
                    day.is_empty() || begins_with_digit || WEEKDAYS.contains(&day)
                })
        }
        _ => false,
    }
}
