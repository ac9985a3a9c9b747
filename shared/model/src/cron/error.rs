//! Says what is wrong with a cron expression, and where.
//!
//! Guarantees: an error never echoes more than [`MAX_ECHO_BYTES`] bytes of what it was given, and never
//! a control or invisible character as such, so it is safe in a log line and on a terminal.
//! It reports the first problem from the left, not every problem.

use std::fmt;

use thiserror::Error;

/// The most bytes of an expression that an error repeats, escapes and ellipsis included.
pub const MAX_ECHO_BYTES: usize = 80;

const ELLIPSIS: &str = "...";

/// A field of a cron expression, as errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// 0-59; the first of six fields.
    Second,
    /// 0-59.
    Minute,
    /// 0-23.
    Hour,
    /// 1-31.
    DayOfMonth,
    /// 1-12 or `JAN`-`DEC`.
    Month,
    /// 0-7 or `SUN`-`SAT`; 0 and 7 are Sunday.
    DayOfWeek,
}

impl Field {
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day-of-month",
            Self::Month => "month",
            Self::DayOfWeek => "day-of-week",
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Why a cron expression was refused. Each text says what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// The text is longer than is read at all.
    #[error("the expression is {bytes} bytes long; at most {limit} are allowed")]
    TooLong {
        /// Length of the text as given.
        bytes: usize,
        /// The most that is accepted.
        limit: usize,
    },
    /// A character outside ASCII, often a blank or a dash from a word processor.
    #[error("only ASCII characters are allowed; retype it with plain blanks, dashes and commas")]
    NotAscii,
    /// More or fewer fields than the dialect has.
    #[error("expected {expected}, found {found}")]
    FieldCount {
        /// The fields that the dialect has, in words.
        expected: &'static str,
        /// How many there were.
        found: usize,
    },
    /// Nothing between two commas, or before the first or after the last.
    #[error("the item is empty; remove the extra comma")]
    EmptyItem,
    /// A range or step lacks a number, or the item is not made of what cron knows.
    #[error("expected `*`, a number, a range such as `1-5` or a step such as `*/15`")]
    Malformed,
    /// A whole item, and then more.
    #[error("there is something after the item that does not belong to it; remove it")]
    Trailing,
    /// `/0`.
    #[error("a step of 0 selects nothing; use a step of 1 or more")]
    ZeroStep,
    /// A number that the field does not have.
    #[error("the number is outside {min}-{max}")]
    OutOfRange {
        /// The field's least number.
        min: u8,
        /// The field's greatest number.
        max: u8,
    },
    /// The end of a range lies before its start.
    #[error("the range runs backwards; write it as two ranges")]
    Reversed,
    /// A name in a field that has only numbers.
    #[error("names are allowed in month and day-of-week only; use a number")]
    NameElsewhere,
    /// A word that is no name of this field.
    #[error("the name is not known here; use a number or one of {known}")]
    UnknownName {
        /// The names that the field has.
        known: &'static str,
    },
    /// `?` outside the day fields.
    #[error("`?` stands for `*` in day-of-month and day-of-week only; write `*`")]
    QuestionMark,
    /// `L`, `W` or `#` in a field that does not know it.
    #[error(
        "`L`, `L-3`, `LW` and `15W` belong into day-of-month, `5L` and `1#2` into day-of-week; \
         write a number"
    )]
    ExtensionElsewhere,
    /// `L` alone as a day of the week.
    #[error("the last of which weekday? write it in front, as in `5L` or `FRIL`")]
    LastOfNone,
    /// `L`, `W` or `#` beside `*` or `?`.
    #[error("`L`, `W` and `#` cannot stand in one list with `*` or `?`; remove one of them")]
    BesideStar,
    /// Text that begins with `H` but has no form of it.
    #[error("expected `H`, a step such as `H/15` or a range such as `H(0-29)`")]
    MalformedSpread,
    /// `@reboot`.
    #[error(
        "`@reboot` is not supported because jobs belong to no machine; leave the schedule out and \
         trigger the job when it should run"
    )]
    Reboot,
    /// `@every`.
    #[error("`@every` is not a cron expression; use `every = \"15m\"` in place of the schedule")]
    Every,
    /// A word that begins with `@` and is no macro.
    #[error(
        "the macro is not known; use @yearly, @annually, @monthly, @weekly, @daily, @midnight or \
         @hourly"
    )]
    UnknownMacro,
    /// Text behind a macro.
    #[error("nothing may follow a macro; remove the rest")]
    AfterMacro,
    /// The parsing crate refused what this module had found sound: a defect of Sexton.
    #[error("the expression is sound but could not be read; please report this as a defect")]
    Unreadable,
}

/// A refused cron expression: the place, as far as there is one, and the reason.
///
/// Displays as `day-of-week, item "FRI-MON": the range runs backwards; write it as two ranges`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{reason}", place(*field, item.as_deref()))]
pub struct CronError {
    field: Option<Field>,
    item: Option<String>,
    reason: Reason,
}

impl CronError {
    /// An error about the expression as a whole.
    pub(super) fn whole(reason: Reason) -> Self {
        Self { field: None, item: None, reason }
    }

    /// An error about `item`, which is cut and escaped here.
    pub(super) fn at(field: Option<Field>, item: &str, reason: Reason) -> Self {
        Self { field, item: Some(echo(item)), reason }
    }

    /// The field that is wrong; `None` if the expression as a whole is.
    pub fn field(&self) -> Option<Field> {
        self.field
    }

    /// The item that is wrong, escaped and cut to [`MAX_ECHO_BYTES`] bytes; `None` if the expression
    /// as a whole is.
    pub fn item(&self) -> Option<&str> {
        self.item.as_deref()
    }

    /// What is wrong with it.
    pub fn reason(&self) -> &Reason {
        &self.reason
    }
}

fn place(field: Option<Field>, item: Option<&str>) -> String {
    match (field, item) {
        (Some(field), Some(item)) => format!("{field}, item \"{item}\": "),
        (Some(field), None) => format!("{field}: "),
        (None, Some(item)) => format!("\"{item}\": "),
        (None, None) => String::new(),
    }
}

fn echo(item: &str) -> String {
    let mut echoed = String::with_capacity(MAX_ECHO_BYTES);
    // Where the text can still be cut so that the ellipsis fits behind it.
    let mut cut = 0;
    for character in item.chars() {
        let escaped = character.escape_debug();
        if echoed.len() + escaped.clone().map(char::len_utf8).sum::<usize>() > MAX_ECHO_BYTES {
            echoed.truncate(cut);
            echoed.push_str(ELLIPSIS);
            return echoed;
        }
        echoed.extend(escaped);
        if echoed.len() + ELLIPSIS.len() <= MAX_ECHO_BYTES {
            cut = echoed.len();
        }
    }
    echoed
}
