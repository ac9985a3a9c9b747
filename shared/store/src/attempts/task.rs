//! The tasks' own transactions, which end with the record of their attempts.
//!
//! A statement task (or a handler that requests it) has its effects in the transaction that records its completion:
//! begin, the task's statements, [`TaskTransaction::seal`], [`TaskTransaction::settle`], [`TaskTransaction::commit`].
//! So they happen exactly once: together with the success of one attempt, or not at all. The settlement is the last
//! statement before the commit and the first that locks the execution's row, so a long task keeps no process from
//! renewing, cancelling or ending the attempt.
//!
//! # What a task cannot do
//!
//! - End the transaction: [`TaskTransaction::seal`] notices that another one is open, or none.
//! - Leave its settings behind. They are reset before the settlement, and again when the connection goes back to its
//!   pool, with temporary tables, locks and all other state of a session. The connections are separate from the
//!   protocol's, which therefore never waits for a long statement.
//! - Go on in the server after its worker has stopped waiting: [`TaskTransaction::kill`] ends its session, and so
//!   does dropping the transaction. When the whole process dies, the server notices within a second from version 14
//!   on; before, when the statement ends. When its host or the network between them dies, the connection's keepalive
//!   reports it after half a minute.

mod failure;
mod settlement;
mod statement;
mod value;

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnection, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, Connection as _, Postgres, Row as _};
use tokio::time::timeout;

use crate::connection::timeout::timeout_error;
use crate::connection::{StoreOptions, connect_options};
use crate::{Store, StoreError};

pub use self::failure::{Reaction, TaskFailure};
pub use self::settlement::CommitError;
pub use self::statement::Arguments;
pub use crate::connection::session::Session;

/// How long the reset of a returned connection may take.
const RESET_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a statement around a task's own may take, including the network.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest timeout that the server accepts, in milliseconds: 24 days.
const MAX_TIMEOUT_MS: u128 = i32::MAX as u128;
/// The first server version that checks its client's connection while a statement runs.
const MIN_CLIENT_CHECK_VERSION: u32 = 140_000;

/// The connections for tasks' own transactions. Cheap to clone; clones share the connections.
#[derive(Clone, Debug)]
pub struct TaskDatabase {
    pool: PgPool,
    /// The store whose connections end the sessions of tasks.
    store: Store,
}

/// The limits of a task's transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskLimits {
    /// How long a statement waits for a lock; `None`: as long as it may run.
    pub lock: Option<Duration>,
    /// How long a statement may run; `None`: the platform's limit, half a minute.
    pub statement: Option<Duration>,
    /// How long the transaction may be idle between statements before the server ends it; `None`: a minute.
    pub idle: Option<Duration>,
}

/// A task's transaction on the platform's database.
///
/// It dereferences to the connection, for statements. A drop rolls back, and ends a statement that still runs.
#[derive(Debug)]
pub struct TaskTransaction {
    /// `None` after it was returned.
    connection: Option<PoolConnection<Postgres>>,
    session: Session,
    transaction: String,
}

impl TaskDatabase {
    /// Prepares a pool of `connections`, as many as tasks run at the same time, beside that of `store`. The first use
    /// connects.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`] when the URL cannot be read.
    pub fn open(options: &StoreOptions, store: &Store) -> Result<Self, StoreError> {
        // What a task leaves behind is discarded with the prepared statements, so none are remembered.
        let connect = connect_options(options, &options.url)?.statement_cache_capacity(0);
        let settings = options.settings();
        let pool = PgPoolOptions::new()
            .max_connections(options.pool_size.max(1))
            .acquire_timeout(options.acquire_timeout)
            .test_before_acquire(false)
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    settings.check(connection).await?;
                    count_as_begun(connection).await
                })
            })
            .after_release(|connection, _| Box::pin(reset_session(connection)))
            .connect_lazy_with(connect);
        Ok(Self { pool, store: store.clone() })
    }

    /// Begins a transaction.
    ///
    /// # Errors
    ///
    /// [`TaskFailure`]: nothing has happened.
    ///
    /// # Cancellation
    ///
    /// A dropped call leaves nothing behind.
    pub async fn begin(&self, limits: TaskLimits) -> Result<TaskTransaction, TaskFailure> {
        with_step_timeout(async {
            let mut connection = self.pool.acquire().await?;
            let mut tries = 0..=self.pool.options().get_max_connections();
            let [pid, since, transaction] = loop {
                match begin(&mut connection, limits).await {
                    Ok(session) => break session,
                    Err(error) => {
                        // The connection was closed while it was idle, as all may be after a restart of the server;
                        // no statement has run on it yet.
                        connection.close_on_drop();
                        if !is_session_gone(&error) || tries.next().is_none() {
                            return Err(error);
                        }
                        drop(connection);
                        connection = self.pool.acquire().await?;
                    }
                }
            };
            let pid = pid.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
            let session = Session { store: self.store.clone(), pid, since };
            Ok(TaskTransaction { connection: Some(connection), session, transaction })
        })
        .await
    }
}

/// Returns whether the session had ended before the first statement: the server reports that it ended it (class 57),
/// or the connection is closed.
fn is_session_gone(error: &sqlx::Error) -> bool {
    match error.as_database_error() {
        Some(server_error) => server_error.code().is_some_and(|code| code.starts_with("57P")),
        None => matches!(error, sqlx::Error::Io(_)),
    }
}

async fn begin(
    connection: &mut PgConnection,
    limits: TaskLimits,
) -> Result<[String; 3], sqlx::Error> {
    let checks_client =
        connection.server_version_num().is_some_and(|number| number >= MIN_CLIENT_CHECK_VERSION);
    let client_check =
        if checks_client { "SET LOCAL client_connection_check_interval = 1000;" } else { "" };
    let set = limits.statements();
    let row = sqlx::raw_sql(AssertSqlSafe(format!(
        "-- begin_task
        BEGIN; {client_check} {set}
        SELECT pid::text, backend_start::text, pg_current_xact_id()::text
        FROM pg_stat_activity WHERE pid = pg_backend_pid()"
    )))
    .fetch_one(connection)
    .await?;
    Ok([row.try_get(0)?, row.try_get(1)?, row.try_get(2)?])
}

impl TaskLimits {
    /// Returns the statements that set these limits for the transaction.
    fn statements(&self) -> String {
        let one = |name: &str, limit: Option<Duration>| {
            // Zero would mean no limit.
            let ms = limit?.as_millis().clamp(1, MAX_TIMEOUT_MS);
            Some(format!("SET LOCAL {name} = {ms};"))
        };
        [
            one("lock_timeout", self.lock),
            one("statement_timeout", self.statement),
            one("idle_in_transaction_session_timeout", self.idle),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl TaskTransaction {
    /// Checks the task's deferred constraints, resets its settings, and makes sure that the transaction is still the
    /// one that was begun. Only the settlement may follow.
    ///
    /// The constraints are the task's own work: limited as its statements are, and by the caller.
    ///
    /// # Errors
    ///
    /// [`TaskFailure`], permanent if the task ended the transaction: roll back.
    ///
    /// # Cancellation
    ///
    /// As [`Self::run`].
    pub async fn seal(&mut self) -> Result<(), TaskFailure> {
        let constraints = sqlx::raw_sql("-- check_task\nSET CONSTRAINTS ALL IMMEDIATE");
        constraints.execute(self.connection()?).await.map_err(|error| TaskFailure::of(&error))?;
        // The settlement that follows qualifies its tables with their schema, so that no object of the task's can
        // shadow them.
        let sealed = sqlx::raw_sql(
            "-- seal_task
            RESET SESSION AUTHORIZATION; RESET ALL;
            SET LOCAL idle_in_transaction_session_timeout = 10000;
            SELECT coalesce(pg_current_xact_id_if_assigned()::text, '')",
        );
        let connection = self.connection()?;
        let transaction: String =
            with_step_timeout(async { sealed.fetch_one(connection).await?.try_get(0) }).await?;
        if transaction == self.transaction { Ok(()) } else { Err(TaskFailure::ended_by_itself()) }
    }

    /// Returns the failure if the task itself ended the transaction, so that a rollback would not undo everything.
    /// Call it before [`Self::rollback`], while no statement runs.
    ///
    /// It is `None` for a transaction in which a statement has failed since, and for one that sqlx rolled back
    /// because its own `begin` within it failed: in both, nothing has happened.
    pub async fn was_ended(&mut self) -> Option<TaskFailure> {
        let sql = format!(
            "-- identify_task
            SELECT coalesce(pg_current_xact_id_if_assigned()::text, ''),
                   coalesce(pg_xact_status('{}'), '')",
            self.transaction
        );
        let connection = self.connection.as_deref_mut()?;
        let rolled_back = !connection.is_in_transaction();
        let sql = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_one(connection);
        let row = timeout(STEP_TIMEOUT, sql).await.ok()?.ok()?;
        let current: String = row.try_get(0).ok()?;
        let status: String = row.try_get(1).ok()?;
        let taken_back = rolled_back && status == "aborted";
        (current != self.transaction && !taken_back).then(TaskFailure::ended_by_itself)
    }

    /// Rolls back. Use [`Self::kill`] while a statement may still run.
    pub async fn rollback(mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        let rolled_back = sqlx::raw_sql("-- roll_back_task\nROLLBACK").execute(&mut *connection);
        if !matches!(timeout(STEP_TIMEOUT, rolled_back).await, Ok(Ok(_))) {
            connection.close_on_drop();
            self.session.clone().end().await;
        }
    }

    /// Ends the session and its running statement, within five seconds; everything is rolled back.
    pub async fn kill(mut self) {
        if let Some(mut connection) = self.connection.take() {
            connection.close_on_drop();
            // The connection is closed only afterwards, because until then no other session can get its number.
            self.session.clone().end().await;
        }
    }

    fn connection(&mut self) -> Result<&mut PgConnection, TaskFailure> {
        self.connection.as_deref_mut().ok_or_else(TaskFailure::ended_by_itself)
    }

    /// Its session, with which another task can end the transaction.
    pub fn session(&self) -> Session {
        self.session.clone()
    }
}

impl std::ops::Deref for TaskTransaction {
    type Target = PgConnection;

    /// # Panics
    ///
    /// Never: only methods that consume the transaction take the connection.
    fn deref(&self) -> &PgConnection {
        // Unwrap safety: `take` is called by functions that consume `self`, and by `drop`.
        self.connection.as_deref().expect("an open transaction has its connection")
    }
}

impl std::ops::DerefMut for TaskTransaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        // Unwrap safety: as above.
        self.connection.as_deref_mut().expect("an open transaction has its connection")
    }
}

impl Drop for TaskTransaction {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        connection.close_on_drop();
        let ending = self.session.clone().end();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                ending.await;
                drop(connection);
            });
        }
    }
}

/// Waits for a statement around a task's own, for at most [`STEP_TIMEOUT`].
async fn with_step_timeout<T>(
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, TaskFailure> {
    let answer = timeout(STEP_TIMEOUT, answer).await;
    answer
        .unwrap_or_else(|_| Err(timeout_error(STEP_TIMEOUT)))
        .map_err(|error| TaskFailure::of(&error))
}

/// Makes sqlx count a transaction on this connection, whether one is open or not. Task transactions begin and end
/// beside sqlx, in one step with related statements, and sqlx's own `begin` within them must be a savepoint; a real
/// one would end them.
async fn count_as_begun(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    // It only borrows the connection: forgotten, it leaves nothing but the count.
    std::mem::forget(connection.begin().await?);
    sqlx::raw_sql("-- count_as_begun\nROLLBACK").execute(connection).await?;
    Ok(())
}

/// Resets a connection before it is used again. Fails within a transaction; then the connection is closed.
async fn reset_session(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    // The task has ended the transaction through sqlx, which no longer counts it.
    if !connection.is_in_transaction() {
        return Ok(false);
    }
    let forgotten = sqlx::raw_sql("-- forget_task\nDISCARD ALL").execute(connection);
    timeout(RESET_TIMEOUT, forgotten)
        .await
        .unwrap_or_else(|_| Err(timeout_error(RESET_TIMEOUT)))?;
    Ok(true)
}
