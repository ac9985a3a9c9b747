//! What Sexton's own advisory locks are for.

use super::LockKey;
use crate::connection::exclusive_lock::{ExclusiveTask, LOCK_CLASS};
use crate::foreign::FOREIGN_JOBS_LOCK;
use crate::jobs::APPLY_LOCK_KEY;
use crate::lock_keys::ASSIGN_LOCK_KEY;
use crate::schema::migration_lock_key;
use crate::{Store, StoreError};

/// The keys that Sexton's own programs lock in this database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PlatformKeys {
    /// Of [`crate::schema::MigrationSession`]; another in each database.
    migration: i64,
}

impl PlatformKeys {
    /// Reads the database's name, from which one key follows.
    pub(super) async fn read(store: &Store) -> Result<Self, StoreError> {
        let name: String =
            sqlx::query_scalar("-- locked_database\nSELECT current_database()::text")
                .fetch_one(store.with_timeout())
                .await?;
        Ok(Self { migration: migration_lock_key(&name) })
    }

    /// The keys of one number.
    pub(super) const fn numbers(self) -> [i64; 4] {
        [APPLY_LOCK_KEY, FOREIGN_JOBS_LOCK, ASSIGN_LOCK_KEY, self.migration]
    }

    /// The class of the keys that are pairs.
    pub(super) const fn class() -> i32 {
        LOCK_CLASS
    }

    /// Returns what a key is for, as a noun; `None`: it is not Sexton's.
    pub(super) fn purpose(self, key: LockKey) -> Option<&'static str> {
        match key {
            LockKey::Number(APPLY_LOCK_KEY) => Some("an apply of jobs"),
            LockKey::Number(FOREIGN_JOBS_LOCK) => Some("a job of a foreign task"),
            LockKey::Number(ASSIGN_LOCK_KEY) => Some("an assignment of lock keys"),
            LockKey::Number(number) if number == self.migration => Some("a migration"),
            LockKey::Pair(LOCK_CLASS, object) => {
                Some(ExclusiveTask::of_key(object).map_or("Sexton", ExclusiveTask::purpose))
            }
            LockKey::Number(_) | LockKey::Pair(..) => None,
        }
    }
}
