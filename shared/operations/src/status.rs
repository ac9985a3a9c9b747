//! Is it well? The rows are the record and make up the answer; the broker is asked beside them how full its queues are,
//! and when it does not answer, that is part of the answer, too.

mod queues;
mod warnings;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_service::clock;
use sexton_service::settings::ConsoleSettings;
use sexton_store::instances::{self, Instance};
use sexton_store::status::{self, Overview, PoolCounts};
use sexton_store::{Store, catch_up, unknown_messages};

use crate::error::OperationError;

pub use queues::{PoolQueues, Queues};
pub use warnings::Warning;

/// The time that `FAILED_WARN_PER_HOUR` is about.
const FAILED_WINDOW_S: i64 = 3_600;

/// How the platform is.
#[derive(Debug)]
pub struct Status {
    /// Counts over everything.
    pub overview: Overview,
    /// By this host's clock, when they were counted.
    pub host_now: DateTime<Utc>,
    /// By pool.
    pub pools: Vec<PoolCounts>,
    /// Schedulers and workers that were heard of within a day.
    pub instances: Vec<Instance>,
    /// What the broker says, or why it says nothing.
    pub queues: Result<Queues, String>,
    /// Executions that failed within the last hour and are failed still.
    pub failed_last_hour: i64,
    /// What somebody should look at.
    pub warnings: Vec<Warning>,
}

/// Looks at the platform. It changes nothing, on either server.
///
/// # Errors
///
/// Those of the database; a broker that does not answer is none.
pub async fn read(store: &Store, settings: &ConsoleSettings) -> Result<Status, OperationError> {
    let overview = status::overview(store, None).await?;
    let host_now = clock::now();
    let pools = status::pools(store, None).await?;
    let instances = instances::list(store, None).await?;
    let names: Vec<&str> = pools.iter().map(|pool| pool.pool.as_str()).collect();
    let queues = queues::read_queues(settings, &names).await;
    let held = catch_up::find_hold(store).await?.map(Warning::held);
    let recent = status::failed_since(store, FAILED_WINDOW_S, None).await?;
    let overflow = unknown_messages::overflow(store).await?;
    let warnings = held
        .into_iter()
        .chain(pools.iter().filter_map(Warning::of))
        .chain(Warning::of_failed(&overview, recent, settings.failed))
        .chain(overflow.map(Warning::RawMessagesOverflow))
        .collect();
    let failed_last_hour = recent;
    Ok(Status { overview, host_now, pools, instances, queues, failed_last_hour, warnings })
}

impl Status {
    /// As one document.
    pub fn document(&self) -> Value {
        json!({
            "database": self.overview,
            "failed_last_hour": self.failed_last_hour,
            "instances": self.instances,
            "pools": self.pools.iter().map(|pool| self.with_queue(pool)).collect::<Vec<_>>(),
            "warnings": self.warnings,
            "broker": match &self.queues {
                Ok(queues) => json!({"reachable": true, "error": queues.missing(),
                                     "failed_ready": queues.failed_ready}),
                Err(why) => json!({"reachable": false, "error": why, "failed_ready": null}),
            },
        })
    }

    /// What is in a pool's queues; `None`: the broker was not asked, or not about that pool.
    pub fn queues_of(&self, pool: &PoolCounts) -> Option<&PoolQueues> {
        self.queues.as_ref().ok().and_then(|queues| queues.pools.get(&pool.pool))
    }

    fn with_queue(&self, pool: &PoolCounts) -> Value {
        let mut row = json!(pool);
        let queues = self.queues_of(pool);
        row["queue_ready"] = json!(queues.and_then(|queues| queues.ready));
        row["queue_consumers"] = json!(queues.and_then(|queues| queues.consumers));
        row["retry_queues_ready"] = json!(queues.and_then(|queues| queues.retry_ready));
        row
    }
}
