//! The content of an arena's queues, for people who look for a lost ticket.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use sexton_broker::names::{failed_queue, main_queue, retry_queue};
use sexton_broker::{Endpoint, Link, LinkSettings, PoolName, Timeouts};
use sexton_model::delay_queues::DELAY_QUEUES_MS;
use tokio::time::timeout;
use uuid::Uuid;

use super::arena::Arena;
use super::{jobs, rows};

/// The row of an execution, and how many messages and consumers the arena's queues have.
pub(super) async fn describe(arena: &Arena, execution: Uuid) -> String {
    let row = rows::describe(arena.pool(), execution).await;
    let queues = depths(arena).await.unwrap_or_else(|error| format!("queues unknown: {error:#}"));
    format!("{row}; {queues}")
}

async fn depths(arena: &Arena) -> Result<String> {
    let namespace = arena.platform.namespace();
    let pools = [PoolName::default_pool(), PoolName::new(jobs::VICTIM_POOL)?];
    let timeouts = Timeouts::default();
    let link = Link::observe(LinkSettings {
        endpoint: Endpoint::parse(arena.platform.amqp_url())?,
        name: "torture".to_owned(),
        namespace: namespace.clone(),
        pools: pools.to_vec(),
        timeouts,
    });
    let Ok(Some(_)) = timeout(timeouts.connect, link.up()).await else {
        bail!("the broker cannot be reached");
    };
    let mut summary = String::from("queues:");
    for queue in
        pools.iter().map(|pool| main_queue(namespace, pool)).chain([failed_queue(namespace)])
    {
        let depth = link.depth(&queue).await?;
        let _ = write!(summary, " {queue} {} for {} consumers,", depth.ready, depth.consumers);
    }
    for pool in &pools {
        for step in DELAY_QUEUES_MS {
            let queue = retry_queue(namespace, pool, step);
            let depth = link.depth(&queue).await?;
            if depth.ready > 0 {
                let _ = write!(summary, " {queue} {},", depth.ready);
            }
        }
    }
    link.close().await;
    Ok(summary.trim_end_matches(',').to_owned())
}
