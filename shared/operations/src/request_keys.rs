//! Keys of requests: a request that is sent again with its key is not carried out again.

use sexton_store::Store;
use sexton_store::request_keys::{self, KEY_HOURS, MAX_KEYS_OF_CALLER};
pub use sexton_store::request_keys::{KeptAnswer, KeyClaim, MAX_KEPT_BYTES, RequestKey};

use crate::error::{Conflict, InvalidRequest, OperationError};

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 255;

/// Checks a key: 1 to 255 visible characters of ASCII.
///
/// # Errors
///
/// [`InvalidRequest::Field`].
pub fn check_key(key: &str) -> Result<(), InvalidRequest> {
    if (1..=MAX_KEY_BYTES).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let problem = format!("has 1 to {MAX_KEY_BYTES} visible characters of ASCII, such as a UUID");
    Err(InvalidRequest::field("Idempotency-Key", problem))
}

/// Claims a key for a request. Of two requests at the same time one is the first.
///
/// # Errors
///
/// [`Conflict`] for a caller who has used too many keys; those of the database: the request may not be carried out.
pub async fn claim(store: &Store, key: RequestKey<'_>) -> Result<KeyClaim, OperationError> {
    let claimed = request_keys::claim(store, key, None).await?;
    let too_many = || {
        let text = format!(
            "you have used {MAX_KEYS_OF_CALLER} keys within {KEY_HOURS} hours; send the request without one, or later"
        );
        OperationError::from(Conflict::Other(text))
    };
    claimed.ok_or_else(too_many)
}

/// Keeps the answer to a request whose key was claimed.
///
/// # Errors
///
/// Those of the database; nobody learns then whether the request was carried out.
pub async fn finish(
    store: &Store,
    key: RequestKey<'_>,
    answer: &KeptAnswer,
) -> Result<(), OperationError> {
    Ok(request_keys::finish(store, key, answer, None).await?)
}

/// Frees the key of a request that was refused.
///
/// # Errors
///
/// Those of the database.
pub async fn release(store: &Store, key: RequestKey<'_>) -> Result<(), OperationError> {
    Ok(request_keys::release(store, key).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_visible_characters() {
        for key in ["a", "order-7", "8e03978e-40d5-43e8-bc93-6894a57f9324", &"k".repeat(255)] {
            assert!(check_key(key).is_ok(), "{key}");
        }
        for key in ["", " ", "a b", "ü", "a\n", &"k".repeat(256)] {
            assert!(check_key(key).is_err(), "{key}");
        }
    }
}
