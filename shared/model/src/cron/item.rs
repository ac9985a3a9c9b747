//! Parses one item of a field's comma list: `*`, `*/n`, `a`, `a-b`, `a-b/n`, `a/n`, `H` and its forms.
//!
//! The result is plain numbers inside the field's bounds with a step that is smaller than its span, which makes it
//! safe input for the `cron` crate: names, `?`, `a/n`, steps above the maximum (one hit, the start), Sunday at the
//! end of a range and the job's `H` are all resolved here.
//!
//! It does not know about other items, other fields or which day of the week 0 is.

use std::fmt;

use super::error::{Field, Reason};
use super::{relative, spread};

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
pub(super) const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// The numbers `start`, `start + step`, … up to `end`, all inside the field's bounds.
///
/// `step` is at least 1, and 1 where there is a single number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Item {
    start: u8,
    end: u8,
    step: u8,
}

impl Item {
    /// Parses `text` as an item of `field`, for the job called `name`.
    ///
    /// # Errors
    ///
    /// The first problem from the left.
    pub(crate) fn parse(field: Field, text: &str, name: &str) -> Result<Self, Reason> {
        if text.is_empty() {
            return Err(Reason::EmptyItem);
        }
        if relative::is_relative_day(text) {
            return Err(Reason::ExtensionElsewhere);
        }
        if let Some(form) = text.strip_prefix(['H', 'h'])
            && !form.starts_with(|next: char| next.is_ascii_alphanumeric())
        {
            return Self::spread(field, form, name);
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
        let step = parse_step(step)?;
        Ok(Self::stepped(start, end.unwrap_or(max), step))
    }

    /// Makes an item; a step beyond the end selects only the start.
    fn stepped(start: u8, end: u8, step: u32) -> Self {
        match u8::try_from(step) {
            Ok(step) if step <= end - start => Self { start, end, step },
            _ => Self { start, end: start, step: 1 },
        }
    }

    /// Parses the text after `H`: nothing (any number of the field), `/n` (every n-th, from one of the first n on) or
    /// `(a-b)` (any number of the range).
    fn spread(field: Field, form: &str, name: &str) -> Result<Self, Reason> {
        let (min, max) = field.bounds();
        let (first, last) = field.spread_over();
        let any = |first: u8, last: u8| first + spread::below(last - first + 1, name, field);
        let one = |number| Self { start: number, end: number, step: 1 };
        if form.is_empty() {
            return Ok(one(any(first, last)));
        }
        if let Some(step) = form.strip_prefix('/') {
            let step = parse_step(step)?;
            let phases = u8::try_from(step).map_or(last, |step| last.min(min + (step - 1)));
            return Ok(Self::stepped(any(first, phases), max, step));
        }
        let range = form.strip_prefix('(').and_then(|remaining| remaining.strip_suffix(')'));
        let (from, to) =
            range.and_then(|range| range.split_once('-')).ok_or(Reason::MalformedSpread)?;
        let (from, to) = parse_range(field, from, to)?;
        Ok(one(any(from, to)))
    }

    /// Yields the item's numbers, ascending.
    pub(crate) fn numbers(self) -> impl Iterator<Item = u8> {
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
    /// Returns the smallest and the largest number of the field.
    pub(super) fn bounds(self) -> (u8, u8) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (0, 7),
        }
    }

    /// Returns the numbers from which `H` chooses: the days that every month has, and one of the two Sundays.
    fn spread_over(self) -> (u8, u8) {
        match self {
            Self::DayOfMonth => (1, 28),
            Self::DayOfWeek => (0, 6),
            other => other.bounds(),
        }
    }

    fn is_day(self) -> bool {
        matches!(self, Self::DayOfMonth | Self::DayOfWeek)
    }
}

/// Parses the part before the step: the start, and the end unless it is a single number.
fn parse_base(field: Field, base: &str) -> Result<(u8, Option<u8>), Reason> {
    let (min, max) = field.bounds();
    if base.starts_with('?') && !field.is_day() {
        return Err(Reason::QuestionMark);
    }
    if let Some(remaining) = base.strip_prefix(['*', '?']) {
        return if remaining.is_empty() { Ok((min, Some(max))) } else { Err(Reason::Trailing) };
    }
    let Some((start, end)) = base.split_once('-') else {
        return Ok((parse_value(field, base)?, None));
    };
    parse_range(field, start, end).map(|(from, to)| (from, Some(to)))
}

/// Parses the two ends of a range, in order.
fn parse_range(field: Field, start: &str, end: &str) -> Result<(u8, u8), Reason> {
    let (_, max) = field.bounds();
    let (from, mut to) = (parse_value(field, start)?, parse_value(field, end)?);
    // `FRI-SUN` ends with the following Sunday, whose number is then 7.
    if field == Field::DayOfWeek && from > 0 && end.eq_ignore_ascii_case(WEEKDAYS[0]) {
        to = max;
    }
    if to < from { Err(Reason::Reversed) } else { Ok((from, to)) }
}

fn parse_step(text: &str) -> Result<u32, Reason> {
    match parse_number(text)? {
        0 => Err(Reason::ZeroStep),
        step => Ok(step),
    }
}

pub(super) fn parse_value(field: Field, text: &str) -> Result<u8, Reason> {
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

/// Parses decimal digits; too many of them give `u32::MAX`, which is outside every field.
pub(crate) fn parse_number(text: &str) -> Result<u32, Reason> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match digits {
        0 => Err(Reason::Malformed),
        n if n < text.len() => Err(Reason::Trailing),
        _ => Ok(text.bytes().fold(0_u32, |number, digit| {
            number.saturating_mul(10).saturating_add(u32::from(digit - b'0'))
        })),
    }
}
