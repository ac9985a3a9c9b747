//! The settings that each connection needs, and the check that the server has applied them.
//!
//! They travel as start-up options. A connection pooler may drop those silently: PgBouncer does where
//! `ignore_startup_parameters` names `options`. A commit would then be acknowledged before it is on disk
//! (`synchronous_commit` of the role may be `off`), and a statement would have no limit. So each new connection is
//! checked once, and one without the settings is refused.

use std::time::Duration;

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

/// The server ends a session whose transaction is idle for this long.
const IDLE_IN_TRANSACTION_TIMEOUT: Duration = Duration::from_mins(1);

/// How many of [`SessionSettings::options`], from the first, the check compares.
const CHECKED_SETTINGS: usize = 4;

/// What a connection begins with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SessionSettings {
    /// How long a statement may run before the server ends it.
    pub(crate) statement_timeout: Duration,
}

/// Which way a connection takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Route {
    /// The server read the start-up options.
    Direct,
    /// Something between the program and the server drops them.
    Pooled,
}

/// Why a connection is refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingsNotApplied {
    /// The server did not apply what the start-up options say.
    #[error(
        "{}; a connection pooler between this program and PostgreSQL drops start-up options: let DATABASE_URL name \
         PostgreSQL itself (Sexton pools its connections), or give the role or the database these settings (ALTER \
         ROLE … SET …)",
        .0.join(", ")
    )]
    Dropped(Vec<String>),
    /// Two clients share a session.
    #[error(
        "another client used this session before; a connection pooler between this program and PostgreSQL hands out \
         sessions by the transaction, or does not reset them: let it give a session to one client at a time (PgBouncer: \
         pool_mode = session, server_reset_query = DISCARD ALL), or let DATABASE_URL name PostgreSQL itself"
    )]
    Shared,
    /// The pool's connections and the others would work on two databases.
    #[error(
        "DATABASE_URL and DATABASE_DIRECT_URL lead to different databases: let both name the same one"
    )]
    TwoDatabases,
}

impl From<SettingsNotApplied> for sqlx::Error {
    fn from(why: SettingsNotApplied) -> Self {
        Self::Configuration(Box::new(why))
    }
}

impl SessionSettings {
    /// The start-up options. `synchronous_commit` and the isolation are part of the protocol's promises, whatever the
    /// server's or the role's defaults are.
    pub(crate) fn options(self) -> [(&'static str, String); 9] {
        [
            ("synchronous_commit", "on".to_owned()),
            ("default_transaction_isolation", "read committed".to_owned()),
            ("statement_timeout", self.statement_timeout.as_millis().to_string()),
            (
                "idle_in_transaction_session_timeout",
                IDLE_IN_TRANSACTION_TIMEOUT.as_millis().to_string(),
            ),
            // A statement reads few rows, whatever PostgreSQL expects of the largest tables: to compile it takes a second, to run it milliseconds.
            ("jit", "off".to_owned()),
            // On the server's side: it frees a vanished client's resources within half a minute. The client's side
            // has no such setting; every caller limits its own wait.
            ("tcp_keepalives_idle", "15".to_owned()),
            ("tcp_keepalives_interval", "5".to_owned()),
            ("tcp_keepalives_count", "3".to_owned()),
            // Means nothing to the server. Where it is missing, something has dropped the options.
            ("sexton.start_up", "on".to_owned()),
        ]
    }

    /// Checks that a new connection has them. Keepalives and `jit` are left out: a local socket has none, and no promise
    /// rests on them.
    ///
    /// A session that came through a pooler is marked. A later connection that finds the mark shares the session with
    /// another client: its prepared statements would be the other's, and each would lose its locks to the other.
    ///
    /// # Errors
    ///
    /// [`SettingsNotApplied`] as [`sqlx::Error::Configuration`], and those of the connection.
    pub(crate) async fn check(self, connection: &mut PgConnection) -> Result<Route, sqlx::Error> {
        // One message there and one back: a command of `sexton` makes a connection for each run.
        let asking = sqlx::raw_sql(
            "-- session_settings
            SELECT current_setting('synchronous_commit'), current_setting('default_transaction_isolation'),
                   (extract(epoch FROM current_setting('statement_timeout')::interval) * 1000)::bigint::text,
                   (extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval)
                    * 1000)::bigint::text,
                   coalesce(current_setting('sexton.start_up', true), '') = 'on' AS direct,
                   coalesce(current_setting('sexton.used', true), '') = 'yes' AS used,
                   CASE WHEN coalesce(current_setting('sexton.start_up', true), '') <> 'on'
                        THEN set_config('sexton.used', 'yes', false) END",
        );
        let row = asking.fetch_one(connection).await?;
        if row.try_get("used")? {
            return Err(SettingsNotApplied::Shared.into());
        }
        let mut wrong = Vec::new();
        for (place, (name, expected)) in
            self.options().into_iter().take(CHECKED_SETTINGS).enumerate()
        {
            let found: String = row.try_get(place)?;
            if found != expected {
                wrong.push(format!("{name} is {found} and not {expected}"));
            }
        }
        if !wrong.is_empty() {
            return Err(SettingsNotApplied::Dropped(wrong).into());
        }
        Ok(if row.try_get("direct")? { Route::Direct } else { Route::Pooled })
    }
}

/// Fails unless both connections lead to the same database of the same server.
///
/// # Errors
///
/// [`SettingsNotApplied`] as [`sqlx::Error::Configuration`], and those of the connections.
pub(crate) async fn check_same_database(
    one: &mut PgConnection,
    other: &mut PgConnection,
) -> Result<(), sqlx::Error> {
    let (one, other) = (identify_database(one).await?, identify_database(other).await?);
    if one == other { Ok(()) } else { Err(SettingsNotApplied::TwoDatabases.into()) }
}

/// A text that no other database has.
async fn identify_database(connection: &mut PgConnection) -> Result<String, sqlx::Error> {
    let identity = sqlx::raw_sql(
        "-- identify_database
        SELECT concat_ws(' ', oid, datname, extract(epoch FROM pg_postmaster_start_time())) FROM pg_database
        WHERE datname = current_database()",
    );
    identity.fetch_one(connection).await?.try_get(0)
}
