//! Advisory locks of a session.

mod actor;
mod live;
mod lock;
mod registry;
mod session;
mod times;

use std::fmt::Display;

use chrono::{DateTime, Utc};
use sqlx::postgres::PgConnectOptions;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::actor::Actor;
use self::lock::{Acquire, Command, Sender};
use self::registry::Registry;
use self::session::Session;
use crate::error::LockError;
use crate::held::{End, Held};
use crate::key::Key;
use crate::moment::Moment;
use crate::run::{self, Run};

/// The advisory locks of this process: one connection that holds as many as it needs.
///
/// Make one for each process and database, and clone it: clones share the connection. It is none of a pool's, since a pool
/// may give a connection to somebody else. It ends with the last clone and the last lock.
///
/// **A death frees the locks at once.** PostgreSQL ends the session of a process that was killed. A host that vanished, or a
/// network that was cut, costs 12 to 14 seconds: then the server gives the session up.
///
/// **A loss ends the work first.** The connection is watched, and pinged every two seconds while a lock is held. When the
/// server ends it the work ends at once. When nothing is answered, the locks count as lost 8 seconds after the last request
/// that was, so the work has ended before the server frees them.
///
/// **What no lock can do.** A process that stands still (`SIGSTOP`, a paused virtual machine) holds its locks while its host
/// answers for it. If the server frees them meanwhile, the work takes no further step when the process wakes; but one that
/// was in the middle goes on, and so does what the work has started elsewhere until it learns of the loss. A write to the
/// database that must not happen then belongs under a [`TransactionLock`](crate::TransactionLock).
///
/// A runtime that its tasks block for 8 seconds sends no pings: its locks count as lost.
#[derive(Clone, Debug)]
pub struct AdvisoryLocks {
    sender: Sender,
    registry: Registry,
}

impl AdvisoryLocks {
    /// Connects, within 5 seconds. After a loss the next call connects again.
    ///
    /// # Errors
    ///
    /// [`LockError::SharedSession`] behind a pooler that hands out sessions by the transaction; [`LockError::Database`].
    pub async fn connect(options: PgConnectOptions) -> Result<Self, LockError> {
        let connected_at = Moment::now();
        let session = Session::connect(&options).await?;
        let (sender, commands) = mpsc::unbounded_channel();
        tokio::spawn(Actor::new(options, commands, session, connected_at).run());
        Ok(Self { sender, registry: Registry::default() })
    }

    /// Takes the lock of a key, or returns `None`: another session has it, or this process does. Never waits for it.
    ///
    /// One round trip, without one if this process has the key. If this future is dropped, the lock is not held.
    ///
    /// # Errors
    ///
    /// [`LockError`], within 20 seconds; no lock is held.
    pub async fn try_acquire(&self, key: impl Into<Key>) -> Result<Option<Held>, LockError> {
        self.acquire(key.into(), None).await
    }

    /// Takes the lock of a key together with a tick, the instant for which a job runs, or returns `None`: another session has
    /// the lock, or has it had for this tick. See `sexton.guard_try`; the platform's schema must be in the database.
    ///
    /// Take the tick from the schedule, never from the clock. [`Held::release_after`] records how the work ended.
    ///
    /// # Errors
    ///
    /// [`LockError`], within 20 seconds; no lock is held. The tick is free, but for [`LockError::Database`]: a call that was not
    /// answered may have taken it. Then call again for the same tick; `None` says now that the tick may have run nowhere.
    /// [`LockError::Tick`] where the tick is more than 5 minutes ahead of the database's clock, or a day behind.
    pub async fn try_acquire_tick(
        &self,
        key: i64,
        tick: DateTime<Utc>,
    ) -> Result<Option<Held>, LockError> {
        self.acquire(Key::Number(key), Some(tick)).await
    }

    /// Runs `work` under the lock of a key. The work gets the signal of a loss, for what it starts elsewhere; its own future
    /// is dropped then. Two round trips beside the work.
    ///
    /// If this future is dropped, or the work panics, the work is dropped before the lock is released.
    ///
    /// ```no_run
    /// # use sexton_guard::{AdvisoryLocks, Run};
    /// # async fn clean_up(_: &sqlx::PgPool) -> Result<u64, sqlx::Error> { Ok(1) }
    /// # async fn example(pool: sqlx::PgPool, url: &str) -> Result<(), Box<dyn std::error::Error>> {
    /// let locks = AdvisoryLocks::connect(url.parse()?).await?;
    /// match locks.try_run(5101, |_| clean_up(&pool)).await? {
    ///     Run::Done(removed) => println!("removed {}", removed?),
    ///     Run::Busy => println!("another instance does it"),
    ///     Run::Lost | Run::Uncertain(_) => println!("another instance may have done it as well"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError`]; the work has not begun.
    pub async fn try_run<T, F: Future<Output = T>>(
        &self,
        key: impl Into<Key>,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> Result<Run<T>, LockError> {
        Ok(match self.acquire(key.into(), None).await? {
            Some(held) => run::run(held, work, |_| End::Succeeded).await,
            None => Run::Busy,
        })
    }

    /// Runs `work` for a tick, like [`Self::try_run`], and records whether it failed, and with what.
    ///
    /// # Errors
    ///
    /// As [`Self::try_acquire_tick`]; the work has not begun. An error of the work is in its answer.
    pub async fn try_run_tick<T, E: Display, F: Future<Output = Result<T, E>>>(
        &self,
        key: i64,
        tick: DateTime<Utc>,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> Result<Run<Result<T, E>>, LockError> {
        Ok(match self.acquire(Key::Number(key), Some(tick)).await? {
            Some(held) => run::run(held, work, run::end_of_result).await,
            None => Run::Busy,
        })
    }

    /// Waits until the locks that were dropped are released, for the time of a call at most.
    pub async fn flush(&self) {
        let (reply, answer) = oneshot::channel();
        if self.sender.send(Command::Flush(reply)).is_ok() {
            let _ = timeout(times::CALL_TIMEOUT, answer).await;
        }
    }

    async fn acquire(
        &self,
        key: Key,
        tick: Option<DateTime<Utc>>,
    ) -> Result<Option<Held>, LockError> {
        let Some(reservation) = self.registry.reserve(key) else {
            tracing::debug!(%key, "this process has the lock {key} already");
            return Ok(None);
        };
        let (reply, answer) = oneshot::channel();
        let sender = self.sender.clone();
        let acquire = Acquire { key, tick, reservation, sender, sent_at: Instant::now(), reply };
        self.sender.send(Command::Acquire(acquire)).map_err(|_| LockError::Closed)?;
        match timeout(times::CALL_TIMEOUT, answer).await {
            Ok(answer) => answer.unwrap_or(Err(LockError::Closed)),
            Err(_) => Err(LockError::timed_out("the lock", times::CALL_TIMEOUT)),
        }
    }
}
