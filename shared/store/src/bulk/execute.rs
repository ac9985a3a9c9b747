//! One batch of a bulk: one transaction.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::bulk::{
    BulkKind, CanaryVerdict, MAX_BATCH_EXECUTIONS, Pace, advance_pace, allowance, judge_canary,
    reset_pace,
};
use sexton_model::id::AttemptNumber;
use sexton_model::rate::Rate;
use sexton_model::state::State;
use sqlx::PgConnection;
use uuid::Uuid;

use super::canary::{CanaryStatus, read_canary_status};
use super::question::find_edited;
use super::rows::{
    LockedExecution, OpenItem, find_existing, find_requeued, list_open_items, lock_executions,
    write_items,
};
use crate::connection::client_timeout::{WithTimeout, commit, with_client_timeout};
use crate::error::parse_column;
use crate::notifications::Notification;
use crate::operator::transitions::{self, RequeueOptions};
use crate::operator::{NewAction, notify, record_bulk_actions};
use crate::tickets::UnpublishedTicket;
use crate::{Now, RELAY_DELAY_MS, Store, StoreError};

/// The result of a batch, and when the next may begin.
#[derive(Debug, Default)]
pub struct ExecutedBatch {
    /// Tickets to publish, which the relay leaves to the caller for a while.
    pub tickets: Vec<UnpublishedTicket>,
    /// Number of items done.
    pub done: usize,
    /// Number of items refused, because their executions had changed.
    pub refused: usize,
    /// Number of items whose rows another transaction has locked; they come up again.
    pub busy: usize,
    /// The canary's reason for pausing the bulk.
    pub paused: Option<String>,
    /// Whether no item is left.
    pub over: bool,
    /// How long until the pace allows the next batch; zero: at once.
    pub wait: Duration,
}

struct BulkRow {
    kind: BulkKind,
    actor: String,
    reason: Option<String>,
    canary: Option<u32>,
    pool: Option<String>,
    accounted: i64,
    open: bool,
    /// Whether verify tasks answer for its items.
    asks: bool,
    pace: Option<Pace>,
    now: DateTime<Utc>,
}

/// How long to wait before the next poll while a canary's executions run, a command's answer is missing, or rows are
/// locked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Carries out a batch of a running bulk; `None`: it does not run any more, or another scheduler holds it. A crash
/// before the commit has done nothing of the batch; after it, rows have tickets to publish.
pub async fn execute_batch(
    store: &Store,
    id: i64,
    now: Now,
) -> Result<Option<ExecutedBatch>, StoreError> {
    let mut tx = store.begin().await?;
    let Some(mut row) = lock_bulk(&mut tx, id, now).await? else { return Ok(None) };
    let (mut max_items, mut canary_is_out) = (MAX_BATCH_EXECUTIONS, false);
    if let Some(size) = row.canary {
        let canary_status = read_canary_status(&mut tx, id, row.accounted).await?;
        match judge_canary(size, canary_status.counts, row.open) {
            CanaryVerdict::More(more) => (max_items, canary_is_out) = (max_items.min(more), true),
            CanaryVerdict::Wait => {
                // The wait for the rollback matters: otherwise the next caller could find the bulk still locked.
                with_client_timeout(tx.rollback()).await?;
                return Ok(Some(ExecutedBatch { wait: POLL_INTERVAL, ..ExecutedBatch::default() }));
            }
            CanaryVerdict::Passed => {
                mark_canary_passed(&mut tx, id).await?;
                row.pace = row.pace.map(|pace| reset_pace(pace, row.now));
            }
            CanaryVerdict::Failed => {
                let why = pause_bulk(&mut tx, id, size, &canary_status).await?;
                commit(tx).await?;
                return Ok(Some(ExecutedBatch { paused: Some(why), ..ExecutedBatch::default() }));
            }
        }
    }
    let (count, next) =
        row.pace.map_or((MAX_BATCH_EXECUTIONS, None), |pace| allowance(pace, row.now));
    let items = list_open_items(&mut tx, id, max_items.min(count)).await?;
    let mut batch = execute_items(&mut tx, id, &row, &items).await?;
    let begun = (batch.done + batch.refused) as u32;
    let pace = row.pace.map(|pace| advance_pace(pace, begun, row.now));
    // Checked even if the pace allows no item: the last ones may have been done or answered meanwhile.
    batch.over = !canary_is_out && batch.busy == 0 && finish_bulk(&mut tx, id, row.now).await?;
    update_counts(&mut tx, id, &batch, pace).await?;
    commit(tx).await?;
    batch.wait =
        if items.is_empty() || batch.busy == items.len() { POLL_INTERVAL } else { Duration::ZERO };
    if count == 0 || (items.len() as u32) == count {
        let until = next.map_or(Duration::ZERO, |at| (at - row.now).to_std().unwrap_or_default());
        batch.wait = if count == 0 { until } else { batch.wait.max(until) };
    }
    Ok(Some(batch))
}

async fn lock_bulk(
    connection: &mut PgConnection,
    id: i64,
    now: Now,
) -> Result<Option<BulkRow>, StoreError> {
    let row = sqlx::query!(
        r#"-- lock_bulk_to_execute
        SELECT kind, actor, from_where, reason, rate, pool,
               CASE WHEN NOT canary_passed THEN canary END AS canary,
               done + refused + resolved + left_alone AS "accounted!", selected,
               verify IS NOT DISTINCT FROM 'task' AS "asks!", paced_since, paced, coalesce($2, clock_timestamp()) AS "now!"
        FROM sexton.bulks WHERE id = $1 AND state = 'running' FOR NO KEY UPDATE SKIP LOCKED"#,
        id,
        now
    )
    .fetch_optional(WithTimeout(&mut *connection))
    .await?;
    let Some(row) = row else { return Ok(None) };
    // The audit records the operator's origin, not the scheduler's.
    sqlx::query!(
        "-- bulk_comes_from\nSELECT set_config('sexton.from_where', $1, true)",
        row.from_where.as_deref().unwrap_or_default()
    )
    .fetch_one(WithTimeout(connection))
    .await?;
    let rate = row
        .rate
        .as_deref()
        .map(|text| parse_column("bulks.rate", text, |text| text.parse::<Rate>().ok()));
    let pace = rate.transpose()?.map(|rate| Pace {
        rate,
        since: row.paced_since.unwrap_or(row.now),
        begun: row.paced.max(0) as u64,
    });
    Ok(Some(BulkRow {
        kind: parse_column("bulks.kind", &row.kind, BulkKind::parse)?,
        actor: row.actor,
        reason: row.reason,
        canary: row.canary.and_then(|size| u32::try_from(size).ok()),
        pool: row.pool,
        accounted: row.accounted,
        open: row.selected > row.accounted,
        asks: row.asks,
        pace,
        now: row.now,
    }))
}

async fn mark_canary_passed(connection: &mut PgConnection, id: i64) -> Result<(), StoreError> {
    sqlx::query!(
        "-- canary_passed\nUPDATE sexton.bulks SET canary_passed = true WHERE id = $1",
        id
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}

async fn pause_bulk(
    connection: &mut PgConnection,
    id: i64,
    size: u32,
    canary_status: &CanaryStatus,
) -> Result<String, StoreError> {
    let (failed, errors) = (canary_status.counts.failed, canary_status.errors.join("; "));
    let why = format!("{failed} of the first {size} failed again: {errors}");
    sqlx::query!(
        "-- pause_bulk\nUPDATE sexton.bulks SET state = 'paused', why = $2 WHERE id = $1",
        id,
        why
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(why)
}

/// Moves the executions that are unchanged since the selection, and records why the others were refused.
async fn execute_items(
    connection: &mut PgConnection,
    bulk: i64,
    row: &BulkRow,
    items: &[OpenItem],
) -> Result<ExecutedBatch, StoreError> {
    if items.is_empty() {
        return Ok(ExecutedBatch::default());
    }
    let locked = lock_executions(connection, items).await?;
    let existing = find_existing(connection, items, &locked).await?;
    let ordinals: Vec<i64> = items.iter().map(|item| item.ordinal).collect();
    let edited =
        if row.asks { find_edited(connection, bulk, &ordinals).await? } else { HashSet::new() };
    let requeued = if row.kind == BulkKind::Cancel {
        find_requeued(connection, bulk, &ordinals).await?
    } else {
        HashSet::new()
    };
    let is_unchanged = |item: &&OpenItem| {
        !edited.contains(&item.ordinal)
            && !requeued.contains(&item.ordinal)
            && locked.get(&item.id.get()).is_some_and(|it| is_actionable(row.kind, it, item.seen))
    };
    let unchanged: Vec<&OpenItem> = items.iter().filter(is_unchanged).collect();
    let seen: Vec<_> = unchanged.iter().map(|item| (item.id, item.seen)).collect();
    let terms = RequeueOptions { pool: row.pool.as_deref(), ..RequeueOptions::default() };
    let (moved, tickets) = apply_transition(connection, row, &seen, terms).await?;
    let moved: HashSet<Uuid> = moved.into_iter().collect();
    let actions: Vec<NewAction> = locked
        .iter()
        .filter(|(id, _)| moved.contains(id))
        .map(|(id, it)| NewAction {
            action: row.kind.as_str(),
            job_id: it.job,
            execution_id: Some(*id),
            reason: row.reason.clone(),
            before: Some(it.before.clone()),
            after: Some(describe_after(row.kind, &it.state, terms)),
        })
        .collect();
    record_bulk_actions(connection, &row.actor, Some(bulk), &actions, row.now).await?;
    // By item rather than by execution, because another item may select the same execution at an earlier attempt.
    let done: HashSet<i64> = unchanged
        .iter()
        .filter(|item| moved.contains(&item.id.get()))
        .map(|item| item.ordinal)
        .collect();
    let mut batch = ExecutedBatch { tickets, done: done.len(), ..ExecutedBatch::default() };
    let mut written: Vec<(i64, &str, Option<String>)> = Vec::with_capacity(items.len());
    for item in items {
        let id = item.id.get();
        if done.contains(&item.ordinal) {
            written.push((item.ordinal, "done", None));
        } else if edited.contains(&item.ordinal) && locked.contains_key(&id) {
            let note = "its params were changed after its verify task was asked".to_owned();
            written.push((item.ordinal, "refused", Some(note)));
        } else if requeued.contains(&item.ordinal) && locked.contains_key(&id) {
            let note = "it was requeued after the preview".to_owned();
            written.push((item.ordinal, "refused", Some(note)));
        } else if let Some(it) = locked.get(&id)
            && row.kind == BulkKind::Cancel
            && it.is_cancel_requested()
        {
            let note = "its cancel was requested before".to_owned();
            written.push((item.ordinal, "refused", Some(note)));
        } else if let Some(row) = locked.get(&id) {
            let note = format!("it was {} at attempt {}", row.state, row.attempt);
            written.push((item.ordinal, "refused", Some(note)));
        } else if existing.contains(&id) {
            batch.busy += 1;
        } else {
            written.push((item.ordinal, "refused", Some("it was removed by retention".to_owned())));
        }
    }
    batch.refused = written.len() - batch.done;
    write_items(connection, bulk, &written).await?;
    Ok(batch)
}

async fn apply_transition(
    connection: &mut PgConnection,
    row: &BulkRow,
    seen: &[transitions::SeenAttempt],
    terms: RequeueOptions<'_>,
) -> Result<(Vec<Uuid>, Vec<UnpublishedTicket>), StoreError> {
    match row.kind {
        BulkKind::Requeue => {
            let relay_after = row.now + chrono::Duration::milliseconds(RELAY_DELAY_MS);
            let requeued =
                transitions::requeue(connection, seen, terms, relay_after, row.now).await?;
            if requeued.waits > 0 {
                notify(connection, Notification::Jobs).await?;
            }
            Ok((requeued.ids, requeued.tickets))
        }
        BulkKind::Discard => {
            let ids = transitions::discard(connection, seen, row.now).await?;
            Ok((ids, Vec::new()))
        }
        BulkKind::Restore => {
            let ids = transitions::restore(connection, seen, row.now).await?;
            notify(connection, Notification::TicketsUnpublished).await?;
            Ok((ids, Vec::new()))
        }
        BulkKind::Cancel => {
            let ids: Vec<Uuid> = seen.iter().map(|(id, _)| id.get()).collect();
            let cancelled = transitions::cancel(connection, &ids, row.now).await?;
            if !cancelled.requested.is_empty() {
                notify(connection, Notification::Cancel).await?;
            }
            Ok(([cancelled.ended, cancelled.requested].concat(), Vec::new()))
        }
    }
}

/// Returns whether an execution is still as it was when it was selected, as far as its action needs it.
fn is_actionable(kind: BulkKind, execution: &LockedExecution, seen: AttemptNumber) -> bool {
    let acts = State::parse(&execution.state).is_some_and(|state| kind.acts_on(state));
    let is_same = !kind.needs_same_attempt() || execution.attempt == seen.get();
    acts && is_same && !(kind == BulkKind::Cancel && execution.is_cancel_requested())
}

/// Returns the audit's description of an execution that was in `state` before.
fn describe_after(kind: BulkKind, state: &str, terms: RequeueOptions<'_>) -> Value {
    match kind {
        BulkKind::Requeue => transitions::after_requeue(terms),
        BulkKind::Discard => json!({"state": "discarded"}),
        BulkKind::Restore => json!({"state": "failed"}),
        BulkKind::Cancel => transitions::after_cancel(state == State::Running.as_str()),
    }
}

/// Marks the bulk as done if no item is open any more; returns whether it did.
async fn finish_bulk(
    connection: &mut PgConnection,
    id: i64,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "-- finish_bulk
        UPDATE sexton.bulks SET state = 'done', ended_at = $2
        WHERE id = $1 AND NOT EXISTS (
            SELECT FROM sexton.bulk_items WHERE bulk_id = $1 AND state IN ('unasked', 'waiting'))",
        id,
        now
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(done.rows_affected() == 1)
}

async fn update_counts(
    connection: &mut PgConnection,
    id: i64,
    batch: &ExecutedBatch,
    pace: Option<Pace>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- count_bulk
        UPDATE sexton.bulks SET done = done + $2, refused = refused + $3,
            paced_since = coalesce($4, paced_since), paced = coalesce($5, paced)
        WHERE id = $1",
        id,
        batch.done as i64,
        batch.refused as i64,
        pace.map(|pace| pace.since),
        pace.map(|pace| pace.begun as i64)
    )
    .execute(WithTimeout(connection))
    .await?;
    Ok(())
}
