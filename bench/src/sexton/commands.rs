//! Commands: as the drain, with `/bin/true` as the task of each execution.

use anyhow::Result;
use sexton_tests::platform::Platform;

use super::{POOL, drain, stop};
use crate::Arguments;

/// Measures from the first open to the last record, by the database's clock.
pub(super) async fn measure(platform: &Platform, arguments: &Arguments) -> Result<()> {
    let mut scheduler = platform.start_scheduler("scheduler", &[])?;
    scheduler.ready().await;
    drain::fill(platform, "true", arguments.count).await?;
    let (slots, prefetch) = (arguments.slots.to_string(), arguments.prefetch.to_string());
    let env = [("WORKER_POOLS", POOL), ("WORKER_SLOTS", &slots), ("WORKER_PREFETCH", &prefetch)];
    let workers = (1..=arguments.workers)
        .map(|number| platform.start_worker(&format!("worker-{number}"), &env))
        .collect::<Result<_>>()?;
    drain::watch_to_the_end(platform, arguments, "commands", workers).await?;
    stop(vec![scheduler]).await;
    Ok(())
}
