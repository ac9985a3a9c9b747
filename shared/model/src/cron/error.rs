//! Errors of cron expressions, with their places.
//!
//! Guarantees: an error never echoes more than [`MAX_ECHO_BYTES`] bytes of its input, and escapes control and
//! invisible characters, so it is safe in a log line and on a terminal. It reports the first problem from the left,
//! not every problem.

use std::fmt;

use thiserror::Error;

/// Maximum number of bytes of an expression that an error repeats, including escapes and ellipsis.
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

/// Why a cron expression was refused. Each text shows a valid form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Reason {
    /// The text exceeds the maximum length.
    #[error("the expression is {bytes} bytes long; at most {limit} are allowed")]
    TooLong {
        /// Length of the given text.
        bytes: usize,
        /// The maximum length.
        limit: usize,
    },
    /// A character outside ASCII, often a blank or a dash from a word processor.
    #[error("only ASCII characters are allowed; retype it with plain blanks, dashes and commas")]
    NotAscii,
    /// More or fewer fields than the dialect has.
    #[error("expected {expected}, found {found}")]
    FieldCount {
        /// The dialect's fields, in words.
        expected: &'static str,
        /// The number found.
        found: usize,
    },
    /// An empty item between two commas, or before the first or after the last.
    #[error("the item is empty; remove the extra comma")]
    EmptyItem,
    /// A range or step lacks a number, or the item has another form.
    #[error("expected `*`, a number, a range such as `1-5` or a step such as `*/15`")]
    Malformed,
    /// Text after a complete item.
    #[error("there is something after the item that does not belong to it; remove it")]
    Trailing,
    /// `/0`.
    #[error("a step of 0 selects nothing; use a step of 1 or more")]
    ZeroStep,
    /// A number outside the field's range.
    #[error("the number is outside {min}-{max}")]
    OutOfRange {
        /// The field's smallest number.
        min: u8,
        /// The field's largest number.
        max: u8,
    },
    /// The end of a range is before its start.
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
    /// `L`, `W` or `#` in a field that does not support it.
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
    /// Text that begins with `H` but has none of its forms.
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
    /// Text after a macro.
    #[error("nothing may follow a macro; remove the rest")]
    AfterMacro,
    /// The parsing crate refused a text that this module had accepted: a defect of Sexton.
    #[error("the expression is sound but could not be read; please report this as a defect")]
    Unreadable,
}

/// A refused cron expression: the place, if it has one, and the reason.
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
    /// Makes an error about the expression as a whole.
    pub(super) fn whole(reason: Reason) -> Self {
        Self { field: None, item: None, reason }
    }

    /// Makes an error about `item`, which it cuts and escapes.
    pub(super) fn at(field: Option<Field>, item: &str, reason: Reason) -> Self {
        Self { field, item: Some(echo(item)), reason }
    }

    /// Returns the wrong field; `None` if the expression as a whole is wrong.
    pub fn field(&self) -> Option<Field> {
        self.field
    }

    /// Returns the wrong item, escaped and cut to [`MAX_ECHO_BYTES`] bytes; `None` if the expression as a whole is
    /// wrong.
    pub fn item(&self) -> Option<&str> {
        self.item.as_deref()
    }

    /// Returns the reason.
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
    // The last place where a cut leaves room for the ellipsis.
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
