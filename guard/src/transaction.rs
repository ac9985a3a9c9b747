//! Advisory locks of a transaction.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::postgres::{PgConnection, PgPool, Postgres};
use sqlx::{AssertSqlSafe, Row as _, Transaction};
use tokio::time::timeout;

use crate::error::LockError;
use crate::key::Key;

/// For a call that begins a transaction.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// After this silence the server ends a transaction whose client is cut off.
const SERVER_TIMEOUT: Duration = Duration::from_secs(12);

/// An advisory lock that lives and ends with a transaction.
///
/// What the work writes in that transaction, what it enqueues there, and the lock end together: by the commit, by a rollback,
/// or with the connection. So of several instances one writes, and no loss of a connection or standstill of a process makes
/// two write. It works through any pooler, and occupies a connection while the work lasts. What the work does outside of the
/// transaction is as safe as the connection: prefer [`AdvisoryLocks`](crate::AdvisoryLocks) for it.
///
/// ```no_run
/// # use sexton_guard::TransactionLock;
/// # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// let Some(mut tx) = TransactionLock::new(5102).try_begin(&pool).await? else { return Ok(()) };
/// sqlx::query("DELETE FROM sessions WHERE expires_at < now()").execute(&mut *tx).await?;
/// tx.commit().await?;
/// # Ok(())
/// # }
/// ```
///
/// PostgreSQL gives one transaction the same lock a second time; two transactions of a process keep each other out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransactionLock {
    key: Key,
}

impl TransactionLock {
    /// Names the key.
    pub fn new(key: impl Into<Key>) -> Self {
        Self { key: key.into() }
    }

    /// Begins a transaction that has the lock, or returns `None`: another transaction or session has it. Never waits for it.
    ///
    /// Two round trips. If this future is dropped, the transaction is rolled back.
    ///
    /// # Errors
    ///
    /// [`LockError`], within 10 seconds; there is no transaction.
    pub async fn try_begin(
        &self,
        pool: &PgPool,
    ) -> Result<Option<Transaction<'static, Postgres>>, LockError> {
        self.begin(pool, None).await
    }

    /// Begins a transaction that has the lock and a tick, the instant for which a job runs, or returns `None`: another has the
    /// lock, or has run the tick. A rollback gives the tick back. See `sexton.guard_try_xact`; the platform's schema must be in
    /// the database.
    ///
    /// # Errors
    ///
    /// [`LockError`], within 10 seconds; there is no transaction. [`LockError::Invalid`]: ticks need a key of one number.
    pub async fn try_begin_tick(
        &self,
        pool: &PgPool,
        tick: DateTime<Utc>,
    ) -> Result<Option<Transaction<'static, Postgres>>, LockError> {
        self.begin(pool, Some(tick)).await
    }

    /// Begins a transaction and takes the lock, in a task of its own, which goes on if the caller stops waiting.
    ///
    /// If the call were dropped between a statement and its answer, the pool would get a connection with an open transaction
    /// back, and others would lose what they write there.
    async fn begin(
        &self,
        pool: &PgPool,
        tick: Option<DateTime<Utc>>,
    ) -> Result<Option<Transaction<'static, Postgres>>, LockError> {
        let (lock, pool) = (*self, pool.clone());
        let beginning = tokio::spawn(async move {
            let mut tx = pool.begin().await?;
            let is_taken = match tick {
                Some(tick) => lock.try_tick(&mut tx, tick).await?,
                None => lock.try_lock(&mut tx).await?,
            };
            if is_taken {
                return Ok(Some(tx));
            }
            // If that fails its connection is closed.
            let _ = tx.rollback().await;
            Ok(None)
        });
        match timeout(CALL_TIMEOUT, beginning).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(LockError::Closed),
            Err(_) => Err(LockError::timed_out("the transaction with the lock", CALL_TIMEOUT)),
        }
    }

    /// Takes the lock for the transaction of `connection` (`&mut tx` will do), which is open already; false: another has
    /// it. Outside of a transaction the lock would end with the statement.
    ///
    /// # Errors
    ///
    /// [`LockError`]; the transaction is aborted.
    pub async fn try_lock(&self, connection: &mut PgConnection) -> Result<bool, LockError> {
        let statement = format!(
            "SELECT pg_try_advisory_xact_lock({}) AS done, {}",
            self.key.arguments(),
            settings()
        );
        let row = sqlx::raw_sql(AssertSqlSafe(statement)).fetch_one(connection).await?;
        Ok(row.try_get("done")?)
    }

    /// Takes the lock and a tick for the transaction of `connection`, which is open already; false: another has the lock, or
    /// has run the tick.
    ///
    /// # Errors
    ///
    /// As [`Self::try_begin_tick`]; the transaction is aborted.
    pub async fn try_tick(
        &self,
        connection: &mut PgConnection,
        tick: DateTime<Utc>,
    ) -> Result<bool, LockError> {
        let Key::Number(key) = self.key else {
            return Err(LockError::Invalid(format!(
                "the key {} is a pair, and a tick needs one number",
                self.key
            )));
        };
        let statement = format!("SELECT sexton.guard_try_xact($1, $2) AS done, {}", settings());
        let row = sqlx::query(AssertSqlSafe(statement))
            .bind(key)
            .bind(tick)
            .fetch_one(connection)
            .await
            .map_err(LockError::of_tick)?;
        Ok(row.try_get("done")?)
    }
}

/// Settings of the transaction, so that one whose client is cut off does not hold the lock for two hours.
fn settings() -> String {
    format!(
        "set_config('tcp_keepalives_idle', '6', true), set_config('tcp_keepalives_interval', '2', true),
         set_config('tcp_keepalives_count', '3', true), set_config('tcp_user_timeout', '{}', true)",
        SERVER_TIMEOUT.as_millis()
    )
}
