//! Retention of bulks: removes ended ones with their items and questions; their audit stays.

use sqlx::PgConnection;

use crate::connection::client_timeout::{WithTimeout, commit};
use crate::{Now, Store, StoreError};

/// Removes items of bulks that were done or stopped more than `days` ago, at most `limit`; when fewer are left, the
/// bulks too. Returns how many rows were removed; 0: none is left to remove. A bulk that is being prepared, runs or
/// is paused is never too old.
///
/// The first batch marks a stopped bulk as done, so that nobody can resume it after it has lost a part of its items.
/// A crash in between leaves the other items to the next pass.
///
/// # Errors
///
/// Those of the database; nothing of the batch was removed.
pub async fn prune(store: &Store, days: i32, limit: i64, now: Now) -> Result<u64, StoreError> {
    let mut tx = store.begin().await?;
    let questions = give_up_questions(&mut tx, days, limit, now).await?;
    let items = sqlx::query!(
        "-- prune_bulk_items
        WITH b AS MATERIALIZED (
            SELECT id FROM sexton.bulks
            WHERE state IN ('stopped', 'done')
              AND ended_at < coalesce($1, now()) - $2 * interval '1 day'
              -- What a question still needs is known only by its bulk.
              AND NOT EXISTS (
                  SELECT FROM sexton.bulk_questions q JOIN sexton.executions e ON e.id = q.question
                  WHERE q.bulk_id = bulks.id AND q.answer IS NULL
                    AND e.state IN ('pending', 'running', 'retrying', 'failed'))
            ORDER BY id LIMIT $3 FOR NO KEY UPDATE SKIP LOCKED),
        s AS (UPDATE sexton.bulks SET state = 'done' WHERE state = 'stopped' AND id IN (SELECT id FROM b)),
        i AS MATERIALIZED (
            SELECT o.bulk_id, o.ordinal FROM b, LATERAL (
                SELECT bulk_id, ordinal FROM sexton.bulk_items WHERE bulk_id = b.id ORDER BY ordinal LIMIT $3) o
            LIMIT $3),
        q AS (DELETE FROM sexton.bulk_questions q USING i WHERE q.bulk_id = i.bulk_id AND q.ordinal = i.ordinal)
        DELETE FROM sexton.bulk_items d USING i WHERE d.bulk_id = i.bulk_id AND d.ordinal = i.ordinal",
        now,
        f64::from(days),
        limit
    )
    .execute(WithTimeout(&mut *tx))
    .await?
    .rows_affected();
    let mut bulks = 0;
    if items < limit.unsigned_abs() {
        bulks = sqlx::query!(
            "-- prune_bulks
            DELETE FROM sexton.bulks WHERE id = ANY (ARRAY(
                SELECT id FROM sexton.bulks b
                WHERE state = 'done' AND ended_at < coalesce($1, now()) - $2 * interval '1 day'
                  AND NOT EXISTS (SELECT FROM sexton.bulk_items WHERE bulk_id = b.id)
                ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED))",
            now,
            f64::from(days),
            limit
        )
        .execute(WithTimeout(&mut *tx))
        .await?
        .rows_affected();
    }
    commit(tx).await?;
    Ok(questions + items + bulks)
}

/// Ends questions whose bulk was stopped, since their answers are useless: cancels those that wait for a worker,
/// discards those that failed, and records both. A running one may end first. Returns how many.
async fn give_up_questions(
    connection: &mut PgConnection,
    days: i32,
    limit: i64,
    now: Now,
) -> Result<u64, StoreError> {
    let ended = sqlx::query!(
        "-- give_up_questions
        WITH q AS MATERIALIZED (
            SELECT e.id, e.job_id, e.state, e.attempt, b.id AS bulk_id, coalesce($1, now()) AS at
            FROM sexton.bulks b
            JOIN sexton.bulk_questions q ON q.bulk_id = b.id AND q.answer IS NULL
            JOIN sexton.executions e ON e.id = q.question AND e.state IN ('pending', 'retrying', 'failed')
            WHERE b.state IN ('stopped', 'done')
              AND b.ended_at < coalesce($1, now()) - $2 * interval '1 day'
            ORDER BY e.id LIMIT $3 FOR NO KEY UPDATE OF e SKIP LOCKED),
        d AS (
            UPDATE sexton.executions e SET rev = e.rev + 1, finished_at = q.at, next_attempt_at = NULL,
                state = CASE q.state WHEN 'failed' THEN 'discarded' ELSE 'cancelled' END,
                outcome = CASE q.state WHEN 'failed' THEN e.outcome ELSE 'cancelled' END
            FROM q WHERE e.id = q.id
            RETURNING e.id, e.state AS became)
        INSERT INTO sexton.operator_actions (at, actor, action, reason, job_id, execution_id, bulk_id, before, after)
        SELECT q.at, 'sexton', CASE q.state WHEN 'failed' THEN 'discard' ELSE 'cancel' END,
               'a question of bulk ' || q.bulk_id || ', which is removed', q.job_id, q.id, q.bulk_id,
               jsonb_build_object('state', q.state, 'attempt', q.attempt),
               jsonb_build_object('state', d.became)
        FROM q JOIN d ON d.id = q.id",
        now,
        f64::from(days),
        limit
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(ended.rows_affected())
}
