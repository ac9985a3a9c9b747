//! The real programs, killed, frozen and flooded.

mod accounts;
mod broker_wipe;
mod burst;
mod cancel;
mod clocks;
mod consuming;
mod crash_points;
mod draining;
mod encrypted_broker;
mod examples;
mod foreign;
mod frozen_worker;
mod granted_role;
mod handlers;
mod heartbeats;
mod imported_crontab;
mod instance_locks;
mod job_locks;
mod kills;
pub(crate) mod ledger;
mod long_tasks;
mod monitors;
mod output;
mod overlaps;
mod peers;
mod pooler;
mod pools;
mod retries;
mod shared_database;
mod sql;
mod stopped_server;
mod verification;

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_tests::platform::Platform;

/// How long anything may take that only has to happen in the end; CI machines are slow.
pub(crate) const FINAL_TIMEOUT: Duration = Duration::from_mins(2);

/// One number out of the database.
pub(crate) async fn count(platform: &Platform, what: &str) -> i64 {
    let statement = format!("SELECT count(*) FROM {what}");
    sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
        .fetch_one(platform.store().pool())
        .await
        .unwrap()
}

/// Waits until `what` has exactly `wanted` rows.
pub(crate) async fn until(platform: &Platform, what: &str, wanted: i64) {
    let description = format!("{wanted} rows of {what}");
    platform
        .eventually(&description, FINAL_TIMEOUT, async || {
            (count(platform, what).await == wanted).then_some(())
        })
        .await;
}

/// A jobs file of `count` jobs called `burst.0` … that are due at `due`.
pub(crate) fn all_due_at(due: DateTime<Utc>, count: usize, task: &str) -> String {
    let due = due.format("%Y-%m-%dT%H:%M:%S");
    let one = |n| format!("[[job]]\nname = \"burst.{n}\"\ntask = \"{task}\"\nat = \"{due}\"\n");
    (0..count).map(one).collect::<Vec<_>>().concat()
}

/// A jobs file of one job without a schedule.
pub(crate) fn by_hand(name: &str, task: &str, more: &str) -> String {
    format!("[[job]]\nname = \"{name}\"\ntask = \"{task}\"\n{more}\n")
}
