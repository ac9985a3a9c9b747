//! The statements of an apply, each for a batch. A definition travels as JSON with the columns' names and becomes a
//! row by `jsonb_populate_recordset`, so that no list of arrays has to be kept in step.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::PgConnection;
use uuid::Uuid;

use super::PRUNE_REASON;
use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;

pub(super) async fn insert(
    connection: &mut PgConnection,
    rows: &[Value],
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- insert_jobs
        INSERT INTO sexton.jobs (id, name, description, target, schedule_kind, schedule_expression,
            timezone, dst, days, start_at, end_at, exclude, jitter_ms, max_runs, task_type, params, pool,
            overlap, misfire_policy, misfire_window_ms, misfire_limit, misfire_rate, max_retries,
            max_timeouts, max_crashes, retry_delay_ms, retry_multiplier, retry_max_delay_ms,
            retry_jitter, permanent_classes, timeout_ms, lease_ms, lock_key, lock_row,
            lock_at_most_ms, lock_at_least_ms, on_locked, idempotency_template,
            start_within_ms, expect_within_ms, max_runtime_ms, alert_after, recover_after, remind_every_ms, severity,
            heartbeat, stale_after_ms, pause_after_failures, verify_task, labels, flow, status,
            paused_by, paused_why, paused_at, runs_used, next_fire_at, next_nominal_at,
            planned_until, tz_version, created_at, updated_at)
        SELECT id, name, description, target, schedule_kind, schedule_expression,
            timezone, dst, days, start_at, end_at, exclude, jitter_ms, max_runs, task_type, params, pool,
            overlap, misfire_policy, misfire_window_ms, misfire_limit, misfire_rate, max_retries,
            max_timeouts, max_crashes, retry_delay_ms, retry_multiplier, retry_max_delay_ms,
            retry_jitter, permanent_classes, timeout_ms, lease_ms, lock_key, lock_row,
            lock_at_most_ms, lock_at_least_ms, on_locked, idempotency_template,
            start_within_ms, expect_within_ms, max_runtime_ms, alert_after, recover_after, remind_every_ms, severity,
            heartbeat, stale_after_ms, pause_after_failures, verify_task, labels, flow, status,
            paused_by, paused_why, paused_at, runs_used, next_fire_at, next_nominal_at,
            planned_until, tz_version, $2, $2
        FROM jsonb_populate_recordset(NULL::sexton.jobs, $1)",
        Value::from(rows),
        at
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

pub(super) async fn update(
    connection: &mut PgConnection,
    rows: &[Value],
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- update_jobs
        UPDATE sexton.jobs SET description = r.description, target = r.target,
            schedule_kind = r.schedule_kind, schedule_expression = r.schedule_expression,
            timezone = r.timezone, dst = r.dst, days = r.days, start_at = r.start_at, end_at = r.end_at,
            exclude = r.exclude, jitter_ms = r.jitter_ms, max_runs = r.max_runs,
            task_type = r.task_type, params = r.params, pool = r.pool, overlap = r.overlap,
            misfire_policy = r.misfire_policy, misfire_window_ms = r.misfire_window_ms,
            misfire_limit = r.misfire_limit, misfire_rate = r.misfire_rate,
            max_retries = r.max_retries,
            max_timeouts = r.max_timeouts, max_crashes = r.max_crashes,
            permanent_classes = r.permanent_classes, retry_delay_ms = r.retry_delay_ms, retry_multiplier = r.retry_multiplier,
            retry_max_delay_ms = r.retry_max_delay_ms, retry_jitter = r.retry_jitter,
            timeout_ms = r.timeout_ms, lease_ms = r.lease_ms, lock_key = r.lock_key,
            lock_row = r.lock_row, lock_at_most_ms = r.lock_at_most_ms, lock_at_least_ms = r.lock_at_least_ms,
            on_locked = r.on_locked,
            idempotency_template = r.idempotency_template, start_within_ms = r.start_within_ms,
            expect_within_ms = r.expect_within_ms, max_runtime_ms = r.max_runtime_ms, alert_after = r.alert_after,
            recover_after = r.recover_after, remind_every_ms = r.remind_every_ms, severity = r.severity,
            heartbeat = r.heartbeat, stale_after_ms = r.stale_after_ms,
            pause_after_failures = r.pause_after_failures, verify_task = r.verify_task, labels = r.labels, flow = r.flow,
            runs_used = r.runs_used, next_fire_at = r.next_fire_at,
            next_nominal_at = r.next_nominal_at, planned_until = r.planned_until,
            tz_version = r.tz_version, revision = jobs.revision + 1, updated_at = $2
        FROM jsonb_populate_recordset(NULL::sexton.jobs, $1) AS r WHERE jobs.id = r.id",
        Value::from(rows),
        at
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

/// Frees the lock keys that these jobs give up, so that jobs may exchange theirs: an index refuses one that is taken, row by row.
pub(super) async fn release_lock_keys(
    connection: &mut PgConnection,
    jobs: &[Uuid],
) -> Result<(), StoreError> {
    if jobs.is_empty() {
        return Ok(());
    }
    sqlx::query!(
        "-- release_lock_keys\nUPDATE sexton.jobs SET lock_key = NULL WHERE id = ANY ($1)",
        jobs
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

/// Records, once a day for each, that a file still contains these one-shot jobs, so that
/// [retention](crate::retention) keeps them: without its row each would be a new job, and run again. Returns whether
/// it wrote any.
pub(super) async fn touch(
    connection: &mut PgConnection,
    over: &[Uuid],
    at: DateTime<Utc>,
) -> Result<bool, StoreError> {
    if over.is_empty() {
        return Ok(false);
    }
    let done = sqlx::query!(
        "-- touch_jobs
        UPDATE sexton.jobs SET applied_at = $2::timestamptz
        WHERE id = ANY ($1) AND greatest(updated_at, applied_at) < $2::timestamptz - interval '1 day'",
        over,
        at
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(done.rows_affected() > 0)
}

pub(super) async fn prune(
    connection: &mut PgConnection,
    names: &[String],
    actor: &str,
    at: DateTime<Utc>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- prune_jobs
        UPDATE sexton.jobs SET status = 'paused', paused_by = $2, paused_why = $3, paused_at = $4,
            updated_at = $4
        WHERE name = ANY ($1) AND status = 'active'",
        names,
        actor,
        PRUNE_REASON,
        at
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
