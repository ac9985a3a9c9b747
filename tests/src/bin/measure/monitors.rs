//! How soon monitors find out, and what it costs that very many of them look.
//!
//! Daily jobs, spread evenly over the day, each with a deadline 30 s after it fires. Nineteen of twenty run; no worker
//! serves the others. Then a thousand more miss their deadlines at one instant. A deadline that was met was judged when
//! `checked_at` says so; one that was missed when the transaction that opens the incident commits, which a deferred trigger records.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use chrono::{DateTime, Utc};
use sexton_tests::platform::Platform;
use sqlx::PgPool;

use super::figures::{Figures, Spread};
use super::hook::Hook;
use super::meter::Meter;
use super::resident_mb;

/// Rows of one statement, which has to end within the limits of any other.
pub(super) const INSERT_BATCH_ROWS: i64 = 20_000;
/// How long a platform without jobs is looked at.
pub(super) const IDLE_TIME: Duration = Duration::from_secs(30);
/// How long one with all jobs is looked at.
pub(super) const MEASURE_TIME: Duration = Duration::from_secs(90);
/// What is sent about a burst within that time is counted. The next digest comes after five minutes.
const SENDING_TIME: Duration = Duration::from_secs(15);
/// From the instant at which the burst is prepared to its firing.
pub(super) const BURST_NOTICE: Duration = Duration::from_secs(15);
/// Jobs that miss their deadlines at one instant.
pub(super) const BURST: i64 = 1_000;
/// How long the slowest part may take.
pub(super) const DEADLINE: Duration = Duration::from_mins(5);
/// The median may be near the goal and the p99 twice as far; this only ends a run in which nothing is judged at all.
pub(super) const JUDGED_WITHIN: Duration = Duration::from_mins(2);
const ONE: &str = "[[job]]\nname = \"many.first\"\ntask = \"nothing\"\nschedule = \"0 0 1 1 *\"\nexpect_within = \"30s\"\n";

/// Measures with so many jobs, on a database of its own.
pub(super) async fn measure(
    database_server: &str,
    amqp_url: &str,
    count: i64,
    figures: &mut Figures,
) -> Result<()> {
    let platform = Platform::on(database_server, amqp_url).await?;
    let pool = platform.store().pool();
    let mut scheduler = platform.start_scheduler("scheduler", &[])?;
    let mut worker = platform.start_nothing("worker", &[])?;
    scheduler.ready().await;
    worker.ready().await;
    platform.apply(ONE).await?;
    let (scheduler_share, backends) = Meter::of(&scheduler, pool).over(IDLE_TIME).await?;
    let idle = share(scheduler_share, backends);
    figures.add("processor, without jobs: scheduler, PostgreSQL for it", idle);

    scheduler.terminate();
    scheduler.exit(DEADLINE).await;
    fill(pool, count).await?;
    let began = Instant::now();
    let mut scheduler = platform.start_scheduler("scheduler", &[])?;
    scheduler.ready().await;
    let overdue = "SELECT count(*) FROM sexton.job_monitors WHERE next_check_at <= now() - interval '1 second'";
    until(&platform, "all monitors are checked once", overdue, 0).await;
    let took = began.elapsed().as_secs_f64();
    figures.add(
        format!("first check of {count} monitors, with the scheduler's start"),
        format!("{took:.1} s"),
    );
    sqlx::raw_sql("VACUUM (ANALYZE) sexton.job_monitors, sexton.jobs").execute(pool).await?;

    let (rss, from) = (resident_mb(&scheduler)?, clock(pool).await?);
    let (scheduler_share, backends) = Meter::of(&scheduler, pool).over(MEASURE_TIME).await?;
    figures.add(
        format!("processor, with {count} jobs: scheduler, PostgreSQL for it"),
        share(scheduler_share, backends),
    );
    let (met, missed) = (met(pool, from).await?, missed(pool, "nobodys", from).await?);
    ensure!(!met.is_empty() && !missed.is_empty(), "no deadline was judged");
    figures.add("from a deadline that was met to its check", Spread::new(met).render());
    figures
        .add("from one that was missed to its incident, committed", Spread::new(missed).render());

    let hook = listen(&platform).await?;
    burst(pool).await?;
    let opened = "SELECT count(*) FROM judged WHERE pool = 'burst'";
    until(&platform, "all of the burst have incidents", opened, BURST).await;
    let lags = Spread::new(missed_of(pool, "burst").await?);
    figures.add(
        format!("{BURST} deadlines missed at one instant: to the incident, committed"),
        lags.render(),
    );
    messages(pool, &hook, figures).await?;
    let end = resident_mb(&scheduler)?;
    figures
        .add("scheduler, before and after all that", format!("{rss:.1} and {end:.1} MB resident"));
    for program in [&mut worker, &mut scheduler] {
        program.terminate();
        program.exit(DEADLINE).await;
    }
    Ok(())
}

/// Sends incidents of the burst to one webhook from now on.
pub(super) async fn listen(platform: &Platform) -> Result<Hook> {
    let hook = Hook::listen().await?;
    let alerts = platform.folder().join("alerts.toml");
    std::fs::write(&alerts, hook.alerts("burst"))?;
    let alerts = alerts.display().to_string();
    let applied = platform.try_sexton(&["alerts", "apply", "-f", &alerts]).await?;
    ensure!(applied.status.success(), "sexton alerts apply failed: {applied}");
    Ok(hook)
}

/// How many messages come of the burst.
pub(super) async fn messages(pool: &PgPool, hook: &Hook, figures: &mut Figures) -> Result<()> {
    tokio::time::sleep(SENDING_TIME).await;
    let sent = "SELECT count(*) FROM sexton.notifications WHERE state = 'sent' AND kind = 'opened'";
    let sent: i64 = sqlx::query_scalar(sent).fetch_one(pool).await?;
    figures.add(
        format!("messages about these to one webhook, within {} s", SENDING_TIME.as_secs()),
        format!(
            "{}, with {sent} incidents, {} of them in digests",
            hook.messages(),
            hook.digested()
        ),
    );
    ensure!(hook.messages() < 50, "that is a flood");
    Ok(())
}

pub(super) fn share(scheduler: f64, backends: f64) -> String {
    format!("{:.2} and {:.2} % of a processor", scheduler * 100.0, backends * 100.0)
}

async fn clock(pool: &PgPool) -> Result<DateTime<Utc>> {
    Ok(sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(pool).await?)
}

pub(super) async fn until(platform: &Platform, what: &str, query: &'static str, expected: i64) {
    let reached = async || {
        let count: i64 = sqlx::query_scalar(query).fetch_one(platform.store().pool()).await.ok()?;
        (count == expected).then_some(())
    };
    platform.eventually(what, DEADLINE, reached).await;
}

/// So many daily jobs, and a success of each that is a day old. One of twenty has no worker; those of the burst do not fire.
async fn fill(pool: &PgPool, count: i64) -> Result<()> {
    for first in (1..=count + BURST).step_by(INSERT_BATCH_ROWS as usize) {
        sqlx::query(
            "INSERT INTO sexton.jobs SELECT made.*
             FROM sexton.jobs j, generate_series($1, $2) n,
             LATERAL (SELECT n * 86400 / $3 % 86400 AS second) s,
             LATERAL (SELECT date_trunc('day', now(), 'UTC') + s.second * interval '1 second' AS today) t,
             LATERAL jsonb_populate_record(j, jsonb_build_object(
                 'id', gen_random_uuid(), 'name', 'many.' || n,
                 'labels', CASE WHEN n > $3 THEN jsonb_build_object('part', 'burst') ELSE '{}' END,
                 'pool', CASE WHEN n > $3 THEN 'burst' WHEN n % 20 = 0 THEN 'nobodys' ELSE 'default' END,
                 'schedule_expression', CASE WHEN n > $3 THEN j.schedule_expression
                     ELSE format('%s %s %s * * *', second % 60, second / 60 % 60, second / 3600) END,
                 'next_fire_at', CASE WHEN n > $3 THEN j.next_fire_at
                     ELSE today + CASE WHEN today < now() + interval '10 s' THEN interval '1 day' ELSE interval '0' END END))
                 made
             WHERE j.name = 'many.first'",
        )
        .bind(first)
        .bind((count + BURST).min(first + INSERT_BATCH_ROWS - 1))
        .bind(count)
        .execute(pool)
        .await?;
    }
    // As the planner and a worker left them yesterday; what they wake is not measured.
    let mut connection = pool.acquire().await?;
    sqlx::raw_sql(
        "SET session_replication_role = replica;
         SET statement_timeout = 0;
         INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool, params,
             idempotency_key, claimed_by, claimed_at, ticket_published_at, relay_after, started_at, finished_at, outcome, tz_version)
         SELECT gen_random_uuid(), j.id, 'yesterday', t, 'succeeded', j.task_type, j.pool, '{}', j.name || ':yesterday',
             's1:1', t, t, t, t, t, 'succeeded', 'x'
         FROM sexton.jobs j, LATERAL (SELECT j.next_fire_at - interval '1 day' AS t) t WHERE j.name <> 'many.first';
         SET session_replication_role = origin;
         RESET statement_timeout;
         ANALYZE sexton.jobs, sexton.executions, sexton.job_monitors;
         CREATE TABLE judged (pool text, deadline timestamptz, at timestamptz);
         CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO public.judged SELECT e.pool, e.scheduled_for + interval '30 s', clock_timestamp()
             FROM sexton.executions e WHERE e.id = NEW.execution_id;
             RETURN NULL;
         END $$;
         CREATE CONSTRAINT TRIGGER judge AFTER INSERT ON sexton.incidents DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION judge()",
    )
    .execute(&mut *connection)
    .await?;
    // Sessions keep their settings.
    let _closed = connection.detach();
    Ok(())
}

/// Lets the jobs of the burst fire together, a little later.
async fn burst(pool: &PgPool) -> Result<()> {
    let seconds = BURST_NOTICE.as_secs() as i64;
    sqlx::query(
        "UPDATE sexton.jobs SET revision = revision + 1, next_fire_at = t, next_nominal_at = NULL, schedule_expression =
             to_char(t AT TIME ZONE 'UTC', 'FMSS FMMI FMHH24 * * *')
         FROM (SELECT date_trunc('second', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' + $1 * interval '1 second' AS t) t
         WHERE pool = 'burst'",
    )
    .bind(seconds)
    .execute(pool)
    .await?;
    sqlx::query("SELECT pg_notify('sexton', 'jobs')").execute(pool).await?;
    Ok(())
}

/// Milliseconds from the deadlines since then that were met to their checks.
async fn met(pool: &PgPool, from: DateTime<Utc>) -> Result<Vec<f64>> {
    let began = Instant::now();
    loop {
        let lags: Vec<Option<f64>> = sqlx::query_scalar(
            "SELECT CASE WHEN m.checked_at >= d.deadline THEN extract(epoch FROM m.checked_at - d.deadline)::float8 * 1000 END
             FROM sexton.executions e JOIN sexton.job_monitors m ON m.job_id = e.job_id,
                 LATERAL (SELECT e.scheduled_for + interval '30 s' AS deadline) d
             WHERE e.state = 'succeeded' AND e.execution_key <> 'yesterday' AND d.deadline BETWEEN $1 AND $1 + $2 * interval '1 second'
               -- One that was checked between the success and the deadline has nothing to look for then.
               AND NOT (m.checked_at >= e.finished_at AND m.checked_at < d.deadline)",
        )
        .bind(from)
        .bind(MEASURE_TIME.as_secs() as i64)
        .fetch_all(pool)
        .await?;
        if lags.iter().all(Option::is_some) {
            return Ok(lags.into_iter().flatten().collect());
        }
        ensure!(began.elapsed() < JUDGED_WITHIN, "some deadlines are not judged");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Milliseconds from the deadlines of a pool since then that were missed to their incidents.
async fn missed(pool: &PgPool, of: &str, from: DateTime<Utc>) -> Result<Vec<f64>> {
    let until = from + MEASURE_TIME;
    let began = Instant::now();
    loop {
        let left: i64 = sqlx::query_scalar(
            "SELECT (SELECT count(*) FROM sexton.executions WHERE pool = $1 AND state = 'pending'
                     AND scheduled_for + interval '30 s' BETWEEN $2 AND $3)
                  - (SELECT count(*) FROM judged WHERE pool = $1 AND deadline BETWEEN $2 AND $3)",
        )
        .bind(of)
        .bind(from)
        .bind(until)
        .fetch_one(pool)
        .await?;
        if left <= 0 {
            break;
        }
        ensure!(began.elapsed() < JUDGED_WITHIN, "{left} missed deadlines are not judged");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let lags = "SELECT extract(epoch FROM at - deadline)::float8 * 1000 FROM judged WHERE pool = $1 AND deadline BETWEEN $2 AND $3";
    Ok(sqlx::query_scalar(lags).bind(of).bind(from).bind(until).fetch_all(pool).await?)
}

async fn missed_of(pool: &PgPool, of: &str) -> Result<Vec<f64>> {
    let lags =
        "SELECT extract(epoch FROM at - deadline)::float8 * 1000 FROM judged WHERE pool = $1";
    Ok(sqlx::query_scalar(lags).bind(of).fetch_all(pool).await?)
}
