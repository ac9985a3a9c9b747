//! The platform's state as a document.

use serde::Serialize;
use sexton_store::incidents::OpenIncidents;
use sexton_store::instances::Instance;
use sexton_store::status::{Overview, PoolCounts};

use super::{Status, Warning};

/// The platform's state.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StatusReport {
    /// Counts over the whole platform.
    pub database: Overview,
    /// Executions that failed within the last hour and are still failed.
    pub failed_last_hour: i64,
    /// The open incidents at a glance.
    pub incidents: OpenIncidents,
    /// Schedulers and workers with a heartbeat within a day.
    pub instances: Vec<Instance>,
    /// By pool.
    pub pools: Vec<PoolReport>,
    /// Conditions that need attention.
    pub warnings: Vec<Warning>,
    /// Whether the broker answers.
    pub broker: BrokerReport,
}

/// A pool: its rows, and how full its queues are.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PoolReport {
    /// Its rows.
    #[serde(flatten)]
    pub counts: PoolCounts,
    /// Ready messages in its main queue; `None`: the broker did not report it.
    pub queue_ready: Option<u64>,
    /// Consumers of its main queue.
    pub queue_consumers: Option<u64>,
    /// Messages in its delay queues.
    pub retry_queues_ready: Option<u64>,
}

/// The broker's answer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BrokerReport {
    /// Whether it answers.
    pub reachable: bool,
    /// Why it does not, or what is missing there; `None`: all is well.
    pub error: Option<String>,
    /// Ready messages in the failed queue.
    pub failed_ready: Option<u64>,
}

impl StatusReport {
    /// Makes the document of a state.
    pub(super) fn new(status: &Status) -> Self {
        let pools = status.recorded.pools.iter().map(|counts| {
            let queues = status.queues_of(counts);
            PoolReport {
                counts: counts.clone(),
                queue_ready: queues.and_then(|queues| queues.ready),
                queue_consumers: queues.and_then(|queues| queues.consumers),
                retry_queues_ready: queues.and_then(|queues| queues.retry_ready),
            }
        });
        let broker = match &status.queues {
            Ok(queues) => BrokerReport {
                reachable: true,
                error: queues.missing(),
                failed_ready: queues.failed_ready,
            },
            Err(why) => {
                BrokerReport { reachable: false, error: Some(why.clone()), failed_ready: None }
            }
        };
        Self {
            database: status.recorded.overview.clone(),
            failed_last_hour: status.recorded.failed_last_hour,
            incidents: status.recorded.incidents.clone(),
            instances: status.recorded.instances.clone(),
            pools: pools.collect(),
            warnings: status.recorded.warnings.clone(),
            broker,
        }
    }
}
