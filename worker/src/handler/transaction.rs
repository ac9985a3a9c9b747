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
/// It dereferences to sqlx's connection, so statements are run on `&mut *tx`. It is committed by returning
/// [`Ctx::complete_in`](super::Ctx::complete_in), and in no other way. Dropped, it is rolled back. It belongs
/// to the attempt: one that was moved into a task of its own is ended in the server with the attempt, and
/// every further statement fails. Until that task drops it, a connection of the worker's is missing.
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
    /// `None` when it was given on.
    inner: Option<TaskTransaction>,
    /// Among those of its desk.
    number: u64,
    transactions: Arc<TransactionManager>,
}

/// Where the transactions of one attempt come from and go to.
#[derive(Debug)]
pub(super) struct TransactionManager {
    database: Option<TaskDatabase>,
    /// How long a statement may run.
    longest: Duration,
    /// What was dropped is taken back by tasks of this runtime, which no handler can block.
    runtime: Handle,
    returned: TaskTracker,
    /// The handler has ended a transaction itself.
    ended: Arc<OnceLock<TaskFailure>>,
    /// The handler is being dropped: its statements may still run.
    cut_short: AtomicBool,
    open_transactions: Mutex<OpenTransactions>,
}

/// The transactions that were handed out.
#[derive(Debug, Default)]
struct OpenTransactions {
    /// All of them.
    count: u64,
    /// Of those that have neither come back nor been completed in, by their numbers. There are no more of
    /// them than the worker has connections for tasks.
    sessions: BTreeMap<u64, Session>,
    /// The handler has ended; whatever of it is left begins nothing.
    closed: bool,
}

impl TransactionManager {
    /// To be called on the worker's own runtime.
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
            let said = "there is no database here: a test gives one with `database(url)`";
            return Err(HandlerError::permanent(said));
        };
        let late = || HandlerError::permanent("the attempt of this context has ended");
        if self.lock().closed {
            return Err(late());
        }
        let limits = TaskLimits { lock: Some(LOCK), statement: Some(self.longest), idle: None };
        // A connection is served by the threads of the runtime that it was opened on.
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

    /// `None`: too late, it is taken back.
    fn register(self: Arc<Self>, begun: TaskTransaction) -> Option<Transaction> {
        let mut open_transactions = self.lock();
        open_transactions.count += 1;
        let (number, closed) = (open_transactions.count, open_transactions.closed);
        open_transactions.sessions.insert(number, begun.session());
        drop(open_transactions);
        let transaction = Transaction { inner: Some(begun), number, transactions: self };
        (!closed).then_some(transaction)
    }

    /// Whether the handler has begun any.
    pub(super) fn has_begun(&self) -> bool {
        self.lock().count > 0
    }

    /// From here on, dropped transactions may be in the middle of a statement.
    pub(super) fn cut_short(&self) {
        self.cut_short.store(true, Ordering::Relaxed);
    }

    /// Waits until what the handler dropped is taken back, and ends what it has left to others, such as a
    /// task that it spawned. Bounded, as each of both is: what cannot be ended within five seconds, because
    /// the database is away, is left to the transaction's own limits. Nothing of it is committed with any
    /// attempt.
    pub(super) async fn close(&self) {
        let left = {
            let mut open_transactions = self.lock();
            open_transactions.closed = true;
            std::mem::take(&mut open_transactions.sessions)
        };
        for session in left.into_values() {
            self.returned.spawn_on(session.end(), &self.runtime);
        }
        self.returned.close();
        self.returned.wait().await;
    }

    /// What is to be said of a handler that ended its transaction itself. After [`Self::close`].
    pub(super) fn ended_by_handler(&self) -> Option<TaskFailure> {
        self.ended.get().cloned()
    }

    fn take_back(&self, number: u64, mut transaction: TaskTransaction) {
        let ended = Arc::clone(&self.ended);
        let mut open_transactions = self.lock();
        // Not there: `close` is ending its session, which must not serve another attempt before that.
        let is_ended = open_transactions.sessions.remove(&number).is_none();
        let kill = is_ended || self.cut_short.load(Ordering::Relaxed);
        let taken_back = async move {
            if kill {
                return transaction.kill().await;
            }
            if let Some(failure) = transaction.was_ended().await {
                let _ = ended.set(failure);
            }
            transaction.rollback().await;
        };
        // Still under the lock: `close` waits for whatever it does not end.
        self.returned.spawn_on(taken_back, &self.runtime);
        drop(open_transactions);
    }

    fn lock(&self) -> MutexGuard<'_, OpenTransactions> {
        // Nothing in here panics half way.
        self.open_transactions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transaction {
    /// To be completed in: no business of the desk's any more.
    pub(super) fn into_inner(mut self) -> TaskTransaction {
        self.transactions.lock().sessions.remove(&self.number);
        // Unwrap safety: only this function, which consumes, and `drop` take it.
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
