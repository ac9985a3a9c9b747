//! Splits an expression into its fields and resolves macros.
//!
//! It checks the expression as a whole: length, alphabet, number of fields, macros. `item` and `sets` parse the
//! fields.

use super::Dialect;
use super::error::{CronError, Field, Reason};

/// Maximum length of an expression, in bytes.
pub const MAX_EXPRESSION_BYTES: usize = 1024;

const MACROS: [(&str, [&str; 5]); 7] = [
    ("@yearly", ["0", "0", "1", "1", "*"]),
    ("@annually", ["0", "0", "1", "1", "*"]),
    ("@monthly", ["0", "0", "1", "*", "*"]),
    ("@weekly", ["0", "0", "*", "*", "0"]),
    ("@daily", ["0", "0", "*", "*", "*"]),
    ("@midnight", ["0", "0", "*", "*", "*"]),
    ("@hourly", ["0", "*", "*", "*", "*"]),
];

/// The six fields of an expression; each text is ASCII without blanks and not empty.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub(crate) second: &'a str,
    pub(crate) minute: &'a str,
    pub(crate) hour: &'a str,
    pub(crate) day_of_month: &'a str,
    pub(crate) month: &'a str,
    pub(crate) day_of_week: &'a str,
}

impl<'a> Fields<'a> {
    /// Splits `text`; five fields and macros get the second 0.
    ///
    /// # Errors
    ///
    /// Length, alphabet, field count and macros; fields are not parsed.
    pub(crate) fn split(text: &'a str, dialect: Dialect) -> Result<Self, CronError> {
        if text.len() > MAX_EXPRESSION_BYTES {
            let reason = Reason::TooLong { bytes: text.len(), limit: MAX_EXPRESSION_BYTES };
            return Err(CronError::whole(reason));
        }
        let words: Vec<&str> = text.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
        refuse_foreign_characters(&words, dialect)?;
        if let Some(name) = words.first().filter(|word| word.starts_with('@')) {
            return resolve_macro(name, &words[1..]);
        }
        match *words.as_slice() {
            [minute, hour, day_of_month, month, day_of_week] if dialect.allows(5) => {
                Ok(Self { second: "0", minute, hour, day_of_month, month, day_of_week })
            }
            [second, minute, hour, day_of_month, month, day_of_week] if dialect.allows(6) => {
                Ok(Self { second, minute, hour, day_of_month, month, day_of_week })
            }
            _ => {
                let reason =
                    Reason::FieldCount { expected: dialect.expected_fields(), found: words.len() };
                Err(CronError::whole(reason))
            }
        }
    }
}

/// Returns whether a field or an item is *starred*. The text decides, not the set: `*/2` is, `0-7` is not.
pub(crate) fn is_starred(text: &str) -> bool {
    text.starts_with(['*', '?'])
}

impl Dialect {
    fn allows(self, count: usize) -> bool {
        match self {
            Self::Unix5 => count == 5,
            Self::Seconds6 => count == 6,
            Self::Any => count == 5 || count == 6,
        }
    }

    fn expected_fields(self) -> &'static str {
        match self {
            Self::Unix5 => "5 fields (minute hour day-of-month month day-of-week)",
            Self::Seconds6 => "6 fields (second minute hour day-of-month month day-of-week)",
            Self::Any => {
                "5 fields (minute hour day-of-month month day-of-week) or 6 (second first)"
            }
        }
    }
}

fn resolve_macro<'a>(name: &str, remaining: &[&str]) -> Result<Fields<'a>, CronError> {
    let refused = |item, reason| Err(CronError::at(None, item, reason));
    match name {
        "@reboot" => return refused(name, Reason::Reboot),
        "@every" => return refused(name, Reason::Every),
        _ => {}
    }
    let Some((_, fields)) = MACROS.iter().find(|(known, _)| *known == name) else {
        return refused(name, Reason::UnknownMacro);
    };
    if let Some(word) = remaining.first() {
        return refused(word, Reason::AfterMacro);
    }
    let [minute, hour, day_of_month, month, day_of_week] = *fields;
    Ok(Fields { second: "0", minute, hour, day_of_month, month, day_of_week })
}

/// Checked before the number of fields: a blank outside ASCII separates nothing, and "found 4 fields" would confuse a
/// writer who sees five.
fn refuse_foreign_characters(words: &[&str], dialect: Dialect) -> Result<(), CronError> {
    const ORDER: [Field; 6] = [
        Field::Second,
        Field::Minute,
        Field::Hour,
        Field::DayOfMonth,
        Field::Month,
        Field::DayOfWeek,
    ];
    let Some(position) = words.iter().position(|word| !word.is_ascii()) else {
        return Ok(());
    };
    let field = dialect
        .allows(words.len())
        .then(|| ORDER.get(ORDER.len() - words.len() + position))
        .flatten()
        .copied();
    let item = words[position].split(',').find(|item| !item.is_ascii());
    Err(CronError::at(field, item.unwrap_or_default(), Reason::NotAscii))
}
