//! The jobs of a simulation: one that fires often, one that fires late and runs one at a time, and
//! one whose task only one worker offers.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::job::{Overlap, RetryOverrides, Schedule};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::case::Simulation;
use super::stop::Stop;
use super::writes::{CHECK, RARE, WORK};

/// A job.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: Uuid,
    pub(super) name: &'static str,
    pub(super) retry: RetryOverrides,
    /// How late a firing may begin.
    pub(super) stale_after: Option<Duration>,
    pub(super) schedule: Schedule,
    /// Its current policy.
    pub(super) overlap: Overlap,
    /// Whether a verify task checks the effects of its failed executions.
    pub(super) has_verify_task: bool,
    /// Its first firing.
    pub(super) first: Option<DateTime<Utc>>,
    /// The time between two firings; `None`: it is only triggered.
    pub(super) period: Option<TimeDelta>,
}

struct Definition {
    name: &'static str,
    kind: &'static str,
    expression: Option<&'static str>,
    period: Option<TimeDelta>,
    task_type: &'static str,
    overlap: &'static str,
    misfire: &'static str,
    max_retries: u32,
    delay: Duration,
    lease: Option<Duration>,
    stale_after: Option<Duration>,
    verify_task: Option<&'static str>,
}

const DEFINITIONS: [Definition; 3] = [
    Definition {
        name: "often",
        kind: "every",
        expression: Some("1m"),
        period: Some(TimeDelta::minutes(1)),
        task_type: WORK,
        overlap: "skip",
        misfire: "fire_once",
        max_retries: 2,
        delay: Duration::from_secs(20),
        lease: None,
        stale_after: Some(Duration::from_mins(2)),
        verify_task: Some(CHECK),
    },
    Definition {
        name: "hourly",
        kind: "cron",
        expression: Some("0 * * * *"),
        period: Some(TimeDelta::hours(1)),
        task_type: WORK,
        overlap: "allow",
        misfire: "fire_all",
        max_retries: 0,
        delay: Duration::from_secs(30),
        lease: Some(Duration::from_secs(8)),
        stale_after: None,
        verify_task: None,
    },
    Definition {
        name: "rare",
        kind: "none",
        expression: None,
        period: None,
        task_type: RARE,
        overlap: "allow",
        misfire: "skip",
        max_retries: 1,
        delay: Duration::from_secs(45),
        lease: None,
        stale_after: Some(Duration::from_secs(1)),
        verify_task: None,
    },
];

/// Empties the tables and inserts the jobs.
pub(super) async fn insert(simulation: &mut Simulation<'_>) -> Result<Vec<Job>, Stop> {
    let pool = simulation.store.pool();
    let tables = [
        "bulk_questions",
        "bulk_items",
        "bulks",
        "held_firings",
        "holds",
        "planner_clock",
        "attempts",
        "gaps",
        "executions",
        "failure_changes",
        "jobs",
    ];
    for table in tables {
        sqlx::query(AssertSqlSafe(format!("DELETE FROM sexton.{table}"))).execute(pool).await?;
    }
    sqlx::query(
        "UPDATE sexton.retention SET pruned_before = NULL, stripped_at = NULL, stripped_id = NULL",
    )
    .execute(pool)
    .await?;
    let mut jobs = Vec::with_capacity(DEFINITIONS.len());
    for definition in DEFINITIONS {
        let id = simulation.fresh();
        // The next whole period of the clock, as for every applied job.
        let first = definition.period.map(|period| {
            let (now, period) = (simulation.now.timestamp(), period.num_seconds());
            DateTime::from_timestamp((now / period + 1) * period, 0).unwrap_or_default()
        });
        let millis = |duration: Duration| duration.as_millis() as i64;
        sqlx::query(
            "INSERT INTO sexton.jobs (id, name, schedule_kind, schedule_expression, task_type, params, pool,
                               overlap, misfire_policy, misfire_window_ms, misfire_limit, max_retries,
                               retry_delay_ms, timeout_ms, lease_ms, next_fire_at, created_at,
                               updated_at, stale_after_ms, verify_task)
             VALUES ($1, $2, $3, $4, $5, '{\"a\": 1}', 'default', $6, $7, 86400000, 3, $8, $9, 60000,
                     $10, $11, $12, $12, $13, $14)",
        )
        .bind(id)
        .bind(definition.name)
        .bind(definition.kind)
        .bind(definition.expression)
        .bind(definition.task_type)
        .bind(definition.overlap)
        .bind(definition.misfire)
        .bind(definition.max_retries as i32)
        .bind(millis(definition.delay))
        .bind(definition.lease.map(millis))
        .bind(first)
        .bind(simulation.now)
        .bind(definition.stale_after.map(millis))
        .bind(definition.verify_task)
        .execute(simulation.store.pool())
        .await?;
        jobs.push(Job {
            id,
            name: definition.name,
            stale_after: definition.stale_after,
            overlap: Overlap::parse(definition.overlap)
                .ok_or_else(|| Stop::broken(definition.overlap))?,
            schedule: Schedule::from_columns(definition.kind, definition.expression)
                .map_err(|error| Stop::broken(error.to_string()))?,
            retry: RetryOverrides {
                max_retries: Some(definition.max_retries),
                delay: Some(definition.delay),
                ..RetryOverrides::default()
            },
            has_verify_task: definition.verify_task.is_some(),
            first,
            period: definition.period,
        });
    }
    Ok(jobs)
}
