//! Takes the locks of jobs.

use sexton_guard::{AdvisoryLocks, Held, LockError, LockRow};
use sexton_model::job::{JobLock, RowLock};
use sexton_store::Store;
use sexton_store::lock_holder::find_lock_holder;
use tokio::sync::OnceCell;

/// The table of the locks that are rows.
const LOCK_ROWS: &str = "sexton.lock_rows";
/// For a lock that was held a moment ago.
const FREE_BY_NOW: &str = "somebody who has released it by now";

/// The locks of jobs: one session for all keys, connected when the first is wanted, and rows by the pool.
#[derive(Debug)]
pub(crate) struct JobLocks {
    store: Store,
    /// Shown in `pg_stat_activity`.
    application: String,
    keys: OnceCell<AdvisoryLocks>,
}

/// The answer to a request for a lock.
pub(crate) enum Acquisition {
    /// It is held.
    Held(Held),
    /// Somebody else holds it.
    HeldBy(String),
    /// It could not be taken; nothing is held.
    Failed(LockError),
}

impl JobLocks {
    pub(crate) fn new(store: &Store, instance: &str) -> Self {
        let application = format!("sexton worker {instance} locks");
        Self { store: store.clone(), application, keys: OnceCell::new() }
    }

    pub(crate) async fn acquire(&self, lock: &JobLock) -> Acquisition {
        let acquired = match lock {
            JobLock::Key(key) => self.acquire_key(*key).await,
            JobLock::Row(row) => self.acquire_row(row).await,
        };
        match acquired {
            Ok(Some(held)) => Acquisition::Held(held),
            Ok(None) => {
                // Only people read it, so a failed read has no consequence.
                let holder = find_lock_holder(&self.store, lock).await.ok().flatten();
                Acquisition::HeldBy(holder.unwrap_or_else(|| FREE_BY_NOW.to_owned()))
            }
            Err(error) => Acquisition::Failed(error),
        }
    }

    async fn acquire_key(&self, key: i64) -> Result<Option<Held>, LockError> {
        let connecting = || {
            AdvisoryLocks::connect(self.store.direct_options().application_name(&self.application))
        };
        self.keys.get_or_try_init(connecting).await?.try_acquire(key).await
    }

    async fn acquire_row(&self, row: &RowLock) -> Result<Option<Held>, LockError> {
        let lock = LockRow::new(row.name.clone(), row.at_most)?;
        lock.at_least(row.at_least)?.table(LOCK_ROWS)?.try_acquire(self.store.pool()).await
    }
}
