//! Up to where the audit is settled: below which number nothing can appear any more.
//!
//! An action draws its number before its transaction commits, so it may appear below one that was read
//! already, however long its transaction is open. Instants say nothing of that. But whoever draws a number
//! holds a lock on the table from before he draws it until after what he wrote can be seen. So, of the
//! newest number that can be seen and of those who hold the lock just then: when they have ended, nothing
//! appears up to that number.

use crate::{Store, StoreError};

/// The newest action, and who may still be recording one with a lower number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Frontier {
    /// Its number; 0: there is none.
    pub newest: i64,
    /// Transactions, as `pg_locks` names them.
    pub writers: Vec<String>,
}

/// Looks at both. The newest is read from the statement's snapshot, and the locks after that.
///
/// # Errors
///
/// [`StoreError`].
pub async fn read_frontier(store: &Store) -> Result<Frontier, StoreError> {
    Ok(sqlx::query_as!(
        Frontier,
        r#"-- audit_frontier
        SELECT coalesce((SELECT max(id) FROM sexton.operator_actions), 0) AS "newest!",
               ARRAY(SELECT DISTINCT l.virtualtransaction FROM pg_locks l
                     JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
                     WHERE l.relation = 'sexton.operator_actions'::regclass AND l.mode = 'RowExclusiveLock'
                       AND l.granted) AS "writers!""#
    )
    .fetch_one(store.with_timeout())
    .await?)
}

/// Which of these writers have not ended.
///
/// # Errors
///
/// [`StoreError`].
pub async fn still_writing(store: &Store, writers: &[String]) -> Result<Vec<String>, StoreError> {
    let now = read_frontier(store).await?;
    Ok(now.writers.into_iter().filter(|writer| writers.contains(writer)).collect())
}

/// The first number above `after` and up to `through` that there is no action of: one that is being
/// recorded, or that was drawn in vain. Up to where retention has removed actions, none is being recorded.
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
