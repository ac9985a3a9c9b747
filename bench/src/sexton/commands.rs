//! Commands: as the drain, with `/bin/true` as the task of each execution.

use anyhow::Result;
use sexton_tests::platform::Platform;

use super::{drain, stop, workers};
use crate::Arguments;

/// Measures from the first open to the last record, by the database's clock.
pub(super) async fn measure(platform: &Platform, arguments: &Arguments) -> Result<()> {
    let mut scheduler = platform.start_scheduler("scheduler", &[])?;
    scheduler.ready().await;
    drain::fill(platform, "true", arguments.count).await?;
    let workers = workers(arguments, |name, env| platform.start_worker(name, env))?;
    drain::watch_to_the_end(platform, arguments, "commands", workers).await?;
    stop(vec![scheduler]).await;
    Ok(())
}
