//! Limits of task results, wherever they come from.
//!
//! A result is what a task returns for people and programs to look up: how many records it processed, which file it
//! wrote. It is stored with the attempt, so it is bounded like everything there.

use serde_json::Value;

use crate::params::{ParamsError, RESERVED_NAME, check_value};

/// Maximum length of a result as JSON, in bytes.
pub const MAX_RESULT_BYTES: usize = 64 * 1024;
/// Maximum nesting of a result, counting arrays and objects.
pub const MAX_RESULT_DEPTH: usize = 64;

/// Why a result is refused. Each text fits after "the result".
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultError {
    /// Larger than [`MAX_RESULT_BYTES`] as JSON.
    #[error("has {0} bytes, more than {MAX_RESULT_BYTES}")]
    Large(usize),
    /// Deeper than [`MAX_RESULT_DEPTH`].
    #[error("is nested more than {MAX_RESULT_DEPTH} levels deep")]
    Deep,
    /// A name or a text has U+0000.
    #[error("holds the character U+0000, which the database cannot keep")]
    Nul,
    /// A name is one that no program could read again.
    #[error("holds the name {RESERVED_NAME}, which no program could read again; choose another")]
    Reserved,
}

/// Checks a task's result.
///
/// # Errors
///
/// [`ResultError`].
pub fn check(result: &Value) -> Result<(), ResultError> {
    check_value(result, MAX_RESULT_DEPTH).map_err(|error| match error {
        ParamsError::Nul => ResultError::Nul,
        ParamsError::Reserved => ResultError::Reserved,
        ParamsError::Deep | ParamsError::Large(_) => ResultError::Deep,
    })?;
    // Written after the check of the depth, which bounds the recursion.
    let bytes = serde_json::to_string(result).map_or(0, |text| text.len());
    if bytes > MAX_RESULT_BYTES { Err(ResultError::Large(bytes)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inside, _| json!([inside]))
    }

    #[test]
    fn each_limit_is_kept_and_not_more() {
        for fine in [json!(null), json!(7), json!("\\u0000"), json!({"a": [1.5]})] {
            assert_eq!(check(&fine), Ok(()));
        }
        assert_eq!(check(&nested(MAX_RESULT_DEPTH)), Ok(()));
        assert_eq!(check(&nested(MAX_RESULT_DEPTH + 1)), Err(ResultError::Deep));
        for nul in [json!("a\0"), json!({"\0": 1}), json!([{"a": "\0"}])] {
            assert_eq!(check(&nul), Err(ResultError::Nul));
        }
        assert_eq!(check(&json!("x".repeat(MAX_RESULT_BYTES - 2))), Ok(()));
        let large = Err(ResultError::Large(MAX_RESULT_BYTES + 1));
        assert_eq!(check(&json!("x".repeat(MAX_RESULT_BYTES - 1))), large);
    }
}
