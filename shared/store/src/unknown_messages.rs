//! Messages of the failed queue that no row knows, as the sweep saw them.
//!
//! A queue cannot be looked at without taking from it, and what is taken by two at once hides from
//! both. So only the sweep takes, and writes down here what it keeps: to list, to show and to export
//! are questions to the database. To discard is a mark that the next pass carries out.
//!
//! **Order.** A message is acknowledged only after the commit of the row that holds its body; a crash
//! in between leaves it in the queue, and its mark, for the next pass. A discard that is taken back
//! after that is published from here and confirmed before the row says so; a crash in between
//! publishes it twice, and two equal messages are one row with two copies. So a discard loses
//! nothing until retention: at any time the message is in the queue, or here in whole, or both.
//!
//! A mark counts for what was there when it was made. An equal message that comes after a complete
//! pass without any is a new one, and stays until somebody looks at it. A mark that is made while a
//! pass is under way counts from the next pass on, unless this one has met none of its messages yet: so
//! of several copies a pass removes all or none.
//!
//! **Room.** What is written down is limited, all in all. A message that there is no room for stays in
//! the queue, as all do; it is counted, and told of by lists.

mod actions;
mod capacity;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sexton_model::ticket::{MAX_REASON_BYTES, truncate};

use crate::{Now, Store, StoreError};

pub use actions::{PendingAction, UnknownMessageError, discard, restore};
pub use capacity::{Capacity, MAX_STORED, Overflow, overflow, remaining_capacity, write_overflow};

/// As much of a body is kept, in bytes. A longer message is never discarded unless somebody says that
/// its rest may be lost.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// The length of a digest, in bytes.
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
    /// Why no row knows it.
    pub reason: &'a str,
    /// The whole body.
    pub body: &'a [u8],
    /// A JSON object.
    pub properties: &'a str,
}

/// What was written of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordOutcome {
    /// It is known, and stays.
    Kept {
        /// It was not before.
        new: bool,
    },
    /// It is known, and is to be removed.
    Discarded,
    /// Nothing: it is not known, and there is no room. It stays.
    NoRoom,
}

/// Writes down a message that the pass begun at `pass` met, where it is known already or there is
/// `room`, and answers whether it is to be removed. Committed when this returns.
///
/// # Errors
///
/// [`StoreError`]: whether it was written is not known; the message must stay in the queue.
pub async fn record_message(
    store: &Store,
    seen: &SeenMessage<'_>,
    pass: DateTime<Utc>,
    room: bool,
    now: Now,
) -> Result<RecordOutcome, StoreError> {
    let kept = &seen.body[..seen.body.len().min(MAX_BODY_BYTES)];
    // A text column holds any character but this one.
    let reason = truncate(seen.reason, MAX_REASON_BYTES).replace('\0', "\u{fffd}");
    // A pass decides at the first copy: a mark that came between two of them is for the next. Where a pass
    // broke off that was removing, its count goes on, since what it removed is not met again.
    let row = sqlx::query!(
        r#"-- note_raw_message
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
        kept,
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

/// After a pass through the whole queue, begun at `pass`, whose removals the broker has taken: what it
/// removed is gone, and so is what it did not meet. Returns how many.
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

/// Whether the sweep is waited for: by a message to put back; by a mark of which it is not known that what bears it is
/// gone, since no pass has met it, or the one that did has not gone through the whole queue; or, where the
/// queue is empty, by a row that says that something is in there.
///
/// # Errors
///
/// [`StoreError`].
pub async fn needs_sweep(store: &Store, queue_is_empty: bool) -> Result<bool, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- raw_waits
        SELECT EXISTS (SELECT FROM sexton.unknown_messages
                   WHERE restore_at IS NOT NULL OR (discard_at IS NOT NULL AND gone_at IS NULL))
               OR ($1 AND EXISTS (SELECT FROM sexton.unknown_messages WHERE gone_at IS NULL)) AS "waits!""#,
        queue_is_empty
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// A message to be put back into the queue.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageToRestore {
    /// Which.
    pub digest: Vec<u8>,
    /// The whole body.
    pub body: Vec<u8>,
    /// A JSON object.
    pub properties: String,
    /// How many equal messages there were.
    pub copies: i32,
}

/// The next message after the digest `after`, by their order, whose discard was taken back after the sweep had
/// removed it. One, since its body is long perhaps.
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
        "-- raw_to_restore
        SELECT digest, body, properties, copies FROM sexton.unknown_messages
        WHERE restore_at IS NOT NULL AND digest > $1 ORDER BY digest LIMIT 1",
        after
    )
    .fetch_optional(store.with_timeout())
    .await?)
}

/// Notes that one of several copies was put back and confirmed, so that what goes on after a crash puts back the
/// others; the last is for [`mark_restored`].
pub async fn mark_copy_restored(store: &Store, digest: &[u8]) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "-- raw_restored_one
        UPDATE sexton.unknown_messages SET copies = copies - 1
        WHERE digest = $1 AND restore_at IS NOT NULL AND copies > 1",
        digest
    )
    .execute(store.with_timeout())
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Notes that a message was put back and confirmed: it is in the queue, as if nothing had been done.
pub async fn mark_restored(store: &Store, digest: &[u8], now: Now) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "-- raw_restored
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

/// Removes what has been gone for more than `days`. Returns how many; at most `most` at a time.
pub async fn prune(store: &Store, days: i32, limit: i64, now: Now) -> Result<u64, StoreError> {
    let done = sqlx::query!(
        "-- prune_unknown_messages
        DELETE FROM sexton.unknown_messages WHERE digest IN (
            SELECT digest FROM sexton.unknown_messages
            WHERE gone_at < coalesce($1, now()) - $2 * interval '1 day' AND restore_at IS NULL
            -- Locked: a restore that is just asked for keeps its row.
            ORDER BY gone_at LIMIT $3 FOR UPDATE SKIP LOCKED)",
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
pub struct UnknownMessage {
    /// SHA-256, in hexadecimal digits.
    pub id: String,
    /// `unreadable`, `foreign` or `ticket`.
    pub kind: String,
    /// Why no row knows it.
    pub reason: String,
    /// Of the whole body.
    pub body_bytes: i64,
    /// Of what is kept of it.
    pub kept_bytes: i32,
    /// How many equal messages the last pass met.
    pub copies: i32,
    /// When it was first met.
    pub first_seen: DateTime<Utc>,
    /// When the last pass that met it began.
    pub last_seen: DateTime<Utc>,
    /// When it was found to be gone from the queue.
    pub gone_at: Option<DateTime<Utc>>,
    /// When it was discarded.
    pub discard_at: Option<DateTime<Utc>>,
    /// By whom.
    pub discard_by: Option<String>,
    /// Why.
    pub discard_reason: Option<String>,
    /// When the discard was taken back, if that is still to be carried out.
    pub restore_at: Option<DateTime<Utc>>,
}

/// The messages, oldest first, after `after` (a digest in hexadecimal digits): those in the queue, or
/// with `gone` all that are known.
pub async fn list(
    store: &Store,
    gone: bool,
    after: Option<&str>,
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
          AND ($2::text IS NULL OR (first_seen, digest) >
               (SELECT first_seen, digest FROM sexton.unknown_messages WHERE digest = decode($2, 'hex')))
        ORDER BY first_seen, digest LIMIT $3"#,
        gone,
        after,
        limit
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// The messages whose digest begins with `prefix` (hexadecimal digits); at most two, of which one is
/// one too many.
pub async fn find(store: &Store, prefix: &str) -> Result<Vec<UnknownMessage>, StoreError> {
    Ok(sqlx::query_as!(
        UnknownMessage,
        r#"-- find_raw_message
        SELECT encode(digest, 'hex') AS "id!", kind, reason, body_bytes,
               length(body) AS "kept_bytes!", copies, first_seen, last_seen, gone_at, discard_at,
               discard_by, discard_reason, restore_at
        FROM sexton.unknown_messages
        WHERE digest >= decode(rpad($1, 64, '0'), 'hex') AND digest <= decode(rpad($1, 64, 'f'), 'hex')
        ORDER BY digest LIMIT 2"#,
        prefix
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// What is kept of a message: body and properties.
pub async fn content(store: &Store, id: &str) -> Result<Option<(Vec<u8>, String)>, StoreError> {
    let row = sqlx::query!(
        "-- raw_content
        SELECT body, properties FROM sexton.unknown_messages WHERE digest = decode($1, 'hex')",
        id
    )
    .fetch_optional(store.with_timeout())
    .await?;
    Ok(row.map(|row| (row.body, row.properties)))
}

/// How many are in the queue by the last pass, copies counted.
pub async fn count_queued(store: &Store) -> Result<i64, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- unknown_messages_there
        SELECT coalesce(sum(copies), 0) AS "there!" FROM sexton.unknown_messages WHERE gone_at IS NULL"#
    )
    .fetch_one(store.with_timeout())
    .await?)
}
