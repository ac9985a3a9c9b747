//! A lock row that is held: its keep-alive, and its release.

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::keep_alive::{HeldRow, STATEMENT_TIMEOUT};
use super::statements;
use crate::error::ReleaseError;
use crate::held::{End, Held, Release, Releasing};
use crate::moment::Moment;

/// A row that is held, until it is dropped.
#[derive(Debug)]
pub(super) struct RowLock {
    /// Absent once the release has begun.
    alive: Option<AliveRow>,
    lost: CancellationToken,
    runtime: Handle,
}

/// A row with the task that extends it.
#[derive(Debug)]
struct AliveRow {
    row: HeldRow,
    keep_alive: JoinHandle<()>,
    stop: CancellationToken,
}

impl RowLock {
    pub(super) fn held(row: HeldRow, sent_at: Moment) -> Held {
        let (lost, stop) = (CancellationToken::new(), CancellationToken::new());
        let lease = row.lease(sent_at);
        let keep_alive = row.clone().keep_alive(lease.clone(), stop.clone(), lost.clone());
        let alive = AliveRow { row, keep_alive: tokio::spawn(keep_alive), stop };
        let lock = Self { alive: Some(alive), lost: lost.clone(), runtime: Handle::current() };
        Held::new(lost, lease, Box::new(lock))
    }

    /// Unlocks the row in a task, which goes on if nobody waits for it; whether it was held to the end.
    fn unlock(&mut self) -> Option<JoinHandle<Result<(), ReleaseError>>> {
        let AliveRow { row, keep_alive, stop } = self.alive.take()?;
        let lost = self.lost.clone();
        stop.cancel();
        Some(self.runtime.spawn(async move {
            // An extension behind the release would lock the row again where at_least has not passed.
            let _ = keep_alive.await;
            let is_lost = lost.is_cancelled();
            let unlock = statements::unlock(&row.table, &row.name, &row.holder, row.times);
            match timeout(STATEMENT_TIMEOUT, statements::run(&row.pool, unlock)).await {
                Ok(Ok(true)) if !is_lost => Ok(()),
                Ok(Ok(_)) => Err(ReleaseError::Lost),
                Ok(Err(error)) => Err(ReleaseError::Unanswered(error.to_string())),
                Err(_) => Err(ReleaseError::Unanswered("no answer in time".to_owned())),
            }
        }))
    }
}

impl Release for RowLock {
    fn release(mut self: Box<Self>, _: End) -> Releasing {
        let unlocking = self.unlock();
        Box::pin(async move {
            match unlocking {
                // It fails if the runtime is shutting down.
                Some(task) => task.await.unwrap_or(Err(ReleaseError::Lost)),
                None => Err(ReleaseError::Lost),
            }
        })
    }
}

impl Drop for RowLock {
    fn drop(&mut self) {
        drop(self.unlock());
    }
}
