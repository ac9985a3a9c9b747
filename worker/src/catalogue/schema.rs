//! The key `params_schema` of a task type: the JSON Schema of its params, in the catalogue or in a file beside it.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::{Map, Number, Value};
use sexton_model::params_schema::{MAX_SCHEMA_BYTES, check};
use toml::Spanned;
use toml::de::DeValue;

use super::fields::{Fields, Notes};

const KEY: &str = "params_schema";

/// Reads the schema, if there is one, and notes all its problems. A text is the path of a file, relative to
/// `folder`; a table is the schema itself.
pub(super) fn read(fields: Fields<'_>, folder: &Path, notes: &mut Notes<'_>) -> Option<Value> {
    let value = fields.get(KEY)?;
    let schema = match value.get_ref() {
        DeValue::String(path) => from_file(&folder.join(path.as_ref())),
        DeValue::Table(_) => json(value),
        _ => Err("must be a table with the schema, or the path of a file with it".to_owned()),
    };
    let schema = match schema {
        Ok(schema) => schema,
        Err(message) => {
            fields.report(KEY, message, notes);
            return None;
        }
    };
    match check(&schema) {
        Ok(()) => Some(schema),
        Err(problems) => {
            for problem in problems {
                fields.report(KEY, format!("is no JSON Schema: {problem}"), notes);
            }
            None
        }
    }
}

fn from_file(path: &Path) -> Result<Value, String> {
    let shown = path.display();
    let cannot = |error: std::io::Error| format!("the file {shown} cannot be read: {error}");
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(cannot)?;
    // One byte more than allowed distinguishes a larger file from one of just this size.
    file.take(MAX_SCHEMA_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() > MAX_SCHEMA_BYTES {
        return Err(format!("the file {shown} is larger than {MAX_SCHEMA_BYTES} bytes"));
    }
    serde_json::from_slice(&bytes).map_err(|error| format!("the file {shown} is no JSON: {error}"))
}

/// Converts a TOML value into JSON. The TOML parser limits the nesting.
fn json(value: &Spanned<DeValue<'_>>) -> Result<Value, String> {
    Ok(match value.get_ref() {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(word) => Value::from(*word),
        DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix())
            .map(Value::from)
            .map_err(|_| "holds a number that does not fit into 64 bits".to_owned())?,
        DeValue::Float(digits) => digits
            .as_str()
            .parse()
            .ok()
            .and_then(Number::from_f64)
            .map(Value::Number)
            .ok_or_else(|| "holds a number that JSON has no word for".to_owned())?,
        DeValue::Datetime(_) => {
            return Err("holds a date, which JSON does not have; write it in quotes".to_owned());
        }
        DeValue::Array(values) => values.iter().map(json).collect::<Result<_, _>>()?,
        DeValue::Table(table) => {
            let mut object = Map::new();
            for (key, value) in table {
                object.insert(key.get_ref().to_string(), json(value)?);
            }
            Value::Object(object)
        }
    })
}
