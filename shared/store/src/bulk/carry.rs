//! A portion of a bulk: one transaction.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::bulk::{Canary, Kind, PORTION, Pace, after_canary, allowed, canary, went_on};
use sexton_model::rate::Rate;
use sqlx::PgConnection;
use uuid::Uuid;

use super::canary::{Stands, stands};
use super::question::edited;
use super::rows::{Open, lock_executions, open_items, there, write_items};
use crate::bounded::{Bounded, bounded, commit};
use crate::error::known;
use crate::listen::Wake;
use crate::operator::moves::{self, Terms};
use crate::operator::{AuditDeed, record_of_bulk, wake};
use crate::tickets::OwedTicket;
use crate::{HEAD_START_MS, Now, Store, StoreError};

/// What a portion has done, and when the next may begin.
#[derive(Debug, Default)]
pub struct Portion {
    /// Tickets to publish, of which the caller has the head start.
    pub tickets: Vec<OwedTicket>,
    /// Items that were done.
    pub done: usize,
    /// Items that could not be: somebody else was faster.
    pub refused: usize,
    /// Items whose rows somebody has locked; they come up again.
    pub busy: usize,
    /// What its canary said when it paused the bulk.
    pub paused: Option<String>,
    /// Whether nothing is left.
    pub over: bool,
    /// How long until the pace allows the next; zero: at once.
    pub wait: Duration,
}

struct Row {
    kind: Kind,
    actor: String,
    reason: Option<String>,
    canary: Option<u32>,
    pool: Option<String>,
    accounted: i64,
    open: bool,
    /// Whether verify tasks have answered for its items.
    asks: bool,
    pace: Option<Pace>,
    now: DateTime<Utc>,
}

/// How long nobody looks again while a canary's executions run, a command is still to say something, or
/// rows are locked.
const LOOK: Duration = Duration::from_secs(1);

/// Carries out a portion of a running bulk; `None`: it does not run any more, or another scheduler is at
/// it. A crash before the commit has done nothing of the portion; after it, rows that owe their tickets.
pub async fn carry(store: &Store, id: i64, now: Now) -> Result<Option<Portion>, StoreError> {
    let mut tx = store.begin().await?;
    let Some(mut row) = lock(&mut tx, id, now).await? else { return Ok(None) };
    let (mut most, mut canary_is_out) = (PORTION, false);
    if let Some(size) = row.canary {
        let stands = stands(&mut tx, id, row.accounted).await?;
        match canary(size, stands.counts, row.open) {
            Canary::More(more) => (most, canary_is_out) = (most.min(more), true),
            Canary::Wait => {
                // Not only dropped: who looks next would find the bulk locked by this look.
                bounded(tx.rollback()).await?;
                return Ok(Some(Portion { wait: LOOK, ..Portion::default() }));
            }
            Canary::Passed => {
                passed(&mut tx, id).await?;
                row.pace = row.pace.map(|pace| after_canary(pace, row.now));
            }
            Canary::Failed => {
                let why = pause(&mut tx, id, size, &stands).await?;
                commit(tx).await?;
                return Ok(Some(Portion { paused: Some(why), ..Portion::default() }));
            }
        }
    }
    let (count, next) = row.pace.map_or((PORTION, None), |pace| allowed(pace, row.now));
    let items = open_items(&mut tx, id, most.min(count)).await?;
    let mut portion = act(&mut tx, id, &row, &items).await?;
    let begun = (portion.done + portion.refused) as u32;
    let pace = row.pace.map(|pace| went_on(pace, begun, row.now));
    // Asked also where the pace allows none: the last may have been done or answered for meanwhile.
    portion.over = !canary_is_out && portion.busy == 0 && finish(&mut tx, id, row.now).await?;
    counted(&mut tx, id, &portion, pace).await?;
    commit(tx).await?;
    portion.wait =
        if items.is_empty() || portion.busy == items.len() { LOOK } else { Duration::ZERO };
    if count == 0 || (items.len() as u32) == count {
        let until = next.map_or(Duration::ZERO, |at| (at - row.now).to_std().unwrap_or_default());
        portion.wait = if count == 0 { until } else { portion.wait.max(until) };
    }
    Ok(Some(portion))
}

async fn lock(connection: &mut PgConnection, id: i64, now: Now) -> Result<Option<Row>, StoreError> {
    let row = sqlx::query!(
        r#"-- lock_bulk_to_carry
        SELECT kind, actor, from_where, reason, rate, pool,
               CASE WHEN NOT canary_passed THEN canary END AS canary,
               done + refused + resolved + left_alone AS "accounted!", selected,
               verify IS NOT DISTINCT FROM 'task' AS "asks!", paced_since, paced, coalesce($2, clock_timestamp()) AS "now!"
        FROM bulks WHERE id = $1 AND state = 'running' FOR NO KEY UPDATE SKIP LOCKED"#,
        id,
        now
    )
    .fetch_optional(Bounded(&mut *connection))
    .await?;
    let Some(row) = row else { return Ok(None) };
    // What is recorded comes from where the operator was, not from the scheduler.
    sqlx::query!(
        "-- bulk_comes_from\nSELECT set_config('sexton.from_where', $1, true)",
        row.from_where.as_deref().unwrap_or_default()
    )
    .fetch_one(Bounded(connection))
    .await?;
    let rate =
        row.rate.as_deref().map(|text| known("bulks.rate", text, |text| text.parse::<Rate>().ok()));
    let pace = rate.transpose()?.map(|rate| Pace {
        rate,
        since: row.paced_since.unwrap_or(row.now),
        begun: row.paced.max(0) as u64,
    });
    Ok(Some(Row {
        kind: known("bulks.kind", &row.kind, Kind::parse)?,
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

async fn passed(connection: &mut PgConnection, id: i64) -> Result<(), StoreError> {
    sqlx::query!("-- canary_passed\nUPDATE bulks SET canary_passed = true WHERE id = $1", id)
        .execute(Bounded(connection))
        .await?;
    Ok(())
}

async fn pause(
    connection: &mut PgConnection,
    id: i64,
    size: u32,
    stands: &Stands,
) -> Result<String, StoreError> {
    let (failed, errors) = (stands.counts.failed, stands.errors.join("; "));
    let why = format!("{failed} of the first {size} failed again: {errors}");
    sqlx::query!(
        "-- pause_bulk\nUPDATE bulks SET state = 'paused', why = $2 WHERE id = $1",
        id,
        why
    )
    .execute(Bounded(connection))
    .await?;
    Ok(why)
}

/// Moves what is still as it was seen, and says of the rest why not.
async fn act(
    connection: &mut PgConnection,
    bulk: i64,
    row: &Row,
    items: &[Open],
) -> Result<Portion, StoreError> {
    if items.is_empty() {
        return Ok(Portion::default());
    }
    let locked = lock_executions(connection, items).await?;
    let there = there(connection, items, &locked).await?;
    let ordinals: Vec<i64> = items.iter().map(|item| item.ordinal).collect();
    let edited = if row.asks { edited(connection, bulk, &ordinals).await? } else { HashSet::new() };
    let is_meant = |item: &&Open| {
        !edited.contains(&item.ordinal)
            && locked.get(&item.id.get()).is_some_and(|it| {
                it.state == row.kind.from().as_str() && it.attempt == item.seen.get()
            })
    };
    let meant: Vec<&Open> = items.iter().filter(is_meant).collect();
    let seen: Vec<_> = meant.iter().map(|item| (item.id, item.seen)).collect();
    let terms = Terms { pool: row.pool.as_deref(), ..Terms::default() };
    let (moved, tickets, after) = move_them(connection, row, &seen, terms).await?;
    let moved: HashSet<Uuid> = moved.into_iter().collect();
    let deeds: Vec<AuditDeed> = locked
        .iter()
        .filter(|(id, _)| moved.contains(id))
        .map(|(id, it)| AuditDeed {
            action: row.kind.as_str(),
            job_id: it.job,
            execution_id: Some(*id),
            reason: row.reason.clone(),
            before: Some(it.before.clone()),
            after: Some(after.clone()),
        })
        .collect();
    record_of_bulk(connection, &row.actor, Some(bulk), &deeds, row.now).await?;
    // By the item and not by its execution, which another item may mean at an attempt that has passed.
    let done: HashSet<i64> = meant
        .iter()
        .filter(|item| moved.contains(&item.id.get()))
        .map(|item| item.ordinal)
        .collect();
    let mut portion = Portion { tickets, done: done.len(), ..Portion::default() };
    let mut written: Vec<(i64, &str, Option<String>)> = Vec::with_capacity(items.len());
    for item in items {
        let id = item.id.get();
        if done.contains(&item.ordinal) {
            written.push((item.ordinal, "done", None));
        } else if edited.contains(&item.ordinal) && locked.contains_key(&id) {
            let note = "its params were changed after its verify task was asked".to_owned();
            written.push((item.ordinal, "refused", Some(note)));
        } else if let Some(it) = locked.get(&id) {
            let note = format!("it was {} at attempt {}", it.state, it.attempt);
            written.push((item.ordinal, "refused", Some(note)));
        } else if there.contains(&id) {
            portion.busy += 1;
        } else {
            written.push((item.ordinal, "refused", Some("it was removed by retention".to_owned())));
        }
    }
    portion.refused = written.len() - portion.done;
    write_items(connection, bulk, &written).await?;
    Ok(portion)
}

async fn move_them(
    connection: &mut PgConnection,
    row: &Row,
    seen: &[moves::Seen],
    terms: Terms<'_>,
) -> Result<(Vec<Uuid>, Vec<OwedTicket>, Value), StoreError> {
    match row.kind {
        Kind::Requeue => {
            let own = row.now + chrono::Duration::milliseconds(HEAD_START_MS);
            let requeued = moves::requeue(connection, seen, terms, own, row.now).await?;
            if requeued.waits > 0 {
                wake(connection, Wake::Jobs).await?;
            }
            Ok((requeued.ids, requeued.tickets, moves::after_requeue(terms)))
        }
        Kind::Discard => {
            let ids = moves::discard(connection, seen, row.now).await?;
            Ok((ids, Vec::new(), json!({"state": "discarded"})))
        }
        Kind::Restore => {
            let ids = moves::restore(connection, seen, row.now).await?;
            wake(connection, Wake::Owed).await?;
            Ok((ids, Vec::new(), json!({"state": "failed"})))
        }
    }
}

/// Whether nothing is open any more; then it is done.
async fn finish(
    connection: &mut PgConnection,
    id: i64,
    now: DateTime<Utc>,
) -> Result<bool, StoreError> {
    let done = sqlx::query!(
        "-- finish_bulk
        UPDATE bulks SET state = 'done', ended_at = $2
        WHERE id = $1 AND NOT EXISTS (
            SELECT FROM bulk_items WHERE bulk_id = $1 AND state IN ('unasked', 'waiting'))",
        id,
        now
    )
    .execute(Bounded(connection))
    .await?;
    Ok(done.rows_affected() == 1)
}

async fn counted(
    connection: &mut PgConnection,
    id: i64,
    portion: &Portion,
    pace: Option<Pace>,
) -> Result<(), StoreError> {
    sqlx::query!(
        "-- count_bulk
        UPDATE bulks SET done = done + $2, refused = refused + $3,
            paced_since = coalesce($4, paced_since), paced = coalesce($5, paced)
        WHERE id = $1",
        id,
        portion.done as i64,
        portion.refused as i64,
        pace.map(|pace| pace.since),
        pace.map(|pace| pace.begun as i64)
    )
    .execute(Bounded(connection))
    .await?;
    Ok(())
}
