//! The connection on which the locks are held.
//!
//! It is a listener's connection, since only such a one can be watched while no statement runs: when the server ends the
//! session, the client knows at once and not with the next ping. It is never put back into a pool or connected again by the
//! library: after its first failure it is closed, and a new session has locks of its own.

use std::fmt;

use chrono::{DateTime, Utc};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener, PgPoolOptions, PgRow};
use sqlx::{Acquire as _, AssertSqlSafe, Row as _};
use tokio::runtime;
use tokio::time::{Instant, timeout};

use super::times;
use crate::error::LockError;
use crate::held::End;
use crate::key::Key;
use crate::pooler::{self, Route};

/// One session. All its statements come from one task, one after the other.
pub(super) struct Session {
    listener: PgListener,
    pid: i32,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("pid", &self.pid).finish_non_exhaustive()
    }
}

/// Why a statement has no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The server refused the statement, and the session goes on.
    Refused(sqlx::Error),
    /// The session has ended, or nothing is known about it any more.
    Lost(String),
}

impl Session {
    /// Connects, and makes sure that no other client shares the session.
    pub(super) async fn connect(options: &PgConnectOptions) -> Result<Self, LockError> {
        let connecting = Self::connect_unbounded(options);
        timeout(times::CONNECT_TIMEOUT, connecting)
            .await
            .unwrap_or_else(|_| Err(LockError::timed_out("connecting", times::CONNECT_TIMEOUT)))
    }

    async fn connect_unbounded(options: &PgConnectOptions) -> Result<Self, LockError> {
        let (mut session, mut route) = match Self::open(&pooler::marked(options.clone())).await {
            Err(error) if pooler::refuses_start_up_options(&error) => {
                (Self::open(options).await?, Route::Pooled)
            }
            // The pool's word for it.
            Err(sqlx::Error::PoolTimedOut) => {
                return Err(LockError::timed_out("connecting", times::CONNECT_TIMEOUT));
            }
            opened => (opened?, Route::Direct),
        };
        let connection = session.connection().await?;
        if !pooler::is_marked(connection).await? {
            route = Route::Pooled;
        }
        // Before the settings: those would stay with a session of others.
        if route == Route::Pooled && pooler::is_shared(connection, options).await? {
            return Err(LockError::SharedSession);
        }
        let row = sqlx::raw_sql(AssertSqlSafe(set_up())).fetch_one(connection).await?;
        session.pid = row.try_get("pid")?;
        tracing::debug!(backend = session.pid, "connected for advisory locks");
        Ok(session)
    }

    async fn open(options: &PgConnectOptions) -> Result<Self, sqlx::Error> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(times::CONNECT_TIMEOUT)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(options.clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.eager_reconnect(false);
        listener.ignore_pool_close_event(true);
        Ok(Self { listener, pid: 0 })
    }

    async fn connection(&mut self) -> Result<&mut PgConnection, sqlx::Error> {
        (&mut self.listener).acquire().await
    }

    /// The process id of the server's side.
    pub(super) const fn pid(&self) -> i32 {
        self.pid
    }

    /// Closes the connection at once.
    ///
    /// A listener that is dropped first says `UNLISTEN` in a task of its own, which waits for ever where the network is cut,
    /// and holds the connection. So it is dropped in a runtime that ends with it.
    pub(super) fn close(self) {
        let Ok(runtime) = runtime::Builder::new_current_thread().build() else { return };
        {
            let _entered = runtime.enter();
            drop(self.listener);
        }
        runtime.shutdown_background();
    }

    /// Returns when the connection has ended, with what is known about it. Safe to drop.
    pub(super) async fn end(&mut self) -> String {
        loop {
            match self.listener.try_recv().await {
                // Nobody listens here.
                Ok(Some(_)) => {}
                Ok(None) => return "the server ended the connection".to_owned(),
                Err(error) => return error.to_string(),
            }
        }
    }

    /// Proves that the session lives, and is still the same.
    pub(super) async fn ping(&mut self, deadline: Instant) -> Result<(), Failure> {
        self.answer("SELECT pg_backend_pid() AS pid".to_owned(), deadline, |_| Ok(())).await
    }

    /// Takes the lock of a key; false: another session has it.
    pub(super) async fn try_lock(&mut self, key: Key, deadline: Instant) -> Result<bool, Failure> {
        let statement = format!(
            "SELECT pg_try_advisory_lock({}) AS done, pg_backend_pid() AS pid",
            key.arguments()
        );
        self.answer(statement, deadline, |row| row.try_get("done")).await
    }

    /// Releases the lock of a key; false: this session does not have it.
    pub(super) async fn unlock(&mut self, key: Key, deadline: Instant) -> Result<bool, Failure> {
        let statement = format!(
            "SELECT pg_advisory_unlock({}) AS done, pg_backend_pid() AS pid",
            key.arguments()
        );
        self.answer(statement, deadline, |row| row.try_get("done")).await
    }

    /// Takes a tick and its key's lock; false: the tick is taken, or the lock is.
    pub(super) async fn try_tick(
        &mut self,
        key: i64,
        tick: DateTime<Utc>,
        deadline: Instant,
    ) -> Result<bool, Failure> {
        let statement =
            sqlx::query("SELECT sexton.guard_try($1, $2) AS done, pg_backend_pid() AS pid")
                .bind(key)
                .bind(tick);
        let answer = within(deadline, async {
            statement.fetch_one((&mut self.listener).acquire().await?).await
        });
        let row = answer.await;
        self.checked(row, |row| row.try_get("done"))
    }

    /// Records the end of a tick, and releases the lock; false: this session does not have it.
    pub(super) async fn end_tick(
        &mut self,
        key: i64,
        tick: DateTime<Utc>,
        end: &End,
        deadline: Instant,
    ) -> Result<bool, Failure> {
        let statement = sqlx::query(
            "SELECT sexton.guard_done($1, $2, $3, $4) AS done, pg_backend_pid() AS pid",
        )
        .bind(key)
        .bind(tick)
        .bind(end.outcome())
        .bind(end.detail());
        let answer = within(deadline, async {
            statement.fetch_one((&mut self.listener).acquire().await?).await
        });
        let row = answer.await;
        self.checked(row, |row| row.try_get("done"))
    }

    /// Runs a statement without parameters in one message there and one back.
    async fn answer<T>(
        &mut self,
        statement: String,
        deadline: Instant,
        read: impl FnOnce(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<T, Failure> {
        // Only digits of keys are put into it.
        let statement = sqlx::raw_sql(AssertSqlSafe(statement));
        let answer = within(deadline, async {
            statement.fetch_one((&mut self.listener).acquire().await?).await
        });
        let row = answer.await;
        self.checked(row, read)
    }

    fn checked<T>(
        &self,
        row: Option<Result<PgRow, sqlx::Error>>,
        read: impl FnOnce(&PgRow) -> Result<T, sqlx::Error>,
    ) -> Result<T, Failure> {
        let row = match row {
            Some(Ok(row)) => row,
            Some(Err(error)) if is_refusal(&error) => return Err(Failure::Refused(error)),
            Some(Err(error)) => return Err(Failure::Lost(error.to_string())),
            None => return Err(Failure::Lost("the server did not answer in time".to_owned())),
        };
        match row.try_get::<i32, _>("pid") {
            Ok(pid) if pid == self.pid => {}
            Ok(_) => {
                let text = "a pooler gave the connection another session of the server";
                return Err(Failure::Lost(text.to_owned()));
            }
            Err(error) => return Err(Failure::Lost(error.to_string())),
        }
        read(&row).map_err(|error| Failure::Lost(error.to_string()))
    }
}

/// Waits until `deadline`; `None`: it has passed.
async fn within<T>(deadline: Instant, answer: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout_at(deadline, answer).await.ok()
}

/// Whether the server refused a statement, and the session goes on.
fn is_refusal(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    // Class 57P: the server ends the session, or shuts down. 25P03, 57P05: a timeout of the session. 08: the connection.
    let code = error.code().unwrap_or_default();
    !code.starts_with("57P") && !code.starts_with("08") && code != "25P03"
}

/// The settings of the session.
///
/// They make the server notice a client that is cut off; on the client's side the library has no such setting, and the
/// deadline of each answer stands in for it. A local socket has no keepalives, and needs none.
fn set_up() -> String {
    let seconds = |time: std::time::Duration| time.as_secs();
    let millis = |time: std::time::Duration| time.as_millis();
    let settings = [
        ("tcp_keepalives_idle", seconds(times::KEEPALIVE_IDLE).to_string()),
        ("tcp_keepalives_interval", seconds(times::KEEPALIVE_INTERVAL).to_string()),
        ("tcp_keepalives_count", "3".to_owned()),
        ("tcp_user_timeout", millis(times::SERVER_TIMEOUT).to_string()),
        ("statement_timeout", millis(times::SERVER_STATEMENT_TIMEOUT).to_string()),
        ("lock_timeout", "0".to_owned()),
        ("default_transaction_isolation", "read committed".to_owned()),
        // A role's default of read only would refuse the row of a tick.
        ("default_transaction_read_only", "off".to_owned()),
    ];
    let settings: Vec<String> = settings
        .iter()
        .map(|(name, value)| format!("set_config('{name}', '{value}', false)"))
        .collect();
    format!("SELECT pg_backend_pid() AS pid, {}", settings.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_the_session_are_those_of_the_times() {
        let text = set_up();
        for part in [
            "set_config('tcp_keepalives_idle', '6', false)",
            "set_config('tcp_user_timeout', '12000', false)",
            "set_config('statement_timeout', '3000', false)",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
}
