//! Limits of params, wherever they come from.

use serde_json::{Map, Value};

use crate::job::{MAX_PARAMS_BYTES, MAX_PARAMS_DEPTH};

/// Why params are refused. Each text fits after "the params".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// Larger than [`MAX_PARAMS_BYTES`] as JSON.
    #[error("have {0} bytes, more than {MAX_PARAMS_BYTES}")]
    Large(usize),
    /// Deeper than [`MAX_PARAMS_DEPTH`].
    #[error("are nested more than {MAX_PARAMS_DEPTH} levels deep")]
    Deep,
    /// A name or a text has U+0000.
    #[error("hold the character U+0000, which the database cannot keep")]
    Nul,
    /// A name is [`RESERVED_NAME`].
    #[error("hold the name {RESERVED_NAME}, which no program could read again; choose another")]
    Reserved,
}

/// The name by which `serde_json` marks a text that it passes on unread: it reads an object that begins with it as what is in that text, or not at all.
pub const RESERVED_NAME: &str = "$serde_json::private::RawValue";
/// What is wrong with a label of that name.
pub(crate) const UNREADABLE_NAME: &str = "no program could read this name again; choose another";

/// Checks a task's params.
///
/// # Errors
///
/// [`ParamsError`].
pub fn check(params: &Map<String, Value>) -> Result<(), ParamsError> {
    check_fields(params, MAX_PARAMS_DEPTH)?;
    // Written after the check of the depth, which bounds the recursion.
    let bytes = serde_json::to_string(params).map_or(0, |text| text.len());
    if bytes > MAX_PARAMS_BYTES { Err(ParamsError::Large(bytes)) } else { Ok(()) }
}

/// `left` counts the levels still allowed; it bounds the recursion.
fn check_fields(fields: &Map<String, Value>, left: usize) -> Result<(), ParamsError> {
    let left = left.checked_sub(1).ok_or(ParamsError::Deep)?;
    fields.iter().try_for_each(|(name, inside)| {
        if name.contains('\0') {
            Err(ParamsError::Nul)
        } else if name == RESERVED_NAME {
            Err(ParamsError::Reserved)
        } else {
            check_value(inside, left)
        }
    })
}

/// Checks a value of any kind.
pub(crate) fn check_value(of: &Value, left: usize) -> Result<(), ParamsError> {
    match of {
        Value::String(text) if text.contains('\0') => Err(ParamsError::Nul),
        Value::Array(values) => {
            let left = left.checked_sub(1).ok_or(ParamsError::Deep)?;
            values.iter().try_for_each(|inside| check_value(inside, left))
        }
        Value::Object(fields) => check_fields(fields, left),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(params: &Value) -> Result<(), ParamsError> {
        check(params.as_object().unwrap())
    }

    fn nested(levels: usize) -> Value {
        (1..levels).fold(json!({}), |inside, _| json!({"a": inside}))
    }

    #[test]
    fn each_limit_is_kept_and_not_more() {
        assert_eq!(checked(&json!({"a": ["\\u0000", {"b": null}]})), Ok(()));
        assert_eq!(checked(&nested(MAX_PARAMS_DEPTH)), Ok(()));
        assert_eq!(checked(&nested(MAX_PARAMS_DEPTH + 1)), Err(ParamsError::Deep));
        for nul in [json!({"\0": 1}), json!({"a": ["\0"]}), json!({"a": {"\0": 1}})] {
            assert_eq!(checked(&nul), Err(ParamsError::Nul));
        }
        for reserved in [json!({RESERVED_NAME: 1}), json!({"a": [{"b": 1, RESERVED_NAME: "1"}]})] {
            assert_eq!(checked(&reserved), Err(ParamsError::Reserved));
            let row = reserved.to_string();
            assert_ne!(serde_json::from_str(&row).ok(), Some(reserved), "it could be read again");
        }
        let text = |bytes| json!({"a": "x".repeat(bytes)});
        assert_eq!(checked(&text(MAX_PARAMS_BYTES - 8)), Ok(()));
        let large = Err(ParamsError::Large(MAX_PARAMS_BYTES + 1));
        assert_eq!(checked(&text(MAX_PARAMS_BYTES - 7)), large);
    }
}
