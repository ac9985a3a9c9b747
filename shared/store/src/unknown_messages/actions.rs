//! An operator's actions on a message: discard, and restore, which takes a discard back.
//!
//! Each is one transaction that locks the row (waiting at most 5 s), writes the mark and records who did it and why.
//! The sweep carries marks out; until then a restore only removes the mark.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::{Postgres, Transaction};

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::operator::{AuditContext, is_lock_timeout, record_jobless_action, set_lock_timeout};
use crate::{Now, Store, StoreError};

/// Why an action was refused.
#[derive(Debug, thiserror::Error)]
pub enum UnknownMessageError {
    /// There is no such message.
    #[error("no message {0} is known; `sexton unknown list --all` shows all that are")]
    Missing(String),
    /// It is not in the queue any more.
    #[error(
        "message {0} is not in the failed queue any more: somebody took it, or it was discarded"
    )]
    Gone(String),
    /// It is discarded already.
    #[error("message {0} was discarded before; the next sweep removes it")]
    Marked(String),
    /// It is not discarded.
    #[error("message {0} is not discarded, so there is nothing to take back")]
    NotDiscarded(String),
    /// Only a part of its body is kept, and the operator has not accepted the loss of the remainder.
    #[error(
        "message {id} has {bytes} bytes, of which {kept} are kept: a discard could not be taken back \
         whole. Take it out of the queue with an AMQP tool, or add --allow-truncated"
    )]
    Truncated {
        /// The message's digest.
        id: String,
        /// Length of the whole body, in bytes.
        bytes: i64,
        /// Number of bytes kept.
        kept: i64,
    },
    /// Only a part of its body is kept, so a restore would publish another message.
    #[error(
        "of message {0} only a part is kept, so it cannot be put back; \
         `sexton unknown export` writes that part to a file"
    )]
    Incomplete(String),
    /// A pass has removed it, and none has completed since.
    #[error(
        "message {0} is being removed by a sweep; try again when one has gone through the whole \
         failed queue, in a minute"
    )]
    SweepRunning(String),
    /// Another transaction kept the row locked for 5 s. Try again.
    #[error("message {0} is locked by somebody else; try again")]
    Locked(String),
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the sweep has to do after a change of the mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PendingAction {
    /// Remove the message from the queue.
    Discard,
    /// Nothing: the message is in the queue, without a mark.
    Keep,
    /// Publish the message again.
    Restore,
}

struct Row {
    digest: Vec<u8>,
    body_bytes: i64,
    kept: i64,
    gone_at: Option<DateTime<Utc>>,
    discard_at: Option<DateTime<Utc>>,
    discard_pass: Option<DateTime<Utc>>,
    restore_at: Option<DateTime<Utc>>,
    now: DateTime<Utc>,
}

/// Marks the message `id` (its whole digest, in hexadecimal digits) for removal by the next pass. `allow_truncated`
/// permits this for a message that is not kept in whole.
///
/// # Errors
///
/// [`UnknownMessageError`]; nothing was written.
pub async fn discard(
    store: &Store,
    id: &str,
    allow_truncated: bool,
    by: AuditContext<'_>,
    now: Now,
) -> Result<PendingAction, UnknownMessageError> {
    let mut tx = begin(store).await?;
    let row = lock(&mut tx, id, now).await?;
    if row.gone_at.is_some() {
        return Err(UnknownMessageError::Gone(id.to_owned()));
    }
    if row.discard_at.is_some() {
        return Err(UnknownMessageError::Marked(id.to_owned()));
    }
    if row.kept < row.body_bytes && !allow_truncated {
        return Err(UnknownMessageError::Truncated {
            id: id.to_owned(),
            bytes: row.body_bytes,
            kept: row.kept,
        });
    }
    sqlx::query!(
        "-- discard_unknown_message
        UPDATE sexton.unknown_messages SET discard_at = $2, discard_by = $3, discard_reason = $4
        WHERE digest = $1",
        row.digest,
        row.now,
        by.actor,
        by.reason.unwrap_or_default()
    )
    .execute(WithTimeout(&mut *tx))
    .await
    .map_err(StoreError::from)?;
    let states =
        (Some(json!({"message": id, "state": "kept"})), Some(json!({"state": "discarded"})));
    record_jobless_action(&mut tx, "discard_raw", states, by, row.now).await?;
    commit(tx).await.map_err(StoreError::from)?;
    Ok(PendingAction::Discard)
}

/// Takes the discard of a message back; possible until retention removes the row.
///
/// # Errors
///
/// [`UnknownMessageError`]; nothing was written.
pub async fn restore(
    store: &Store,
    id: &str,
    by: AuditContext<'_>,
    now: Now,
) -> Result<PendingAction, UnknownMessageError> {
    let mut tx = begin(store).await?;
    let row = lock(&mut tx, id, now).await?;
    if row.discard_at.is_none() || row.restore_at.is_some() {
        return Err(UnknownMessageError::NotDiscarded(id.to_owned()));
    }
    // A pass that met it and has not ended may have removed it or not. Once that pass or the next has ended, the row
    // says which.
    let is_gone = row.gone_at.is_some();
    if !is_gone && row.discard_pass.is_some() {
        return Err(UnknownMessageError::SweepRunning(id.to_owned()));
    }
    if is_gone && row.kept < row.body_bytes {
        return Err(UnknownMessageError::Incomplete(id.to_owned()));
    }
    sqlx::query!(
        "-- restore_unknown_message
        UPDATE sexton.unknown_messages SET restore_at = CASE WHEN $2::bool THEN $3::timestamptz END,
            discard_at = CASE WHEN $2 THEN discard_at END,
            discard_by = CASE WHEN $2 THEN discard_by END,
            discard_reason = CASE WHEN $2 THEN discard_reason END
        WHERE digest = $1",
        row.digest,
        is_gone,
        row.now
    )
    .execute(WithTimeout(&mut *tx))
    .await
    .map_err(StoreError::from)?;
    let states =
        (Some(json!({"message": id, "state": "discarded"})), Some(json!({"state": "kept"})));
    record_jobless_action(&mut tx, "restore_raw", states, by, row.now).await?;
    commit(tx).await.map_err(StoreError::from)?;
    Ok(if is_gone { PendingAction::Restore } else { PendingAction::Keep })
}

async fn begin(store: &Store) -> Result<Transaction<'static, Postgres>, StoreError> {
    let mut tx = store.begin().await?;
    set_lock_timeout(&mut tx).await?;
    Ok(tx)
}

async fn lock(
    tx: &mut Transaction<'static, Postgres>,
    id: &str,
    now: Now,
) -> Result<Row, UnknownMessageError> {
    let row = sqlx::query_as!(
        Row,
        r#"-- lock_unknown_message
        SELECT digest, body_bytes, length(body)::bigint AS "kept!", gone_at, discard_at,
               discard_pass, restore_at, coalesce($2, now()) AS "now!"
        FROM sexton.unknown_messages WHERE digest = decode($1, 'hex') FOR UPDATE"#,
        id,
        now
    )
    .fetch_optional(WithTimeout(&mut **tx))
    .await;
    match row {
        Ok(row) => row.ok_or_else(|| UnknownMessageError::Missing(id.to_owned())),
        Err(error) if is_lock_timeout(&error) => Err(UnknownMessageError::Locked(id.to_owned())),
        Err(error) => Err(StoreError::from(error).into()),
    }
}
