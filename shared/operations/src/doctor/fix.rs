//! Makes the repairs of `--fix`: only those that are safe while the platform works, and repeatable.
//!
//! Each repair is one of the platform's own statements, or what a scheduler does when it connects. Decisions that
//! need a scheduler's settings (what follows a lost attempt) are left to a scheduler. A process that dies in between
//! leaves the audit's record and perhaps the repair.

use std::time::Duration;

use serde::Serialize;
use sexton_broker::{Link, LinkState, PoolName};
use sexton_service::settings::ConsoleSettings;
use sexton_service::{clock, fault};
use sexton_store::doctor::fix as write;
use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_store::parked_messages::{self, ScanPosition};
use sexton_store::{Store, reconcile};
use tokio::time::timeout;

use super::facts::{Facts, Rows};
use super::gather::{gather, link_settings};
use super::{Code, Finding, diagnose};
use crate::connect::{ConnectError, Connector};

/// Silence after which a process is marked as stopped; its next heartbeat would clear the mark.
pub const MARK_STOPPED_AFTER_MS: i64 = 3_600_000;

/// Number of tickets marked as unpublished by one statement.
const BATCH_ROWS: i64 = 500;
/// Time limit for connecting and declaring.
const DECLARE_TIMEOUT: Duration = Duration::from_secs(20);

/// The result of a repair.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Repair {
    /// The finding.
    pub code: Code,
    /// Whether it was done.
    pub done: bool,
    /// The repair, or why it failed.
    pub what: String,
}

/// Examines the platform, repairs what it can, and examines it again if it has repaired anything. Returns the findings that
/// are left, and the repairs, which the audit records with this reason.
///
/// # Errors
///
/// `DATABASE_URL` is not set, or the database is unavailable for the repairs, of which earlier ones stay. Other failures are findings.
pub async fn examine_and_fix(
    connector: &Connector<'_>,
    reason: Option<&str>,
) -> Result<(Vec<Finding>, Vec<Repair>), ConnectError> {
    let facts = gather(connector).await?;
    let findings = diagnose(&facts);
    let fixed = fix(connector, &facts, &findings, reason).await?;
    if fixed.is_empty() {
        return Ok((findings, fixed));
    }
    Ok((diagnose(&gather(connector).await?), fixed))
}

/// Repairs the findings that it can, each at most once.
///
/// # Errors
///
/// The database is unavailable. Earlier repairs stay.
async fn fix(
    connector: &Connector<'_>,
    facts: &Facts,
    findings: &[Finding],
    reason: Option<&str>,
) -> Result<Vec<Repair>, ConnectError> {
    let mut codes: Vec<Code> = findings.iter().filter(|one| one.fix).map(|one| one.code).collect();
    codes.dedup();
    let (Some(rows), false) = (facts.rows(), codes.is_empty()) else { return Ok(Vec::new()) };
    let store = connector.open().await?;
    let by = connector.actor.because(reason);
    let mut all = Vec::with_capacity(codes.len());
    for code in codes {
        write::record(&store, code.as_str(), by, None).await?;
        fault::point("console.fix_recorded");
        let outcome = match code {
            Code::TopologyMissing => declare_topology(connector.settings, rows).await,
            Code::TicketsLost => republish_tickets(&store, facts, rows).await,
            Code::FailedWithoutMessages => republish_parked(&store, facts).await,
            Code::ProcessSilent => mark_stopped(&store).await,
            other => Err(format!("{} has no repair: see its remedy", other.as_str())),
        };
        let done = outcome.is_ok();
        let what = outcome.unwrap_or_else(|why| why);
        all.push(Repair { code, done, what });
    }
    Ok(all)
}

/// Declares the queues and exchanges, as a scheduler does when it connects.
async fn declare_topology(settings: &ConsoleSettings, rows: &Rows) -> Result<String, String> {
    let named = rows.pools.iter().filter_map(|counts| counts.pool.parse::<PoolName>().ok());
    let pools: Vec<PoolName> = named.collect();
    let link = Link::start(link_settings(settings, &pools)?);
    let up = timeout(DECLARE_TIMEOUT, link.up()).await;
    let state = link.state().borrow().clone();
    link.close().await;
    match (up, state) {
        (Ok(Some(_)), _) => Ok(format!("declared the topology of {} pools", pools.len())),
        (_, LinkState::Fatal(error)) => Err(error.to_string()),
        (_, LinkState::Down { reason: Some(reason) }) => Err(reason),
        _ => Err("the broker does not answer".to_owned()),
    }
}

async fn republish_tickets(store: &Store, facts: &Facts, rows: &Rows) -> Result<String, String> {
    let broker = facts.broker.as_ref().map_err(Clone::clone)?;
    let mut unpublished = 0;
    for overdue in &rows.overdue {
        let pool = overdue.pool.as_str();
        // A queue that was not examined has an unknown length.
        let empty = broker.examined.main_ready.get(pool).is_some_and(|ready| *ready == 0);
        loop {
            let again = reconcile::mark_unpublished(store, &overdue.pool, empty, BATCH_ROWS, None);
            let again = again.await.map_err(|error| error.to_string())?;
            unpublished += again;
            if again < BATCH_ROWS as u64 {
                break;
            }
        }
    }
    Ok(format!("{unpublished} tickets are marked unpublished; a scheduler's relay publishes them"))
}

async fn republish_parked(store: &Store, facts: &Facts) -> Result<String, String> {
    let broker = facts.broker.as_ref().map_err(Clone::clone)?;
    if broker.examined.failed_ready.is_some_and(|ready| ready > 0) {
        return Err("the failed queue is not empty any more; a sweep tells what is missing".into());
    }
    // A queue whose messages a sweep holds looks empty.
    let lock = ExclusiveLock::try_acquire(store, ExclusiveTask::Sweep, None).await;
    match lock.map_err(|error| error.to_string())? {
        Some(free) => free.release().await.map_err(|error| error.to_string())?,
        None => return Err("a sweep is under way, and tells what is missing".into()),
    }
    let (mut unpublished, mut after) = (0, ScanPosition::START);
    // Tickets published from now on are not missing.
    let before = facts.rows().map_or_else(clock::now, |rows| rows.overview.now);
    loop {
        let again =
            parked_messages::mark_unseen_unpublished(store, before, true, after, BATCH_ROWS, None);
        let Some(again) = again.await.map_err(|error| error.to_string())? else {
            return Ok(format!(
                "{unpublished} failed executions have an unpublished message again; a scheduler's relay publishes it"
            ));
        };
        unpublished += again.unpublished;
        after = again.upto;
    }
}

async fn mark_stopped(store: &Store) -> Result<String, String> {
    let stopped = write::mark_silent_stopped(store, MARK_STOPPED_AFTER_MS, None).await;
    let names = stopped.map_err(|error| error.to_string())?;
    Ok(format!("marked as stopped: {}", names.join(", ")))
}
