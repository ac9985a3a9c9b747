//! Queries of `sexton doctor`: the database's settings, the role's privileges, and what is overdue.
//!
//! All are read-only, except [`fix`]. Those in this file work on a database without Sexton's schema.

mod approvals;
pub mod fix;
mod privileges;
mod processes;
mod verify_tasks;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::postgres::PgListener;
use tokio::time::timeout;

use crate::connection::client_timeout::with_client_timeout;
use crate::schema::MIGRATIONS;
use crate::{Store, StoreError};

pub use approvals::{ApprovedRequest, list_approved_requests};
pub use privileges::{MissingPrivileges, Privileges, read_privileges};
pub use processes::{OverdueLeases, Process, count_overdue_leases, newest_tz_data, processes};
pub use verify_tasks::{UnofferedVerifyTask, list_unoffered_verify_tasks};

/// How long a notification may take to come back. It takes a round trip.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(2);

/// The server and this session.
#[derive(Clone, Debug)]
pub struct Server {
    /// As `server_version_num`: 150004 is 15.4.
    pub version: i32,
    /// The version's name, for people.
    pub version_text: String,
    /// Whether this session is encrypted.
    pub encrypted: bool,
    /// Whether the session refuses writes: a standby, or so configured.
    pub read_only: bool,
    /// The session's role.
    pub user: String,
    /// `max_connections`.
    pub max_connections: i64,
    /// Connections reserved for superusers.
    pub reserved: i64,
    /// Open connections, of all databases of the server.
    pub connections: i64,
    /// The server's clock.
    pub now: DateTime<Utc>,
}

/// Reads the server's version, settings and connections.
pub async fn server(store: &Store) -> Result<Server, StoreError> {
    Ok(sqlx::query_as!(
        Server,
        r#"-- doctor_server
        SELECT current_setting('server_version_num')::int AS "version!",
               current_setting('server_version') AS "version_text!",
               coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false)
                   AS "encrypted!",
               (pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool)
                   AS "read_only!",
               current_user::text AS "user!",
               current_setting('max_connections')::bigint AS "max_connections!",
               current_setting('superuser_reserved_connections')::bigint AS "reserved!",
               (SELECT sum(numbackends) FROM pg_stat_database)::bigint AS "connections!",
               clock_timestamp() AS "now!""#
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// The applied migrations compared with this program's.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Migrations {
    /// Migrations that are not applied.
    pub missing: Vec<i64>,
    /// Applied migrations that this program does not know: a newer one has migrated.
    pub unknown: Vec<i64>,
    /// Applied migrations whose text differs from this program's.
    pub changed: Vec<i64>,
}

/// Compares the applied migrations with this program's.
pub async fn migrations(store: &Store) -> Result<Migrations, StoreError> {
    let there: Option<bool> =
        sqlx::query_scalar("SELECT to_regclass('sexton._sqlx_migrations') IS NOT NULL")
            .fetch_one(store.with_timeout())
            .await?;
    let applied: Vec<(i64, Vec<u8>)> = if there == Some(true) {
        // Not checked at compile time: the table belongs to the migrator.
        sqlx::query_as("SELECT version, checksum FROM sexton._sqlx_migrations WHERE success")
            .fetch_all(store.with_timeout())
            .await?
    } else {
        Vec::new()
    };
    let applied: BTreeMap<i64, Vec<u8>> = applied.into_iter().collect();
    let ours: BTreeMap<i64, &[u8]> = MIGRATIONS
        .iter()
        .filter(|one| one.migration_type.is_up_migration())
        .map(|one| (one.version, one.checksum.as_ref()))
        .collect();
    Ok(Migrations {
        missing: ours.keys().filter(|one| !applied.contains_key(one)).copied().collect(),
        unknown: applied.keys().filter(|one| !ours.contains_key(one)).copied().collect(),
        changed: ours
            .iter()
            .filter(|(version, sum)| applied.get(version).is_some_and(|other| other != *sum))
            .map(|(version, _)| *version)
            .collect(),
    })
}

/// Checks whether a notification from one session reaches another, which the programs' wake-ups need. It does not
/// through a pooler in transaction mode, for instance. Returns `None` if it does, otherwise the reason.
pub async fn check_notifications(store: &Store) -> Option<String> {
    match timeout(NOTIFICATION_TIMEOUT * 2, receives_notification(store)).await {
        Ok(Ok(true)) => None,
        Ok(Ok(false)) | Err(_) => {
            Some(format!("no notification came back within {} s", NOTIFICATION_TIMEOUT.as_secs()))
        }
        Ok(Err(error)) => Some(error.to_string()),
    }
}

async fn receives_notification(store: &Store) -> Result<bool, sqlx::Error> {
    let mut listener = PgListener::connect_with(&store.single_connection_pool()).await?;
    listener.listen("sexton_doctor").await?;
    let telling = sqlx::query!("-- doctor_notify\nSELECT pg_notify('sexton_doctor', '')");
    with_client_timeout(telling.execute(store.with_timeout())).await?;
    Ok(timeout(NOTIFICATION_TIMEOUT, listener.recv()).await.is_ok_and(|received| received.is_ok()))
}
