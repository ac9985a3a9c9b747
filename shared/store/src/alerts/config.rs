//! Channels and routes: reading them, and replacing them by those of a file.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};
use sexton_model::alerts_file::AlertsFile;
use sexton_model::channel::{Channel, ChannelKind, ChannelSettings};
use sexton_model::duration::to_millis;
use sexton_model::routing::Route;
use sqlx::PgConnection;

use super::claim::LEASE_S;
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::connection::instant::instant;
use crate::error::parse_column;
use crate::operator::{AuditContext, is_lock_timeout, record_jobless_action, set_lock_timeout};
use crate::{Now, Store, StoreError, incidents};

/// What an apply changes.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AlertsChange {
    /// Names of new channels.
    pub added: Vec<String>,
    /// Names of channels with other settings.
    pub changed: Vec<String>,
    /// Names of removed channels.
    pub removed: Vec<String>,
    /// Number of channels that stay as they are.
    pub unchanged: usize,
    /// Number of routes before.
    pub routes_before: usize,
    /// Number of routes of the file.
    pub routes: usize,
    /// Whether the routes are others, or in another order.
    pub routes_changed: bool,
    /// Notifications to removed channels that are dropped.
    pub dropped: i64,
}

impl AlertsChange {
    /// Returns whether anything changes.
    pub fn is_change(&self) -> bool {
        let lists = [&self.added, &self.changed, &self.removed];
        self.routes_changed || lists.iter().any(|list| !list.is_empty())
    }
}

/// Why nothing was applied.
#[derive(Debug, thiserror::Error)]
pub enum AlertsError {
    /// Another apply, or a sender, kept a lock for 5 s. Try again.
    #[error("somebody else changes channels or routes right now; try again")]
    Locked,
    /// An error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for AlertsError {
    fn from(error: sqlx::Error) -> Self {
        if is_lock_timeout(&error) { Self::Locked } else { Self::Store(error.into()) }
    }
}

/// Reads the channels, by name, and the routes, in their order.
pub async fn read(store: &Store) -> Result<AlertsFile, StoreError> {
    let mut tx = store.begin().await?;
    let read = read_in(&mut tx).await?;
    commit(tx).await?;
    Ok(read)
}

async fn read_in(connection: &mut PgConnection) -> Result<AlertsFile, StoreError> {
    let rows =
        sqlx::query!("-- channels\nSELECT name, kind, config FROM sexton.channels ORDER BY name")
            .fetch_all(WithTimeout(&mut *connection))
            .await?;
    let channels = rows.into_iter().map(|row| {
        let kind = parse_column("channels.kind", &row.kind, ChannelKind::parse)?;
        let settings = ChannelSettings::read(kind, row.config).map_err(|error| {
            let value = format!("{} of {}", error, row.name);
            StoreError::Inconsistent { place: "channels.config", value }
        })?;
        Ok(Channel { name: row.name, settings })
    });
    let channels = channels.collect::<Result<Vec<_>, StoreError>>()?;
    Ok(AlertsFile { channels, routes: incidents::read_routes(connection).await? })
}

/// Makes channels and routes those of the file, in one transaction with its record in the audit. What waits for a removed channel is
/// dropped; a changed channel is tried at once. With `dry_run` nothing is written.
///
/// # Errors
///
/// [`AlertsError`]; nothing was written.
pub async fn apply(
    store: &Store,
    file: &AlertsFile,
    dry_run: bool,
    by: AuditContext<'_>,
    now: Now,
) -> Result<AlertsChange, AlertsError> {
    let mut tx = store.begin().await?;
    set_lock_timeout(&mut tx).await?;
    if !dry_run {
        // One after the other: both tables are compared and then replaced.
        sqlx::query("LOCK TABLE sexton.routes IN SHARE ROW EXCLUSIVE MODE")
            .execute(WithTimeout(&mut *tx))
            .await?;
    }
    let before = read_in(&mut tx).await?;
    let mut change = compare(&before, file);
    change.dropped = sqlx::query_scalar!(
        r#"-- notifications_to_removed
        SELECT count(*) AS "count!" FROM sexton.notifications WHERE channel = ANY ($1) AND state = 'pending'"#,
        &change.removed
    )
    .fetch_one(WithTimeout(&mut *tx))
    .await?;
    if dry_run || !change.is_change() {
        return Ok(change);
    }
    let at = instant(&mut tx, now).await?;
    write_channels(&mut tx, file, &change, at).await?;
    if change.routes_changed {
        write_routes(&mut tx, &file.routes).await?;
    }
    let documents = (Some(document(&before)), Some(document(file)));
    record_jobless_action(&mut tx, "apply_alerts", documents, by, at).await?;
    commit(tx).await?;
    Ok(change)
}

fn compare(before: &AlertsFile, after: &AlertsFile) -> AlertsChange {
    let settings = |file: &AlertsFile| -> BTreeMap<String, ChannelSettings> {
        file.channels.iter().map(|one| (one.name.clone(), one.settings.clone())).collect()
    };
    let (old, new) = (settings(before), settings(after));
    let names = |keep: &dyn Fn(&String) -> bool, of: &BTreeMap<String, ChannelSettings>| {
        of.keys().filter(|name| keep(name)).cloned().collect::<Vec<_>>()
    };
    let differs = |name: &String| old.get(name).is_some_and(|before| Some(before) != new.get(name));
    let changed = names(&differs, &new);
    let added = names(&|name| !old.contains_key(name), &new);
    AlertsChange {
        removed: names(&|name| !new.contains_key(name), &old),
        unchanged: new.len() - changed.len() - added.len(),
        added,
        changed,
        routes_before: before.routes.len(),
        routes: after.routes.len(),
        routes_changed: before.routes != after.routes,
        dropped: 0,
    }
}

async fn write_channels(
    connection: &mut PgConnection,
    file: &AlertsFile,
    change: &AlertsChange,
    at: DateTime<Utc>,
) -> Result<(), AlertsError> {
    sqlx::query!(
        "-- drop_notifications_to_removed
        UPDATE sexton.notifications SET state = 'dropped', finished_at = $2, last_error = 'the channel was removed'
        WHERE channel = ANY ($1) AND state = 'pending'",
        &change.removed,
        at
    )
    .execute(WithTimeout(&mut *connection))
    .await?;
    sqlx::query!(
        "-- remove_channels\nDELETE FROM sexton.channels WHERE name = ANY ($1)",
        &change.removed
    )
    .execute(WithTimeout(&mut *connection))
    .await?;
    let written = |channel: &&Channel| {
        change.added.contains(&channel.name) || change.changed.contains(&channel.name)
    };
    let written: Vec<&Channel> = file.channels.iter().filter(written).collect();
    let names: Vec<String> = written.iter().map(|one| one.name.clone()).collect();
    let kinds: Vec<String> =
        written.iter().map(|one| one.settings.kind().as_str().to_owned()).collect();
    let configs: Vec<Value> = written.iter().map(|one| one.settings.config()).collect();
    sqlx::query!(
        "-- write_channels
        INSERT INTO sexton.channels (name, kind, config, updated_at)
        SELECT c.*, $4 FROM unnest($1::text[], $2::text[], $3::jsonb[]) AS c
        ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, config = excluded.config, updated_at = excluded.updated_at",
        &names,
        &kinds,
        &configs,
        at
    )
    .execute(WithTimeout(&mut *connection))
    .await?;
    retry_at_once(connection, &change.changed, at).await?;
    Ok(())
}

/// Lets channels be tried at once. A lease stays: its end is at most a minute away, and a retry's is usually further.
pub(super) async fn retry_at_once(
    connection: &mut PgConnection,
    channels: &[String],
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- retry_channels
        UPDATE sexton.channels SET next_send_at = NULL
        WHERE name = ANY ($1) AND next_send_at > $2::timestamptz + $3 * interval '1 second'",
        channels,
        at,
        LEASE_S as f64
    )
    .execute(WithTimeout(&mut *connection))
    .await?;
    sqlx::query!(
        "-- retry_notifications
        UPDATE sexton.notifications SET due_at = $2
        WHERE channel = ANY ($1) AND state = 'pending' AND attempts > 0
          AND due_at > $2::timestamptz + $3 * interval '1 second'",
        channels,
        at,
        LEASE_S as f64
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

async fn write_routes(connection: &mut PgConnection, routes: &[Route]) -> Result<(), AlertsError> {
    sqlx::query!("-- remove_routes\nDELETE FROM sexton.routes")
        .execute(WithTimeout(&mut *connection))
        .await?;
    for (position, route) in (1_i32..).zip(routes) {
        let severities: Vec<String> =
            route.severities.iter().map(|one| one.as_str().to_owned()).collect();
        let escalation = route.escalation.as_ref();
        let escalate_to = escalation.map_or_else(Vec::new, |one| one.channels.clone());
        sqlx::query!(
            "-- write_route
            INSERT INTO sexton.routes (position, labels, severities, channels, escalate_ms, escalate_to)
            VALUES ($1, $2, $3, $4, $5, $6)",
            position,
            json!(route.labels),
            &severities,
            &route.channels,
            escalation.map(|one| to_millis(one.after)),
            &escalate_to
        )
        .execute(WithTimeout(&mut *connection))
        .await?;
    }
    Ok(())
}

/// Returns channels and routes as one document.
pub fn document(file: &AlertsFile) -> Value {
    let channels = file.channels.iter().map(|channel| {
        let kind = channel.settings.kind().as_str();
        json!({"name": channel.name, "kind": kind, "config": channel.settings.config()})
    });
    let routes = file.routes.iter().map(|route| {
        let severities = route.severities.iter().map(|one| one.as_str());
        let escalation = route
            .escalation
            .as_ref()
            .map(|one| json!({"after_ms": to_millis(one.after), "channels": one.channels}));
        json!({
            "labels": route.labels,
            "severity": severities.collect::<Vec<_>>(),
            "channels": route.channels,
            "escalate": escalation,
        })
    });
    json!({"channels": channels.collect::<Value>(), "routes": routes.collect::<Value>()})
}
