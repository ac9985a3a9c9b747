//! Details of failed executions, for notifications about them.

use sexton_model::id::{ExecutionId, JobId};
use sexton_model::parked_task::ParkedTask;
use uuid::Uuid;

use crate::attempts::open::parse_attempt_number;
use crate::{Store, StoreError};

/// Returns the details of those executions among these that are still failed.
pub async fn read_notices(
    store: &Store,
    ids: &[ExecutionId],
) -> Result<Vec<ParkedTask>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = ids.iter().map(|id| id.get()).collect();
    let rows = sqlx::query!(
        r#"-- parked_notices
        SELECT e.id, e.task_type, e.target, coalesce(j.deleted_name, j.name) AS "job!", e.job_id,
               e.claimed_by, e.attempt, e.retries_used, e.finished_at AS "finished_at!",
               coalesce(e.error_class, '') AS "class!", coalesce(e.error_message, '') AS "reason!"
        FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
        WHERE e.id = ANY ($1) AND e.state = 'failed'"#,
        &ids
    )
    .fetch_all(store.with_timeout())
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(ParkedTask {
                id: ExecutionId::new(row.id),
                task_type: row.task_type,
                target: row.target,
                job: row.job,
                job_id: JobId::new(row.job_id),
                claimed_by: row.claimed_by,
                attempt: parse_attempt_number(row.attempt)?,
                retry_count: row.retries_used.max(0) as u32,
                failed_at: row.finished_at,
                class: row.class,
                reason: row.reason,
            })
        })
        .collect()
}
