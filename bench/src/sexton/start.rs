//! Start: executions that a program enqueues one by one on an idle platform, from the commit to the start of the task.
//!
//! A sample begins when the program has the answer to its commit, by this machine's clock, and ends with `started_at` of
//! the record, by the database's; so the two clocks must be one, as on one machine. What the enqueue and the commit
//! themselves take is not in it: `enqueue_ms` and `commit_ms` are their medians.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use sexton_client::{Client, Enqueue};
use sexton_service::clock;
use sexton_tests::platform::Platform;
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::{apply_unscheduled, handlers, line, stop, until, with};
use crate::Arguments;
use crate::line::{Line, at};

const JOB: &str = "bench.start";
/// Executions before every statement is prepared everywhere are not counted.
const WARM_UP: i64 = 10;
/// How far the two clocks may be apart.
const ONE_CLOCK: TimeDelta = TimeDelta::milliseconds(1);

/// Measures `--count` executions.
pub(super) async fn measure(platform: &Platform, arguments: &Arguments) -> Result<()> {
    let mut programs = vec![platform.start_scheduler("scheduler", &[])?];
    programs.extend(handlers(platform, arguments)?);
    for program in &mut programs {
        program.ready().await;
    }
    apply_unscheduled(platform, JOB).await?;
    let mut connection = PgConnection::connect(platform.database_url()).await?;
    ensure_one_clock(&mut connection).await?;
    let client = Client::new();
    let (mut committed, mut enqueues, mut commits) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..WARM_UP + arguments.count {
        tokio::time::sleep(pause(number)).await;
        let order =
            Enqueue::new(JOB).params(&json!({"order": number}))?.key(format!("order-{number}"));
        let mut tx = connection.begin().await?;
        let since = Instant::now();
        let id = client.enqueue(&mut tx, &order).await?.execution_id;
        let between = Instant::now();
        tx.commit().await?;
        let answered = clock::now();
        if number >= WARM_UP {
            committed.push((id, answered));
            enqueues.push((between - since).as_secs_f64() * 1e3);
            commits.push(between.elapsed().as_secs_f64() * 1e3);
        }
    }
    connection.close().await?;
    let ended = "SELECT NOT EXISTS (SELECT FROM sexton.executions WHERE state <> 'succeeded')";
    until(platform, "every execution has succeeded", ended).await?;
    let mut samples = samples(platform, &committed).await?;
    for sorted in [&mut samples, &mut enqueues, &mut commits] {
        sorted.sort_by(f64::total_cmp);
    }
    let (value, p99) = (at(&samples, 0.5), at(&samples, 0.99));
    let line = Line { value, samples, p99: Some(p99), ..line(arguments, "start") };
    let line = with(line, "enqueue_ms", at(&enqueues, 0.5));
    with(line, "commit_ms", at(&commits, 0.5)).print();
    stop(programs).await;
    Ok(())
}

/// Long enough for an idle platform, and of many lengths, so that no loop's pauses keep step with it.
fn pause(number: i64) -> Duration {
    Duration::from_millis(50 + (number * 37 % 100).unsigned_abs())
}

/// Fails unless the database's clock is this machine's.
async fn ensure_one_clock(connection: &mut PgConnection) -> Result<()> {
    let before = clock::now();
    let there: DateTime<Utc> =
        sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(connection).await?;
    let after = clock::now();
    ensure!(
        before - ONE_CLOCK < there && there < after + ONE_CLOCK,
        "the database's clock says {there} between {before} and {after}: it must be on this machine"
    );
    Ok(())
}

/// Returns the milliseconds from each commit to the start.
async fn samples(platform: &Platform, committed: &[(Uuid, DateTime<Utc>)]) -> Result<Vec<f64>> {
    let ids: Vec<Uuid> = committed.iter().map(|(id, _)| *id).collect();
    let started: Vec<(Uuid, DateTime<Utc>)> =
        sqlx::query_as("SELECT id, started_at FROM sexton.executions WHERE id = ANY ($1)")
            .bind(&ids)
            .fetch_all(platform.store().pool())
            .await?;
    let started: HashMap<Uuid, DateTime<Utc>> = started.into_iter().collect();
    committed
        .iter()
        .map(|(id, answered)| {
            let start = started.get(id).with_context(|| format!("execution {id} is missing"))?;
            Ok((*start - *answered).as_seconds_f64() * 1e3)
        })
        .collect()
}
