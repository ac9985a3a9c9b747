//! The numbers of Sexton's own advisory locks.
//!
//! PostgreSQL keeps locks of one number and locks of a pair apart (`pg_locks.objsubid` is 1 and 2), so a job's key can only
//! be one of these, and none of those that [`crate::connection::exclusive_lock`] takes as pairs.

use sqlx::PgExecutor;

use crate::StoreError;
use crate::schema::migration_lock_key;

/// Serialises applies: "sexton a" in ASCII.
pub(crate) const APPLY_LOCK_KEY: i64 = 0x7365_7874_6f6e_2061;
/// Serialises the creation of foreign jobs: "sexton f".
pub(crate) const FOREIGN_JOBS_LOCK: i64 = 0x7365_7874_6f6e_2066;
/// Serialises assignments of lock keys: "sexton k". No range may hold any of the three.
pub(crate) const ASSIGN_LOCK_KEY: i64 = 0x7365_7874_6f6e_206b;

/// The numbers that Sexton's own programs lock in one database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PlatformKeys {
    /// Of [`crate::schema::MigrationSession`]; another in each database.
    migration: i64,
}

impl PlatformKeys {
    /// Reads the database's name, from which one key follows. The executor bounds the wait.
    pub(crate) async fn read(executor: impl PgExecutor<'_>) -> Result<Self, StoreError> {
        let name: String =
            sqlx::query_scalar("-- locked_database\nSELECT current_database()::text")
                .fetch_one(executor)
                .await?;
        Ok(Self { migration: migration_lock_key(&name) })
    }

    /// All of them.
    pub(crate) const fn numbers(self) -> [i64; 4] {
        [APPLY_LOCK_KEY, FOREIGN_JOBS_LOCK, ASSIGN_LOCK_KEY, self.migration]
    }

    /// Returns what a number is for, as a noun; `None`: it is not Sexton's.
    pub(crate) fn purpose(self, number: i64) -> Option<&'static str> {
        match number {
            APPLY_LOCK_KEY => Some("an apply of jobs"),
            FOREIGN_JOBS_LOCK => Some("a job of a foreign task"),
            ASSIGN_LOCK_KEY => Some("an assignment of lock keys"),
            number if number == self.migration => Some("a migration"),
            _ => None,
        }
    }
}
