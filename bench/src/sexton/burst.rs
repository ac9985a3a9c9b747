//! Burst: many jobs that are due at the same instant, until the last task has begun.

use std::time::Duration;

use anyhow::Result;
use chrono::{DateTime, Utc};
use sexton_store::measurement;
use sexton_tests::platform::Platform;

use super::{POOL, handlers, line, stop, until, with};
use crate::Arguments;
use crate::line::Line;

/// Time for the programs before the jobs are due.
const LEAD_TIME: Duration = Duration::from_secs(10);

/// Measures from the nominal time to the last open, by the database's clock.
pub(super) async fn measure(platform: &Platform, arguments: &Arguments) -> Result<()> {
    let mut programs = vec![platform.start_scheduler("scheduler", &[])?];
    programs.extend(handlers(platform, arguments)?);
    for program in &mut programs {
        program.ready().await;
    }
    // Rarely, so that each of them fires once.
    let one = format!(
        "[[job]]\nname = \"bench.first\"\ntask = \"nothing\"\npool = \"{POOL}\"\n\
         schedule = \"0 0 1 1 *\"\n"
    );
    platform.apply(&one).await?;
    let due: DateTime<Utc> =
        sqlx::query_scalar("SELECT date_trunc('second', clock_timestamp()) + $1::interval")
            .bind(LEAD_TIME)
            .fetch_one(platform.store().pool())
            .await?;
    measurement::copy_job(platform.store(), "bench.first", u32::try_from(arguments.count)?, due)
        .await?;
    sqlx::query("VACUUM ANALYZE sexton.jobs").execute(platform.store().pool()).await?;
    let begun = "SELECT (SELECT count(*) FROM sexton.jobs) - 1
        = (SELECT count(*) FROM sexton.executions WHERE started_at IS NOT NULL)";
    until(platform, "every job has begun", begun).await?;
    let late: Vec<f64> = sqlx::query_scalar(
        "SELECT extract(epoch FROM started_at - scheduled_for)::float8 * 1000
         FROM sexton.executions ORDER BY started_at",
    )
    .fetch_all(platform.store().pool())
    .await?;
    let value = late.last().copied().unwrap_or(f64::NAN);
    let first = late.first().copied().unwrap_or(f64::NAN);
    let figure = Line { value, ..line(arguments, "burst") };
    with(with(figure, "count", arguments.count as f64), "first_ms", first).print();
    stop(programs).await;
    Ok(())
}
