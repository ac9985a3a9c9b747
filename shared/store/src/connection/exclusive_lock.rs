//! Work that one replica does at a time: an advisory lock for as long as a transaction lives.
//!
//! The lock belongs to the transaction and ends with it: by [`ExclusiveLock::release`], by a drop, or with the
//! connection of a process that died. Between its statements the transaction holds no snapshot and no row lock, so it
//! may live for minutes without hindering vacuum. Statements on its connection are planned anew each time, because
//! long work changes how long tables are.
//!
//! It is a courtesy, not a fence: a process that was frozen for longer than the server lets a transaction idle (a
//! minute) learns only at its next statement that the lock is lost. Work under the lock must be harmless when two
//! processes do it.

use chrono::{DateTime, Utc};
use sqlx::{Acquire as _, PgConnection, PgPool, Postgres, Transaction};

use crate::connection::client_timeout::{WithTimeout, commit, with_client_timeout};
use crate::{Now, Store, StoreError};

/// First half of the keys. It differs from every single-number key that tasks or other programs use. Negative second halves are those of people's sessions.
pub(crate) const LOCK_CLASS: i32 = 0x5358_544E;

/// The kinds of work that one replica does at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExclusiveTask {
    /// Keeping the failed queue in step with the rows.
    Sweep,
    /// Removing old rows.
    Retention,
    /// Updating the counts of failure groups.
    FailureAggregation,
    /// Looking for firings without a record.
    LedgerCheck,
    /// Judging the platform itself.
    PlatformMonitors,
    /// The pings of the dead man's switch.
    DeadMan,
}

impl ExclusiveTask {
    const fn key(self) -> i32 {
        match self {
            Self::Sweep => 1,
            Self::Retention => 2,
            Self::FailureAggregation => 3,
            Self::LedgerCheck => 4,
            Self::PlatformMonitors => 5,
            Self::DeadMan => 6,
        }
    }

    /// Returns the task of a key's second half.
    pub(crate) fn of_key(key: i32) -> Option<Self> {
        [
            Self::Sweep,
            Self::Retention,
            Self::FailureAggregation,
            Self::LedgerCheck,
            Self::PlatformMonitors,
            Self::DeadMan,
        ]
        .into_iter()
        .find(|task| task.key() == key)
    }

    /// Returns what its lock is for, as a noun.
    pub(crate) const fn purpose(self) -> &'static str {
        match self {
            Self::Sweep => "a sweep of the failed queue",
            Self::Retention => "retention",
            Self::FailureAggregation => "the counts of failure groups",
            Self::LedgerCheck => "the ledger check",
            Self::PlatformMonitors => "the platform's monitors",
            Self::DeadMan => "the dead man's switch",
        }
    }
}

/// A held lock. It occupies a connection of the pool, or a dedicated one, while it lives.
#[derive(Debug)]
pub struct ExclusiveLock {
    tx: Transaction<'static, Postgres>,
    acquired_at: DateTime<Utc>,
}

impl ExclusiveLock {
    /// Takes the lock, or returns `None` if another replica has it. Never waits for it.
    pub async fn try_acquire(
        store: &Store,
        task: ExclusiveTask,
        now: Now,
    ) -> Result<Option<Self>, StoreError> {
        Self::acquire(store.begin().await?, task, now).await
    }

    /// Takes the lock on a dedicated connection, for long work that should not occupy one of the pool's.
    pub async fn try_acquire_dedicated(
        store: &Store,
        task: ExclusiveTask,
        now: Now,
    ) -> Result<Option<Self>, StoreError> {
        // The connection keeps its pool of one alive and closes with it.
        let pool: PgPool = store.single_connection_pool();
        let transaction =
            tokio::spawn(async move { with_client_timeout(Box::pin(pool.begin())).await });
        let tx = transaction.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))?;
        Self::acquire(tx, task, now).await
    }

    async fn acquire(
        mut tx: Transaction<'static, Postgres>,
        task: ExclusiveTask,
        now: Now,
    ) -> Result<Option<Self>, StoreError> {
        let row = sqlx::query!(
            r#"-- acquire_exclusive
            SELECT pg_try_advisory_xact_lock($1, $2) AS "acquired!",
                   coalesce($3, clock_timestamp()) AS "now!",
                   set_config('plan_cache_mode', 'force_custom_plan', true)"#,
            LOCK_CLASS,
            task.key(),
            now
        )
        .fetch_one(WithTimeout(&mut *tx))
        .await?;
        Ok(row.acquired.then_some(Self { tx, acquired_at: row.now }))
    }

    /// Returns when the lock was taken, by the database's clock.
    pub const fn acquired_at(&self) -> DateTime<Utc> {
        self.acquired_at
    }

    /// Fails if the lock is lost. Call it at least every half minute in which nothing else runs on this connection:
    /// the server ends a transaction that idles for a minute.
    pub async fn confirm(&mut self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1").execute(WithTimeout(&mut *self.tx)).await?;
        Ok(())
    }

    /// Releases the lock.
    pub async fn release(self) -> Result<(), StoreError> {
        Ok(with_client_timeout(self.tx.rollback()).await?)
    }

    /// Commits the work on the lock's connection, and releases the lock.
    pub(crate) async fn commit(self) -> Result<(), StoreError> {
        Ok(commit(self.tx).await?)
    }

    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.tx
    }

    /// Begins a savepoint for reading tables. Its rollback releases the tables' locks, which the transaction would
    /// otherwise hold to its end, against anybody who alters them.
    pub(crate) async fn begin_savepoint(
        &mut self,
    ) -> Result<Transaction<'_, Postgres>, sqlx::Error> {
        with_client_timeout(self.tx.begin()).await
    }
}
