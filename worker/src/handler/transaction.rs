//! The transaction in which a handler completes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use sexton_store::task::{Session, TaskDatabase, TaskFailure, TaskLimits, TaskTransaction};
use sqlx::postgres::PgConnection;
use tokio::runtime::Handle;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::error::{HandlerError, Reason};

/// How long a statement waits for a lock unless the handler sets another `lock_timeout`.
const LOCK: Duration = Duration::from_secs(5);

/// A transaction of the platform's database, from [`Ctx::begin`](super::Ctx::begin).
///
/// It dereferences to sqlx's connection, so statements run on `&mut *tx`. Returning
/// [`Ctx::complete_in`](super::Ctx::complete_in) commits it, and nothing else does. Dropping it rolls it back.
/// It belongs to the attempt: if the handler moves it into a spawned task, the server ends it with the attempt,
/// and every further statement fails. Until that task drops it, it occupies one of the worker's connections.
///
/// ```no_run
/// # use sexton_worker::{Completion, Ctx, HandlerError, sqlx};
/// async fn count(ctx: Ctx, _params: serde_json::Value) -> Result<Completion, HandlerError> {
///     let mut tx = ctx.begin().await?;
///     sqlx::query("UPDATE counters SET n = n + 1").execute(&mut *tx).await?;
///     Ok(ctx.complete_in(tx))
/// }
/// ```
#[derive(Debug)]
pub struct Transaction {
    /// `None` after the executor has passed the transaction on.
    inner: Option<TaskTransaction>,
    /// Its number among the attempt's transactions.
    number: u64,
    transactions: Arc<TransactionManager>,
}

/// Opens the transactions of one attempt and rolls back those that come back.
#[derive(Debug)]
pub(super) struct TransactionManager {
    database: Option<TaskDatabase>,
    /// Time limit of each statement.
    longest: Duration,
    /// Tasks of this runtime, which no handler can block, roll back dropped transactions.
    runtime: Handle,
    returned: TaskTracker,
    /// The error, if the handler has ended a transaction itself.
    ended: Arc<OnceLock<TaskFailure>>,
    /// Whether the handler is being dropped: its statements may still run.
    cut_short: AtomicBool,
    open_transactions: Mutex<OpenTransactions>,
}

/// The transactions that the handler has begun.
#[derive(Debug, Default)]
struct OpenTransactions {
    /// The number of all that were begun.
    count: u64,
    /// The sessions of those that have neither come back nor been completed in, by number. At most as many as
    /// the worker has connections for tasks.
    sessions: BTreeMap<u64, Session>,
    /// Whether the handler has ended; code that it has left behind cannot begin another.
    closed: bool,
}

impl TransactionManager {
    /// Creates a manager. Call it on the worker's own runtime.
    pub(super) fn new(database: Option<TaskDatabase>, longest: Duration) -> Self {
        Self {
            database,
            longest,
            runtime: Handle::current(),
            returned: TaskTracker::new(),
            ended: Arc::default(),
            cut_short: AtomicBool::new(false),
            open_transactions: Mutex::default(),
        }
    }

    pub(super) async fn begin(self: &Arc<Self>) -> Result<Transaction, HandlerError> {
        let Some(database) = &self.database else {
            let message = "there is no database here: a test gives one with `database(url)`";
            return Err(HandlerError::permanent(message));
        };
        let late = || HandlerError::permanent("the attempt of this context has ended");
        if self.lock().closed {
            return Err(late());
        }
        let limits = TaskLimits { lock: Some(LOCK), statement: Some(self.longest), idle: None };
        // The threads of the runtime that opened a connection serve it.
        let (database, transactions) = (database.clone(), Arc::clone(self));
        let beginning = self.runtime.spawn(async move {
            let begun = database.begin(limits).await;
            begun.map(|begun| transactions.register(begun))
        });
        match AbortOnDropHandle::new(beginning).await {
            Ok(Ok(begun)) => begun.ok_or_else(late),
            Ok(Err(failure)) => {
                Err(HandlerError::Retry(Reason::new(&failure.message).class(&failure.class)))
            }
            Err(_) => Err(HandlerError::retry("the worker ends")),
        }
    }

    /// Registers a begun transaction. `None`: the handler has ended, and the transaction is rolled back.
    fn register(self: Arc<Self>, begun: TaskTransaction) -> Option<Transaction> {
        let mut open_transactions = self.lock();
        open_transactions.count += 1;
        let (number, closed) = (open_transactions.count, open_transactions.closed);
        open_transactions.sessions.insert(number, begun.session());
        drop(open_transactions);
        let transaction = Transaction { inner: Some(begun), number, transactions: self };
        (!closed).then_some(transaction)
    }

    /// Returns whether the handler has begun any transaction.
    pub(super) fn has_begun(&self) -> bool {
        self.lock().count > 0
    }

    /// Notes that from now on dropped transactions may have a running statement.
    pub(super) fn cut_short(&self) {
        self.cut_short.store(true, Ordering::Relaxed);
    }

    /// Waits until all dropped transactions are rolled back, and ends those that the handler has left to
    /// others, such as a spawned task. Both are bounded: what cannot be ended within five seconds, because the
    /// database is down, is left to the transaction's own limits. No attempt can commit any of it.
    pub(super) async fn close(&self) {
        let sessions = {
            let mut open_transactions = self.lock();
            open_transactions.closed = true;
            std::mem::take(&mut open_transactions.sessions)
        };
        for session in sessions.into_values() {
            self.returned.spawn_on(session.end(), &self.runtime);
        }
        self.returned.close();
        self.returned.wait().await;
    }

    /// Returns the failure of a handler that has ended its transaction itself. Call it after [`Self::close`].
    pub(super) fn ended_by_handler(&self) -> Option<TaskFailure> {
        self.ended.get().cloned()
    }

    fn take_back(&self, number: u64, mut transaction: TaskTransaction) {
        let ended = Arc::clone(&self.ended);
        let mut open_transactions = self.lock();
        // If the transaction is missing, `close` is ending its session, which must not serve another attempt before
        // that.
        let is_ended = open_transactions.sessions.remove(&number).is_none();
        let kill = is_ended || self.cut_short.load(Ordering::Relaxed);
        let rollback = async move {
            if kill {
                return transaction.kill().await;
            }
            if let Some(failure) = transaction.was_ended().await {
                let _ = ended.set(failure);
            }
            transaction.rollback().await;
        };
        // Still under the lock: `close` waits for every session that it does not end.
        self.returned.spawn_on(rollback, &self.runtime);
        drop(open_transactions);
    }

    fn lock(&self) -> MutexGuard<'_, OpenTransactions> {
        // No code under this lock panics half way.
        self.open_transactions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transaction {
    /// Returns the inner transaction for the completion; the manager stops tracking it.
    pub(super) fn into_inner(mut self) -> TaskTransaction {
        self.transactions.lock().sessions.remove(&self.number);
        // Unwrap safety: only this function, which consumes `self`, and `drop` take it.
        self.inner.take().expect("a transaction that was not given on")
    }
}

impl std::ops::Deref for Transaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        // Unwrap safety: as above.
        self.inner.as_ref().expect("a transaction that was not given on")
    }
}

impl std::ops::DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        // Unwrap safety: as above.
        self.inner.as_mut().expect("a transaction that was not given on")
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take() {
            self.transactions.take_back(self.number, inner);
        }
    }
}
