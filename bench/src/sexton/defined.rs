//! Defined: the cost of firing beside many other jobs that are defined and not due.
//!
//! The same hundred jobs fire once a second beside `--count` jobs that fire once a year. The figures are the
//! processor time of the scheduler and of PostgreSQL's processes for the firings of a second, and their lag.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use sexton_store::measurement;
use sexton_tests::platform::Platform;

use super::backends::Backends;
use super::memory::resident_mb;
use super::{POOL, handlers, line, stop, with};
use crate::Arguments;
use crate::line::{Line, at};
use crate::processor::used_by;

const FIRING: u32 = 100;
/// Firings before every loop has had a round are not counted.
const WARM_UP: Duration = Duration::from_secs(5);

/// Measures for `--seconds`.
pub(super) async fn measure(platform: &Platform, arguments: &Arguments) -> Result<()> {
    define(platform, arguments.count).await?;
    let mut programs = vec![platform.start_scheduler("scheduler", &[])?];
    programs.extend(handlers(platform, arguments)?);
    for program in &mut programs {
        program.ready().await;
    }
    let pool = platform.store().pool();
    tokio::time::sleep(WARM_UP).await;
    let (before, scheduler) = (Backends::read(pool).await?, used_by(programs[0].pid())?);
    let since = sexton_service::clock::now();
    tokio::time::sleep(Duration::from_secs(u64::from(arguments.seconds))).await;
    let postgres = Backends::read(pool).await?.since(&before);
    let scheduler = used_by(programs[0].pid())?.saturating_sub(scheduler);
    let mut lags: Vec<f64> = sqlx::query_scalar(
        "SELECT extract(epoch FROM started_at - scheduled_for)::float8 * 1000
         FROM sexton.executions WHERE started_at IS NOT NULL AND scheduled_for > $1",
    )
    .bind(since)
    .fetch_all(pool)
    .await?;
    lags.sort_by(f64::total_cmp);
    let a_second = |used: Duration| used.as_secs_f64() * 1e3 / f64::from(arguments.seconds);
    let value = a_second(postgres + scheduler);
    let line = of_processor(Line { value, ..line(arguments, "defined") }, arguments.count);
    let line = with(with(line, "lag_p50", at(&lags, 0.5)), "lag_p99", at(&lags, 0.99));
    let line = with(line, "postgres_ms", a_second(postgres));
    with(line, "scheduler_mb", resident_mb(&programs[0])?).print();
    stop(programs).await;
    Ok(())
}

fn of_processor(mut line: Line, defined: i64) -> Line {
    line.settings.insert("part".to_owned(), json!(format!("{defined} jobs defined")));
    line
}

/// Defines the jobs that fire, and copies of one that does not.
async fn define(platform: &Platform, count: i64) -> Result<()> {
    let job = |name: &str, schedule: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\ntask = \"nothing\"\npool = \"{POOL}\"\n\
             schedule = \"{schedule}\"\noverlap = \"allow\"\n"
        )
    };
    let firing: String =
        (1..=FIRING).map(|number| job(&format!("bench.firing.{number}"), "* * * * * *")).collect();
    platform.apply(&(firing + &job("bench.yearly", "0 0 1 1 *"))).await?;
    let pool = platform.store().pool();
    let due = "SELECT next_fire_at FROM sexton.jobs WHERE name = 'bench.yearly'";
    let due = sqlx::query_scalar(due).fetch_one(pool).await?;
    measurement::copy_job(platform.store(), "bench.yearly", u32::try_from(count)?, due).await?;
    // The vacuum and writes after the insert do not belong to the firings.
    sqlx::query("VACUUM ANALYZE sexton.jobs, sexton.job_revisions").execute(pool).await?;
    sqlx::query("CHECKPOINT").execute(pool).await?;
    Ok(())
}
