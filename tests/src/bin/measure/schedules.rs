//! What it costs a scheduler that many jobs are defined, and what it costs to define them.
//!
//! The same hundred jobs fire each minute among a thousand and among a million; the others are due in a
//! year. What the scheduler uses meanwhile is read from the kernel, what it asks of the table of jobs from
//! PostgreSQL's statistics: how many pages, and whether it ever read the whole table.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use sexton_tests::platform::{Platform, Program};

use super::figures::Figures;
use super::resident_mb;

/// Jobs of which each fires once a minute.
const DUE_EACH_MINUTE: i64 = 100;
/// How many there are in all.
const FEW_JOBS: i64 = 1_000;
const MANY_JOBS: i64 = 1_000_000;
/// Rows of one statement, which has to end within the limits of any other.
const INSERT_BATCH_ROWS: i64 = 20_000;
/// How long it is looked at.
const MEASURE_TIME: Duration = Duration::from_mins(1);
/// How many are applied from a file.
const APPLIED_JOBS: usize = 10_000;

/// Measures on two databases of their own.
pub(super) async fn measure(
    database_server: &str,
    amqp_url: &str,
    figures: &mut Figures,
) -> Result<()> {
    let mut platform = Platform::on(database_server, amqp_url).await?;
    applied(&mut platform, figures).await?;
    drop(platform);
    let platform = Platform::on(database_server, amqp_url).await?;
    for jobs in [FEW_JOBS, MANY_JOBS] {
        fill(&platform, jobs).await?;
        let mut scheduler = platform.start_scheduler("scheduler", &[])?;
        scheduler.ready().await;
        // Past what it does once, at its start.
        ended(&platform, DUE_EACH_MINUTE).await?;
        let cost = Cost::during(&platform, &scheduler).await?;
        let (processor, firings) = (cost.processor * 100.0, cost.firings);
        figures.add(
            format!("scheduler, {jobs} jobs, {firings} of them fired in a minute"),
            format!(
                "{processor:.2} % of a processor, {:.1} MB resident, {:.0} pages of the jobs' table per \
                 firing, read as a whole {} times",
                resident_mb(&scheduler)?,
                cost.pages as f64 / firings.max(1) as f64,
                cost.scans,
            ),
        );
        scheduler.terminate();
        scheduler.exit(MEASURE_TIME).await;
    }
    Ok(())
}

/// What a minute cost.
struct Cost {
    /// Of one processor; 1.0 is all of it.
    processor: f64,
    /// Claims.
    firings: i64,
    /// Pages of the table of jobs and of its indexes.
    pages: i64,
    /// Sequential scans of the table of jobs.
    scans: i64,
}

impl Cost {
    async fn during(platform: &Platform, scheduler: &Program) -> Result<Self> {
        let (pages, scans, firings) = Self::so_far(platform).await?;
        let (used, began) = (processor_time(scheduler)?, Instant::now());
        tokio::time::sleep(MEASURE_TIME).await;
        let used = processor_time(scheduler)?.saturating_sub(used);
        let processor = used.as_secs_f64() / began.elapsed().as_secs_f64();
        // The server's processes hand in what they counted once a second at most.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let (later_pages, later_scans, later_firings) = Self::so_far(platform).await?;
        Ok(Self {
            processor,
            firings: later_firings - firings,
            pages: later_pages - pages,
            scans: later_scans - scans,
        })
    }

    async fn so_far(platform: &Platform) -> Result<(i64, i64, i64)> {
        sqlx::query_as(
            "SELECT (SELECT heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read
                     FROM pg_statio_user_tables WHERE schemaname = 'sexton' AND relname = 'jobs')::bigint,
                    (SELECT seq_scan FROM pg_stat_user_tables WHERE schemaname = 'sexton' AND relname = 'jobs')::bigint,
                    (SELECT count(*) FROM sexton.executions)",
        )
        .fetch_one(platform.store().pool())
        .await
        .context("PostgreSQL's statistics cannot be read")
    }
}

fn processor_time(program: &Program) -> Result<Duration> {
    time_of(program.pid())
}

/// What a process of this machine has used of the processors so far.
pub(super) fn time_of(pid: u32) -> Result<Duration> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"))?;
    let mut nanos = 0;
    for thread in threads {
        // Time on a processor, in nanoseconds, is the first number.
        // A thread that has ended meanwhile has no account any more.
        let Ok(text) = std::fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        nanos += text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(nanos))
}

/// Makes it so many jobs: copies of one that was applied, the first hundred of which fire each minute.
async fn fill(platform: &Platform, jobs: i64) -> Result<()> {
    let one = "[[job]]\nname = \"many.first\"\ntask = \"noop\"\nschedule = \"0 0 1 1 *\"\n";
    platform.apply(one).await?;
    let there = "SELECT count(*) FROM sexton.jobs";
    let mut there: i64 = sqlx::query_scalar(there).fetch_one(platform.store().pool()).await?;
    while there < jobs {
        let upto = jobs.min(there + INSERT_BATCH_ROWS);
        copy(platform, there, upto - 1).await?;
        there = upto;
    }
    sqlx::query("VACUUM ANALYZE sexton.jobs").execute(platform.store().pool()).await?;
    Ok(())
}

/// Adds the copies of these numbers.
async fn copy(platform: &Platform, first: i64, last: i64) -> Result<()> {
    sqlx::query(
        // Lateral: a record that is made in the list of what is selected is made anew for each column.
        "INSERT INTO sexton.jobs SELECT made.*
         FROM sexton.jobs j, generate_series($1, $3) n, LATERAL jsonb_populate_record(j, jsonb_build_object(
             'id', gen_random_uuid(), 'name', 'many.' || n,
             'schedule_expression', CASE WHEN n <= $2 THEN (n % 60) || ' * * * * *'
                                         ELSE j.schedule_expression END,
             'next_fire_at', CASE WHEN n <= $2
                 THEN date_trunc('minute', now()) + interval '1 minute' + (n % 60) * interval '1 second'
                 ELSE now() + interval '1 year' END)) made
         WHERE j.name = 'many.first'",
    )
    .bind(first)
    .bind(DUE_EACH_MINUTE)
    .bind(last)
    .execute(platform.store().pool())
    .await?;
    Ok(())
}

/// Waits until so many more firings are claimed.
async fn ended(platform: &Platform, more: i64) -> Result<()> {
    let count = "SELECT count(*) FROM sexton.executions";
    let before: i64 = sqlx::query_scalar(count).fetch_one(platform.store().pool()).await?;
    let enough = async || {
        let now: i64 = sqlx::query_scalar(count).fetch_one(platform.store().pool()).await.ok()?;
        (now >= before + more).then_some(())
    };
    platform.eventually("a minute's firings", Duration::from_mins(5), enough).await;
    Ok(())
}

/// How long it takes to apply a large file, to change all of it, and to find it unchanged.
async fn applied(platform: &mut Platform, figures: &mut Figures) -> Result<()> {
    let file = |hour: u8| {
        (0..APPLIED_JOBS).fold(String::new(), |mut text, number| {
            let minute = number % 60;
            // Writing to a String cannot fail.
            let _ = write!(
                text,
                "[[job]]\nname = \"applied.n{number}\"\ntask = \"noop\"\n\
                 schedule = \"{minute} {hour} * * *\"\ntimezone = \"Europe/Vienna\"\n"
            );
            text
        })
    };
    for (what, hour) in [("new", 1), ("changed", 2), ("unchanged", 2)] {
        let path = platform.folder().join("many.toml");
        std::fs::write(&path, file(hour))?;
        let began = Instant::now();
        let path = path.to_str().context("the folder's name")?;
        let done = platform.try_sexton(&["jobs", "apply", "-f", path]).await?;
        ensure!(done.status.success(), "sexton jobs apply failed: {done}");
        let took = began.elapsed().as_secs_f64();
        figures.add(format!("{APPLIED_JOBS} jobs applied, {what}"), format!("{took:.1} s"));
    }
    Ok(())
}
