//! How much of what no row knows is written down, and what there was no room for.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::MAX_BODY_BYTES;
use crate::{Store, StoreError};

/// What may be written down, all in all; what is gone from the queue counts until retention.
pub const MAX_STORED: Capacity = Capacity { messages: 100_000, bytes: 1024 * 1024 * 1024 };

/// An amount of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capacity {
    /// How many.
    pub messages: i64,
    /// Of what is kept of their bodies, and of their properties.
    pub bytes: i64,
}

impl Capacity {
    /// Whether a message with so many bytes fits.
    pub fn fits(&self, body: usize, properties: usize) -> bool {
        self.messages >= 1 && self.bytes >= stored_bytes(body, properties)
    }

    /// What is left when that message was written down.
    #[must_use]
    pub fn minus(self, body: usize, properties: usize) -> Self {
        Self { messages: self.messages - 1, bytes: self.bytes - stored_bytes(body, properties) }
    }
}

fn stored_bytes(body: usize, properties: usize) -> i64 {
    (body.min(MAX_BODY_BYTES) + properties) as i64
}

/// What is left of `limit`. Only the sweep takes of it, one at a time.
///
/// # Errors
///
/// [`StoreError`].
pub async fn remaining_capacity(store: &Store, limit: Capacity) -> Result<Capacity, StoreError> {
    // The length of a body that lies apart is read without it.
    let used = sqlx::query!(
        r#"-- raw_room
        SELECT count(*) AS "messages!",
               coalesce(sum(length(body) + octet_length(properties)), 0)::bigint AS "bytes!"
        FROM sexton.unknown_messages"#
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok(Capacity { messages: limit.messages - used.messages, bytes: limit.bytes - used.bytes })
}

/// What the last sweep met and did not write down. All of it is in the queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Overflow {
    /// How many messages; copies count each.
    pub messages: i64,
    /// Bytes of their bodies.
    pub bytes: i64,
    /// It did not see the whole queue: there may be more.
    pub at_least: bool,
}

/// Notes what the pass begun at `pass` met without writing it down. One that did not see the whole queue
/// and found room for all that it saw says nothing.
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
        "-- write_raw_overflow
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

/// What is in the queue and not written down, by the last pass that said something of it; `None`:
/// nothing.
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
