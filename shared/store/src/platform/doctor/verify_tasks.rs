//! Verify tasks that no active worker offers.

use crate::{Now, Store, StoreError};

/// A verify task that no active worker in a pool offers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnofferedVerifyTask {
    /// The verify task.
    pub task_type: String,
    /// The pool.
    pub pool: String,
    /// Number of jobs in the pool that name it.
    pub jobs: i64,
    /// The first of them, by name; `None`: only questions need it, for executions that were sent to the pool.
    pub job: Option<String>,
    /// Number of bulks' questions that wait for it there.
    pub questions: i64,
}

/// Returns the verify tasks of existing jobs, paused or not, and of waiting questions, that no active worker in the
/// same pool offers; at most 100.
pub async fn list_unoffered_verify_tasks(
    store: &Store,
    now: Now,
) -> Result<Vec<UnofferedVerifyTask>, StoreError> {
    Ok(sqlx::query_as!(
        UnofferedVerifyTask,
        r#"-- doctor_verify_tasks
        WITH wanted AS (
            SELECT verify_task AS task_type, pool, count(*) AS jobs, min(name) AS job, 0 AS questions
            FROM sexton.jobs WHERE deleted_at IS NULL AND verify_task IS NOT NULL GROUP BY verify_task, pool
            UNION ALL
            SELECT e.task_type, e.pool, 0, NULL, count(*)
            FROM sexton.bulk_questions q JOIN sexton.executions e ON e.id = q.question
            JOIN sexton.bulks b ON b.id = q.bulk_id AND b.state = 'running'
            WHERE q.answer IS NULL AND e.state IN ('pending', 'retrying') GROUP BY e.task_type, e.pool)
        SELECT w.task_type AS "task_type!", w.pool AS "pool!", sum(w.jobs)::bigint AS "jobs!",
               min(w.job) AS job, sum(w.questions)::bigint AS "questions!"
        FROM wanted w
        WHERE NOT EXISTS (SELECT FROM sexton.offers f JOIN sexton.instances i ON i.id = f.instance_id
            WHERE f.task_type = w.task_type AND w.pool = ANY (i.pools) AND i.stopped_at IS NULL
              AND i.heartbeat_at > coalesce($1, now()) - interval '1 minute')
        GROUP BY w.task_type, w.pool
        ORDER BY sum(w.questions) DESC, w.task_type, w.pool LIMIT 100"#,
        now
    )
    .fetch_all(store.with_timeout())
    .await?)
}
