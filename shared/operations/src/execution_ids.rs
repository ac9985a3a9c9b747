//! Finds an execution by its id, or by a unique beginning of it.

use sexton_store::{Store, completions};
use uuid::Uuid;

use crate::error::{InvalidRequest, NotFound, OperationError};

/// Fewer digits than these match a day's worth of executions.
pub const MIN_DIGITS: usize = 8;
/// Hexadecimal digits of a UUID.
const DIGITS: usize = 32;
/// Maximum number of candidates that an error names.
const MAX_CANDIDATES: i64 = 5;

/// Resolves `text` to an id. A whole id is returned as it is, whether it exists or not.
///
/// # Errors
///
/// [`InvalidRequest::ExecutionId`] for a text that cannot be an id, [`InvalidRequest::AmbiguousExecutionId`] for the
/// beginning of several ids, [`NotFound::Execution`] for that of none.
pub async fn resolve(store: &Store, text: &str) -> Result<Uuid, OperationError> {
    let not_an_id = || InvalidRequest::ExecutionId(text.to_owned());
    let (first, last) = uuid_range(text).ok_or_else(not_an_id)?;
    if first == last {
        return Ok(first);
    }
    match completions::executions(store, (first, last), MAX_CANDIDATES).await?.as_slice() {
        [] => Err(NotFound::Execution(text.to_owned()).into()),
        [one] => Ok(one.value.parse().map_err(|_| not_an_id())?),
        several => {
            let candidate = |it: &completions::Candidate| {
                format!("{} ({})", it.value, it.about.as_deref().unwrap_or_default())
            };
            let several = several.iter().map(candidate).collect();
            Err(InvalidRequest::AmbiguousExecutionId { digits: text.to_owned(), several }.into())
        }
    }
}

/// Makes the error for an execution that does not exist.
pub fn missing(id: impl std::fmt::Display) -> OperationError {
    NotFound::Execution(id.to_string()).into()
}

/// Returns the smallest and the largest UUID with this beginning; `None` for a text that is none, or too short.
pub(crate) fn uuid_range(text: &str) -> Option<(Uuid, Uuid)> {
    let digits = text.chars().filter(|c| *c != '-').count();
    if digits < MIN_DIGITS { None } else { uuid_range_of(text) }
}

/// Returns the smallest and the largest UUID with this beginning, however short; `None` for a text that is none.
pub(crate) fn uuid_range_of(text: &str) -> Option<(Uuid, Uuid)> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    if digits.len() > DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let end = |fill: &str| {
        let padded = format!("{digits}{}", fill.repeat(DIGITS - digits.len()));
        u128::from_str_radix(&padded, 16).ok().map(Uuid::from_u128)
    };
    Some((end("0")?, end("f")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_is_a_range_of_ids() {
        let (first, last) = uuid_range("0199-aabbcc").unwrap();
        assert_eq!(first.to_string(), "0199aabb-cc00-0000-0000-000000000000");
        assert_eq!(last.to_string(), "0199aabb-ccff-ffff-ffff-ffffffffffff");
        let whole = "0199aabb-cc00-7000-8000-0000000000AF";
        assert_eq!(uuid_range(whole), Some((whole.parse().unwrap(), whole.parse().unwrap())));
        for text in ["", "0199aab", "0199aabg", "x", &"0".repeat(33)] {
            assert_eq!(uuid_range(text), None, "{text}");
        }
        assert_eq!(uuid_range_of(""), Some((Uuid::nil(), Uuid::max())));
    }
}
