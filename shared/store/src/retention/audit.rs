//! The audit: programs can remove from it only through a function of the database, which keeps 30 days in any case.
//!
//! It removes from the beginning of the audit's chain, so that the rest of it can still be verified.

use super::{PrunedBatch, days_before, read_now};
use crate::connection::client_timeout::{WithTimeout, commit};
use crate::{Now, Store, StoreError};

/// Age of the youngest removable action, in days: `delete_old_operator_actions` keeps younger ones.
pub const MIN_AUDIT_DAYS: i32 = 30;

/// Removes operators' actions from before the cut, and records the highest number removed, so that an export does not
/// wait for them. `None`: keeps them for ever.
pub(super) async fn forget(
    store: &Store,
    days: Option<i32>,
    limit: i64,
    now: Now,
) -> Result<PrunedBatch, StoreError> {
    let Some(days) = days else {
        return Ok(PrunedBatch { is_last: true, ..PrunedBatch::default() });
    };
    let cut = days_before(read_now(store, now).await?, days.max(MIN_AUDIT_DAYS));
    let mut tx = store.begin().await?;
    let row = sqlx::query!(
        r#"-- delete_old_operator_actions
        SELECT removed AS "removed!", last_id FROM sexton.delete_old_operator_actions($1, NULL, $2)"#,
        cut,
        i32::try_from(limit).unwrap_or(i32::MAX)
    )
    .fetch_one(WithTimeout(&mut *tx))
    .await?;
    if row.removed > 0 {
        sqlx::query!(
            "-- retention_audit_removed
            UPDATE sexton.retention SET audit_removed_to = greatest(audit_removed_to, $1)",
            row.last_id
        )
        .execute(WithTimeout(&mut *tx))
        .await?;
    }
    commit(tx).await?;
    Ok(PrunedBatch {
        removed: row.removed.unsigned_abs(),
        is_last: row.removed < limit,
        stripped: 0,
    })
}
