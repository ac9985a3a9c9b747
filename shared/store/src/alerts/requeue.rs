//! Operators' actions on notifications: parked ones are tried again, and a test is sent.

use chrono::{DateTime, Utc};
use serde_json::json;
use sqlx::PgConnection;
use uuid::Uuid;

use super::config::retry_at_once;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::operator::{AuditContext, record_jobless_action};
use crate::{Now, Store, StoreError};

/// Which parked notifications are tried again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParkedSelection {
    /// These.
    Ids(Vec<Uuid>),
    /// All of a channel.
    Channel(String),
}

/// Makes parked notifications pending again, due at once, in one transaction with its record in the audit. Their attempts stay; the
/// three days until they are given up begin anew. Returns their ids.
///
/// # Errors
///
/// Those of the database; nothing was changed.
pub async fn requeue(
    store: &Store,
    selection: &ParkedSelection,
    by: AuditContext<'_>,
    now: Now,
) -> Result<Vec<Uuid>, StoreError> {
    let mut tx = store.begin().await?;
    let at = instant(&mut tx, now).await?;
    let (ids, channel) = match selection {
        ParkedSelection::Ids(ids) => (Some(ids.as_slice()), None),
        ParkedSelection::Channel(name) => (None, Some(name.as_str())),
    };
    let rows = sqlx::query!(
        "-- requeue_notifications
        UPDATE sexton.notifications SET state = 'pending', finished_at = NULL, first_sent_at = NULL, due_at = $3
        WHERE state = 'parked' AND ($1::uuid[] IS NULL OR id = ANY ($1)) AND ($2::text IS NULL OR channel = $2)
          AND EXISTS (SELECT FROM sexton.channels c WHERE c.name = channel)
        RETURNING id, channel",
        ids,
        channel,
        at
    )
    .fetch_all(WithTimeout(&mut *tx))
    .await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let requeued: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let mut channels: Vec<String> = rows.into_iter().map(|row| row.channel).collect();
    channels.sort();
    channels.dedup();
    retry_at_once(&mut tx, &channels, at).await?;
    let after =
        json!({"channels": channels, "notifications": requeued.len(), "first": requeued.first()});
    let change = (None, Some(after));
    record_jobless_action(&mut tx, "requeue_notifications", change, by, at).await?;
    commit(tx).await?;
    Ok(requeued)
}

/// Writes a test of a channel, due at once, with its record in the audit. Returns whether the channel exists.
///
/// # Errors
///
/// Those of the database; nothing was written.
pub async fn write_test(
    store: &Store,
    channel: &str,
    id: Uuid,
    by: AuditContext<'_>,
    now: Now,
) -> Result<bool, StoreError> {
    let mut tx = store.begin().await?;
    let at = instant(&mut tx, now).await?;
    let written = sqlx::query!(
        "-- write_test
        INSERT INTO sexton.notifications (id, channel, kind, detail, created_at, due_at)
        SELECT $1, name, 'test', left('A test by ' || $3, 4000), $4, $4 FROM sexton.channels WHERE name = $2",
        id,
        channel,
        by.actor,
        at
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    if written.rows_affected() == 0 {
        return Ok(false);
    }
    retry_at_once(&mut tx, &[channel.to_owned()], at).await?;
    record_test(&mut tx, channel, by, at).await?;
    commit(tx).await?;
    Ok(true)
}

async fn record_test(
    connection: &mut PgConnection,
    channel: &str,
    by: AuditContext<'_>,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    record_jobless_action(
        connection,
        "test_channel",
        (None, Some(json!({"channel": channel}))),
        by,
        at,
    )
    .await
}

/// Records that an operator's process sent a test by itself.
pub async fn record_direct_test(
    store: &Store,
    channel: &str,
    by: AuditContext<'_>,
    now: Now,
) -> Result<(), StoreError> {
    let mut tx = store.begin().await?;
    let at = instant(&mut tx, now).await?;
    record_test(&mut tx, channel, by, at).await?;
    commit(tx).await?;
    Ok(())
}
