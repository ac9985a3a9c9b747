//! As [`super::monitors`], of jobs that run elsewhere and ping.
//!
//! Checks with a period of a day, whose deadlines are spread evenly over the day. Nineteen of twenty have pinged an hour before
//! their deadlines, the others have not. Then a thousand more miss their deadlines at one instant.

use std::time::Instant;

use anyhow::{Result, ensure};
use chrono::{DateTime, Utc};
use sexton_tests::platform::Platform;
use sqlx::PgPool;

use super::figures::{Figures, Spread};
use super::meter::Meter;
use super::monitors::{
    BURST, BURST_NOTICE, DEADLINE, IDLE_TIME, INSERT_BATCH_ROWS, JUDGED_WITHIN, MEASURE_TIME,
    listen, messages, share, until,
};
use super::resident_mb;

/// Between two looks at what is judged.
const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(200);

/// Measures with so many checks, on a database of its own.
pub(super) async fn measure(
    database_server: &str,
    amqp_url: &str,
    count: i64,
    figures: &mut Figures,
) -> Result<()> {
    let platform = Platform::on(database_server, amqp_url).await?;
    let pool = platform.store().pool();
    prepare(pool).await?;
    let mut server = platform.start_server("serve", &[])?;
    let mut scheduler = platform.start_scheduler("scheduler", &[])?;
    server.ready().await;
    scheduler.ready().await;
    let (scheduler_share, backends) = Meter::of(&scheduler, pool).over(IDLE_TIME).await?;
    let idle = share(scheduler_share, backends);
    figures.add("processor, without checks: scheduler, PostgreSQL for it", idle);

    fill(pool, count).await?;
    sqlx::raw_sql("VACUUM (ANALYZE) sexton.checks, sexton.pings").execute(pool).await?;
    let rss = resident_mb(&scheduler)?;
    let from: DateTime<Utc> =
        sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(pool).await?;
    let (scheduler_share, backends) = Meter::of(&scheduler, pool).over(MEASURE_TIME).await?;
    figures.add(
        format!("processor, with {count} checks: scheduler, PostgreSQL for it"),
        share(scheduler_share, backends),
    );
    let met = judged(pool, "met", from).await?;
    let missed = judged(pool, "missed", from).await?;
    ensure!(!met.is_empty() && !missed.is_empty(), "no deadline was judged");
    figures.add("a check's deadline that was met, to its judgement", Spread::new(met).render());
    figures.add("one that was missed, to its incident, committed", Spread::new(missed).render());

    let hook = listen(&platform).await?;
    let from = burst(pool).await?;
    let opened =
        "SELECT count(*) FROM judged j JOIN deadlines d ON d.id = j.id WHERE d.part = 'burst'";
    until(&platform, "all checks of the burst have incidents", opened, BURST).await;
    let lags = judged(pool, "burst", from).await?;
    figures.add(
        format!("deadlines of {BURST} checks missed at one instant: to the incident, committed"),
        Spread::new(lags).render(),
    );
    messages(pool, &hook, figures).await?;
    let end = resident_mb(&scheduler)?;
    figures.add(
        "scheduler, before and after the deadlines of checks",
        format!("{rss:.1} and {end:.1} MB resident"),
    );
    for program in [&mut server, &mut scheduler] {
        program.terminate();
        program.exit(DEADLINE).await;
    }
    Ok(())
}

/// What remembers deadlines and judgements, and pings that have been accepted for a long time.
async fn prepare(pool: &PgPool) -> Result<()> {
    sqlx::raw_sql(
        "CREATE TABLE deadlines (id text PRIMARY KEY, part text NOT NULL, deadline timestamptz NOT NULL);
         CREATE TABLE judged (id text NOT NULL, at timestamptz NOT NULL);
         CREATE FUNCTION judge() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             INSERT INTO public.judged VALUES (NEW.subject, clock_timestamp());
             RETURN NULL;
         END $$;
         CREATE CONSTRAINT TRIGGER judge AFTER INSERT ON sexton.incidents DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION judge();
         INSERT INTO sexton.ping_endpoint (up_since, seen_at) VALUES (now() - interval '3 days', now())",
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// So many checks, a day between each one's deadlines.
async fn fill(pool: &PgPool, count: i64) -> Result<()> {
    let from: DateTime<Utc> =
        sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(pool).await?;
    for first in (1..=count).step_by(INSERT_BATCH_ROWS as usize) {
        let last = count.min(first + INSERT_BATCH_ROWS - 1);
        let part = "CASE WHEN n % 20 = 0 THEN 'missed' ELSE 'met' END";
        let deadline = "$3::timestamptz + n * interval '1 day' / $4";
        checks(pool, (first, last), (part, deadline), (from, count)).await?;
    }
    let again = "INSERT INTO sexton.pings (check_id, at, kind)
         SELECT d.id::uuid, d.deadline - interval '1 hour', 'success' FROM deadlines d
         WHERE d.part = 'met' AND d.deadline < now() + interval '1 hour'";
    sqlx::query(again).execute(pool).await?;
    Ok(())
}

/// Checks whose deadlines are at one instant, a little later. Returns when it was.
async fn burst(pool: &PgPool) -> Result<DateTime<Utc>> {
    let at: DateTime<Utc> = sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(pool).await?;
    let deadline = "$3::timestamptz + 0 * $4 * interval '1 second'";
    checks(pool, (1, BURST), ("'burst'", deadline), (at + BURST_NOTICE, 0)).await?;
    Ok(at)
}

/// Defines the checks of these numbers, which have pinged 25 hours before their deadlines; an hour of that is their grace.
async fn checks(
    pool: &PgPool,
    (first, last): (i64, i64),
    (part, deadline): (&str, &str),
    (from, count): (DateTime<Utc>, i64),
) -> Result<()> {
    let statement = format!(
        "WITH made AS MATERIALIZED (
             SELECT gen_random_uuid() AS id, n, {part} AS part, {deadline} AS deadline FROM generate_series($1, $2) n),
         known AS (INSERT INTO deadlines SELECT id::text, part, deadline FROM made),
         pinged AS (
             INSERT INTO sexton.pings (check_id, at, kind) SELECT id, deadline - interval '25 hours', 'success' FROM made)
         INSERT INTO sexton.checks (id, name, every_ms, grace_ms, labels, created_at, changed_at, next_check_at, checked_at)
         SELECT id, part || '-' || n, 86400000, 3600000, jsonb_build_object('part', part), now() - interval '3 days',
                now() - interval '3 days', deadline, now()
         FROM made"
    );
    sqlx::query(sqlx::AssertSqlSafe(statement))
        .bind(first)
        .bind(last)
        .bind(from)
        .bind(count)
        .execute(pool)
        .await?;
    Ok(())
}

/// Milliseconds from the deadlines since then to their judgements.
async fn judged(pool: &PgPool, part: &str, from: DateTime<Utc>) -> Result<Vec<f64>> {
    let began = Instant::now();
    loop {
        let lags: Vec<Option<f64>> = sqlx::query_scalar(
            "SELECT CASE WHEN j.at IS NOT NULL THEN extract(epoch FROM j.at - d.deadline)::float8 * 1000
                         WHEN d.part = 'met' AND c.checked_at >= d.deadline
                             THEN extract(epoch FROM c.checked_at - d.deadline)::float8 * 1000 END
             FROM deadlines d JOIN sexton.checks c ON c.id = d.id::uuid LEFT JOIN judged j ON j.id = d.id
             WHERE d.part = $1 AND d.deadline BETWEEN $2 AND $2 + $3 * interval '1 second'",
        )
        .bind(part)
        .bind(from)
        .bind(MEASURE_TIME.as_secs() as i64)
        .fetch_all(pool)
        .await?;
        if lags.iter().all(Option::is_some) {
            return Ok(lags.into_iter().flatten().collect());
        }
        ensure!(began.elapsed() < JUDGED_WITHIN, "some deadlines are not judged");
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
