//! Takes the locks of jobs.

use std::time::Duration;

use sexton_guard::{AdvisoryLocks, Held, LockError, LockRow};
use sexton_model::job::{JobLock, RowLock};
use sexton_store::Store;
use sexton_store::lock_holder::find_lock_holder;
use tokio::sync::OnceCell;
use tokio::time::timeout;

/// The table of the locks that are rows.
const LOCK_ROWS: &str = "sexton.lock_rows";
/// How long a slot waits for the session, behind others that wait for it as well.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const NO_SESSION: &str = "the session for locks could not be connected within 10 s";
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
    Failed {
        /// Why.
        error: String,
        /// Whether another try can succeed by itself.
        is_transient: bool,
    },
}

impl JobLocks {
    pub(crate) fn new(store: &Store, instance: &str) -> Self {
        let application = format!("sexton worker {instance} locks");
        Self { store: store.clone(), application, keys: OnceCell::new() }
    }

    pub(crate) async fn acquire(&self, lock: &JobLock) -> Acquisition {
        let acquired = match lock {
            JobLock::Key(key) => match timeout(CONNECT_TIMEOUT, self.session()).await {
                Ok(Ok(session)) => session.try_acquire(*key).await,
                Ok(Err(error)) => Err(error),
                Err(_) => {
                    return Acquisition::Failed {
                        error: NO_SESSION.to_owned(),
                        is_transient: true,
                    };
                }
            },
            JobLock::Row(row) => self.acquire_row(row).await,
        };
        match acquired {
            Ok(Some(held)) => Acquisition::Held(held),
            Ok(None) => {
                // Only people read it, so a failed read has no consequence.
                let holder = find_lock_holder(&self.store, lock).await.ok().flatten();
                Acquisition::HeldBy(holder.unwrap_or_else(|| FREE_BY_NOW.to_owned()))
            }
            Err(error) => error.into(),
        }
    }

    async fn session(&self) -> Result<&AdvisoryLocks, LockError> {
        let connecting = || {
            AdvisoryLocks::connect(self.store.direct_options().application_name(&self.application))
        };
        self.keys.get_or_try_init(connecting).await
    }

    async fn acquire_row(&self, row: &RowLock) -> Result<Option<Held>, LockError> {
        let lock = LockRow::new(row.name.clone(), row.at_most)?;
        lock.at_least(row.at_least)?.table(LOCK_ROWS)?.try_acquire(self.store.pool()).await
    }
}

impl From<LockError> for Acquisition {
    fn from(error: LockError) -> Self {
        Self::Failed { is_transient: error.is_transient(), error: error.to_string() }
    }
}
