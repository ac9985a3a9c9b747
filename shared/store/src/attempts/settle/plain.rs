//! Plain successes: attempts that succeeded without output, result or progress.
//!
//! Most batches of a busy worker contain only these, and the statement for any settlement costs several times more:
//! it takes thirty arrays and returns whole tickets. This one writes the same columns of the same rows, with the same
//! fence. It leaves replaced executions to the other.

use sexton_model::retry::Decision;
use sqlx::PgExecutor;
use uuid::Uuid;

use super::Settlement;
use crate::{Now, RELAY_DELAY_MS};

/// Returns whether they are all plain.
pub(super) fn are_plain(settlements: &[Settlement]) -> bool {
    settlements.iter().all(|one| {
        let Settlement { fence: _, verdict, outcome, error, exit_code: _, signal, output, result } =
            one;
        *verdict == Decision::Succeed
            && *outcome == "succeeded"
            && error.is_none()
            && signal.is_none()
            && output.is_none()
            && result.is_none()
    })
}

/// Records them; returns the executions that have succeeded.
pub(super) async fn settle_plain(
    executor: impl PgExecutor<'_>,
    settlements: &[Settlement],
    now: Now,
) -> Result<Vec<Uuid>, sqlx::Error> {
    let each = || settlements.iter();
    let ids: Vec<Uuid> = each().map(|s| s.fence.execution_id.get()).collect();
    let attempts: Vec<i32> = each().map(|s| s.fence.attempt.get()).collect();
    let tokens: Vec<Uuid> = each().map(|s| s.fence.token.get()).collect();
    let codes: Vec<Option<i32>> = each().map(|s| s.exit_code).collect();
    sqlx::query_scalar!(
        r#"-- settle_plain
        WITH l AS MATERIALIZED (
            SELECT e.id, e.attempt, e.worker_id, e.lease_ms, r.exit_code,
                   coalesce(e.started_at, e.claimed_at) AS started_at
            FROM sexton.executions e JOIN unnest($1::uuid[], $2::int[], $3::uuid[], $4::int[])
                 AS r (id, attempt, token, exit_code) ON r.id = e.id
            WHERE e.attempt = r.attempt AND e.open_token = r.token AND e.state = 'running'
              AND e.replaced_by IS NULL
              -- It names the settlement, so that no plan asks for the flows of other rows.
              AND CASE WHEN e.open_token = r.token THEN e.flow_id IS NULL OR sexton.lock_flow(e.flow_id) ELSE false END
            ORDER BY e.id FOR NO KEY UPDATE OF e SKIP LOCKED),
        u AS (
            UPDATE sexton.executions e SET
                state = 'succeeded', rev = e.rev + 1, worker_id = NULL, open_token = NULL,
                lease_until = NULL, lease_ms = NULL, next_attempt_at = NULL,
                finished_at = coalesce($5, statement_timestamp()),
                relay_after = coalesce($5, statement_timestamp()) + $6 * interval '1 millisecond',
                cancel_requested = false, outcome = 'succeeded', error_class = NULL,
                error_message = NULL, fingerprint = NULL, result = NULL
            FROM l WHERE e.id = l.id RETURNING e.id),
        a AS (
            INSERT INTO sexton.attempts AS t (execution_id, number, worker_id, lease_ms, opened_at, finished_at,
                                       outcome, exit_code)
            SELECT l.id, l.attempt, l.worker_id, l.lease_ms, l.started_at, coalesce($5, statement_timestamp()),
                   'succeeded', l.exit_code
            FROM l
            ON CONFLICT (execution_id, number) DO UPDATE SET finished_at = EXCLUDED.finished_at,
                outcome = EXCLUDED.outcome, exit_code = EXCLUDED.exit_code
            WHERE t.outcome IS NULL)
        SELECT id FROM u"#,
        &ids,
        &attempts,
        &tokens,
        &codes as &[Option<i32>],
        now,
        RELAY_DELAY_MS as f64
    )
    .fetch_all(executor)
    .await
}
