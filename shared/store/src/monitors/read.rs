//! What is recorded about the jobs of monitors that are checked.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::job::Expectations;
use sexton_model::monitor::{MonitoredExecution, MonitoredGap};
use sexton_model::plan::GapReason;
use sexton_model::state::State;
use sqlx::PgConnection;
use uuid::Uuid;

use super::DueMonitor;
use crate::StoreError;
use crate::connection::client_timeout::WithTimeout;
use crate::jobs::{ExpectationColumns, expectations};

/// Newest executions of a job that its monitor reads.
const NEWEST: i64 = 40;
/// Executions under way that it reads: fewer than it remembers as counted.
const MAX_UNDER_WAY: i64 = 300;
/// Newest successes that it reads after a violation, as many as `recover_after` may be.
const MAX_SUCCESSES: i64 = 100;
/// Newest executions among which it looks for these.
const SUCCESSES_AMONG: i64 = 2_000;
/// Failures since the last check that it reads, the newest.
const MAX_FAILURES: i64 = 200;
/// Newest gaps of a job that it reads.
const MAX_GAPS: i64 = 100;

/// A monitor's job, as its row has it.
#[derive(Clone, PartialEq, Debug)]
#[expect(missing_docs, reason = "the schema comments every column")]
pub struct JobRow {
    pub id: Uuid,
    pub name: String,
    pub status: String,
    pub deleted_at: Option<DateTime<Utc>>,
    pub schedule_kind: String,
    pub next_fire_at: Option<DateTime<Utc>>,
    pub next_nominal_at: Option<DateTime<Utc>>,
    pub updated_at: DateTime<Utc>,
    pub start_within_ms: Option<i64>,
    pub expect_within_ms: Option<i64>,
    pub max_runtime_ms: Option<i64>,
    pub alert_after: Option<i32>,
    pub recover_after: Option<i32>,
    pub remind_every_ms: Option<i64>,
    pub severity: Option<String>,
    pub labels: Value,
    /// `planner_clock.seen_at`.
    pub planner_seen_at: Option<DateTime<Utc>>,
    /// Whether an incident of its monitor is open.
    pub is_open: bool,
    /// Whether the oldest of its executions has begun.
    pub has_begun: bool,
}

impl JobRow {
    /// Returns what the monitor expects.
    ///
    /// # Errors
    ///
    /// [`StoreError::Inconsistent`] for a severity that this version does not know.
    pub fn expectations(&self) -> Result<Expectations, StoreError> {
        expectations(ExpectationColumns {
            start_within_ms: self.start_within_ms,
            expect_within_ms: self.expect_within_ms,
            max_runtime_ms: self.max_runtime_ms,
            alert_after: self.alert_after,
            recover_after: self.recover_after,
            remind_every_ms: self.remind_every_ms,
            severity: self.severity.as_deref(),
        })
    }
}

/// Reads the jobs of locked monitors.
pub(super) async fn read_jobs(
    connection: &mut PgConnection,
    jobs: &[Uuid],
) -> Result<Vec<JobRow>, StoreError> {
    Ok(sqlx::query_as!(
        JobRow,
        r#"-- read_monitored_jobs
        SELECT j.id, coalesce(j.deleted_name, j.name) AS "name!", j.status, j.deleted_at, j.schedule_kind, j.next_fire_at,
               j.next_nominal_at, j.updated_at, j.start_within_ms, j.expect_within_ms, j.max_runtime_ms, j.alert_after,
               j.recover_after, j.remind_every_ms, j.severity, j.labels,
               (SELECT seen_at FROM sexton.planner_clock) AS planner_seen_at,
               EXISTS (SELECT FROM sexton.incidents i WHERE i.subject_kind = 'job' AND i.subject = j.id::text
                       AND i.state <> 'resolved') AS "is_open!",
               coalesce((SELECT e.started_at IS NOT NULL FROM sexton.executions e WHERE e.job_id = j.id
                         ORDER BY e.claimed_at LIMIT 1), false) AS "has_begun!"
        FROM sexton.jobs j WHERE j.id = ANY ($1)"#,
        jobs
    )
    .fetch_all(WithTimeout(connection))
    .await?)
}

/// Reads the executions that matter to locked monitors, by job: the newest, those under way, those that failed since the
/// last check (and two minutes before, since a failure may commit later than a newer one), the successes after a violation, and
/// the counted ones. `None` for a job with an execution that this version cannot read.
pub(super) async fn read_executions(
    connection: &mut PgConnection,
    monitors: &[DueMonitor],
    has_limits: &[bool],
) -> Result<HashMap<Uuid, Option<Vec<MonitoredExecution>>>, StoreError> {
    let jobs: Vec<Uuid> = monitors.iter().map(|monitor| monitor.job).collect();
    let checked: Vec<DateTime<Utc>> = monitors.iter().map(|monitor| monitor.checked_at).collect();
    let counted: Vec<Value> =
        monitors.iter().map(|monitor| json!(monitor.memory.counted)).collect();
    let violated: Vec<bool> =
        monitors.iter().map(|monitor| monitor.memory.violations > 0).collect();
    let rows = sqlx::query!(
        r#"-- read_monitored_executions
        SELECT e.job_id, e.id, e.scheduled_for, e.state, e.attempt, e.started_at, e.finished_at, e.error_class,
               left(coalesce(e.skip_reason, e.error_message), 1000) AS message,
               e.waits IS NOT NULL AND e.admitted_at IS NULL AS "waits_for_job!",
               e.ticket_published_at IS NOT NULL AS "is_published!",
               coalesce(e.outcome = 'locked', false) AS "is_locked!", coalesce(e.skip_reason = 'stale', false) AS "is_stale!"
        FROM unnest($1::uuid[], $2::timestamptz[], $3::bool[], $4::jsonb[], $8::bool[])
            AS m (job_id, checked_at, has_limits, counted, is_violated)
        CROSS JOIN LATERAL (
            (SELECT n.id FROM sexton.executions n WHERE n.job_id = m.job_id ORDER BY n.claimed_at DESC LIMIT $5)
            UNION
            (SELECT u.id FROM sexton.executions u WHERE u.job_id = m.job_id AND m.has_limits
                AND u.state IN ('pending', 'running', 'retrying') LIMIT $6)
            UNION
            (SELECT f.execution_id FROM sexton.failures f WHERE NOT f.discarded AND f.job_id = m.job_id
                AND f.failed_at > m.checked_at - interval '2 minutes' ORDER BY f.failed_at DESC LIMIT $7)
            UNION
            (SELECT s.id FROM (
                SELECT a.id, a.state FROM sexton.executions a WHERE a.job_id = m.job_id AND m.is_violated
                ORDER BY a.claimed_at DESC LIMIT $9) s
             WHERE s.state = 'succeeded' LIMIT $10)
            UNION
            SELECT c.id::uuid FROM jsonb_object_keys(m.counted) AS c (id)) AS x (id)
        JOIN sexton.executions e ON e.id = x.id
        WHERE e.backfill IS NULL"#,
        &jobs,
        &checked,
        has_limits,
        &counted,
        NEWEST,
        MAX_UNDER_WAY,
        MAX_FAILURES,
        &violated,
        SUCCESSES_AMONG,
        MAX_SUCCESSES
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    let mut executions: HashMap<Uuid, Option<Vec<MonitoredExecution>>> = HashMap::new();
    for row in rows {
        let Some(state) = State::parse(&row.state) else {
            executions.insert(row.job_id, None);
            continue;
        };
        let execution = MonitoredExecution {
            id: row.id,
            nominal: row.scheduled_for,
            state,
            attempt: row.attempt as u32,
            started_at: row.started_at,
            finished_at: row.finished_at,
            error_class: row.error_class,
            message: row.message,
            waits_for_job: row.waits_for_job,
            is_published: row.is_published,
            is_locked: row.is_locked,
            is_stale: row.is_stale,
        };
        if let Some(all) = executions.entry(row.job_id).or_insert_with(|| Some(Vec::new())) {
            all.push(execution);
        }
    }
    Ok(executions)
}

/// Reads the gaps that locked monitors have not seen, by job, oldest first.
pub(super) async fn read_gaps(
    connection: &mut PgConnection,
    monitors: &[DueMonitor],
) -> Result<HashMap<Uuid, Vec<MonitoredGap>>, StoreError> {
    let jobs: Vec<Uuid> = monitors.iter().map(|monitor| monitor.job).collect();
    let seen: Vec<i64> = monitors.iter().map(|monitor| monitor.memory.gaps_seen).collect();
    // A cursor only moves forward, so the gaps that were recorded last are the newest.
    let rows = sqlx::query!(
        r#"-- read_monitored_gaps
        SELECT g.job_id, g.id, g.first_firing, g.last_firing, g.count, g.reason, g.recorded_at
        FROM unnest($1::uuid[], $2::bigint[]) AS m (job_id, seen)
        CROSS JOIN LATERAL (
            SELECT * FROM sexton.gaps o WHERE o.job_id = m.job_id ORDER BY o.first_firing DESC LIMIT $3) g
        WHERE g.id > m.seen ORDER BY g.id"#,
        &jobs,
        &seen,
        MAX_GAPS
    )
    .fetch_all(WithTimeout(connection))
    .await?;
    let mut gaps: HashMap<Uuid, Vec<MonitoredGap>> = HashMap::new();
    for row in rows {
        let gap = MonitoredGap {
            id: row.id,
            first: row.first_firing,
            last: row.last_firing,
            count: row.count.max(1) as u32,
            reason: GapReason::parse(&row.reason),
            recorded_at: row.recorded_at,
        };
        gaps.entry(row.job_id).or_default().push(gap);
    }
    Ok(gaps)
}
