//! Unknown messages of the failed queue: found by a part of their id, shown without secrets, discarded and restored.
//!
//! The sweep of the failed queue records them and carries out these decisions.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use sexton_model::failures::mask_secrets;
use sexton_service::fault;
use sexton_store::unknown_messages::{
    self, Overflow, PendingAction, UnknownMessage, UnknownMessageError,
};
use sexton_store::{Store, StoreError};

use crate::actor::Actor;
use crate::digest::hex;
use crate::error::{Conflict, InvalidRequest, NotFound, OperationError};
use crate::paging::{Cursor, Page, PagedList};
use crate::text::line;

/// The shortest beginning of an id that is accepted, in hexadecimal digits.
pub const MIN_ID_DIGITS: usize = 4;
/// Length of a whole id, in hexadecimal digits.
const ID_DIGITS: usize = 64;

/// Returns a page of at most `limit` messages behind `cursor`, oldest first; with `all`, also those that are gone from
/// the queue.
///
/// # Errors
///
/// [`InvalidRequest`] for a cursor of another list, and those of the database.
pub async fn list(
    store: &Store,
    all: bool,
    cursor: Option<&str>,
    limit: i64,
) -> Result<Page<UnknownMessage>, OperationError> {
    let list = PagedList::UnknownMessages;
    let after = Cursor::read::<(DateTime<Utc>, String)>(list, cursor)?;
    let after = after.as_ref().map(|(first_seen, id)| (*first_seen, id.as_str()));
    let rows = unknown_messages::list(store, all, after, limit + 1).await?;
    Ok(Page::from_rows(rows, limit, list, |message| (message.first_seen, message.id.clone())))
}

/// Returns how many messages exceeded the record's limit; `None`: none.
///
/// # Errors
///
/// Those of the database.
pub async fn overflow(store: &Store) -> Result<Option<Overflow>, OperationError> {
    Ok(unknown_messages::overflow(store).await?)
}

/// Returns the one message whose id begins with `text`.
///
/// # Errors
///
/// [`InvalidRequest`] if that cannot be an id, or matches several; [`NotFound::UnknownMessage`].
pub async fn find(store: &Store, text: &str) -> Result<UnknownMessage, OperationError> {
    let digits = text.len() <= ID_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits || text.len() < MIN_ID_DIGITS {
        return Err(InvalidRequest::MessageId(line(text, 80)).into());
    }
    let mut found = unknown_messages::find(store, &text.to_ascii_lowercase()).await?;
    match found.len() {
        0 => Err(NotFound::UnknownMessage(text.to_owned()).into()),
        1 => Ok(found.remove(0)),
        _ => {
            let several = found.into_iter().map(|message| message.id).collect();
            Err(InvalidRequest::AmbiguousMessageId { digits: text.to_owned(), several }.into())
        }
    }
}

/// Resolves each of these texts, each message once; fails unless all exist.
///
/// # Errors
///
/// As [`find`].
pub async fn find_ids(store: &Store, texts: &[String]) -> Result<Vec<String>, OperationError> {
    let mut ids = Vec::with_capacity(texts.len());
    for text in texts {
        let id = find(store, text).await?.id;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Discards a message: the next sweep removes it; [`restore`] takes that back. If only the beginning of the message
/// is kept, a restore could not publish it whole, so the discard is refused unless `allow_truncated`.
///
/// # Errors
///
/// [`UnknownMessageError`]; nothing was changed.
pub async fn discard(
    store: &Store,
    id: &str,
    allow_truncated: bool,
    (actor, reason): (&Actor, &str),
) -> Result<PendingAction, UnknownMessageError> {
    let by = actor.because(Some(reason));
    let done = unknown_messages::discard(store, id, allow_truncated, by, None).await;
    if done.is_ok() {
        fault::point("console.unknown_discarded");
    }
    done
}

/// Takes a discard back: the next sweep publishes the removed message again.
///
/// # Errors
///
/// [`UnknownMessageError`]; nothing was changed.
pub async fn restore(
    store: &Store,
    id: &str,
    (actor, reason): (&Actor, Option<&str>),
) -> Result<PendingAction, UnknownMessageError> {
    let done = unknown_messages::restore(store, id, actor.because(reason), None).await;
    if done.is_ok() {
        fault::point("console.unknown_restored");
    }
    done
}

/// Checks that a message is kept whole.
fn check_whole(message: &UnknownMessage) -> Result<(), Conflict> {
    let UnknownMessage { kept_bytes, body_bytes, .. } = *message;
    if is_truncated(message) {
        return Err(Conflict::TruncatedMessage { kept_bytes, body_bytes });
    }
    Ok(())
}

/// Returns whether only the beginning of a message is kept.
pub fn is_truncated(message: &UnknownMessage) -> bool {
    i64::from(message.kept_bytes) < message.body_bytes
}

/// A message with its state, as a document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ListedMessage {
    /// The message.
    #[serde(flatten)]
    pub message: UnknownMessage,
    /// `parked`, `taken`, `discarding`, `discarded` or `restoring`.
    pub state: &'static str,
}

impl ListedMessage {
    /// Makes the document.
    pub fn new(message: UnknownMessage) -> Self {
        Self { state: state(&message), message }
    }
}

/// A message with its content, as a document.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MessageDetails {
    /// The message.
    #[serde(flatten)]
    pub listed: ListedMessage,
    /// The properties that Sexton keeps.
    pub properties: Value,
    /// Whether secrets in the body are masked.
    pub masked: bool,
    /// The beginning of the body; `None`: it is no text.
    pub body_text: Option<String>,
    /// The same in hexadecimal digits; `None`: something is masked.
    pub body_hex: Option<String>,
}

/// Shows the one message whose id begins with `text`, with at most `limit` bytes of its body.
///
/// # Errors
///
/// As [`find`] and [`content`].
pub async fn details(
    store: &Store,
    text: &str,
    limit: usize,
    is_masked: bool,
) -> Result<MessageDetails, OperationError> {
    let message = find(store, text).await?;
    let Content { body, properties } = content(store, &message.id).await?;
    let masked = if is_masked { without_secrets(&body) } else { None };
    // Of JSON whose end was not kept nobody knows which values are secrets.
    let is_hidden = is_masked && is_cut_json(&message, &body);
    let whole = masked.as_ref().map_or(&body[..], |text| text.as_bytes());
    let shown = &whole[..whole.len().min(limit)];
    Ok(MessageDetails {
        listed: ListedMessage::new(message),
        properties,
        masked: masked.is_some() || is_hidden,
        body_text: beginning_of_text(shown).filter(|_| !is_hidden),
        // Digits are exact, or not there.
        body_hex: (masked.is_none() && !is_hidden).then(|| hex(shown)),
    })
}

fn is_cut_json(message: &UnknownMessage, body: &[u8]) -> bool {
    let first = body.trim_ascii_start().first();
    i64::from(message.kept_bytes) < message.body_bytes && matches!(first, Some(b'{' | b'[' | b'"'))
}

/// Returns the text; of one that is cut within a character, what comes before it. `None`: it is no text.
fn beginning_of_text(bytes: &[u8]) -> Option<String> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return None,
    };
    Some(text.to_owned())
}

/// Returns a message's metadata, for a file beside its body.
pub fn export_document(message: &UnknownMessage, content: &Content) -> Value {
    json!({
        "id": message.id,
        "kind": message.kind,
        "reason": message.reason,
        "body_bytes": message.body_bytes,
        "kept_bytes": message.kept_bytes,
        "first_seen": message.first_seen,
        "properties": content.properties,
    })
}

/// The kept content of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Content {
    /// The body, perhaps truncated.
    pub body: Vec<u8>,
    /// The properties that Sexton keeps.
    pub properties: Value,
}

/// Reads the kept content of a message.
///
/// # Errors
///
/// [`NotFound::ForgottenMessage`] when retention has removed it.
pub async fn content(store: &Store, id: &str) -> Result<Content, OperationError> {
    let stored: Option<(Vec<u8>, String)> = unknown_messages::content(store, id).await?;
    let (body, properties) = stored.ok_or_else(|| NotFound::ForgottenMessage(id.to_owned()))?;
    let properties = serde_json::from_str(&properties).map_err(|_| StoreError::Inconsistent {
        place: "unknown_messages.properties",
        value: line(&properties, 80),
    })?;
    Ok(Content { body, properties })
}

/// Returns the one message whose id begins with `text`, with its kept content. Refuses a message of which only the beginning is
/// kept, unless `allow_cut`.
///
/// # Errors
///
/// As [`find`] and [`content`]; [`Conflict::TruncatedMessage`].
pub async fn export(
    store: &Store,
    text: &str,
    allow_cut: bool,
) -> Result<(UnknownMessage, Content), OperationError> {
    let message = find(store, text).await?;
    if !allow_cut {
        check_whole(&message)?;
    }
    let content = content(store, &message.id).await?;
    Ok((message, content))
}

/// Returns the state of a message in its queue, in a word.
pub const fn state(message: &UnknownMessage) -> &'static str {
    match (message.gone_at.is_some(), message.discard_at.is_some(), message.restore_at.is_some()) {
        (_, _, true) => "restoring",
        (false, true, _) => "discarding",
        (true, true, _) => "discarded",
        (false, false, _) => "parked",
        (true, false, _) => "taken",
    }
}

/// Returns the body with secrets masked, by the rule for params; `None`: it is no JSON, or has no secrets, and can be
/// shown as it is.
pub fn without_secrets(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let mut decoded = value.clone();
    // Other programs may write their params as JSON in a string.
    if let Some(params) = decoded.get_mut("params_scheduler")
        && let Some(Ok(object @ Value::Object(_))) = params.as_str().map(serde_json::from_str)
        && mask_secrets(&object) != object
    {
        *params = object;
    }
    let shown = mask_secrets(&decoded);
    (shown != value).then(|| shown.to_string())
}

/// Describes the messages beyond the record's limit.
pub fn describe_overflow(overflow: &Overflow) -> String {
    let at_least = if overflow.at_least { "at least " } else { "" };
    format!(
        "{at_least}{} more messages of the failed queue ({} bytes) are unknown, and the record has no room for \
         them; they stay in the queue. Remove unwanted messages with an AMQP tool; a recorded message makes \
         room when retention removes it after it has left the queue",
        overflow.messages, overflow.bytes
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_hidden_also_where_params_are_a_text_of_json() {
        let shown = |body: &str| without_secrets(body.as_bytes());
        assert_eq!(shown(r#"{"type":"a","params_scheduler":"{\"n\":1}"}"#), None);
        for params in [r#"{"password":"x"}"#, r#""{\"password\":\"x\"}""#] {
            let body = format!(r#"{{"type":"a","params_scheduler":{params}}}"#);
            let decoded: Value =
                serde_json::from_str(&shown(&body).unwrap_or_default()).unwrap_or_default();
            assert_eq!(decoded["params_scheduler"]["password"], "***", "{params}");
        }
        assert_eq!(shown("password: x"), None, "it is no JSON");
    }
}
