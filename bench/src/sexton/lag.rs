//! Lag: one job a second on an idle machine, from due to begun.

use std::time::Duration;

use anyhow::Result;
use sexton_tests::platform::Platform;

use super::{apply_tick, handlers, line, stop};
use crate::Arguments;
use crate::line::{Line, at};

/// Firings before every loop has had a round are not counted.
const WARM_UP: i64 = 5;

/// Measures by the database's clock.
pub(super) async fn measure(platform: &Platform, arguments: &Arguments) -> Result<()> {
    let mut programs = vec![platform.start_scheduler("scheduler", &[])?];
    programs.extend(handlers(platform, arguments)?);
    for program in &mut programs {
        program.ready().await;
    }
    apply_tick(platform, "bench.lag").await?;
    let wanted = WARM_UP + i64::from(arguments.seconds);
    let enough = async || {
        let count = "SELECT count(*) FROM sexton.executions WHERE state = 'succeeded'";
        let count: i64 = sqlx::query_scalar(count).fetch_one(platform.store().pool()).await.ok()?;
        (count >= wanted).then_some(())
    };
    let deadline = Duration::from_secs(u64::from(arguments.seconds) + 60);
    platform.eventually("as many firings as seconds", deadline, enough).await;
    let mut samples: Vec<f64> = sqlx::query_scalar(
        "SELECT extract(epoch FROM started_at - scheduled_for)::float8 * 1000
         FROM sexton.executions WHERE started_at IS NOT NULL ORDER BY scheduled_for OFFSET $1",
    )
    .bind(WARM_UP)
    .fetch_all(platform.store().pool())
    .await?;
    samples.sort_by(f64::total_cmp);
    let (value, p99) = (at(&samples, 0.5), at(&samples, 0.99));
    Line { value, samples, p99: Some(p99), ..line(arguments, "lag") }.print();
    stop(programs).await;
    Ok(())
}
