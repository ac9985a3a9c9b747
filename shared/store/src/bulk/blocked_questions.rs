//! Reasons why the questions of bulks stay unanswered: no worker offers the verify task, or a worker's version is too
//! old for questions.

use std::collections::HashMap;

use serde::Serialize;

use crate::platform::offers::{OldWorker, list_old_workers};
use crate::{Now, Store, StoreError};

/// Maximum number of pools and verify tasks reported, over all bulks.
const MAX_BLOCKED_TASKS: i64 = 100;

/// Questions that no active worker can answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct UnofferedQuestions {
    /// The verify task.
    pub task_type: String,
    /// The pool in which no active worker offers it.
    pub pool: String,
    /// Number of the bulk's questions that wait for one.
    pub questions: i64,
}

/// Why a bulk's questions stay unanswered; never empty.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BlockedQuestions {
    /// Verify tasks that no active worker offers; those with the most questions first.
    pub unheard: Vec<UnofferedQuestions>,
    /// Workers of a version too old for questions, as `name version`; no further question starts while one of them is
    /// active.
    pub old_workers: Vec<String>,
}

/// Returns the reasons for each running bulk among `bulks` whose questions wait for a missing worker, or for the end
/// of an old one.
pub async fn list_blocked_questions(
    store: &Store,
    bulks: &[i64],
    now: Now,
) -> Result<HashMap<i64, BlockedQuestions>, StoreError> {
    let mut all: HashMap<i64, BlockedQuestions> = HashMap::new();
    let unheard = sqlx::query!(
        r#"-- questions_unheard
        SELECT q.bulk_id, e.task_type, e.pool, count(*) AS "questions!"
        FROM sexton.bulk_questions q JOIN sexton.bulks b ON b.id = q.bulk_id JOIN sexton.executions e ON e.id = q.question
        WHERE q.bulk_id = ANY ($1) AND q.answer IS NULL AND b.state = 'running'
          AND e.state IN ('pending', 'retrying')
          AND NOT EXISTS (SELECT FROM sexton.offers f JOIN sexton.instances w ON w.id = f.instance_id
              WHERE f.task_type = e.task_type AND e.pool = ANY (w.pools) AND w.stopped_at IS NULL
                AND w.heartbeat_at > coalesce($2, now()) - interval '1 minute')
        GROUP BY q.bulk_id, e.task_type, e.pool ORDER BY count(*) DESC, e.task_type, e.pool LIMIT $3"#,
        bulks,
        now,
        MAX_BLOCKED_TASKS
    )
    .fetch_all(store.with_timeout())
    .await?;
    for row in unheard {
        let (task_type, pool, questions) = (row.task_type, row.pool, row.questions);
        let waits = all.entry(row.bulk_id).or_default();
        waits.unheard.push(UnofferedQuestions { task_type, pool, questions });
    }
    let old = list_old_workers(store, now).await?;
    if old.is_empty() {
        return Ok(all);
    }
    let names: Vec<String> =
        old.into_iter().map(|OldWorker { name, version }| format!("{name} {version}")).collect();
    for bulk in list_unasked_bulks(store, bulks).await? {
        all.entry(bulk).or_default().old_workers.clone_from(&names);
    }
    Ok(all)
}

/// Returns the running bulks with items that have no question yet.
async fn list_unasked_bulks(store: &Store, bulks: &[i64]) -> Result<Vec<i64>, StoreError> {
    Ok(sqlx::query_scalar!(
        "-- bulks_not_asked
        SELECT b.id FROM sexton.bulks b
        WHERE b.id = ANY ($1) AND b.state = 'running' AND b.verify = 'task'
          AND EXISTS (SELECT FROM sexton.bulk_items i WHERE i.bulk_id = b.id AND i.state = 'unasked'
              AND NOT EXISTS (SELECT FROM sexton.bulk_questions q WHERE q.bulk_id = b.id AND q.ordinal = i.ordinal))",
        bulks
    )
    .fetch_all(store.with_timeout())
    .await?)
}
