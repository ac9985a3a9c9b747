//! Delayed: what executions cost that are enqueued for much later, and how late those begin whose time comes.
//!
//! All is measured twice on one platform, at first while nothing waits and then while `--count` executions wait for a
//! month: the processor time of PostgreSQL in a minute in which nothing is due, a round of the relay and one of the
//! planner, and the lateness of executions that become due one after another. The lines are printed together, so that
//! the report can compare those of one run.

use std::time::Duration;

use anyhow::{Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sexton_client::{Client, Enqueue};
use sexton_tests::platform::{Platform, Program};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::backends::Backends;
use super::rounds::Rounds;
use super::{DEADLINE, apply_unscheduled, handlers, line, stop, with};
use crate::Arguments;
use crate::line::{Line, at};
use crate::processor::used_by;

const JOB: &str = "bench.delayed";
/// When those wait for that only wait.
const LATER: Duration = Duration::from_hours(30 * 24);
/// Executions of one transaction.
const BATCH: i64 = 10_000;
/// For the loops to have had a round since the last change.
const SETTLE: Duration = Duration::from_secs(5);
/// From the enqueue to the first that becomes due; longer than the relay's pause, since nothing notifies it.
const LEAD_TIME: TimeDelta = TimeDelta::seconds(5);
/// From one that becomes due to the next.
const APART: TimeDelta = TimeDelta::milliseconds(10);
const MINUTE: f64 = 60.0;

/// Measures without and with `--count` executions that wait, each for `--seconds` of idleness.
pub(super) async fn measure(platform: &Platform, arguments: &Arguments) -> Result<()> {
    let mut programs = vec![platform.start_scheduler("scheduler", &[])?];
    programs.extend(handlers(platform, arguments)?);
    for program in &mut programs {
        program.ready().await;
    }
    apply_unscheduled(platform, JOB).await?;
    let mut connection = PgConnection::connect(platform.database_url()).await?;
    let rounds = Rounds::start(platform).await?;
    let mut lines = Vec::new();
    for waiting in [0, arguments.count] {
        fill(&mut connection, waiting).await?;
        vacuum(&mut connection).await?;
        tokio::time::sleep(SETTLE).await;
        let of = |work, value| {
            let mut line = Line { value, ..line(arguments, work) };
            line.settings.insert("part".to_owned(), json!(format!("{waiting} waiting")));
            line.settings.insert("waiting".to_owned(), json!(waiting));
            line
        };
        let late =
            late(platform, &mut connection, (arguments.count / 10).clamp(100, 1_000)).await?;
        let (p50, p99) = (at(&late, 0.5), Some(at(&late, 0.99)));
        lines.push(Line { p99, samples: late, ..of("delayed", p50) });
        // Those that have ended come first, since PostgreSQL plans otherwise for an empty table.
        vacuum(&mut connection).await?;
        tokio::time::sleep(SETTLE).await;
        let (postgres, scheduler) = idle_minute(platform, &programs[0], arguments).await?;
        lines.push(with(of("delayed-idle", postgres), "scheduler_ms", scheduler));
        let (relay, planner) = rounds.medians().await?;
        lines.push(of("delayed-relay", relay));
        lines.push(of("delayed-planner", planner));
    }
    lines.iter().for_each(Line::print);
    rounds.stop().await;
    connection.close().await?;
    stop(programs).await;
    Ok(())
}

/// Enqueues so many for a month later, each for its own instant.
async fn fill(connection: &mut PgConnection, count: i64) -> Result<()> {
    for first in (0..count).step_by(BATCH as usize) {
        let batch = (first..count.min(first + BATCH))
            .map(|order| {
                let later = LATER + Duration::from_millis(order.unsigned_abs());
                Ok(Enqueue::new(JOB).params(&json!({"order": order}))?.delay(later))
            })
            .collect::<Result<Vec<_>>>()?;
        let mut tx = connection.begin().await?;
        Client::new().enqueue_many(&mut tx, &batch).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// Does what PostgreSQL would do within some minutes, since it belongs to none of the figures.
async fn vacuum(connection: &mut PgConnection) -> Result<()> {
    sqlx::query("VACUUM ANALYZE").execute(&mut *connection).await?;
    sqlx::query("CHECKPOINT").execute(&mut *connection).await?;
    Ok(())
}

/// Returns the milliseconds of a processor that PostgreSQL and the scheduler use in a minute.
async fn idle_minute(
    platform: &Platform,
    scheduler: &Program,
    arguments: &Arguments,
) -> Result<(f64, f64)> {
    let pool = platform.store().pool();
    let (before, used) = (Backends::read(pool).await?, used_by(scheduler.pid())?);
    tokio::time::sleep(Duration::from_secs(arguments.seconds.into())).await;
    let postgres = Backends::read(pool).await?.since(&before);
    let scheduler = used_by(scheduler.pid())?.saturating_sub(used);
    let a_minute =
        |used: Duration| used.as_secs_f64() * 1e3 * MINUTE / f64::from(arguments.seconds);
    Ok((a_minute(postgres), a_minute(scheduler)))
}

/// Returns how many milliseconds after its time each of `count` executions began, sorted.
async fn late(platform: &Platform, connection: &mut PgConnection, count: i64) -> Result<Vec<f64>> {
    let now: DateTime<Utc> =
        sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(&mut *connection).await?;
    let all: Vec<Enqueue> = (0..count)
        .map(|number| Enqueue::new(JOB).run_at(now + LEAD_TIME + APART * number as i32))
        .collect();
    let mut tx = connection.begin().await?;
    let enqueued = Client::new().enqueue_many(&mut tx, &all).await?;
    tx.commit().await?;
    let ids: Vec<Uuid> = enqueued.into_iter().map(|one| one.execution_id).collect();
    // Nothing asks the database meanwhile.
    tokio::time::sleep((LEAD_TIME + APART * count as i32).to_std()?).await;
    let begun = async || {
        let late: Vec<Option<f64>> = sqlx::query_scalar(
            "SELECT extract(epoch FROM started_at - scheduled_for)::float8 * 1000
             FROM sexton.executions WHERE id = ANY ($1) ORDER BY 1",
        )
        .bind(&ids)
        .fetch_all(platform.store().pool())
        .await
        .ok()?;
        late.into_iter().collect::<Option<Vec<f64>>>()
    };
    let late = platform.eventually("all have begun that were due", DEADLINE, begun).await;
    ensure!(late.len() == ids.len(), "{} of {} were found", late.len(), ids.len());
    Ok(late)
}
