//! Bad input, with the real programs on real servers.
//!
//! Goal: the programs answer every bad input from outside (messages, files, settings, credentials,
//! a server that is away) with a sentence that tells somebody what to do; nothing is lost, nothing
//! loops hot, nothing panics. Method: programs start as deployers start them, the tests publish and
//! read messages without Sexton, and check rows, queues, logs and exit statuses. Waits are for such
//! events, each with a deadline.

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

mod adoption;
mod arguments;
mod catalogue;
mod credentials;
mod flood;
mod foreign;
mod messages;
mod outage;
mod params;
mod parking;
pub(crate) mod probe;
pub(crate) mod properties;
pub(crate) mod raw;
mod settings;
mod start;
mod task_type;
pub(crate) mod wire;

use std::time::Duration;

use sexton_tests::platform::{Platform, Program};
use uuid::Uuid;

/// Long enough for a loaded machine, short enough to fail by.
const DEADLINE: Duration = Duration::from_secs(40);

/// A worker that offers one task type, `report`, which succeeds.
const CATALOGUE: &str = "[tasks.report]\ncommand = [\"/bin/true\"]\n";

/// A platform whose workers have [`CATALOGUE`].
async fn platform() -> Platform {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue(CATALOGUE);
    platform
}

/// A worker with one slot, so that it handles messages one after the other.
async fn one_slot(platform: &Platform) -> Program {
    let mut worker = platform.start_worker("w1", &[("WORKER_SLOTS", "1")]).unwrap();
    worker.ready().await;
    worker
}

/// Waits until the execution with this key has succeeded.
async fn succeeded(platform: &Platform, key: &str) {
    let what = format!("{key} succeeds");
    let pool = platform.store().pool();
    let check = async || {
        let state: Option<String> =
            sqlx::query_scalar("SELECT state FROM sexton.executions WHERE execution_key = $1")
                .bind(key)
                .fetch_optional(pool)
                .await
                .ok()?;
        (state? == "succeeded").then_some(())
    };
    platform.eventually(&what, DEADLINE, check).await;
}

/// Triggers a job as an operator does; returns the execution's id.
async fn trigger(platform: &Platform, job: &str) -> Uuid {
    let answer = platform.sexton_json(&["jobs", "trigger", job]).await;
    Uuid::parse_str(answer["id"].as_str().unwrap()).unwrap()
}

/// The number of executions in this state.
async fn in_state(platform: &Platform, state: &str) -> Option<i64> {
    sqlx::query_scalar("SELECT count(*) FROM sexton.executions WHERE state = $1")
        .bind(state)
        .fetch_one(platform.store().pool())
        .await
        .ok()
}
