//! Naming an execution on the command line: its id, or as much of its beginning as is unique.

use sexton_store::{Store, executions};
use uuid::Uuid;

use crate::failure::Failure;

/// Fewer digits than these name a day's worth of executions.
const MIN_DIGITS: usize = 8;
/// Hexadecimal digits of a UUID.
const DIGITS: usize = 32;

/// Finds the id that `text` means. A whole id is taken as it is, whether it exists or not.
///
/// # Errors
///
/// [`Failure::Usage`] for what cannot be an id or means several, [`Failure::NotFound`] for a
/// beginning that no id has.
pub(super) async fn execution(store: &Store, text: &str) -> Result<Uuid, Failure> {
    let Some((first, last)) = range(text) else {
        return Err(Failure::Usage(format!(
            "{text:?} is no execution's id; give the id that `sexton executions list` shows, or at \
             least its first {MIN_DIGITS} digits"
        )));
    };
    if first == last {
        return Ok(first);
    }
    match executions::ids_between(store, first, last, 2).await?.as_slice() {
        [] => Err(missing(text)),
        [id] => Ok(*id),
        _ => Err(Failure::Usage(format!(
            "{text} is the beginning of several executions' ids; give more digits (ids of the same \
             minute begin alike)"
        ))),
    }
}

/// There is no such execution.
pub(super) fn missing(id: impl std::fmt::Display) -> Failure {
    Failure::NotFound(format!(
        "there is no execution {id}; `sexton executions list` shows those there are (retention \
         removes old ones)"
    ))
}

/// The least and the greatest id that begin so.
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
