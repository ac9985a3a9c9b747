//! The audit: the programs may not remove from it but by a function of the database, which keeps 30 days whatever it
//! is asked for.

use super::{Portion, Position, ago, present};
use crate::bounded::{Bounded, commit};
use crate::{Now, Store, StoreError};

/// The youngest that may be removed, in days: `forget_operator_actions` keeps what is younger.
pub const AUDIT_DAYS_LEAST: i32 = 30;

/// Removes what operators did before, and remembers up to which number, so that an export does not take what is
/// missing there for something that may come yet. `None`: for ever.
pub(super) async fn forget(
    store: &Store,
    position: &mut Position,
    days: Option<i32>,
    most: i64,
    now: Now,
) -> Result<Portion, StoreError> {
    let Some(days) = days else { return Ok(Portion { is_last: true, ..Portion::default() }) };
    let cut = ago(present(store, now).await?, days.max(AUDIT_DAYS_LEAST));
    let mut tx = store.begin().await?;
    let gone = sqlx::query!(
        r#"-- forget_operator_actions
        SELECT removed AS "removed!", last_at, last_id FROM forget_operator_actions($1, $2, $3)"#,
        cut,
        position.at,
        i32::try_from(most).unwrap_or(i32::MAX)
    )
    .fetch_one(Bounded(&mut *tx))
    .await?;
    if gone.removed > 0 {
        sqlx::query!(
            "-- retention_audit_removed
            UPDATE retention SET audit_removed_to = greatest(audit_removed_to, $1)",
            gone.last_id
        )
        .execute(Bounded(&mut *tx))
        .await?;
    }
    commit(tx).await?;
    position.at = gone.last_at.or(position.at);
    Ok(Portion { removed: gone.removed.unsigned_abs(), is_last: gone.removed < most, stripped: 0 })
}
