//! Claims what is sent next to a channel: one message, a digest, or a batch of alerts.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::channel::{ChannelKind, ChannelSettings};
use sexton_model::notification::{
    DIGEST_WINDOW_S, DropReason, MAX_ALERTS, MAX_DIGEST, MAX_SINGLES, Message, Verdict, judge,
};
use sqlx::PgConnection;
use uuid::Uuid;

use super::due::{self, DueNotification};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::error::parse_column;
use crate::incidents::MAX_EVENTS;
use crate::{Now, Store, StoreError};

/// How long nobody else sends what was claimed, in seconds. Longer than a sending may take.
pub const LEASE_S: i64 = 60;
/// Notifications that one claim reads where at most one is sent.
const MAX_READ: usize = 100;

/// Which channels, or addresses of heartbeats, are out of the question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClaimFilter<'a> {
    /// Names of channels, or addresses, to leave out.
    pub busy: &'a [String],
    /// Whether one whose last send failed may be claimed.
    pub allows_failing: bool,
}

/// What is to be sent to a channel.
#[derive(Clone, PartialEq, Debug)]
pub struct Claim {
    /// The channel's name.
    pub channel: String,
    /// Its kind.
    pub kind: ChannelKind,
    /// Its settings; an error: they cannot be read.
    pub settings: Result<ChannelSettings, String>,
    /// The messages, at least one.
    pub messages: Vec<Message>,
    /// The id of the digest that they are joined to; `None`: each is sent for itself.
    pub digest: Option<Uuid>,
    /// How often the first of them was tried, with this time.
    pub attempts: i32,
    /// Sends to the channel that failed in a row.
    pub failures: i32,
    /// The instant of the claim.
    pub at: DateTime<Utc>,
    /// Until when nobody else sends them.
    pub leased_until: DateTime<Utc>,
}

impl Claim {
    /// Returns the ids of the notifications.
    pub fn ids(&self) -> Vec<Uuid> {
        self.messages.iter().map(|message| message.id).collect()
    }
}

/// What a claim found.
#[derive(Clone, PartialEq, Debug)]
pub enum Claimed {
    /// No channel has anything due.
    Nothing,
    /// Something is to be sent.
    Delivery(Box<Claim>),
    /// The channel of this kind has nothing to send now; this many notifications were dropped.
    Dropped(ChannelKind, usize),
}

struct ChannelRow {
    name: String,
    kind: ChannelKind,
    settings: Result<ChannelSettings, String>,
    failures: i32,
    now: DateTime<Utc>,
}

/// Claims what is due to the channel that was sent something longest ago; drops what nobody needs any more. `digest` is the id of a
/// digest, if one is made.
///
/// # Errors
///
/// Those of the database; nothing was claimed.
pub async fn claim(
    store: &Store,
    filter: ClaimFilter<'_>,
    digest: Uuid,
    now: Now,
) -> Result<Claimed, StoreError> {
    let mut tx = store.begin().await?;
    let Some(channel) = take_channel(&mut tx, filter, now).await? else {
        return Ok(Claimed::Nothing);
    };
    let selection = select(&mut tx, &channel, digest).await?;
    drop_all(&mut tx, &channel, &selection.dropped).await?;
    let Some(first) = selection.sent.first() else {
        let until = selection.not_before;
        if until.is_some() || selection.dropped.is_empty() {
            set_next_send(
                &mut tx,
                &channel.name,
                until.unwrap_or(channel.now + TimeDelta::seconds(1)),
            )
            .await?;
        }
        commit(tx).await?;
        return Ok(Claimed::Dropped(channel.kind, selection.dropped.len()));
    };
    let (attempts, leased_until) = (first.attempts + 1, channel.now + TimeDelta::seconds(LEASE_S));
    let messages: Vec<Message> = selection.sent.into_iter().map(|due| due.message).collect();
    let ids: Vec<Uuid> = messages.iter().map(|message| message.id).collect();
    sqlx::query!(
        "-- lease_notifications
        UPDATE sexton.notifications n SET due_at = $2, attempts = attempts + 1, first_sent_at = coalesce(first_sent_at, $3),
            digest = $4
        FROM (SELECT id FROM sexton.notifications WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE) l WHERE n.id = l.id",
        &ids,
        leased_until,
        channel.now,
        selection.digest
    )
    .execute(WithTimeout(&mut *tx))
    .await?;
    set_next_send(&mut tx, &channel.name, leased_until).await?;
    commit(tx).await?;
    Ok(Claimed::Delivery(Box::new(Claim {
        channel: channel.name,
        kind: channel.kind,
        settings: channel.settings,
        messages,
        digest: selection.digest,
        attempts,
        failures: channel.failures,
        at: channel.now,
        leased_until,
    })))
}

async fn take_channel(
    connection: &mut PgConnection,
    filter: ClaimFilter<'_>,
    now: Now,
) -> Result<Option<ChannelRow>, StoreError> {
    let row = sqlx::query!(
        r#"-- take_channel
        WITH t AS MATERIALIZED (SELECT coalesce($1, clock_timestamp()) AS now)
        SELECT c.name, c.kind, c.config, c.failures, t.now AS "now!"
        FROM sexton.channels c CROSS JOIN t
        WHERE (c.next_send_at IS NULL OR c.next_send_at <= t.now) AND NOT c.name = ANY ($2) AND ($3 OR c.failures = 0)
          AND EXISTS (SELECT FROM sexton.notifications n
                      WHERE n.channel = c.name AND n.state = 'pending' AND n.due_at <= t.now
                        -- As in `due_notifications`: one behind an earlier one that is tried again waits for that.
                        AND NOT EXISTS (
                            SELECT FROM sexton.notifications e
                            WHERE e.incident_id = n.incident_id AND e.channel = n.channel AND e.state = 'pending'
                              AND e.attempts > 0 AND e.due_at > t.now AND (e.created_at, e.id) < (n.created_at, n.id)))
        ORDER BY c.last_sent_at NULLS FIRST, c.name LIMIT 1 FOR UPDATE OF c SKIP LOCKED"#,
        now,
        filter.busy,
        filter.allows_failing
    )
    .fetch_optional(WithTimeout(connection))
    .await?;
    let Some(row) = row else { return Ok(None) };
    let kind = parse_column("channels.kind", &row.kind, ChannelKind::parse)?;
    let settings = ChannelSettings::read(kind, row.config).map_err(|error| error.to_string());
    let (name, failures, now) = (row.name, row.failures, row.now);
    Ok(Some(ChannelRow { name, kind, settings, failures, now }))
}

/// What becomes of the notifications that are due.
#[derive(Default)]
struct Selection {
    sent: Vec<DueNotification>,
    digest: Option<Uuid>,
    dropped: Vec<(Uuid, DropReason)>,
    /// Nothing may be sent before this instant.
    not_before: Option<DateTime<Utc>>,
}

async fn select(
    connection: &mut PgConnection,
    channel: &ChannelRow,
    fresh_digest: Uuid,
) -> Result<Selection, StoreError> {
    let (singles, last_digest) = count_sent_lately(connection, channel).await?;
    let is_crowded = channel.kind.has_digests() && singles >= MAX_SINGLES as i64;
    let limit = if is_crowded { MAX_DIGEST } else { MAX_READ };
    let due = due::read(connection, &channel.name, None, limit, channel.now).await?;
    let mut selection = Selection::default();
    let mut joined: HashSet<Uuid> = HashSet::new();
    for one in due {
        let incident = one.message.incident.as_ref().map(|incident| incident.id);
        let is_joined = incident.is_some_and(|id| joined.contains(&id));
        // A part of a digest that was tried is sent again with the others, whatever has happened.
        let is_repeated = one.digest.is_some() && one.attempts > 0;
        if let (Verdict::Drop(reason), false) = (judge(one.standing(is_joined)), is_repeated) {
            selection.dropped.push((one.message.id, reason));
            continue;
        }
        let is_first = selection.sent.is_empty();
        let is_taken = match channel.kind {
            _ if is_first => true,
            ChannelKind::Alertmanager => {
                !is_joined && incident.is_some() && selection.sent.len() < MAX_ALERTS
            }
            kind => kind.has_digests() && is_crowded && one.attempts == 0,
        };
        if is_taken {
            joined.extend(incident);
            selection.sent.push(one);
        }
        let is_whole = selection.sent.first().is_some_and(|first| match channel.kind {
            ChannelKind::Alertmanager => first.message.incident.is_none(),
            kind => !(kind.has_digests() && is_crowded) || is_sent_alone(first),
        });
        if is_whole {
            break;
        }
    }
    let Some(first) = selection.sent.first() else { return Ok(selection) };
    if let Some(digest) = first.digest.filter(|_| first.attempts > 0 && channel.kind.has_digests())
    {
        let (name, now) = (&channel.name, channel.now);
        selection.sent = due::read(connection, name, Some(digest), MAX_DIGEST, now).await?;
        selection.digest = Some(digest);
    } else if is_crowded && !is_sent_alone(first) {
        if let Some(last) = last_digest {
            selection.not_before = Some(last + TimeDelta::seconds(DIGEST_WINDOW_S));
            selection.sent.clear();
        } else {
            selection.digest = Some(fresh_digest);
        }
    }
    Ok(selection)
}

/// Returns whether a notification is never joined to others: a test, or one that the receiver may have under its id.
fn is_sent_alone(due: &DueNotification) -> bool {
    due.message.incident.is_none() || due.attempts > 0
}

/// Returns how many messages the channel accepted singly of late, and when it accepted its last digest.
async fn count_sent_lately(
    connection: &mut PgConnection,
    channel: &ChannelRow,
) -> Result<(i64, Option<DateTime<Utc>>), StoreError> {
    let row = sqlx::query!(
        r#"-- sent_lately
        SELECT count(*) FILTER (WHERE digest IS NULL AND kind <> 'test') AS "singles!",
               max(finished_at) FILTER (WHERE digest IS NOT NULL) AS last_digest
        FROM sexton.notifications
        WHERE channel = $1 AND state = 'sent' AND finished_at > $2"#,
        channel.name,
        channel.now - TimeDelta::seconds(DIGEST_WINDOW_S)
    )
    .fetch_one(WithTimeout(connection))
    .await?;
    Ok((row.singles, row.last_digest))
}

async fn drop_all(
    connection: &mut PgConnection,
    channel: &ChannelRow,
    dropped: &[(Uuid, DropReason)],
) -> Result<(), StoreError> {
    if dropped.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = dropped.iter().map(|(id, _)| *id).collect();
    let reasons: Vec<String> =
        dropped.iter().map(|(_, reason)| reason.as_str().to_owned()).collect();
    sqlx::query!(
        "-- drop_notifications
        WITH dropped AS (
            UPDATE sexton.notifications n SET state = 'dropped', finished_at = $1, last_error = d.reason
            FROM unnest($2::uuid[], $3::text[]) AS d (id, reason) WHERE n.id = d.id AND n.state = 'pending'
            RETURNING n.incident_id, n.kind, n.channel, d.reason)
        INSERT INTO sexton.incident_events (incident_id, at, kind, detail)
        SELECT d.incident_id, $1, 'dropped', d.kind || ' to ' || d.channel || ': ' || d.reason FROM dropped d
        WHERE d.incident_id IS NOT NULL
          AND (SELECT count(*) FROM sexton.incident_events e WHERE e.incident_id = d.incident_id) < $4",
        channel.now,
        &ids,
        &reasons,
        MAX_EVENTS
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

async fn set_next_send(
    connection: &mut PgConnection,
    channel: &str,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- set_next_send\nUPDATE sexton.channels SET next_send_at = $2 WHERE name = $1",
        channel,
        at
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
