//! The statements for executions that match a filter; they share one set of conditions.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Map;
use sqlx::{AssertSqlSafe, Execute as _, PgConnection, Postgres};
use uuid::Uuid;

use super::search::{ExecutionPosition, ExecutionQuery};
use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;

/// Number of executions in a few states up to which all of them are read.
const MAX_FEW_EXECUTIONS: i64 = 10_000;

/// A statement with the conditions on an execution `e` between `$head` and `$tail`. Words are split as the trigger
/// `index_failure` splits them.
macro_rules! executions {
    ($row:ident, $head:tt, $tail:tt, $query:ident $(, $more:expr)*) => {
        sqlx::query_as!(
            $row,
            $head
                + "coalesce((cardinality($1::text[]) = 0 OR e.state = ANY ($1))
                   AND ($2::uuid IS NULL OR e.job_id = $2)
                   AND ($3::uuid[] IS NULL OR e.job_id = ANY ($3))
                   AND ($4::text IS NULL OR e.task_type = $4)
                   AND ($5::text IS NULL OR e.pool = $5)
                   AND ($6::text IS NULL OR left(e.error_class, 200) = $6)
                   AND ($7::text IS NULL OR e.fingerprint = $7)
                   AND ($8::timestamptz IS NULL OR e.scheduled_for >= $8)
                   AND ($9::timestamptz IS NULL OR e.scheduled_for < $9)
                   AND ($10::jsonb IS NULL OR NOT EXISTS (
                        SELECT FROM jsonb_array_elements($10) m
                        WHERE e.params #>> ARRAY(SELECT jsonb_array_elements_text(m -> 'path'))
                              IS DISTINCT FROM m ->> 'value'))
                   AND ($11::text IS NULL OR (
                        SELECT coalesce(i.name, a.worker_id::text) = $11 OR a.worker_id::text = lower($11)
                        FROM sexton.all_attempts a LEFT JOIN sexton.instances i ON i.id = a.worker_id
                        WHERE a.execution_id = e.id ORDER BY a.number DESC LIMIT 1))
                   AND ($12::text IS NULL OR (e.error_message IS NOT NULL AND
                        to_tsvector('simple', regexp_replace(left(e.error_message, 4000),
                            '[\\x01-\\x2f\\x3a-\\x40\\x5b-\\x60\\x7b-\\x7f]+', ' ', 'g'))
                        @@ to_tsquery('simple', $12))), false)"
                + $tail,
            &$query.states,
            $query.job,
            $query.jobs.as_deref(),
            $query.filter.task_type.as_deref(),
            $query.filter.pool.as_deref(),
            $query.filter.error_class.as_deref(),
            $query.fingerprint.as_deref(),
            $query.filter.since,
            $query.filter.until,
            $query.params.as_ref(),
            $query.filter.worker.as_deref(),
            $query.words.as_deref(),
            $query.limit
            $(, $more)*
        )
    };
}

/// A row of a walk: a match, or the last one that the walk looked at.
pub(super) struct WalkedExecution {
    pub(super) id: Uuid,
    pub(super) claimed_at: DateTime<Utc>,
    /// Which row of the walk it is, from 1.
    pub(super) n: i64,
    pub(super) matches: bool,
}

/// Walks along the primary key, over `rows` rows.
pub(super) async fn walk_all(
    connection: &mut PgConnection,
    query: &ExecutionQuery<'_>,
    rows: i64,
    plan: Option<&mut Vec<Value>>,
) -> Result<Vec<WalkedExecution>, StoreError> {
    let walk = executions!(
        WalkedExecution,
        r#"-- walk_executions
        SELECT w.id AS "id!", w.claimed_at AS "claimed_at!", w.n AS "n!", w.matches AS "matches!" FROM (
            SELECT e.id, e.claimed_at, row_number() OVER (ORDER BY e.id DESC) AS n, "#,
        " AS matches
            FROM (SELECT * FROM sexton.executions x WHERE $15::uuid IS NULL OR x.id < $15
                  ORDER BY x.id DESC LIMIT $14) e) w
        WHERE w.matches OR w.n = $14 ORDER BY w.id DESC LIMIT $13",
        query,
        rows,
        query.after.map(|after| after.id)
    );
    run_or_explain(connection, walk, plan).await
}

/// Walks along the executions of one job, over `rows` rows.
pub(super) async fn walk_job(
    connection: &mut PgConnection,
    query: &ExecutionQuery<'_>,
    rows: i64,
    plan: Option<&mut Vec<Value>>,
) -> Result<Vec<WalkedExecution>, StoreError> {
    let walk = executions!(
        WalkedExecution,
        r#"-- walk_executions_of_job
        SELECT w.id AS "id!", w.claimed_at AS "claimed_at!", w.n AS "n!", w.matches AS "matches!" FROM (
            SELECT e.id, e.claimed_at, row_number() OVER (ORDER BY e.claimed_at DESC, e.id DESC) AS n, "#,
        " AS matches
            FROM (SELECT * FROM sexton.executions x
                  WHERE x.job_id = $2 AND ($15::timestamptz IS NULL OR x.claimed_at <= $15)
                    AND ($15 IS NULL OR (x.claimed_at, x.id) < ($15, $16::uuid))
                  ORDER BY x.claimed_at DESC, x.id DESC LIMIT $14) e) w
        WHERE w.matches OR w.n = $14 ORDER BY w.claimed_at DESC, w.id DESC LIMIT $13",
        query,
        rows,
        query.after.map(|after| after.claimed_at),
        query.after.map(|after| after.id)
    );
    run_or_explain(connection, walk, plan).await
}

/// States with an index of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FewStates {
    /// Waiting or running.
    UnderWay,
    /// Failed.
    Failed,
}

/// Returns whether at most [`MAX_FEW_EXECUTIONS`] executions are in these states; counting stops there.
pub(super) async fn are_few(
    connection: &mut PgConnection,
    states: FewStates,
) -> Result<bool, StoreError> {
    let rows = match states {
        FewStates::UnderWay => {
            sqlx::query_scalar!(
                r#"-- few_executions_under_way
                SELECT count(*) AS "rows!" FROM (
                    SELECT FROM sexton.executions WHERE state IN ('pending', 'running', 'retrying') LIMIT $1) c"#,
                MAX_FEW_EXECUTIONS + 1
            )
            .fetch_one(WithTimeout(connection))
            .await?
        }
        FewStates::Failed => {
            sqlx::query_scalar!(
                r#"-- few_failed_executions
                SELECT count(*) AS "rows!" FROM (
                    SELECT FROM sexton.executions WHERE state = 'failed' LIMIT $1) c"#,
                MAX_FEW_EXECUTIONS + 1
            )
            .fetch_one(WithTimeout(connection))
            .await?
        }
    };
    Ok(rows <= MAX_FEW_EXECUTIONS)
}

/// Reads all executions in these states, and sorts the matches as a walk would.
pub(super) async fn list_few(
    connection: &mut PgConnection,
    query: &ExecutionQuery<'_>,
    states: FewStates,
    plan: Option<&mut Vec<Value>>,
) -> Result<Vec<ExecutionPosition>, StoreError> {
    let (at, id) = (query.after.map(|after| after.claimed_at), query.after.map(|after| after.id));
    match states {
        FewStates::UnderWay => {
            let list = executions!(
                ExecutionPosition,
                r#"-- list_executions_under_way
                WITH m AS MATERIALIZED (
                    SELECT e.id, e.claimed_at FROM sexton.executions e
                    WHERE e.state IN ('pending', 'running', 'retrying') AND "#,
                r#") SELECT m.id AS "id!", m.claimed_at AS "claimed_at!" FROM m
                WHERE $15::uuid IS NULL OR CASE WHEN $2 IS NULL THEN m.id < $15
                    ELSE (m.claimed_at, m.id) < ($14::timestamptz, $15) END
                ORDER BY CASE WHEN $2 IS NOT NULL THEN m.claimed_at END DESC, m.id DESC LIMIT $13"#,
                query,
                at,
                id
            );
            run_or_explain(connection, list, plan).await
        }
        FewStates::Failed => {
            let list = executions!(
                ExecutionPosition,
                r#"-- list_failed_by_claim
                WITH m AS MATERIALIZED (
                    SELECT e.id, e.claimed_at FROM sexton.executions e WHERE e.state = 'failed' AND "#,
                r#") SELECT m.id AS "id!", m.claimed_at AS "claimed_at!" FROM m
                WHERE $15::uuid IS NULL OR CASE WHEN $2 IS NULL THEN m.id < $15
                    ELSE (m.claimed_at, m.id) < ($14::timestamptz, $15) END
                ORDER BY CASE WHEN $2 IS NOT NULL THEN m.claimed_at END DESC, m.id DESC LIMIT $13"#,
                query,
                at,
                id
            );
            run_or_explain(connection, list, plan).await
        }
    }
}

/// Returns the next executions that can be cancelled, by their ids.
pub(super) async fn select_cancellable(
    connection: &mut PgConnection,
    query: &ExecutionQuery<'_>,
    claimed_by: DateTime<Utc>,
    after: Option<Uuid>,
) -> Result<Vec<ExecutionPosition>, StoreError> {
    let found = executions!(
        ExecutionPosition,
        r#"-- executions_to_cancel
        WITH m AS MATERIALIZED (
            SELECT e.id, e.claimed_at FROM sexton.executions e
            WHERE e.state IN ('pending', 'running', 'retrying') AND NOT e.cancel_requested
              AND ($15::uuid IS NULL OR e.id > $15) AND e.claimed_at <= $14 AND "#,
        r#") SELECT m.id AS "id!", m.claimed_at AS "claimed_at!" FROM m
        ORDER BY m.id LIMIT $13"#,
        query,
        claimed_by,
        after
    );
    Ok(found.fetch_all(WithTimeout(connection)).await?)
}

/// Runs the statement; with `plan`, explains it as well and adds the plan.
async fn run_or_explain<F, T>(
    connection: &mut PgConnection,
    mut query: Map<'_, Postgres, F, PgArguments>,
    plan: Option<&mut Vec<Value>>,
) -> Result<Vec<T>, StoreError>
where
    F: FnMut(PgRow) -> Result<T, sqlx::Error> + Send,
    T: Send + Unpin,
{
    let Some(plans) = plan else { return Ok(query.fetch_all(WithTimeout(connection)).await?) };
    let arguments = query.take_arguments().map_err(sqlx::Error::Encode)?.unwrap_or_default();
    // The text is a constant of this crate.
    let text = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {}", query.sql().as_str());
    let explained = sqlx::query_scalar_with(AssertSqlSafe(text), arguments);
    plans.push(explained.fetch_one(WithTimeout(connection)).await?);
    Ok(Vec::new())
}
