//! Locks for a fleet of services, on PostgreSQL alone: of many instances one does the work, and it stops when its lock is lost.
//!
//! | | holds | is free after the holder's death | through a pooler |
//! |---|---|---|---|
//! | [`AdvisoryLocks`] | a session's lock, on one connection of the process | at once; 12 to 14 s after a cut network | session mode only |
//! | [`TransactionLock`] | a transaction's lock: it ends with the writes of the work | at once; 12 to 14 s after a cut network | any |
//! | [`LockRow`] | a row of ShedLock's table, with services in Java | after `at_most` | any |
//!
//! ```no_run
//! use sexton_guard::{AdvisoryLocks, Run};
//!
//! # async fn clean_up(_: &sqlx::PgPool) -> Result<u64, sqlx::Error> { Ok(1) }
//! # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
//! let locks = AdvisoryLocks::connect(std::env::var("DATABASE_URL")?.parse()?).await?;
//! match locks.try_run(5101, |_| clean_up(&pool)).await? {
//!     Run::Done(removed) => println!("removed {}", removed?),
//!     Run::Busy => println!("another instance does it"),
//!     Run::Lost | Run::Uncertain(_) => println!("another instance may have done it as well"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # A lock is not once per tick
//!
//! A lock says "nobody else now". Instances that each fire a cron job at 8:00:00 need more: the first may be done before an
//! instance whose clock is late begins, and that one finds the lock free. [`AdvisoryLocks::try_run_tick`] and
//! [`TransactionLock::try_begin_tick`] take the tick together with the lock, in a table of the platform; a tick runs once.
//!
//! `DistributedCron` (feature `cron`, on by default) does this for the cron jobs of a service: the same jobs on every instance, by
//! the database's clock, each tick on one of them.
//!
//! # When a lock is lost
//!
//! Each lock has a signal of its loss, [`Held::lost`]. `try_run` drops the work's future when it fires, and releases the lock
//! only then. What the work has started elsewhere (tasks, threads, processes) ends only if it follows the token that the work
//! gets.
//!
//! No lock of this kind stops a process that does not run: one that is frozen while its lock is lost goes on for the moment
//! between its awakening and the signal. [`TransactionLock`] has no such moment for what is written in its transaction.
//!
//! # Logs
//!
//! By `tracing`: a loss and work that outlives it at `error`, a release without an answer and an extension that is tried again
//! at `warn`.

mod advisory;
#[cfg(feature = "cron")]
mod cron;
mod error;
mod held;
mod key;
mod lease;
mod lock_row;
mod moment;
mod pooler;
mod run;
mod table_problems;
mod transaction;

pub use advisory::AdvisoryLocks;
#[cfg(feature = "cron")]
pub use cron::{
    CronError, Days, DistributedCron, InvalidCron, JobCounts, Lock, Schedule, Statistics, Tick,
};
pub use error::{LockError, ReleaseError};
pub use held::{End, Held};
pub use key::{InvalidKey, Key};
pub use lock_row::LockRow;
pub use run::Run;
pub use table_problems::{CREATE_SHEDLOCK, TableProblems};
pub use tokio_util::sync::CancellationToken;
pub use transaction::TransactionLock;

/// The examples of the page are compiled with this crate's.
#[cfg(doctest)]
#[doc = include_str!("../../docs/reference/locks.md")]
struct LocksPage;
