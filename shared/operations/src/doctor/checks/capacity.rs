//! Checks the capacity: connections for all processes, and workers for all pools.

use super::{MAX_HEARTBEAT_AGE_MS, join_first};
use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};
use crate::text::duration;

/// Slots for each connection of a worker's pool. Many, because writes travel in batches.
const MAX_SLOTS_PER_CONNECTION: i64 = 50;

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    let (Ok(database), Some(rows)) = (&facts.database, facts.rows()) else { return };
    let alive =
        || rows.processes.iter().filter(|process| process.silent_ms <= MAX_HEARTBEAT_AGE_MS);
    let server = &database.server;
    let room = server.max_connections - server.reserved;
    let required: i64 = alive().filter_map(|process| process.db_connections).map(i64::from).sum();
    if required > room {
        let text = format!(
            "{} processes may hold {required} connections; the server has {room} for all its databases \
             (max_connections {} without {} for superusers), {} are open; sql tasks come on top",
            alive().count(),
            server.max_connections,
            server.reserved,
            server.connections
        );
        found.push(Finding::new(Code::ConnectionsExceed, text));
    }
    let small = alive().filter(|process| {
        process.db_connections.is_some_and(|connections| {
            i64::from(process.slots) > MAX_SLOTS_PER_CONNECTION * i64::from(connections)
        })
    });
    let small: Vec<String> = small
        .map(|process| {
            let connections = process.db_connections.unwrap_or_default();
            format!("{} ({} slots, {connections} connections)", process.name, process.slots)
        })
        .collect();
    if !small.is_empty() {
        found.push(Finding::new(Code::PoolTooSmall, join_first(small)));
    }
    for pool in &rows.pools {
        let waiting = pool.pending + pool.retrying;
        if pool.workers == 0 && (pool.jobs > 0 || waiting > 0) {
            let since = pool.oldest_due_ms.map_or_else(
                || "none is due".to_owned(),
                |ms| format!("the oldest due for {}", duration(ms)),
            );
            let text = format!(
                "pool {}: {} active jobs, {waiting} executions wait, {since}",
                pool.pool, pool.jobs
            );
            found.push(Finding::new(Code::PoolWithoutWorkers, text));
        }
    }
}
