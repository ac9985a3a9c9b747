//! What is looked at after each strike, and at an arena's end.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::arena::{Arena, Role, now};
use super::fault::Program;
use super::ledger::Entry;
use super::oracle::deadlines;
use super::oracle::{Evidence, Violation, judge};
use super::progress::Counts;
use super::{alarms, effects, queues, rows};

/// For the last executions, and for the sweep.
const FINAL_TIMEOUT: Duration = Duration::from_mins(4);

/// How long a sweep that has just begun may take to repair what it can.
const OBSERVATION_TIME: Duration = Duration::from_secs(12);

/// What was opened so long ago has been judged before, whatever the clocks of the two hosts say.
const OVERLAP: TimeDelta = TimeDelta::minutes(2);

/// Judges what has happened since `since`; the next look may begin at the instant it returns.
pub(super) async fn look(
    arena: &Arena,
    since: DateTime<Utc>,
) -> Result<(Vec<Violation>, DateTime<Utc>)> {
    let looked = now();
    let mut found = crashes(arena);
    found.extend(judge(&evidence(arena, Some(since - OVERLAP)).await?));
    Ok((found, looked))
}

fn crashes(arena: &Arena) -> Vec<Violation> {
    arena.crashes().into_iter().map(|what| Violation::Crashed { what }).collect()
}

/// What there is to judge, since an instant or ever.
async fn evidence(arena: &Arena, since: Option<DateTime<Utc>>) -> Result<Evidence> {
    let ledger = entries(arena).await?;
    let rows = rows::evidence(arena.pool(), since).await?;
    let later = entries(arena).await?;
    Ok(Evidence { ledger, later, moved: arena.moved(), ..rows })
}

/// What tasks have done, programs and statements.
async fn entries(arena: &Arena) -> Result<Vec<Entry>> {
    let mut entries = arena.ledger.read().context("read the ledger")?;
    entries.extend(effects::entries(arena.pool()).await?);
    Ok(entries)
}

/// Lets an arena come to rest and judges all of it.
pub(super) async fn close(arena: &mut Arena) -> Result<Vec<Violation>> {
    let cursor = rows::cursor(arena.pool()).await?;
    rows::change(arena.pool(), "UPDATE sexton.jobs SET next_fire_at = NULL").await?;
    let mut found = Vec::new();
    let rest = rows::ids(arena.pool(), &rows::open_end()).await?;
    if let Err(left) = arena.ended(&rest, FINAL_TIMEOUT).await {
        for execution in left {
            let row = queues::describe(arena, execution).await;
            found.push(Violation::Lost { execution, row, fault: "all faults".to_owned() });
        }
    }
    found.extend(bulks(arena).await);
    found.extend(parked(arena).await);
    let mut evidence = evidence(arena, None).await?;
    evidence.firings.cursor = cursor;
    found.extend(judge(&evidence));
    let (late, looks, now) = alarms::evidence(arena.pool()).await?;
    found.extend(deadlines::judge(&late, &looks, now));
    // Who has ended in the meantime.
    arena.complete()?;
    found.extend(crashes(arena));
    Ok(found)
}

/// No bulk is left that goes on, and no question that nobody hears.
async fn bulks(arena: &Arena) -> Vec<Violation> {
    let mut left = Vec::new();
    let none = arena
        .until(FINAL_TIMEOUT, async || {
            left = rows::unfinished_bulks(arena.pool()).await?;
            Ok(left.is_empty().then_some(()))
        })
        .await;
    let left = if none.is_some() { Vec::new() } else { left };
    left.into_iter().map(|what| Violation::Held { what }).collect()
}

/// The failed rows and the parked messages must be the same. A scheduler that starts looks at once, and
/// does not wait for an hour here where a message too many and one too few make the numbers fit.
async fn parked(arena: &mut Arena) -> Option<Violation> {
    let end = Instant::now() + FINAL_TIMEOUT;
    let mut what = String::new();
    while Instant::now() < end {
        let now = [("SWEEP_EVERY_MS", "0")];
        if let Err(error) = arena.start(Program::Scheduler, Role::Victim, &now) {
            what = format!("{error:#}");
        }
        let looking = Instant::now();
        while looking.elapsed() < OBSERVATION_TIME {
            match compare(arena).await {
                Ok((true, _)) => return None,
                Ok((false, counts)) => what = counts,
                Err(error) => what = format!("{error:#}"),
            }
            sleep(Duration::from_secs(1)).await;
        }
    }
    Some(Violation::Unparked { what })
}

/// Whether they are the same, and what they are.
async fn compare(arena: &Arena) -> Result<(bool, String)> {
    let rows = rows::ids(arena.pool(), "e.state = 'failed'").await?;
    let hand = arena.hand().await?;
    let depth = hand.depth(&arena.failed_queue()).await?;
    // Only when the numbers fit: a sweep that met this hand in the queue would miss what the hand
    // holds, and have it published again.
    if rows.len() != depth as usize {
        hand.let_go().await;
        return Ok((false, format!("{} rows, {depth} messages", rows.len())));
    }
    let messages = hand.ids(&arena.failed_queue()).await;
    hand.let_go().await;
    let (in_rows, in_queue): (BTreeSet<Uuid>, BTreeSet<Uuid>) =
        (rows.into_iter().collect(), messages?.into_iter().collect());
    let counts = format!(
        "without a message {:?}, without a row {:?}",
        in_rows.difference(&in_queue).collect::<Vec<_>>(),
        in_queue.difference(&in_rows).collect::<Vec<_>>()
    );
    Ok((in_rows == in_queue, counts))
}

/// What an arena has done.
pub(super) async fn counts(arena: &Arena) -> Result<Counts> {
    let ledger = entries(arena).await?;
    let (late, looks, now) = alarms::evidence(arena.pool()).await?;
    let noticed = deadlines::count(&late, &looks, now);
    let counts = rows::counts(arena.pool(), &ledger).await?;
    Ok(Counts { in_time: noticed.in_time, late: noticed.late, ..counts })
}
