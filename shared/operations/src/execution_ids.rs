//! Finds an execution by its id, or by a unique beginning of it.

use sexton_store::{Store, executions};
use uuid::Uuid;

use crate::error::{InvalidRequest, NotFound, OperationError};

/// Fewer digits than these match a day's worth of executions.
pub const MIN_DIGITS: usize = 8;
/// Hexadecimal digits of a UUID.
const DIGITS: usize = 32;

/// Resolves `text` to an id. A whole id is returned as it is, whether it exists or not.
///
/// # Errors
///
/// [`InvalidRequest::ExecutionId`] for a text that cannot be an id, [`InvalidRequest::AmbiguousExecutionId`] for the
/// beginning of several ids, [`NotFound::Execution`] for that of none.
pub async fn resolve(store: &Store, text: &str) -> Result<Uuid, OperationError> {
    let Some((first, last)) = range(text) else {
        return Err(InvalidRequest::ExecutionId(text.to_owned()).into());
    };
    if first == last {
        return Ok(first);
    }
    match executions::ids_between(store, first, last, 2).await?.as_slice() {
        [] => Err(NotFound::Execution(text.to_owned()).into()),
        [id] => Ok(*id),
        _ => Err(InvalidRequest::AmbiguousExecutionId(text.to_owned()).into()),
    }
}

/// Returns the error for an execution that does not exist.
pub(crate) fn missing(id: impl std::fmt::Display) -> OperationError {
    NotFound::Execution(id.to_string()).into()
}

/// Returns the smallest and the largest id with this beginning.
fn range(text: &str) -> Option<(Uuid, Uuid)> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    if !(MIN_DIGITS..=DIGITS).contains(&digits.len())
        || !digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
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
        let (first, last) = range("0199-aabbcc").unwrap();
        assert_eq!(first.to_string(), "0199aabb-cc00-0000-0000-000000000000");
        assert_eq!(last.to_string(), "0199aabb-ccff-ffff-ffff-ffffffffffff");
        let whole = "0199aabb-cc00-7000-8000-0000000000AF";
        assert_eq!(range(whole), Some((whole.parse().unwrap(), whole.parse().unwrap())));
        for text in ["", "0199aab", "0199aabg", "x", &"0".repeat(33)] {
            assert_eq!(range(text), None, "{text}");
        }
    }
}
