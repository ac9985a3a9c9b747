//! The state of a bulk's canary.

use sexton_model::bulk::{CanaryCounts, MAX_BATCH_EXECUTIONS, MAX_CANARY_EXECUTIONS};
use sqlx::PgConnection;

use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;

/// The results of a canary's executions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CanaryStatus {
    pub(super) counts: CanaryCounts,
    /// The errors of executions that failed again, without repetition; at most three.
    pub(super) errors: Vec<String>,
}

/// Reads the results: the canary is the items that are done, while they are no more than its size. `accounted`: how
/// many items are not open any more; only a batch with locked rows can lie before the last of those.
pub(super) async fn read_canary_status(
    connection: &mut PgConnection,
    bulk: i64,
    accounted: i64,
) -> Result<CanaryStatus, StoreError> {
    let row = sqlx::query!(
        r#"-- canary_stands
        WITH c AS MATERIALIZED (
            SELECT e.state, e.error_class, e.error_message
            FROM sexton.bulk_items i LEFT JOIN sexton.executions e ON e.id = i.execution_id
            WHERE i.bulk_id = $1 AND i.ordinal <= $2 AND i.state = 'done'
            LIMIT $3)
        SELECT count(*) FILTER (WHERE state IN ('pending', 'running', 'retrying')) AS "under_way!",
               count(*) FILTER (WHERE state IN ('failed', 'discarded', 'cancelled')) AS "failed!",
               -- One that retention has removed had ended well.
               count(*) FILTER (WHERE state IS NULL OR state IN ('succeeded', 'skipped')) AS "succeeded!",
               coalesce((SELECT array_agg(description) FROM (
                   SELECT DISTINCT coalesce(error_class, 'cancelled') || ': '
                       || left(coalesce(error_message, ''), 200) AS description
                   FROM c WHERE state IN ('failed', 'discarded', 'cancelled') LIMIT 3) d), '{}')
                   AS "errors!"
        FROM c"#,
        bulk,
        accounted + i64::from(MAX_CANARY_EXECUTIONS + MAX_BATCH_EXECUTIONS),
        i64::from(MAX_CANARY_EXECUTIONS)
    )
    .fetch_one(WithTimeout(connection))
    .await?;
    let counts = CanaryCounts {
        under_way: row.under_way as u64,
        failed: row.failed as u64,
        succeeded: row.succeeded as u64,
    };
    Ok(CanaryStatus { counts, errors: row.errors })
}
