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

/// The settings of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SessionSettings {
    /// How long a statement may run before the server ends it.
    pub(crate) statement_timeout: Duration,
}

/// The server did not apply the start-up options.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}; a connection pooler between this program and PostgreSQL drops start-up options: let DATABASE_URL name \
     PostgreSQL itself (Sexton pools its connections)",
    .0.join(", ")
)]
pub(crate) struct SettingsNotApplied(Vec<String>);

impl SessionSettings {
    /// The start-up options. `synchronous_commit` and the isolation are part of the protocol's promises, whatever the
    /// server's or the role's defaults are.
    pub(crate) fn options(self) -> [(&'static str, String); 7] {
        [
            ("synchronous_commit", "on".to_owned()),
            ("default_transaction_isolation", "read committed".to_owned()),
            ("statement_timeout", self.statement_timeout.as_millis().to_string()),
            (
                "idle_in_transaction_session_timeout",
                IDLE_IN_TRANSACTION_TIMEOUT.as_millis().to_string(),
            ),
            // On the server's side: it frees a vanished client's resources within half a minute. The client's side
            // has no such setting; every caller limits its own wait.
            ("tcp_keepalives_idle", "15".to_owned()),
            ("tcp_keepalives_interval", "5".to_owned()),
            ("tcp_keepalives_count", "3".to_owned()),
        ]
    }

    /// Checks that a new connection has them. Keepalives are left out: a local socket has none, and no promise rests
    /// on them.
    ///
    /// # Errors
    ///
    /// [`SettingsNotApplied`] as [`sqlx::Error::Configuration`], and those of the connection.
    pub(crate) async fn check(self, connection: &mut PgConnection) -> Result<(), sqlx::Error> {
        // A single round trip, because a command of `sexton` makes a connection for each run.
        let asking = sqlx::raw_sql(
            "-- session_settings
            SELECT current_setting('synchronous_commit'), current_setting('default_transaction_isolation'),
                   (extract(epoch FROM current_setting('statement_timeout')::interval) * 1000)::bigint::text,
                   (extract(epoch FROM current_setting('idle_in_transaction_session_timeout')::interval)
                    * 1000)::bigint::text",
        );
        let row = asking.fetch_one(connection).await?;
        let mut wrong = Vec::new();
        for (place, (name, expected)) in self.options().into_iter().take(row.len()).enumerate() {
            let found: String = row.try_get(place)?;
            if found != expected {
                wrong.push(format!("{name} is {found} and not {expected}"));
            }
        }
        if wrong.is_empty() {
            return Ok(());
        }
        Err(sqlx::Error::Configuration(Box::new(SettingsNotApplied(wrong))))
    }
}
