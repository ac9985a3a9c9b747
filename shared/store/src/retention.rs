//! Retention: finished rows go after their time; what failed never does.
//!
//! Execution ids are ordered by time, so the primary key finds the old rows without an index of its
//! own: a row is looked at when it was claimed before the cut, and goes when it also finished before
//! it. Rows with a caller's own key are stripped, but keep (job, key, outcome) for another while, so
//! that the key goes on deduplicating. A discarded one is kept whole until then: it can be restored, and
//! must not run without its params.
//!
//! Up to where it has removed rows stands in `retention`, written in the transaction that removes them
//! and before it locks any of them. A key that is gone could be claimed a second time, so whoever claims
//! firings of the past ([`crate::backfill`]) asks there, and shares that row until his commit.

use chrono::{DateTime, Utc};
use sexton_model::id::ExecutionId;
use uuid::Uuid;

use crate::bounded::{Bounded, commit};
use crate::{Now, Store, StoreError};

/// For how long a caller's own key deduplicates, in days.
pub const OWN_KEY_DAYS: i32 = 400;

/// What one batch did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pruned {
    /// Rows that went.
    pub deleted: u64,
    /// Rows with a caller's own key that were stripped.
    pub stripped: u64,
    /// Where the next batch begins; `None`: the end was reached.
    pub next: Option<ExecutionId>,
}

/// Whether something is there that was older than `days` at `at` already and is not kept: whether
/// retention has work that it should have done then.
pub async fn is_due(store: &Store, days: i32, at: DateTime<Utc>) -> Result<bool, StoreError> {
    let cut = at - chrono::Duration::days(i64::from(days));
    let forgotten = at - chrono::Duration::days(i64::from(OWN_KEY_DAYS));
    let due = sqlx::query_scalar!(
        r#"-- retention_due
        SELECT EXISTS (SELECT FROM gaps WHERE recorded_at < $1)
            OR EXISTS (SELECT FROM instances WHERE heartbeat_at < $1)
            OR EXISTS (SELECT FROM bulks WHERE state IN ('stopped', 'done') AND ended_at < $1)
            OR EXISTS (SELECT FROM raw_messages WHERE gone_at < $1 AND restore_at IS NULL)
            OR EXISTS (
                SELECT FROM executions e
                WHERE id < $3 AND finished_at < $1
                  AND state IN ('succeeded', 'cancelled', 'skipped', 'discarded')
                  AND (NOT own_key OR finished_at < $2
                       OR (state <> 'discarded' AND (params <> '{}' OR EXISTS (
                               SELECT FROM attempts a WHERE a.execution_id = e.id)))))
            AS "due!""#,
        cut,
        forgotten,
        first_id_at(cut)
    )
    .fetch_one(store.bounded())
    .await?;
    Ok(due)
}

/// Deletes or strips the finished rows among the next `limit` rows after `from` that are older than
/// `days`. One transaction a batch; a crash in between loses nothing.
pub async fn prune(
    store: &Store,
    days: i32,
    from: Option<ExecutionId>,
    limit: i64,
    now: Now,
) -> Result<Pruned, StoreError> {
    let mut tx = store.begin().await?;
    let cut: DateTime<Utc> = sqlx::query_scalar!(
        r#"-- retention_cut
        UPDATE retention SET pruned_before =
            greatest(pruned_before, coalesce($1, now()) - $2 * interval '1 day')
        RETURNING coalesce($1, now()) - $2 * interval '1 day' AS "cut!""#,
        now,
        f64::from(days)
    )
    .fetch_one(Bounded(&mut *tx))
    .await?;
    let rows = sqlx::query!(
        r#"-- retention_candidates
        SELECT id, own_key,
               (state IN ('succeeded', 'cancelled', 'skipped', 'discarded') AND finished_at < $3) AS "over!",
               coalesce(finished_at < coalesce($4, now()) - $5 * interval '1 day', false)
                   AS "forgotten!",
               (state = 'discarded') AS "discarded!",
               (params = '{}' AND NOT EXISTS (
                    SELECT 1 FROM attempts a WHERE a.execution_id = executions.id)) AS "stripped!"
        FROM executions WHERE id > $1 AND id < $2
        ORDER BY id LIMIT $6 FOR UPDATE SKIP LOCKED"#,
        from.map_or(Uuid::nil(), ExecutionId::get),
        first_id_at(cut),
        cut,
        now,
        f64::from(OWN_KEY_DAYS),
        limit
    )
    .fetch_all(Bounded(&mut *tx))
    .await?;
    let next = if rows.len() as i64 == limit { rows.last().map(|row| row.id) } else { None };
    let delete: Vec<Uuid> =
        rows.iter().filter(|r| r.over && (!r.own_key || r.forgotten)).map(|r| r.id).collect();
    let strip: Vec<Uuid> = rows
        .iter()
        .filter(|r| r.over && r.own_key && !r.forgotten && !r.stripped && !r.discarded)
        .map(|r| r.id)
        .collect();
    let deleted =
        sqlx::query!("-- delete_finished\nDELETE FROM executions WHERE id = ANY ($1)", &delete)
            .execute(Bounded(&mut *tx))
            .await?
            .rows_affected();
    let stripped = sqlx::query!(
        "-- strip_finished\nUPDATE executions SET params = '{}', result = NULL WHERE id = ANY ($1)",
        &strip
    )
    .execute(Bounded(&mut *tx))
    .await?
    .rows_affected();
    sqlx::query!("-- strip_attempts\nDELETE FROM attempts WHERE execution_id = ANY ($1)", &strip)
        .execute(Bounded(&mut *tx))
        .await?;
    commit(tx).await?;
    Ok(Pruned { deleted, stripped, next: next.map(ExecutionId::new) })
}

/// Removes gaps that were recorded more than `days` ago, and what is known of schedules that were
/// changed before that: of the firings that they had nothing is known either. Returns how many gaps.
pub async fn prune_gaps(store: &Store, days: i32, now: Now) -> Result<u64, StoreError> {
    let done = sqlx::query!(
        "-- prune_gaps
        WITH t AS (
            UPDATE retention SET pruned_before =
                greatest(pruned_before, coalesce($1, now()) - $2 * interval '1 day')),
        r AS (
            DELETE FROM job_revisions r USING job_revisions next
            WHERE next.job_id = r.job_id AND next.revision = r.revision + 1
              AND next.valid_from < coalesce($1, now()) - $2 * interval '1 day')
        DELETE FROM gaps WHERE recorded_at < coalesce($1, now()) - $2 * interval '1 day'",
        now,
        f64::from(days)
    )
    .execute(store.bounded())
    .await?;
    Ok(done.rows_affected())
}

/// Removes instances that were last heard of more than `days` ago. Returns how many.
pub async fn prune_instances(store: &Store, days: i32, now: Now) -> Result<u64, StoreError> {
    let done = sqlx::query!(
        "-- prune_instances
        DELETE FROM instances WHERE heartbeat_at < coalesce($1, now()) - $2 * interval '1 day'",
        now,
        f64::from(days)
    )
    .execute(store.bounded())
    .await?;
    Ok(done.rows_affected())
}

/// The smallest UUID version 7 (RFC 9562) of an instant.
fn first_id_at(at: DateTime<Utc>) -> Uuid {
    let millis = at.timestamp_millis().clamp(0, (1 << 48) - 1) as u128;
    Uuid::from_u128(millis << 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_id_of_an_instant_is_below_every_id_drawn_then() {
        let at: DateTime<Utc> = "2026-01-01T00:00:00Z".parse().unwrap();
        let drawn = Uuid::from_u128((at.timestamp_millis() as u128) << 80 | 0x7000_8000 << 48);
        assert!(first_id_at(at) < drawn);
        let before = at - chrono::Duration::milliseconds(1);
        assert!(
            Uuid::from_u128((before.timestamp_millis() as u128) << 80 | ((1 << 80) - 1))
                < first_id_at(at)
        );
    }
}
