//! The limits of the record of unknown messages, and the messages beyond them.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::MAX_BODY_BYTES;
use crate::{Store, StoreError};

/// The limit of the whole record; messages gone from the queue count until retention.
pub const MAX_STORED: Capacity = Capacity { messages: 100_000, bytes: 1024 * 1024 * 1024 };

/// A number and size of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capacity {
    /// Number of messages.
    pub messages: i64,
    /// Bytes kept of their bodies, and of their properties.
    pub bytes: i64,
}

impl Capacity {
    /// Returns whether a message of this size fits.
    pub fn fits(&self, body: usize, properties: usize) -> bool {
        self.messages >= 1 && self.bytes >= stored_bytes(body, properties)
    }

    /// Returns the capacity left after that message.
    #[must_use]
    pub fn minus(self, body: usize, properties: usize) -> Self {
        Self { messages: self.messages - 1, bytes: self.bytes - stored_bytes(body, properties) }
    }
}

fn stored_bytes(body: usize, properties: usize) -> i64 {
    (body.min(MAX_BODY_BYTES) + properties) as i64
}

/// Returns how much of `limit` is left. Only the sweep uses it, one at a time.
///
/// # Errors
///
/// [`StoreError`].
pub async fn remaining_capacity(store: &Store, limit: Capacity) -> Result<Capacity, StoreError> {
    // The length of a body in TOAST is read without the body.
    let used = sqlx::query!(
        r#"-- unknown_message_room
        SELECT count(*) AS "messages!",
               coalesce(sum(length(body) + octet_length(properties)), 0)::bigint AS "bytes!"
        FROM sexton.unknown_messages"#
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok(Capacity { messages: limit.messages - used.messages, bytes: limit.bytes - used.bytes })
}

/// The messages that the last sweep met and did not record. All of them are in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Overflow {
    /// Number of messages, counting copies.
    pub messages: i64,
    /// Bytes of their bodies.
    pub bytes: i64,
    /// Whether the sweep did not see the whole queue, so that there may be more.
    pub at_least: bool,
}

/// Records the messages that the pass begun at `pass` met without recording them. A pass that did not see the whole
/// queue and had room for all that it saw writes nothing.
///
/// # Errors
///
/// [`StoreError`].
pub async fn write_overflow(
    store: &Store,
    over: Overflow,
    pass: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- write_unknown_overflow
        INSERT INTO sexton.unknown_overflow AS o (messages, bytes, at_least, pass)
        SELECT $1::bigint, $2, $3::boolean, $4
        WHERE $1 > 0 OR (NOT $3 AND EXISTS (SELECT FROM sexton.unknown_overflow WHERE messages > 0))
        ON CONFLICT (one) DO UPDATE SET messages = excluded.messages, bytes = excluded.bytes,
            at_least = excluded.at_least, pass = excluded.pass",
        over.messages,
        over.bytes,
        over.at_least,
        pass
    )
    .execute(store.with_timeout())
    .await?;
    Ok(())
}

/// Returns the unrecorded messages in the queue, by the last pass that reported on them; `None`: none.
///
/// # Errors
///
/// [`StoreError`].
pub async fn overflow(store: &Store) -> Result<Option<Overflow>, StoreError> {
    Ok(sqlx::query_as!(
        Overflow,
        "-- unknown_overflow
        SELECT messages, bytes, at_least FROM sexton.unknown_overflow WHERE messages > 0"
    )
    .fetch_optional(store.with_timeout())
    .await?)
}
