//! Locks that are rows of a table.

mod keep_alive;
mod lock;
mod statements;
mod table;
mod times;

use std::fmt::{Display, Write as _};
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::PgPool;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::keep_alive::{HeldRow, STATEMENT_TIMEOUT};
use self::lock::RowLock;
use self::statements::Taken;
use self::table::Table;
use self::times::Times;
use crate::error::{LockError, sqlstate};
use crate::held::{End, Held};
use crate::moment::Moment;
use crate::run::{self, Run};

/// Characters of the host's name in `locked_by`.
const MAX_HOST_CHARS: usize = 150;

/// A lock that is a row of a table, with the table and the rules of ShedLock: services in Java and Rust keep each other out.
///
/// It needs no session of its own, so it works through any pooler. While the work runs, the row is extended at each third of
/// `at_most` on a connection of the pool, of which the work must leave one free. If the row cannot be extended, the work
/// is cancelled before the row ends.
///
/// - `at_most`: how long the row is locked after the last extension. A process that was killed keeps others out for that
///   long.
/// - `at_least`: how long the row stays locked from when it was taken, also if the work is done sooner. It keeps apart
///   instances whose clocks differ.
///
/// All times are the database's. Rows are never deleted: services in Java remember that a row exists, and only update it.
///
/// **What it cannot do.** In a process that stood still for longer than `at_most` the work takes no further step; but one that
/// was in the middle goes on, beside the next holder, and so does what the work has started elsewhere until it learns of the
/// loss. A write to the database that must not happen then belongs under a [`TransactionLock`](crate::TransactionLock).
///
/// ```no_run
/// # use std::time::Duration;
/// # use sexton_guard::{LockRow, Run};
/// # async fn send_reports() -> Result<(), std::io::Error> { Ok(()) }
/// # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// let lock = LockRow::new("sendReports", Duration::from_secs(60))?.at_least(Duration::from_secs(10))?;
/// if let Run::Done(sent) = lock.try_run(&pool, |_| send_reports()).await? {
///     sent?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct LockRow {
    table: Table,
    name: String,
    times: Times,
    /// Whether the table was found to have the right shape; clones share it.
    is_checked: Arc<OnceCell<()>>,
}

impl LockRow {
    /// Names the lock, in the table `shedlock`: 1 to 64 characters; `at_most` is from 1 second to 400 days.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`].
    pub fn new(name: impl Into<String>, at_most: Duration) -> Result<Self, LockError> {
        let name = name.into();
        times::check_name(&name)?;
        let times = Times::new(at_most, Duration::ZERO)?;
        Ok(Self { table: Table::default(), name, times, is_checked: Arc::default() })
    }

    /// Sets how long the row stays locked at least; not longer than `at_most`, zero unless it is set.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`].
    pub fn at_least(mut self, at_least: Duration) -> Result<Self, LockError> {
        self.times = Times::new(self.times.at_most, at_least)?;
        Ok(self)
    }

    /// Sets the table: `table` or `schema.table`, in the case in which the catalogue has them.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`].
    pub fn table(mut self, table: &str) -> Result<Self, LockError> {
        self.table = table.parse()?;
        self.is_checked = Arc::default();
        Ok(self)
    }

    /// The lock's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether both are one row, whatever their times.
    #[cfg(feature = "cron")]
    pub(crate) fn is_same_row(&self, other: &Self) -> bool {
        self.name == other.name && self.table == other.table
    }

    /// Takes the lock, or returns `None`: it is held, by whatever process. Waits for no lock but, for a moment, for the
    /// commit of another call that takes it.
    ///
    /// One round trip; the first call of a value has another one, which checks the table. If this future is dropped, the lock
    /// is released as soon as the database has answered.
    ///
    /// # Errors
    ///
    /// [`LockError`], within 10 seconds; the lock is not held.
    pub async fn try_acquire(&self, pool: &PgPool) -> Result<Option<Held>, LockError> {
        self.begin(pool, None).await
    }

    /// Takes the lock for a tick, the instant for which a job runs, or returns `None`: it is held, or was taken for this tick
    /// or a later one, or at any later time. The row remembers it, so the database needs nothing else.
    ///
    /// Take the tick from the schedule, never from the clock.
    ///
    /// # Errors
    ///
    /// As [`Self::try_acquire`]; [`LockError::Tick`] where the tick is more than 5 minutes ahead of the database's clock, or a
    /// day behind.
    pub async fn try_acquire_tick(
        &self,
        pool: &PgPool,
        tick: DateTime<Utc>,
    ) -> Result<Option<Held>, LockError> {
        self.begin(pool, Some(tick)).await
    }

    /// Takes the lock in a task of its own, which goes on if the caller stops waiting: the row that it takes is then released.
    async fn begin(
        &self,
        pool: &PgPool,
        tick: Option<DateTime<Utc>>,
    ) -> Result<Option<Held>, LockError> {
        // Cancelled when the caller has its answer, or waits no more.
        let ended = CancellationToken::new();
        let _ended = ended.clone().drop_guard();
        let acquiring = tokio::spawn(self.clone().acquire(pool.clone(), tick, ended));
        match timeout(STATEMENT_TIMEOUT, acquiring).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(LockError::Closed),
            Err(_) => Err(LockError::timed_out("the lock", STATEMENT_TIMEOUT)),
        }
    }

    async fn acquire(
        self,
        pool: PgPool,
        tick: Option<DateTime<Utc>>,
        ended: CancellationToken,
    ) -> Result<Option<Held>, LockError> {
        self.is_checked.get_or_try_init(|| table::check(&pool, &self.table)).await?;
        let row = HeldRow {
            pool,
            table: self.table.to_string(),
            name: self.name,
            holder: holder(),
            times: self.times,
        };
        let sent_at = Moment::now();
        let lock = statements::lock(&row.table, &row.name, &row.holder, row.times, tick);
        // A wait for a connection may outlast the caller's, and a tick that is taken then would run nowhere.
        let mut connection = row.pool.acquire().await?;
        if tick.is_some() && ended.is_cancelled() {
            return Ok(None);
        }
        let taken = statements::take(&mut connection, lock).await;
        drop(connection);
        match taken {
            Ok(Taken::Yes) => Ok(Some(RowLock::held(row, sent_at))),
            Ok(Taken::No) => Ok(None),
            Ok(Taken::WrongTick) => Err(LockError::Tick(
                "the tick is more than 5 minutes ahead of the database's clock, or a day behind. Set the clock of this \
                 instance; the others run the job meanwhile."
                    .to_owned(),
            )),
            Err(error) => match sqlstate(&error) {
                // At a stricter isolation level: another call has taken the row at the same moment.
                Some("40001" | "40P01") => Ok(None),
                // The table may have been changed since.
                Some(code) if code.starts_with("42") => {
                    table::check(&row.pool, &self.table).await?;
                    Err(error.into())
                }
                _ => Err(error.into()),
            },
        }
    }

    /// Runs `work` under the lock. The work gets the signal of a loss, for what it starts elsewhere; its own future is dropped
    /// then. Two round trips beside the work.
    ///
    /// If this future is dropped, or the work panics, the work is dropped before the lock is released.
    ///
    /// # Errors
    ///
    /// As [`Self::try_acquire`]; the work has not begun.
    pub async fn try_run<T, F: Future<Output = T>>(
        &self,
        pool: &PgPool,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> Result<Run<T>, LockError> {
        Ok(match self.try_acquire(pool).await? {
            Some(held) => run::run(held, work, |_| End::Succeeded).await,
            None => Run::Busy,
        })
    }

    /// Runs `work` for a tick, like [`Self::try_run`].
    ///
    /// # Errors
    ///
    /// As [`Self::try_acquire_tick`]; the work has not begun. An error of the work is in its answer.
    pub async fn try_run_tick<T, E: Display, F: Future<Output = Result<T, E>>>(
        &self,
        pool: &PgPool,
        tick: DateTime<Utc>,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> Result<Run<Result<T, E>>, LockError> {
        Ok(match self.try_acquire_tick(pool, tick).await? {
            Some(held) => run::run(held, work, run::end_of_result).await,
            None => Run::Busy,
        })
    }
}

/// A holder that no other call has: the host and the process for people, and a UUID.
fn holder() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    let host = host.or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    let host = host.unwrap_or_else(|| "unknown".to_owned());
    let mut holder: String = host.trim().chars().take(MAX_HOST_CHARS).collect();
    holder.retain(|character| character != '\0');
    let _ = write!(holder, ":{}:{}", std::process::id(), Uuid::new_v4());
    holder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_one_call_and_fits_into_the_column() {
        let (one, other) = (holder(), holder());
        assert_ne!(one, other);
        assert!(one.contains(&format!(":{}:", std::process::id())) && one.len() < 255, "{one}");
    }
}
