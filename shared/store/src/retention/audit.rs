//! The audit: the programs may not remove from it but by a function of the database, which keeps 30 days whatever it
//! is asked for.

use super::{Position, PrunedBatch, days_before, read_now};
use crate::client_timeout::{WithTimeout, commit};
use crate::{Now, Store, StoreError};

/// The youngest that may be removed, in days: `delete_old_operator_actions` keeps what is younger.
pub const MIN_AUDIT_DAYS: i32 = 30;

/// Removes what operators did before, and remembers up to which number, so that an export does not take what is
/// missing there for something that may come yet. `None`: for ever.
pub(super) async fn forget(
    store: &Store,
    position: &mut Position,
    days: Option<i32>,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let Some(days) = days else {
        return Ok(PrunedBatch { is_last: true, ..PrunedBatch::default() });
    };
    let cut = days_before(read_now(store, now).await?, days.max(MIN_AUDIT_DAYS));
    let mut tx = store.begin().await?;
    let gone = sqlx::query!(
        r#"-- delete_old_operator_actions
        SELECT removed AS "removed!", last_at, last_id FROM sexton.delete_old_operator_actions($1, $2, $3)"#,
        cut,
        position.at,
        i32::try_from(limit).unwrap_or(i32::MAX)
    )
    .fetch_one(WithTimeout(&mut *tx))
    .await?;
    if gone.removed > 0 {
        sqlx::query!(
            "-- retention_audit_removed
            UPDATE sexton.retention SET audit_removed_to = greatest(audit_removed_to, $1)",
            gone.last_id
        )
        .execute(WithTimeout(&mut *tx))
        .await?;
    }
    commit(tx).await?;
    position.at = gone.last_at.or(position.at);
    Ok(PrunedBatch {
        removed: gone.removed.unsigned_abs(),
        is_last: gone.removed < limit,
        stripped: 0,
    })
}
