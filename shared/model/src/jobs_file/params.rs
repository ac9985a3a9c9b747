//! Params: TOML values as a task's JSON.
//!
//! Dates become strings; everything else has its counterpart. Values that jsonb or JSON cannot hold (NUL characters,
//! infinities, integers over 64 bits) are refused here, where the author can still correct them, and not when the job
//! first fires.

use std::fmt;

use serde_json::{Map, Number, Value};
use toml::de::DeValue;

use super::fields::{Fields, float, integer, text_problem};
use crate::job::MAX_PARAMS_BYTES;
use crate::params::{ParamsError, check};
use crate::quoting::plain;
use crate::template::placeholders;

/// Parses `params` with their templates; an empty object if the job has none.
pub(super) fn read(fields: &mut Fields<'_, '_, '_>) -> Value {
    read_object(fields, "params", "params.", Texts::Templates)
}

/// Whether texts may have placeholders.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Texts {
    Templates,
    Plain,
}

/// Parses an object; `prefix` is the field and a dot.
pub(super) fn read_object(
    fields: &mut Fields<'_, '_, '_>,
    field: &str,
    prefix: &'static str,
    texts: Texts,
) -> Value {
    let mut object = Map::new();
    // Ends the borrow of `fields` with the block: the size is reported at the field itself.
    if let Some(mut inside) = fields.inside(field, prefix) {
        let before = inside.problems();
        for (name, at, value) in inside.all() {
            let path = Path { above: None, step: Step::Name(name) };
            let value = json(&mut inside, &path, at, value, texts);
            insert(&mut inside, &mut object, &path, name, at, value);
        }
        if inside.problems() > before {
            return Value::Null;
        }
    }
    match check(&object) {
        Ok(()) => {}
        Err(ParamsError::Large(bytes)) => {
            let message = format!("has {bytes} bytes as JSON; {MAX_PARAMS_BYTES} at most");
            fields.problem(field, message);
        }
        Err(error) => fields.problem(field, error.to_string()),
    }
    Value::Object(object)
}

/// The place of a value. Linked, and formatted only for a problem: a text for every value would let long names
/// multiply with many values.
struct Path<'p> {
    above: Option<&'p Path<'p>>,
    step: Step<'p>,
}

enum Step<'p> {
    Name(&'p str),
    Index(usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(f)?;
        }
        match self.step {
            Step::Name(name) if self.above.is_none() => f.write_str(name),
            Step::Name(name) => write!(f, ".{name}"),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// Converts a value, whose nesting the TOML parser bounds. A reported value becomes null.
fn json(
    fields: &mut Fields<'_, '_, '_>,
    path: &Path<'_>,
    at: usize,
    value: &DeValue<'_>,
    texts: Texts,
) -> Value {
    let result = match value {
        DeValue::String(text) => {
            let template = || placeholders(text).err().map(|error| error.to_string());
            let template = || template().filter(|_| texts == Texts::Templates);
            match text_problem(text, usize::MAX).or_else(template) {
                None => Ok(Value::from(text.as_ref())),
                Some(problem) => Err(problem),
            }
        }
        DeValue::Integer(digits) => integer(digits)
            .map(Value::from)
            .ok_or_else(|| "does not fit into 64 bits; write it as text in quotes".to_owned()),
        DeValue::Float(digits) => float(digits)
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| format!("{} has no counterpart in JSON", plain(digits.as_str()))),
        DeValue::Boolean(value) => Ok(Value::from(*value)),
        DeValue::Datetime(datetime) => Ok(Value::from(datetime.to_string())),
        DeValue::Array(values) => Ok(values
            .iter()
            .enumerate()
            .map(|(index, value)| {
                let path = Path { above: Some(path), step: Step::Index(index) };
                json(fields, &path, value.span().start, value.get_ref(), texts)
            })
            .collect()),
        DeValue::Table(table) => {
            let mut object = Map::new();
            for (key, value) in table {
                let (name, at) = (key.get_ref().as_ref(), value.span().start);
                let path = Path { above: Some(path), step: Step::Name(name) };
                let value = json(fields, &path, at, value.get_ref(), texts);
                insert(fields, &mut object, &path, name, at, value);
            }
            Ok(Value::Object(object))
        }
    };
    result.unwrap_or_else(|problem| {
        fields.problem_at(at, &path.to_string(), problem);
        Value::Null
    })
}

fn insert(
    fields: &mut Fields<'_, '_, '_>,
    object: &mut Map<String, Value>,
    path: &Path<'_>,
    name: &str,
    at: usize,
    value: Value,
) {
    match text_problem(name, usize::MAX) {
        None => drop(object.insert(name.to_owned(), value)),
        Some(problem) => fields.problem_at(at, &path.to_string(), format!("its name {problem}")),
    }
}
