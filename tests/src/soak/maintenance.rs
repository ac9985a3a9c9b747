//! What keeps the platform's tables small while it is fed: an operator, and retention.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_store::Store;
use sexton_store::operator::{AuditContext, OperatorError, cancel, discard, requeue};
use sexton_store::retention::{RetentionPolicy, RetentionTarget};
use sqlx::Row as _;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::retention::pass;

/// Between two rounds of either.
const ROUND_INTERVAL: Duration = Duration::from_secs(2);
/// The most executions that an operator looks at in one round.
const MAX_EXECUTIONS_PER_ROUND: i64 = 500;
/// Rows of one transaction, as the pruner has it.
const PRUNE_BATCH_ROWS: i64 = 1_000;
/// The shortest retention that can be set.
const RETENTION_DAYS: i32 = 1;
const RETENTION: RetentionPolicy = RetentionPolicy { days: RETENTION_DAYS, audit_days: None };

/// What they did so far, in executions.
#[derive(Debug, Default)]
pub(super) struct MaintenanceCounts {
    /// Failed, and run again.
    pub(super) requeued: AtomicU64,
    /// Failed, and given up.
    pub(super) discarded: AtomicU64,
    /// Cancelled.
    pub(super) cancelled: AtomicU64,
    /// Removed by retention.
    pub(super) removed: AtomicU64,
}

impl MaintenanceCounts {
    /// Whether the mixed load has done each kind of action at least once.
    pub(super) fn have_worked(&self) -> bool {
        [&self.requeued, &self.discarded, &self.removed].iter().all(|actions| count(actions) > 0)
    }
}

/// How many so far.
pub(super) fn count(actions: &AtomicU64) -> u64 {
    actions.load(Ordering::Relaxed)
}

/// Requeues what failed for the first time, discards what failed again, and cancels one execution
/// that waits in each round, until it is stopped.
pub(super) async fn operator(
    store: Store,
    counts: Arc<MaintenanceCounts>,
    stop: CancellationToken,
) -> Result<()> {
    let by = AuditContext { actor: "soak", reason: Some("soak") };
    let mut rounds = interval(ROUND_INTERVAL);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !stop.is_cancelled() {
        rounds.tick().await;
        for (id, attempt, requeued) in failed(&store).await? {
            if requeued {
                add(&counts.discarded, done(discard(&store, id, by, None).await)?);
            } else {
                add(&counts.requeued, done(requeue(&store, id, attempt, by, None).await)?);
            }
        }
        if let Some(id) = waiting(&store).await? {
            add(&counts.cancelled, done(cancel(&store, id, by, None).await.map(drop))?);
        }
    }
    Ok(())
}

fn add(actions: &AtomicU64, more: u64) {
    actions.fetch_add(more, Ordering::Relaxed);
}

/// What failed, its attempt, and whether it was requeued before.
async fn failed(store: &Store) -> Result<Vec<(ExecutionId, AttemptNumber, bool)>> {
    let rows = sqlx::query(
        "SELECT id, attempt, EXISTS (SELECT FROM sexton.operator_actions a
                                     WHERE a.execution_id = e.id AND a.action = 'requeue') AS again
         FROM sexton.executions e WHERE state = 'failed' ORDER BY id LIMIT $1",
    )
    .bind(MAX_EXECUTIONS_PER_ROUND)
    .fetch_all(store.pool())
    .await?;
    let read = |row: &sqlx::postgres::PgRow| {
        let attempt = AttemptNumber::new(row.get("attempt"))?;
        Some((ExecutionId::new(row.get("id")), attempt, row.get("again")))
    };
    Ok(rows.iter().filter_map(read).collect())
}

async fn waiting(store: &Store) -> Result<Option<ExecutionId>> {
    let id: Option<Uuid> =
        sqlx::query_scalar("SELECT id FROM sexton.executions WHERE state = 'retrying' LIMIT 1")
            .fetch_optional(store.pool())
            .await?;
    Ok(id.map(ExecutionId::new))
}

/// One action, or none if the execution has moved on meanwhile.
fn done(result: Result<(), OperatorError>) -> Result<u64> {
    match result {
        Ok(()) => Ok(1),
        Err(OperatorError::Store(error)) => Err(error.into()),
        Err(_) => Ok(0),
    }
}

/// Removes what finished more than `keep` ago until it is stopped.
///
/// By the pruner's own statements. A day is the shortest retention that can be set, so the statements
/// receive an instant almost a day later.
pub(super) async fn prune(
    store: Store,
    keep: Duration,
    counts: Arc<MaintenanceCounts>,
    stop: CancellationToken,
) -> Result<()> {
    let mut rounds = interval(ROUND_INTERVAL);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while !stop.is_cancelled() {
        rounds.tick().await;
        let clock: DateTime<Utc> =
            sqlx::query_scalar("SELECT now()").fetch_one(store.pool()).await?;
        let now = Some(clock + TimeDelta::days(RETENTION_DAYS.into()) - TimeDelta::from_std(keep)?);
        add(
            &counts.removed,
            pass(&store, RETENTION, &RetentionTarget::ALL, PRUNE_BATCH_ROWS, now).await?.executions,
        );
    }
    Ok(())
}
