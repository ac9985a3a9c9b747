//! A condition on params: a path, and its value.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value, json};

/// Maximum number of steps of a path. Each numeric step doubles the number of shapes.
const MAX_STEPS: usize = 16;
/// Maximum number of shapes of one condition; with more, only the exact condition applies.
const MAX_SHAPES: usize = 16;
/// The longest condition, in bytes.
const MAX_CONDITION_BYTES: usize = 1_000;

/// A path in the params and its text; numbers compare as they are written.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ParamCondition {
    /// Field names, and indexes of arrays, from the outside in.
    pub path: Vec<String>,
    /// The text.
    pub value: String,
}

/// A text that is no condition.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "is no condition; write it as in customer=4891 or order.id=7, with at most {MAX_STEPS} steps and \
     {MAX_CONDITION_BYTES} bytes"
)]
pub struct ConditionError;

/// Parses `a.b=value`: the text before the first `=` is the path.
impl FromStr for ParamCondition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let (path, value) = text.split_once('=').ok_or(ConditionError)?;
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        let fits =
            path.len() <= MAX_STEPS && text.len() <= MAX_CONDITION_BYTES && !text.contains('\0');
        if !fits || path.iter().any(String::is_empty) {
            return Err(ConditionError);
        }
        Ok(Self { path, value: value.to_owned() })
    }
}

impl fmt::Display for ParamCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.path.join("."), self.value)
    }
}

impl ParamCondition {
    /// Returns documents of which matching params contain at least one, for an index. Params that contain one need
    /// not match (containment ignores an array's index). `None`: there would be too many.
    pub fn shapes(&self) -> Option<Vec<Value>> {
        let mut shapes = self.values();
        for step in self.path.iter().rev() {
            let indexes = step.parse::<i32>().is_ok();
            let inside = std::mem::take(&mut shapes);
            for value in inside {
                if indexes {
                    shapes.push(json!([value]));
                }
                shapes.push(json!({step: value}));
            }
            if shapes.len() > MAX_SHAPES {
                return None;
            }
        }
        Some(shapes)
    }

    /// Returns the values with this text: a string, and a number, a boolean or null. JSON null is matched by no text,
    /// as in the exact condition.
    fn values(&self) -> Vec<Value> {
        let mut values = vec![Value::String(self.value.clone())];
        match self.value.as_str() {
            "true" => values.push(Value::Bool(true)),
            "false" => values.push(Value::Bool(false)),
            number => {
                // The database stores numbers as decimals, and compares them by value.
                values.extend(number.parse::<Number>().ok().map(Value::Number));
            }
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes(text: &str) -> Vec<Value> {
        text.parse::<ParamCondition>().unwrap().shapes().unwrap()
    }

    #[test]
    fn a_condition_is_a_path_and_a_text() {
        let read: ParamCondition = "order.id=a=b".parse().unwrap();
        assert_eq!(
            (read.path.as_slice(), read.value.as_str()),
            (&["order".into(), "id".into()][..], "a=b")
        );
        assert_eq!(read.to_string(), "order.id=a=b");
        assert_eq!("a=".parse::<ParamCondition>().unwrap().value, "");
        let deep = format!("{}=1", vec!["a"; MAX_STEPS + 1].join("."));
        let long = format!("a={}", "x".repeat(MAX_CONDITION_BYTES));
        for text in ["", "a", "=1", "a..b=1", ".a=1", "a=\0", &deep, &long] {
            assert_eq!(text.parse::<ParamCondition>(), Err(ConditionError), "{text}");
        }
    }

    #[test]
    fn its_shapes_cover_texts_numbers_and_arrays() {
        assert_eq!(shapes("a=x"), [json!({"a": "x"})]);
        assert_eq!(shapes("a.b=7"), [json!({"a": {"b": "7"}}), json!({"a": {"b": 7}})]);
        assert_eq!(shapes("a=true"), [json!({"a": "true"}), json!({"a": true})]);
        assert_eq!(shapes("a.0=x"), [json!({"a": ["x"]}), json!({"a": {"0": "x"}})]);
        let many: ParamCondition = format!("{}=1", ["0"; 6].join(".")).parse().unwrap();
        assert_eq!(many.shapes(), None);
    }
}
