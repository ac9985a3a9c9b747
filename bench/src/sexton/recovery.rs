//! Recovery: from a worker's death in the middle of a task until the task has begun again.

use anyhow::Result;
use chrono::{DateTime, Utc};
use sexton_service::clock;
use sexton_tests::platform::Platform;

use super::{line, run, stop, until};
use crate::Arguments;
use crate::line::Line;

/// Measures once with a worker restarted in the dead one's place, once with another running worker.
pub(super) async fn measure(platform: &Platform, arguments: &Arguments) -> Result<()> {
    let scheduler = platform.start_scheduler("scheduler", &[])?;
    let job = |name: &str| format!("[[job]]\nname = \"{name}\"\ntask = \"wait\"\n");
    platform.apply(&[job("bench.again"), job("bench.other")].concat()).await?;
    let mut first = platform.start_worker("first", &[])?;
    first.ready().await;
    run(platform, &["jobs", "trigger", "bench.again"]).await?;
    let running = "SELECT count(*) = 1 FROM sexton.executions WHERE state = 'running'";
    until(platform, "it runs", running).await?;
    let killed = clock::now();
    first.kill();
    let mut again = platform.start_worker("first", &[])?;
    again.ready().await;
    let value = second_attempt(platform, "bench.again", killed).await?;
    Line { value, ..line(arguments, "recovery-again") }.print();

    again.kill();
    let mut alone = platform.start_worker("alone", &[])?;
    alone.ready().await;
    run(platform, &["jobs", "trigger", "bench.other"]).await?;
    let running =
        "SELECT count(*) = 1 FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
        WHERE e.state = 'running' AND j.name = 'bench.other'";
    until(platform, "it runs", running).await?;
    let mut other = platform.start_worker("other", &[])?;
    other.ready().await;
    let killed = clock::now();
    alone.kill();
    let value = second_attempt(platform, "bench.other", killed).await?;
    Line { value, ..line(arguments, "recovery-other") }.print();
    other.kill();
    stop(vec![scheduler]).await;
    Ok(())
}

/// Returns the time from the kill to the open of attempt 2, in milliseconds.
async fn second_attempt(platform: &Platform, job: &str, killed: DateTime<Utc>) -> Result<f64> {
    let again = async || {
        let opened = "SELECT a.opened_at FROM sexton.all_attempts a JOIN sexton.executions e ON e.id = a.execution_id
            JOIN sexton.jobs j ON j.id = e.job_id WHERE j.name = $1 AND a.number = 2";
        let opened = sqlx::query_scalar::<_, DateTime<Utc>>(opened).bind(job);
        opened.fetch_optional(platform.store().pool()).await.ok()?
    };
    let at = platform.eventually("it has begun again", super::DEADLINE, again).await;
    Ok((at - killed).as_seconds_f64() * 1_000.0)
}
