//! Records what became of a claim that was sent.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::duration::to_millis;
use sexton_model::incident::{CHANNEL_FAILS, Severity, SubjectKind};
use sexton_model::notification::{FAILURES_OF_A_FAILING_CHANNEL, GIVE_UP_AFTER};
use sqlx::PgConnection;
use uuid::Uuid;

use super::claim::Claim;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::incidents::{MAX_EVENTS, Occurrence, recover, report};
use crate::{Now, Store, StoreError};

/// A channel begins to fail, or works again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChannelChange {
    /// The channel's name.
    pub channel: String,
    /// The failure; `None`: it works again.
    pub error: Option<String>,
}

/// What a record of an outcome changed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recorded {
    /// Notifications that are sent, or parked, for good.
    pub finished: usize,
    /// The channel's change.
    pub change: Option<ChannelChange>,
}

/// Why and until when a claim was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendFailure<'a> {
    /// In words.
    pub error: &'a str,
    /// The wait before the notifications are tried again.
    pub retry_in: Duration,
    /// The wait before anything is sent to the channel.
    pub channel_waits: Duration,
}

/// Records that a claim was accepted, and writes the next reminders.
///
/// # Errors
///
/// Those of the database; the notifications are sent again, under the same ids.
pub async fn record_sent(store: &Store, claim: &Claim, now: Now) -> Result<Recorded, StoreError> {
    let mut tx = store.begin().await?;
    let at = instant(&mut tx, now).await?;
    // The channel first, like a claim, so that neither waits for the other.
    let row = sqlx::query!(
        r#"-- channel_works
        WITH before AS (SELECT name, failures FROM sexton.channels WHERE name = $1 FOR UPDATE)
        UPDATE sexton.channels c SET failures = 0, failing_since = NULL, last_sent_at = $2,
            next_send_at = CASE WHEN c.next_send_at > $3 THEN c.next_send_at END
        FROM before b WHERE c.name = b.name RETURNING b.failures AS "before!""#,
        claim.channel,
        at,
        claim.leased_until
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await?;
    let rows = sqlx::query!(
        "-- record_sent
        UPDATE sexton.notifications SET state = 'sent', finished_at = $2, last_error = NULL
        WHERE id = ANY ($1) AND state = 'pending' RETURNING id, incident_id, kind",
        &claim.ids(),
        at
    )
    .fetch_all(WithTimeout(&mut *tx))
    .await?;
    let finished: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let reminded =
        rows.iter().filter(|row| matches!(row.kind.as_str(), "opened" | "reopened" | "reminder"));
    let mut reminded: Vec<Uuid> = reminded.filter_map(|row| row.incident_id).collect();
    reminded.sort();
    reminded.dedup();
    write_reminders(&mut tx, &claim.channel, &reminded, at).await?;
    record_events(&mut tx, &finished, "sent", at).await?;
    let works_again = row.is_some_and(|row| row.before >= FAILURES_OF_A_FAILING_CHANNEL);
    if works_again {
        let detail = "the channel accepts notifications again".to_owned();
        recover(&mut tx, &[(SubjectKind::Channel, claim.channel.clone(), detail)], at).await?;
    }
    commit(tx).await?;
    let change = works_again.then(|| ChannelChange { channel: claim.channel.clone(), error: None });
    Ok(Recorded { finished: finished.len(), change })
}

/// Records that a claim was not accepted: its notifications wait, and are parked three days after their first try. Changes no
/// notification whose lease is over, since another process may be sending it.
///
/// # Errors
///
/// Those of the database; the notifications are due when the lease is over.
pub async fn record_failure(
    store: &Store,
    claim: &Claim,
    failure: SendFailure<'_>,
    now: Now,
) -> Result<Recorded, StoreError> {
    let mut tx = store.begin().await?;
    let at = instant(&mut tx, now).await?;
    let failures = sqlx::query_scalar!(
        "-- channel_fails
        UPDATE sexton.channels SET failures = failures + 1, failing_since = coalesce(failing_since, $3), last_error = $4,
            next_send_at = CASE WHEN next_send_at = $2 THEN $3::timestamptz + $5 * interval '1 millisecond' ELSE next_send_at END
        WHERE name = $1 RETURNING failures",
        claim.channel,
        claim.leased_until,
        at,
        failure.error,
        to_millis(failure.channel_waits) as f64
    )
    .fetch_optional(WithTimeout(&mut *tx))
    .await?;
    let rows = sqlx::query!(
        r#"-- record_send_failure
        UPDATE sexton.notifications n SET last_error = $4, due_at = $3::timestamptz + $5 * interval '1 millisecond',
            state = CASE WHEN p.is_over THEN 'parked' ELSE 'pending' END,
            finished_at = CASE WHEN p.is_over THEN $3::timestamptz END
        FROM (SELECT id, first_sent_at <= $3::timestamptz - $6 * interval '1 millisecond' AS is_over
              FROM sexton.notifications WHERE id = ANY ($1)) p
        WHERE n.id = p.id AND n.state = 'pending' AND n.due_at = $2
        RETURNING n.id, n.state = 'parked' AS "parked!""#,
        &claim.ids(),
        claim.leased_until,
        at,
        failure.error,
        to_millis(failure.retry_in) as f64,
        to_millis(GIVE_UP_AFTER) as f64
    )
    .fetch_all(WithTimeout(&mut *tx))
    .await?;
    let parked: Vec<Uuid> = rows.iter().filter(|row| row.parked).map(|row| row.id).collect();
    record_events(&mut tx, &parked, "parked", at).await?;
    let begins_to_fail = failures == Some(FAILURES_OF_A_FAILING_CHANNEL);
    if begins_to_fail {
        report(&mut tx, &[fails(&claim.channel, failure.error)], at).await?;
    }
    commit(tx).await?;
    let change = begins_to_fail.then(|| ChannelChange {
        channel: claim.channel.clone(),
        error: Some(failure.error.to_owned()),
    });
    Ok(Recorded { finished: parked.len(), change })
}

/// The occurrence of a channel that fails. Its incident goes to the other channels.
fn fails(channel: &str, error: &str) -> Occurrence {
    Occurrence {
        subject_kind: SubjectKind::Channel,
        subject: channel.to_owned(),
        name: channel.to_owned(),
        cause: CHANNEL_FAILS.to_owned(),
        severity: Severity::High,
        labels: BTreeMap::new(),
        detail: format!(
            "the channel {channel} accepts no notification: {error}; `sexton channels list` shows since when, and \
             `sexton channels test {channel}` tries it"
        ),
        job: None,
        execution: None,
        occurrences: 1,
        remind_every_ms: None,
    }
}

/// Writes the next reminder of each of these incidents that is open and has reminders, unless one waits already.
async fn write_reminders(
    connection: &mut PgConnection,
    channel: &str,
    incidents: &[Uuid],
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    if incidents.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = incidents.iter().map(|_| Uuid::now_v7()).collect();
    sqlx::query!(
        "-- write_reminders
        INSERT INTO sexton.notifications (id, incident_id, channel, kind, detail, created_at, due_at)
        SELECT r.id, i.id, $3, 'reminder', i.detail, $4, $4::timestamptz + i.remind_every_ms * interval '1 millisecond'
        FROM unnest($1::uuid[], $2::uuid[]) AS r (id, incident) JOIN sexton.incidents i ON i.id = r.incident
        WHERE i.state = 'open' AND i.remind_every_ms IS NOT NULL
          AND NOT EXISTS (SELECT FROM sexton.notifications n
                          WHERE n.incident_id = i.id AND n.channel = $3 AND n.kind = 'reminder' AND n.state = 'pending')",
        &ids,
        incidents,
        channel,
        at
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

/// Adds an entry for each notification to its incident's timeline.
async fn record_events(
    connection: &mut PgConnection,
    notifications: &[Uuid],
    kind: &str,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    if notifications.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "-- record_deliveries
        INSERT INTO sexton.incident_events (incident_id, at, kind, detail)
        SELECT n.incident_id, $2, $3, left(n.kind || ' to ' || n.channel || coalesce(': ' || n.last_error, ''), 4000)
        FROM sexton.notifications n WHERE n.id = ANY ($1) AND n.incident_id IS NOT NULL
          AND (SELECT count(*) FROM sexton.incident_events e WHERE e.incident_id = n.incident_id) < $4",
        notifications,
        at,
        kind,
        MAX_EVENTS
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

/// Returns how long the oldest notification has been due, in seconds; 0 without one.
pub async fn oldest_due_s(store: &Store, now: Now) -> Result<f64, StoreError> {
    let age = sqlx::query_scalar!(
        r#"-- oldest_due_notification
        SELECT coalesce(extract(epoch FROM coalesce($1, now()) - min(n.created_at)), 0)::float8 AS "age!"
        FROM sexton.notifications n JOIN sexton.channels c ON c.name = n.channel
        WHERE n.state = 'pending' AND (n.attempts > 0 OR n.due_at <= coalesce($1, now()))"#,
        now
    )
    .fetch_one(store.with_timeout())
    .await?;
    Ok(age.max(0.0))
}
