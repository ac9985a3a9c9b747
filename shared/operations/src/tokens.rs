//! Tokens by which people and programs use the API.

use std::time::Duration;

use sexton_model::access::{MAX_TOKENS, TOKEN_PREFIX, TokenText, is_token_name};
use sexton_model::job_scope::Grant;
use sexton_store::tokens::{self, NewToken, TokenCreation};
use sexton_store::{Store, StoreError};

pub use sexton_store::tokens::{AcceptedToken, Token};

use crate::actor::Actor;
use crate::digest::hex;
use crate::error::{Conflict, InvalidRequest, NotFound, OperationError};
use crate::secret_text::{hash, random, random_text};

/// The longest time for which a token may be accepted.
pub const MAX_VALIDITY: Duration = Duration::from_hours(3_650 * 24);
/// Most tokens in a list: all that are accepted, and as many others.
const MAX_LISTED: i64 = 2 * MAX_TOKENS as i64;
/// Random bytes of an id, and of a secret.
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;

/// Creates a token, and returns its text, which is stored nowhere. It is accepted for `valid_for`, or until it is revoked.
///
/// # Errors
///
/// [`InvalidRequest`]: no such name or time is possible; [`Conflict`]: the name is taken, or there are too many tokens.
pub async fn create(
    store: &Store,
    name: &str,
    grant: impl Into<Grant>,
    valid_for: Option<Duration>,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<String, OperationError> {
    if !is_token_name(name) {
        let shape = "is no name of a token; write lower-case letters, digits, dots, hyphens and underscores, at most 63";
        return Err(InvalidRequest::field("name", format!("{name:?} {shape}")).into());
    }
    let grant = &grant.into();
    grant.check().map_err(|problem| InvalidRequest::field("only_jobs", problem))?;
    if valid_for.is_some_and(|time| time.is_zero() || time > MAX_VALIDITY) {
        let problem = "must be more than nothing, and at most 3650 days";
        return Err(InvalidRequest::field("valid_for", problem).into());
    }
    let (id, secret) = (hex(&random::<ID_BYTES>()?), random_text::<SECRET_BYTES>()?);
    let valid_ms = valid_for.map(|time| i64::try_from(time.as_millis()).unwrap_or(i64::MAX));
    let token = NewToken { id: &id, name, secret_hash: &hash(&secret), grant, valid_ms };
    let refused = match tokens::create(store, &token, actor.because(reason), None).await? {
        TokenCreation::Created => return Ok(format!("{TOKEN_PREFIX}{id}_{secret}")),
        TokenCreation::NameTaken => {
            format!("there is a token {name:?} already; revoke it first, or take another name")
        }
        TokenCreation::TooMany => {
            format!("there are {MAX_TOKENS} tokens already; revoke one that nobody uses")
        }
    };
    Err(Conflict::Other(refused).into())
}

/// Lists tokens: those that are accepted by name, and then the others, the latest revoked first.
///
/// # Errors
///
/// Those of the database.
pub async fn list(store: &Store) -> Result<Vec<Token>, OperationError> {
    Ok(tokens::list(store, MAX_LISTED).await?)
}

/// Revokes a token: its next request is refused.
///
/// # Errors
///
/// [`NotFound::Token`].
pub async fn revoke(
    store: &Store,
    name: &str,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<(), OperationError> {
    if tokens::revoke(store, name, actor.because(reason), None).await? {
        return Ok(());
    }
    Err(NotFound::Token(name.to_owned()).into())
}

/// Returns whom a token belongs to; `None`: it is not accepted. Its use is recorded beside, by `writes`, and nobody waits for that.
///
/// # Errors
///
/// Those of the database.
pub async fn accept(
    store: &Store,
    writes: &Store,
    text: &str,
) -> Result<Option<AcceptedToken>, StoreError> {
    let Some(TokenText { id, secret }) = TokenText::parse(text) else { return Ok(None) };
    let accepted = tokens::accept(store, id, &hash(secret), None).await?;
    if accepted.as_ref().is_some_and(|token| token.is_use_new) {
        let (writes, id) = (writes.clone(), id.to_owned());
        tokio::spawn(async move {
            // The next request records it if this does not.
            let _ = tokens::record_use(&writes, &id, None).await;
        });
    }
    Ok(accepted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_created_has_the_shape_of_a_token() {
        let id = hex(&random::<ID_BYTES>().unwrap());
        let secret = random_text::<SECRET_BYTES>().unwrap();
        let text = format!("{TOKEN_PREFIX}{id}_{secret}");
        assert_eq!(TokenText::parse(&text), Some(TokenText { id: &id, secret: &secret }));
        assert_ne!(random::<ID_BYTES>().unwrap(), random::<ID_BYTES>().unwrap());
    }
}
