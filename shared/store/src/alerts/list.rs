//! Lists of channels and notifications for operators.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use crate::{Now, Store, StoreError};

/// A channel and its state.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChannelState {
    pub name: String,
    pub kind: String,
    pub updated_at: DateTime<Utc>,
    pub failing_since: Option<DateTime<Utc>>,
    pub failures: i32,
    pub next_send_at: Option<DateTime<Utc>>,
    pub last_error: Option<String>,
    pub last_sent_at: Option<DateTime<Utc>>,
    /// Notifications that are due, or were tried.
    pub pending: i64,
    /// When the oldest of them was written.
    pub oldest: Option<DateTime<Utc>>,
    /// Notifications that were given up.
    pub parked: i64,
}

/// A notification.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[expect(missing_docs, reason = "the schema comments every column")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ListedNotification {
    pub id: Uuid,
    pub incident_id: Option<Uuid>,
    pub channel: String,
    pub kind: String,
    pub detail: String,
    pub created_at: DateTime<Utc>,
    pub due_at: DateTime<Utc>,
    pub state: String,
    pub attempts: i32,
    pub first_sent_at: Option<DateTime<Utc>>,
    pub digest: Option<Uuid>,
    pub finished_at: Option<DateTime<Utc>>,
    pub last_error: Option<String>,
    /// The name of the incident's subject.
    pub name: Option<String>,
}

/// Lists the channels by name.
pub async fn channels(store: &Store, now: Now) -> Result<Vec<ChannelState>, StoreError> {
    Ok(sqlx::query_as!(
        ChannelState,
        r#"-- channel_states
        SELECT c.name, c.kind, c.updated_at, c.failing_since, c.failures, c.next_send_at, c.last_error, c.last_sent_at,
               coalesce(n.pending, 0) AS "pending!", n.oldest AS "oldest?", coalesce(n.parked, 0) AS "parked!"
        FROM sexton.channels c LEFT JOIN LATERAL (
            SELECT count(*) FILTER (WHERE state = 'pending') AS pending,
                   min(created_at) FILTER (WHERE state = 'pending') AS oldest,
                   count(*) FILTER (WHERE state = 'parked') AS parked
            FROM sexton.notifications
            WHERE channel = c.name AND (state = 'parked'
                  OR state = 'pending' AND (attempts > 0 OR due_at <= coalesce($1, now())))) n ON true
        ORDER BY c.name"#,
        now
    )
    .fetch_all(store.with_timeout())
    .await?)
}

/// Which notifications are listed; all conditions must hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NotificationFilter<'a> {
    /// The one with this id; `None`: any.
    pub id: Option<Uuid>,
    /// Those in this state; `None`: in any.
    pub state: Option<&'a str>,
    /// Those to this channel; `None`: to any.
    pub channel: Option<&'a str>,
    /// Those older than the one written then, with this id; `None`: from the newest on.
    pub before: Option<(DateTime<Utc>, Uuid)>,
}

/// Lists notifications, the newest first, at most `limit`.
pub async fn notifications(
    store: &Store,
    filter: NotificationFilter<'_>,
    limit: i64,
) -> Result<Vec<ListedNotification>, StoreError> {
    Ok(sqlx::query_as!(
        ListedNotification,
        r#"-- list_notifications
        SELECT n.id, n.incident_id, n.channel, n.kind, n.detail, n.created_at, n.due_at, n.state, n.attempts,
               n.first_sent_at, n.digest, n.finished_at, n.last_error, i.name AS "name?"
        FROM sexton.notifications n LEFT JOIN sexton.incidents i ON i.id = n.incident_id
        WHERE ($1::text IS NULL OR n.state = $1) AND ($2::text IS NULL OR n.channel = $2) AND ($4::uuid IS NULL OR n.id = $4)
          AND ($5::timestamptz IS NULL OR (n.created_at, n.id) < ($5, $6::uuid))
        ORDER BY n.created_at DESC, n.id DESC LIMIT $3"#,
        filter.state,
        filter.channel,
        limit,
        filter.id,
        filter.before.map(|before| before.0),
        filter.before.map(|before| before.1)
    )
    .fetch_all(store.with_timeout())
    .await?)
}
