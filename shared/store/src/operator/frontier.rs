//! The frontier of the audit: the number below which no action can appear any more.
//!
//! An action draws its number before its transaction commits, so it may appear below one that was read already,
//! however long its transaction is open. Timestamps do not help. But a transaction that draws a number holds a lock
//! on the table from before that until its row is visible. So take the newest visible number and the transactions
//! that hold the lock just then: once they have ended, nothing appears up to that number.

use crate::{Store, StoreError};

/// The newest action, and the transactions that may still record one with a lower number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frontier {
    /// Its number; 0: the audit is empty.
    pub newest: i64,
    /// The largest number that retention has removed; 0: none ever. None of those up to it is recorded any more.
    pub removed: i64,
    /// Transactions, as `pg_locks` names them.
    pub writers: Vec<String>,
}

/// Reads them. The newest is read from the statement's snapshot, and the locks after that.
///
/// # Errors
///
/// [`StoreError`].
pub async fn read_frontier(store: &Store) -> Result<Frontier, StoreError> {
    Ok(sqlx::query_as!(
        Frontier,
        r#"-- audit_frontier
        SELECT coalesce((SELECT max(id) FROM sexton.operator_actions), 0) AS "newest!",
               coalesce((SELECT audit_removed_to FROM sexton.retention), 0) AS "removed!",
               ARRAY(SELECT DISTINCT l.virtualtransaction FROM pg_locks l
                     JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
                     WHERE l.relation = 'sexton.operator_actions'::regclass AND l.mode = 'RowExclusiveLock'
                       AND l.granted) AS "writers!""#
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Returns which of these transactions have not ended.
///
/// # Errors
///
/// [`StoreError`].
pub async fn still_writing(store: &Store, writers: &[String]) -> Result<Vec<String>, StoreError> {
    let now = read_frontier(store).await?;
    Ok(now.writers.into_iter().filter(|writer| writers.contains(writer)).collect())
}

/// Returns the first number above `after` and up to `through` without an action: one that is being recorded, or whose
/// transaction rolled back. Below retention's limit, none is being recorded.
///
/// # Errors
///
/// [`StoreError`].
pub async fn first_missing(
    store: &Store,
    after: i64,
    through: i64,
) -> Result<Option<i64>, StoreError> {
    Ok(sqlx::query_scalar!(
        r#"-- first_missing_action
        SELECT before + 1 AS "missing!"
        FROM (SELECT o.id, lag(o.id, 1, b.beginning) OVER (ORDER BY o.id) AS before
              FROM (SELECT greatest($1::bigint, (SELECT audit_removed_to FROM sexton.retention)) AS beginning) b,
                   sexton.operator_actions o WHERE o.id > b.beginning AND o.id <= $2) AS pairs
        WHERE id > before + 1 ORDER BY id LIMIT 1"#,
        after,
        through
    )
    .fetch_optional(store.with_timeout())
    .await?)
}
