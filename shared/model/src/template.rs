//! Placeholders in the texts of a job's params and in its idempotency key: `{{ scheduled_for | date("%Y-%m") }}`.
//!
//! The database fills them when an execution is made, by the functions of migration 0013, which take no other white space
//! than blanks. Here they are read and checked, so
//! that a file is refused whose placeholders could not be filled when its job fires.

use serde_json::Value;

use crate::quoting::quoted;

mod check;

pub use check::{KEY_FIELD, MAX_FILLED_KEY_BYTES, MAX_PLACEHOLDERS, check_job};

/// What a placeholder begins with.
const OPEN: &str = "{{";
/// What it ends with.
const CLOSE: &str = "}}";
/// What stands for two braces that are no placeholder.
const BRACES: &str = "\"{{\"";
/// The letters that a format may have after a percent sign.
const FORMAT_LETTERS: &str = "YmdHMSyjGVuFTs";
/// The longest format, in bytes.
const MAX_FORMAT_BYTES: usize = 64;

/// What a placeholder is filled with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placeholder<'t> {
    /// Two opening braces, as they are.
    Braces,
    /// The job's name.
    Job,
    /// The execution key.
    ExecutionKey,
    /// The nominal time, in a format or in RFC 3339.
    ScheduledFor(Option<&'t str>),
    /// The nominal time of the firing before, likewise.
    PreviousScheduledFor(Option<&'t str>),
    /// The param at this path: `subscription.id`.
    Param(&'t str),
    /// What a member before this one of its flow has become: `upstream.NAME.result.rows`, `upstream.NAME.state`.
    Upstream {
        /// The member's name.
        member: &'t str,
        /// The path below it.
        path: &'t str,
    },
}

/// Why a text is no template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Braces are opened and not closed.
    #[error(
        "opens {OPEN} and does not close it; write {{{{ {BRACES} }}}} for the braces themselves"
    )]
    Unclosed,
    /// The name is none that can be filled.
    #[error(
        "{0} is none of job, execution_key, scheduled_for, previous_scheduled_for, params.NAME and, in a flow, \
         upstream.NAME.result; write {{{{ {BRACES} }}}} for braces that are no placeholder"
    )]
    Name(String),
    /// What follows the bar is not `date("…")`.
    #[error("{0} is no filter; write {{{{ scheduled_for | date(\"%Y-%m-%d\") }}}}")]
    Filter(String),
    /// Only instants have a format.
    #[error("date(…) formats scheduled_for and previous_scheduled_for, not {0}")]
    Format(String),
    /// The format has a letter that is not known.
    #[error(
        "the format {0} may have %Y %m %d %H %M %S %y %j %G %V %u %F %T %s and other text, {MAX_FORMAT_BYTES} bytes in all"
    )]
    FormatLetter(String),
}

/// Returns a text's placeholders, in their order.
///
/// # Errors
///
/// [`TemplateError`] of the first that is none.
pub fn placeholders(text: &str) -> Result<Vec<Placeholder<'_>>, TemplateError> {
    let mut found = Vec::new();
    let mut remaining = text;
    while let Some((_, after)) = remaining.split_once(OPEN) {
        let quoted_braces = after.trim_start_matches(' ').strip_prefix(BRACES);
        let inside = quoted_braces.unwrap_or(after);
        let (expression, rest) = inside.split_once(CLOSE).ok_or(TemplateError::Unclosed)?;
        match quoted_braces {
            None => found.push(placeholder(expression.trim_matches(' '))?),
            Some(_) if expression.trim_matches(' ').is_empty() => found.push(Placeholder::Braces),
            Some(_) => return Err(TemplateError::Filter(quoted(expression))),
        }
        remaining = rest;
    }
    Ok(found)
}

/// Returns whether a text of a value opens a placeholder, right or wrong.
pub fn has_placeholder(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(OPEN),
        Value::Array(values) => values.iter().any(has_placeholder),
        Value::Object(fields) => fields.values().any(has_placeholder),
        _ => false,
    }
}

fn placeholder(expression: &str) -> Result<Placeholder<'_>, TemplateError> {
    let (name, format) = match expression.split_once('|') {
        None => (expression, None),
        Some((name, filter)) => {
            (name.trim_end_matches(' '), Some(format(filter.trim_matches(' '))?))
        }
    };
    let found = match name {
        "scheduled_for" => return Ok(Placeholder::ScheduledFor(format)),
        "previous_scheduled_for" => return Ok(Placeholder::PreviousScheduledFor(format)),
        "job" => Placeholder::Job,
        "execution_key" => Placeholder::ExecutionKey,
        _ => match name.strip_prefix("params.") {
            Some(path) if path.split('.').all(is_step) => Placeholder::Param(path),
            _ => upstream(name).ok_or_else(|| TemplateError::Name(quoted(name)))?,
        },
    };
    if format.is_some() { Err(TemplateError::Format(quoted(name))) } else { Ok(found) }
}

fn upstream(name: &str) -> Option<Placeholder<'_>> {
    let (member, path) = name.strip_prefix("upstream.")?.split_once('.')?;
    let known = matches!(path.split('.').next(), Some("result" | "state"));
    (is_step(member) && known && path.split('.').all(is_step))
        .then_some(Placeholder::Upstream { member, path })
}

/// Whether the database finds this step of a path.
fn is_step(step: &str) -> bool {
    !step.is_empty() && step.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// Reads `date("…")`.
fn format(filter: &str) -> Result<&str, TemplateError> {
    let format = filter
        .strip_prefix("date(")
        .and_then(|rest| rest.strip_suffix(')'))
        .and_then(|rest| rest.trim_matches(' ').strip_prefix('"')?.strip_suffix('"'))
        .ok_or_else(|| TemplateError::Filter(quoted(filter)))?;
    let known =
        format.split('%').skip(1).all(|part| part.starts_with(|c| FORMAT_LETTERS.contains(c)));
    let plain = !format.chars().any(|c| c.is_control() || matches!(c, '"' | '{' | '}'));
    if known && plain && format.len() <= MAX_FORMAT_BYTES {
        Ok(format)
    } else {
        Err(TemplateError::FormatLetter(quoted(format)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_placeholder_is_read() {
        use Placeholder::{Braces, ExecutionKey, Job, Param, PreviousScheduledFor, ScheduledFor};
        for (text, expected) in [
            ("", vec![]),
            ("{a} }} {", vec![]),
            ("{{job}}:{{ execution_key }}", vec![Job, ExecutionKey]),
            ("{{ scheduled_for }}", vec![ScheduledFor(None)]),
            (
                "a{{ scheduled_for|date(\"%Y-%m\") }}b{{previous_scheduled_for | date( \"%F T\" )}}",
                vec![ScheduledFor(Some("%Y-%m")), PreviousScheduledFor(Some("%F T"))],
            ),
            ("{{ params.a.b-c_1 }}", vec![Param("a.b-c_1")]),
            ("{{ \"{{\" }} name }}", vec![Braces]),
            (
                "{{ upstream.load.result.rows }}",
                vec![Placeholder::Upstream { member: "load", path: "result.rows" }],
            ),
        ] {
            assert_eq!(placeholders(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_none_is_refused_with_what_to_write() {
        for (text, part) in [
            ("{{ scheduled_for", "does not close it"),
            ("{{ \"{{\"", "does not close it"),
            ("{{ \"{{\" x }}", "no filter"),
            ("{{ now }}", "\"now\" is none of job"),
            ("{{ params }}", "\"params\" is none of"),
            ("{{ params.a..b }}", "is none of"),
            ("{{ params.ä }}", "is none of"),
            ("{{\u{a0}job }}", "is none of"),
            ("{{ upstream.load }}", "is none of"),
            ("{{ upstream.load.rows }}", "is none of"),
            ("{{ scheduled_for | upper }}", "\"upper\" is no filter"),
            ("{{ scheduled_for | date(%Y) }}", "is no filter"),
            ("{{ scheduled_for | date(\"%Q\") }}", "may have %Y"),
            ("{{ scheduled_for | date(\"%%\") }}", "may have %Y"),
            ("{{ params.a | date(\"%Y\") }}", "not \"params.a\""),
        ] {
            let error = placeholders(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
