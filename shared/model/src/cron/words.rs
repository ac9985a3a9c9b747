//! A cron expression in plain English: `30 7 * * MON-FRI` is "at 07:30 from Monday to Friday".
//!
//! The words say when the clocks of the job's zone show a firing. An expression that would need a long sentence has none: its
//! text is easier to read then.

use super::error::Field;
use super::fields::Fields;
use super::item::Item;
use super::relative::RelativeDay;
use super::{DayRule, Dialect};

/// The most times of a day, days, weekdays or months that are listed.
const MAX_LISTED: usize = 4;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// From Monday, as weeks are read; `WEEKDAYS[0]` is day 1 of a field.
const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Says in words when an expression fires. `name` is the job's, which determines the numbers of `H`, and `days` its rule for
/// two restricting day fields. `None`: it does not parse, or it takes too many words.
pub fn describe(text: &str, name: &str, days: Option<DayRule>) -> Option<String> {
    let fields = Fields::split(text, Dialect::Any).ok()?;
    let numbers = |field, text| Numbers::read(field, text, name);
    let clock = Clock {
        second: numbers(Field::Second, fields.second)?,
        minute: numbers(Field::Minute, fields.minute)?,
        hour: numbers(Field::Hour, fields.hour)?,
    };
    let (times, is_daily) = clock.describe()?;
    let month = numbers(Field::Month, fields.month)?;
    let days = describe_days(&fields, &month, name, DayRule::of(days, fields))?;
    Some(match (days, is_daily) {
        (None, true) => format!("every day {times}"),
        (None, false) => times,
        (Some(days), _) => format!("{times} {days}"),
    })
}

/// The numbers that a field selects.
#[derive(PartialEq, Eq, Debug)]
enum Numbers {
    /// All of them.
    Any,
    /// Every n-th, from the first one on, the same all the way round: n divides their number.
    Step(u8),
    /// At least three that follow one another.
    Range(u8, u8),
    /// These, ascending.
    List(Vec<u8>),
}

impl Numbers {
    fn read(field: Field, text: &str, name: &str) -> Option<Self> {
        let mut numbers = Vec::new();
        for item in text.split(',') {
            numbers.extend(Item::parse(field, item, name).ok()?.numbers());
        }
        if field == Field::DayOfWeek {
            numbers.iter_mut().filter(|number| **number == 0).for_each(|number| *number = 7);
        }
        numbers.sort_unstable();
        numbers.dedup();
        let (first, last) = match field {
            Field::DayOfWeek => (1, 7),
            other => other.bounds(),
        };
        Some(Self::of(numbers, first, last))
    }

    fn of(numbers: Vec<u8>, first: u8, last: u8) -> Self {
        let count = last - first + 1;
        if numbers.len() == usize::from(count) {
            return Self::Any;
        }
        if let [one, .., end] = numbers[..]
            && numbers.len() >= 3
            && usize::from(end - one) + 1 == numbers.len()
        {
            return Self::Range(one, end);
        }
        // Only of the clock: the days of a month and the months begin anew at other places.
        if let [one, two, ..] = numbers[..]
            && first == 0
            && one == 0
            && count.is_multiple_of(two)
            && numbers.len() == usize::from(count / two)
            && numbers.iter().all(|number| number.is_multiple_of(two))
        {
            return Self::Step(two);
        }
        Self::List(numbers)
    }

    /// Those that can be listed.
    fn listed(&self) -> Option<&[u8]> {
        match self {
            Self::List(numbers) if numbers.len() <= MAX_LISTED => Some(numbers),
            _ => None,
        }
    }

    /// The only one.
    fn single(&self) -> Option<u8> {
        match self {
            Self::List(numbers) => match numbers[..] {
                [one] => Some(one),
                _ => None,
            },
            _ => None,
        }
    }
}

struct Clock {
    second: Numbers,
    minute: Numbers,
    hour: Numbers,
}

impl Clock {
    /// Says at which times of a day it fires, and whether these are single times, as in "at 07:30".
    fn describe(&self) -> Option<(String, bool)> {
        match self.second.single() {
            Some(0) => self.describe_minutes(),
            Some(second) => self.describe_second(second),
            None => Some((self.describe_seconds()?, false)),
        }
    }

    fn describe_minutes(&self) -> Option<(String, bool)> {
        if let (Some(hours), Some(minutes)) = (self.hour.listed(), self.minute.listed()) {
            let times = hours.iter().flat_map(|hour| {
                minutes.iter().map(move |minute| format!("{hour:02}:{minute:02}"))
            });
            let times: Vec<String> = times.collect();
            return (times.len() <= MAX_LISTED).then(|| (format!("at {}", join(&times)), true));
        }
        let often = match &self.minute {
            Numbers::Any => "every minute".to_owned(),
            Numbers::Step(2) => "every second minute".to_owned(),
            Numbers::Step(step) => format!("every {step} minutes"),
            minutes => return Some((self.describe_hours(minutes.listed()?)?, false)),
        };
        Some((format!("{often}{}", self.between()?), false))
    }

    /// Once or a few times an hour.
    fn describe_hours(&self, minutes: &[u8]) -> Option<String> {
        let past: Vec<String> = minutes.iter().map(|minute| format!(":{minute:02}")).collect();
        let past = join(&past);
        Some(match self.hour {
            Numbers::Any => format!("every hour at {past}"),
            Numbers::Step(2) => format!("every second hour at {past}"),
            Numbers::Step(step) => format!("every {step} hours at {past}"),
            Numbers::Range(from, to) => {
                let (first, last) = (minutes.first()?, minutes.last()?);
                let range = format!("from {from:02}:{first:02} to {to:02}:{last:02}");
                format!("every hour at {past}, {range}")
            }
            Numbers::List(_) => return None,
        })
    }

    /// At a second other than the first of its minute.
    fn describe_second(&self, second: u8) -> Option<(String, bool)> {
        match (self.hour.single(), self.minute.single(), &self.minute, &self.hour) {
            (Some(hour), Some(minute), ..) => {
                Some((format!("at {hour:02}:{minute:02}:{second:02}"), true))
            }
            (_, _, Numbers::Any, Numbers::Any) => {
                Some((format!("every minute at second {second}"), false))
            }
            (_, Some(minute), _, Numbers::Any) => {
                Some((format!("every hour at :{minute:02}:{second:02}"), false))
            }
            _ => None,
        }
    }

    fn describe_seconds(&self) -> Option<String> {
        let often = match self.second {
            Numbers::Any => "every second".to_owned(),
            Numbers::Step(step) => format!("every {step} seconds"),
            _ => return None,
        };
        if self.minute != Numbers::Any {
            return None;
        }
        Some(format!("{often}{}", self.between()?))
    }

    /// Between which hours, of what happens several times in an hour.
    fn between(&self) -> Option<String> {
        Some(match (&self.hour, self.hour.single()) {
            (Numbers::Any, _) => String::new(),
            (Numbers::Range(from, to), _) => format!(" between {from:02}:00 and {to:02}:59"),
            (_, Some(hour)) => format!(" between {hour:02}:00 and {hour:02}:59"),
            _ => return None,
        })
    }
}

/// Says on which days; the outer `None`: too many words, the inner one: on every day.
#[expect(
    clippy::option_option,
    reason = "no words are needed is not the same as no words are found"
)]
fn describe_days(
    fields: &Fields<'_>,
    month: &Numbers,
    name: &str,
    rule: DayRule,
) -> Option<Option<String>> {
    let months = describe_months(month)?;
    let of_month = describe_days_of_month(fields.day_of_month, month, months.as_deref(), name)?;
    let of_week = describe_days_of_week(fields.day_of_week, months.as_deref(), name)?;
    let in_months = months.as_deref().map(|months| format!("in {months}"));
    Some(match (of_month, of_week, rule) {
        (None, None, _) => in_months.map(|months| format!("every day {months}")),
        // Every day is one of those that either field selects.
        (None, Some(_), DayRule::Either) | (Some(_), None, DayRule::Either) => in_months,
        (None, Some((days, true)), DayRule::Both) | (Some(days), None, DayRule::Both) => Some(days),
        (None, Some((days, false)), DayRule::Both) => {
            Some([Some(days), in_months].into_iter().flatten().collect::<Vec<_>>().join(" "))
        }
        // The months hold for both.
        (Some(first), Some((second, false)), DayRule::Either) => {
            let also = [Some(format!("{first}, and also {second}")), in_months];
            Some(also.into_iter().flatten().collect::<Vec<_>>().join(" "))
        }
        (Some(first), Some((second, true)), DayRule::Either) => {
            Some(format!("{first}, and also {second}"))
        }
        (Some(first), Some((second, _)), DayRule::Both) => {
            Some(format!("{first}, but only {second}"))
        }
    })
}

/// "January and July", "March to May".
#[expect(clippy::option_option, reason = "as in describe_days")]
fn describe_months(month: &Numbers) -> Option<Option<String>> {
    let name = |number: u8| MONTHS[usize::from(number) - 1];
    Some(match month {
        Numbers::Any => None,
        Numbers::Range(from, to) => Some(format!("{} to {}", name(*from), name(*to))),
        other => {
            Some(join(&other.listed()?.iter().map(|number| name(*number)).collect::<Vec<_>>()))
        }
    })
}

/// "on day 1 of the month", "on the last day of January".
#[expect(clippy::option_option, reason = "as in describe_days")]
fn describe_days_of_month(
    text: &str,
    month: &Numbers,
    months: Option<&str>,
    name: &str,
) -> Option<Option<String>> {
    let of = match (months, month.single()) {
        (None, _) => "of the month".to_owned(),
        (Some(month), Some(_)) => format!("of {month}"),
        (Some(months), None) => format!("of the month in {months}"),
    };
    if let Some(day) = RelativeDay::parse(Field::DayOfMonth, text).ok()? {
        let workday = "Monday to Friday";
        return Some(Some(match day {
            RelativeDay::BeforeLast(0) => format!("on the last day {of}"),
            RelativeDay::BeforeLast(1) => format!("on the day before the last {of}"),
            RelativeDay::BeforeLast(days) => format!("{days} days before the last day {of}"),
            RelativeDay::LastWorkday => format!("on the last {workday} {of}"),
            RelativeDay::WorkdayNear(day) => {
                format!("on the {workday} nearest to day {day} {of}")
            }
            RelativeDay::LastWeekday(_) | RelativeDay::NthWeekday(..) => return None,
        }));
    }
    Some(match Numbers::read(Field::DayOfMonth, text, name)? {
        Numbers::Any => None,
        Numbers::Range(from, to) => Some(format!("on days {from} to {to} {of}")),
        numbers => match numbers.listed()? {
            [day] => Some(format!("on day {day} {of}")),
            days => {
                let days = days.iter().map(ToString::to_string).collect::<Vec<_>>();
                Some(format!("on days {} {of}", join(&days)))
            }
        },
    })
}

/// "on Mondays", "from Monday to Friday", "on the last Friday of the month"; and whether the months are in it.
#[expect(clippy::option_option, reason = "as in describe_days")]
fn describe_days_of_week(
    text: &str,
    months: Option<&str>,
    name: &str,
) -> Option<Option<(String, bool)>> {
    if let Some(day) = RelativeDay::parse(Field::DayOfWeek, text).ok()? {
        let of = months
            .as_ref()
            .map_or_else(|| "the month".to_owned(), |months| format!("the month in {months}"));
        let (which_one, weekday) = match day {
            RelativeDay::LastWeekday(weekday) => ("last", weekday),
            RelativeDay::NthWeekday(weekday, number) => {
                let ordinals = ["first", "second", "third", "fourth", "fifth"];
                (*ordinals.get(usize::from(number).checked_sub(1)?)?, weekday)
            }
            _ => return None,
        };
        // In this form Sunday is 0.
        let weekday = WEEKDAYS[(usize::from(weekday) + 6) % 7];
        return Some(Some((format!("on the {which_one} {weekday} of {of}"), true)));
    }
    let name_of = |number: u8| WEEKDAYS[usize::from(number) - 1];
    Some(match Numbers::read(Field::DayOfWeek, text, name)? {
        Numbers::Any => None,
        Numbers::Range(from, to) => {
            Some((format!("from {} to {}", name_of(from), name_of(to)), false))
        }
        numbers => {
            let days = numbers.listed()?.iter().map(|number| format!("{}s", name_of(*number)));
            Some((format!("on {}", join(&days.collect::<Vec<_>>())), false))
        }
    })
}

/// "a, b and c".
fn join(words: &[impl AsRef<str>]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
