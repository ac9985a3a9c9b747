//! The transaction in which a handler completes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sexton_store::task::{TaskDatabase, TaskFailure, TaskLimits, TaskTransaction};
use sqlx::postgres::PgConnection;
use tokio::runtime::Handle;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::error::{HandlerError, Reason};

/// How long a statement waits for a lock unless the handler sets another `lock_timeout`.
const LOCK: Duration = Duration::from_secs(5);

/// A transaction of the platform's database, from [`Ctx::begin`](super::Ctx::begin).
///
/// It dereferences to sqlx's connection, so statements are run on `&mut *tx`. It is committed by returning
/// [`Ctx::complete_in`](super::Ctx::complete_in), and in no other way. Dropped, it is rolled back.
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
    desk: Arc<Desk>,
}

/// Where the transactions of one attempt come from and go to.
#[derive(Debug)]
pub(super) struct Desk {
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
    /// The handler has ended; whatever of it is left begins nothing.
    closed: AtomicBool,
}

impl Desk {
    /// To be called on the worker's own runtime.
    pub(super) fn new(database: Option<TaskDatabase>, longest: Duration) -> Self {
        Self {
            database,
            longest,
            runtime: Handle::current(),
            returned: TaskTracker::new(),
            ended: Arc::default(),
            cut_short: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    pub(super) async fn begin(self: &Arc<Self>) -> Result<Transaction, HandlerError> {
        let Some(database) = &self.database else {
            let said = "there is no database here: a test gives one with `database(url)`";
            return Err(HandlerError::permanent(said));
        };
        if self.closed.load(Ordering::Relaxed) {
            return Err(HandlerError::permanent("the attempt of this context has ended"));
        }
        let limits = TaskLimits { lock: Some(LOCK), statement: Some(self.longest), idle: None };
        // A connection is served by the threads of the runtime that it was opened on.
        let (database, desk) = (database.clone(), Arc::clone(self));
        let beginning = self.runtime.spawn(async move {
            let begun = database.begin(limits).await;
            begun.map(|begun| Transaction { inner: Some(begun), desk })
        });
        match AbortOnDropHandle::new(beginning).await {
            Ok(begun) => begun.map_err(|failure| {
                HandlerError::Retry(Reason::new(&failure.message).class(&failure.class))
            }),
            Err(_) => Err(HandlerError::retry("the worker ends")),
        }
    }

    /// From here on, dropped transactions may be in the middle of a statement.
    pub(super) fn cut_short(&self) {
        self.cut_short.store(true, Ordering::Relaxed);
    }

    /// Waits until what the handler dropped is taken back. Bounded, as that is.
    pub(super) async fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.returned.close();
        self.returned.wait().await;
    }

    /// What is to be said of a handler that ended its transaction itself. After [`Self::close`].
    pub(super) fn ended_by_handler(&self) -> Option<TaskFailure> {
        self.ended.get().cloned()
    }

    fn take_back(&self, mut transaction: TaskTransaction) {
        let kill = self.cut_short.load(Ordering::Relaxed);
        let ended = Arc::clone(&self.ended);
        let taken_back = async move {
            if kill {
                return transaction.kill().await;
            }
            if let Some(failure) = transaction.was_ended().await {
                let _ = ended.set(failure);
            }
            transaction.rollback().await;
        };
        self.returned.spawn_on(taken_back, &self.runtime);
    }
}

impl Transaction {
    pub(super) fn into_inner(mut self) -> TaskTransaction {
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
            self.desk.take_back(inner);
        }
    }
}
