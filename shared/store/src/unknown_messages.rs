//! Unknown messages of the failed queue, as the sweep recorded them.
//!
//! A queue cannot be read without consuming from it, and two consumers hide messages from each other. So only the
//! sweep consumes, and records here what it keeps: list, show and export read the database. A discard is a mark that
//! the next pass carries out.
//!
//! **Order.** A message is acknowledged only after the commit of the row that holds its body; a crash in between
//! leaves it in the queue, and its mark, for the next pass. A restore after that publishes the message from its row,
//! and the row records it after the confirm; a crash in between publishes it twice, and two equal messages are one
//! row with two copies. So a discard loses nothing until retention: at any time the message is in the queue, or here
//! in whole, or both.
//!
//! A mark covers the copies that existed when it was made. An equal message that comes after a complete pass without
//! any is a new one, and stays until an operator decides about it. A mark that is made during a pass counts from the
//! next pass on, unless this one has met none of its messages yet: so of several copies a pass removes all or none.
//!
//! **Room.** The record has a total size limit. A message beyond it stays in the queue, as all do; it is counted, and
//! lists report it.

mod actions;
mod capacity;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::ticket::{MAX_REASON_BYTES, truncate};

use crate::{Now, Store, StoreError};

pub use actions::{PendingAction, UnknownMessageError, discard, restore};
pub use capacity::{Capacity, MAX_STORED, Overflow, overflow, remaining_capacity, write_overflow};

/// Maximum number of bytes kept of a body. A longer message is never discarded unless an operator accepts the loss of
/// the remainder.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Length of a digest, in bytes.
pub const DIGEST_BYTES: usize = 32;

/// SHA-256 of a message.
pub type Digest = [u8; DIGEST_BYTES];

/// A message as the sweep met it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SeenMessage<'a> {
    /// Of body and properties.
    pub digest: Digest,
    /// `unreadable`, `foreign` or `ticket`.
    pub kind: &'static str,
    /// Why it matches no row.
    pub reason: &'a str,
    /// The whole body.
    pub body: &'a [u8],
    /// A JSON object.
    pub properties: &'a str,
}

/// The result of recording a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordOutcome {
    /// It is recorded, and stays in the queue.
    Kept {
        /// Whether this call recorded it first.
        new: bool,
    },
    /// It is recorded, and must be removed from the queue.
    Discarded,
    /// It is not recorded for lack of room, and stays in the queue.
    NoRoom,
}

/// Records a message that the pass begun at `pass` met, if it is recorded already or there is `room`, and returns
/// whether to remove it from the queue. Committed when this returns.
///
/// # Errors
///
/// [`StoreError`]: whether it was written is unknown; the message must stay in the queue.
pub async fn record_message(
    store: &Store,
    seen: &SeenMessage<'_>,
    pass: DateTime<Utc>,
    room: bool,
    now: Now,
) -> Result<RecordOutcome, StoreError> {
    let kept_part = &seen.body[..seen.body.len().min(MAX_BODY_BYTES)];
    // A text column cannot hold NUL.
    let reason = truncate(seen.reason, MAX_REASON_BYTES).replace('\0', "\u{fffd}");
    // A pass decides at the first copy: a mark that came between two copies is for the next pass. If a pass was
    // interrupted while removing, its count continues, since the next pass does not meet the removed copies again.
    let row = sqlx::query!(
        r#"-- record_unknown_message
        INSERT INTO sexton.unknown_messages AS r
            (digest, kind, reason, body, body_bytes, properties, copies, first_seen, last_seen)
        SELECT $1, $2, $3, $4, $5, $6, 1, coalesce($8, now()), $7
        WHERE $9 OR EXISTS (SELECT FROM sexton.unknown_messages WHERE digest = $1)
        ON CONFLICT (digest) DO UPDATE SET
            copies = CASE WHEN r.gone_at IS NULL
                            AND (r.last_seen = excluded.last_seen OR r.discard_pass IS NOT NULL)
                          THEN r.copies + 1 ELSE 1 END,
            kind = excluded.kind, reason = excluded.reason,
            last_seen = excluded.last_seen, gone_at = NULL, restore_at = NULL,
            discard_at = CASE WHEN r.gone_at IS NULL THEN r.discard_at END,
            discard_by = CASE WHEN r.gone_at IS NULL THEN r.discard_by END,
            discard_reason = CASE WHEN r.gone_at IS NULL THEN r.discard_reason END,
            discard_pass = CASE WHEN r.gone_at IS NULL AND r.discard_at IS NOT NULL
                                 AND (r.last_seen < excluded.last_seen
                                      OR r.discard_pass = excluded.last_seen)
                                THEN excluded.last_seen END
        RETURNING discard_pass IS NOT NULL AS "discarded!", xmax = 0 AS "new!""#,
        &seen.digest,
        seen.kind,
        reason,
        kept_part,
        seen.body.len() as i64,
        seen.properties,
        pass,
        now,
        room
    )
    .fetch_optional(store.with_timeout())
    .await?;
    Ok(match row {
        None => RecordOutcome::NoRoom,
        Some(row) if row.discarded => RecordOutcome::Discarded,
        Some(row) => RecordOutcome::Kept { new: row.new },
    })
}

/// After a complete pass begun at `pass`, whose removals the broker has confirmed, marks the messages that it removed
/// or did not meet as gone. Returns how many.
pub async fn mark_gone(store: &Store, pass: DateTime<Utc>, now: Now) -> Result<u64, StoreError> {
    let done = sqlx::query!(
        "-- unknown_messages_are_gone
        UPDATE sexton.unknown_messages SET gone_at = coalesce($2, now())
        WHERE gone_at IS NULL AND (discard_pass = $1 OR last_seen < $1)",
        pass,
        now
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected())
}

/// Returns whether a sweep is needed: for a message to put back; for a mark whose messages may still be in the queue,
/// since no complete pass has met it; or, if the queue is empty, for a row that says that a message is in there.
///
/// # Errors
///
/// [`StoreError`].
pub async fn needs_sweep(store: &Store, queue_is_empty: bool) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- unknown_message_waits
        SELECT EXISTS (SELECT FROM sexton.unknown_messages
                   WHERE restore_at IS NOT NULL OR (discard_at IS NOT NULL AND gone_at IS NULL))
               OR ($1 AND EXISTS (SELECT FROM sexton.unknown_messages WHERE gone_at IS NULL)) AS "waits!""#,
        queue_is_empty
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// A message to put back into the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageToRestore {
    /// Its digest.
    pub digest: Vec<u8>,
    /// The whole body.
    pub body: Vec<u8>,
    /// A JSON object.
    pub properties: String,
    /// Number of equal messages.
    pub copies: i32,
}

/// Returns the next message after the digest `after`, in their order, whose discard was taken back after the sweep
/// had removed it. Only one, because its body may be long.
///
/// # Errors
///
/// [`StoreError`].
pub async fn next_to_restore(
    store: &Store,
    after: &[u8],
) -> Result<Option<MessageToRestore>, StoreError> {
    Ok(sqlx::query_as!(
        MessageToRestore,
        "-- messages_to_restore
        SELECT digest, body, properties, copies FROM sexton.unknown_messages
        WHERE restore_at IS NOT NULL AND digest > $1 ORDER BY digest LIMIT 1",
        after
    )
    .fetch_optional(store.with_timeout())
    .await?)
}

/// Records that one of several copies was put back and confirmed, so that a retry after a crash puts back only the
/// others; the last one is for [`mark_restored`].
pub async fn mark_copy_restored(store: &Store, digest: &[u8]) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "-- count_restored_copy
        UPDATE sexton.unknown_messages SET copies = copies - 1
        WHERE digest = $1 AND restore_at IS NOT NULL AND copies > 1",
        digest
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Records that a message was put back and confirmed: it is in the queue as before.
pub async fn mark_restored(store: &Store, digest: &[u8], now: Now) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "-- mark_message_restored
        UPDATE sexton.unknown_messages SET restore_at = NULL, gone_at = NULL, discard_at = NULL,
            discard_by = NULL, discard_reason = NULL, discard_pass = NULL,
            last_seen = coalesce($2, clock_timestamp())
        WHERE digest = $1 AND restore_at IS NOT NULL",
        digest,
        now
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Removes messages that have been gone for more than `days`, at most `limit` at a time. Returns how many.
pub async fn prune(store: &Store, days: i32, limit: i64, now: Now) -> Result<u64, StoreError> {
    let done = sqlx::query!(
        "-- prune_unknown_messages
        DELETE FROM sexton.unknown_messages WHERE digest = ANY (ARRAY(
            SELECT digest FROM sexton.unknown_messages
            WHERE gone_at < coalesce($1, now()) - $2 * interval '1 day' AND restore_at IS NULL
            -- Locked: a restore that an operator requests now keeps its row.
            ORDER BY gone_at LIMIT $3 FOR UPDATE SKIP LOCKED))",
        now,
        f64::from(days),
        limit
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected())
}

/// A message, without its body.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnknownMessage {
    /// SHA-256, in hexadecimal digits.
    pub id: String,
    /// `unreadable`, `foreign` or `ticket`.
    pub kind: String,
    /// Why it matches no row.
    pub reason: String,
    /// Length of the whole body, in bytes.
    pub body_bytes: i64,
    /// Number of bytes kept of it.
    pub kept_bytes: i32,
    /// Number of equal messages that the last pass met.
    pub copies: i32,
    /// When a pass first met it.
    pub first_seen: DateTime<Utc>,
    /// When the last pass that met it began.
    pub last_seen: DateTime<Utc>,
    /// When a pass found it gone from the queue.
    pub gone_at: Option<DateTime<Utc>>,
    /// When it was discarded.
    pub discard_at: Option<DateTime<Utc>>,
    /// The operator who discarded it.
    pub discard_by: Option<String>,
    /// The reason given.
    pub discard_reason: Option<String>,
    /// When the discard was taken back, if the sweep has not put the message back yet.
    pub restore_at: Option<DateTime<Utc>>,
}

/// Lists the messages, oldest first, after `after` (a digest in hexadecimal digits): those in the queue, or with
/// `gone` all that are recorded.
pub async fn list(
    store: &Store,
    gone: bool,
    after: Option<(DateTime<Utc>, &str)>,
    limit: i64,
) -> Result<Vec<UnknownMessage>, StoreError> {
    Ok(sqlx::query_as!(
        UnknownMessage,
        r#"-- list_unknown_messages
        SELECT encode(digest, 'hex') AS "id!", kind, reason, body_bytes,
               length(body) AS "kept_bytes!", copies, first_seen, last_seen, gone_at, discard_at,
               discard_by, discard_reason, restore_at
        FROM sexton.unknown_messages
        WHERE (gone_at IS NULL OR $1)
          AND ($2::timestamptz IS NULL OR (first_seen, digest) > ($2, decode($4::text, 'hex')))
        ORDER BY first_seen, digest LIMIT $3"#,
        gone,
        after.map(|after| after.0),
        limit,
        after.map(|after| after.1)
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Returns the messages whose digest begins with `prefix` (hexadecimal digits); at most two, since a second one
/// already makes the prefix ambiguous.
pub async fn find(store: &Store, prefix: &str) -> Result<Vec<UnknownMessage>, StoreError> {
    Ok(sqlx::query_as!(
        UnknownMessage,
        r#"-- find_unknown_message
        SELECT encode(digest, 'hex') AS "id!", kind, reason, body_bytes,
               length(body) AS "kept_bytes!", copies, first_seen, last_seen, gone_at, discard_at,
               discard_by, discard_reason, restore_at
        FROM sexton.unknown_messages
        WHERE digest >= decode(rpad($1, 64, '0'), 'hex') AND digest <= decode(rpad($1, 64, 'f'), 'hex')
        ORDER BY digest LIMIT 5"#,
        prefix
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Returns the kept body and properties of a message.
pub async fn content(store: &Store, id: &str) -> Result<Option<(Vec<u8>, String)>, StoreError> {
    let row = sqlx::query!(
        "-- unknown_message_content
        SELECT body, properties FROM sexton.unknown_messages WHERE digest = decode($1, 'hex')",
        id
    )
    .fetch_optional(store.with_timeout())
    .await?;
    Ok(row.map(|row| (row.body, row.properties)))
}

/// Returns how many unknown messages are in the queue by the last pass, counting copies.
pub async fn count_queued(store: &Store) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- unknown_messages_there
        SELECT coalesce(sum(copies), 0) AS "there!" FROM sexton.unknown_messages WHERE gone_at IS NULL"#
    )
    .fetch_one(store.with_timeout())
    .await?)
}
