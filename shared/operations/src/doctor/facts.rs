//! The gathered facts: the servers' values, without judgement.

use std::time::Duration;

use sexton_broker::diagnostics::Diagnostics;
use sexton_store::catch_up::Hold;
use sexton_store::doctor::{
    ApprovedRequest, Migrations, OverdueLeases, Privileges, Process, Server, UnofferedVerifyTask,
};
use sexton_store::offers::OldWorker;
use sexton_store::operator::chain::ChainState;
use sexton_store::parked_messages::FailedCounts;
use sexton_store::queue_incidents::RecordedQueueIncident;
use sexton_store::reconcile::OverduePool;
use sexton_store::schema::InvalidIndex;
use sexton_store::status::{Overview, PoolCounts};

use crate::locks::LockList;

/// All facts.
#[derive(Debug)]
pub struct Facts {
    /// This program's version.
    pub version: &'static str,
    /// The database's facts, or why the query failed.
    pub database: Result<Database, String>,
    /// The broker's facts, or why the query failed.
    pub broker: Result<Broker, String>,
}

/// The database.
#[derive(Debug)]
pub struct Database {
    /// Its address, without secrets.
    pub place: String,
    /// Whether its name stands for this host.
    pub local: bool,
    /// The server and this session.
    pub server: Server,
    /// The median of five round trips.
    pub latency: Duration,
    /// How far this host's clock is ahead of the database's, in milliseconds; negative: behind.
    pub host_ahead_ms: i64,
    /// The applied migrations.
    pub migrations: Migrations,
    /// Indexes that no query uses.
    pub invalid_indexes: Vec<InvalidIndex>,
    /// Why notifications do not arrive; `None`: they do.
    pub notification_failure: Option<String>,
    /// What the role may do, and what it lacks.
    pub privileges: Privileges,
    /// Facts from the rows, or why the query failed.
    pub rows: Result<Rows, String>,
}

/// Facts from the rows.
#[derive(Debug)]
pub struct Rows {
    /// Counts over the whole platform.
    pub overview: Overview,
    /// By pool.
    pub pools: Vec<PoolCounts>,
    /// Processes that have not stopped.
    pub processes: Vec<Process>,
    /// Leases that have ended.
    pub leases: OverdueLeases,
    /// RabbitMQ's own interventions in queues within the last day.
    pub queue_incidents: Vec<RecordedQueueIncident>,
    /// The hold, if catch-up is held.
    pub hold: Option<Hold>,
    /// Overdue tickets, which may be lost.
    pub overdue: Vec<OverduePool>,
    /// The number of failed rows.
    pub failed: FailedCounts,
    /// Unknown messages in the failed queue, by the last sweep.
    pub unknown_messages: i64,
    /// The newest time zone data among the cursors.
    pub newest_tz: Option<String>,
    /// Verify tasks that no active worker offers in the pool that needs them.
    pub unoffered: Vec<UnofferedVerifyTask>,
    /// Active workers too old for questions; not read unless a job names a verify task.
    pub old_workers: Vec<OldWorker>,
    /// How long nobody has accepted pings, though a check expects some.
    pub pings_unaccepted: Option<Duration>,
    /// The audit's chain.
    pub audit: ChainState,
    /// Requests that are approved and not carried out.
    pub approved: Vec<ApprovedRequest>,
    /// Locks of jobs, that are held or waited for.
    pub locks: LockList,
}

/// The broker's facts.
#[derive(Debug)]
pub struct Broker {
    /// Its address, without secrets.
    pub place: String,
    /// Whether its name stands for this host.
    pub local: bool,
    /// Whether the connection is encrypted.
    pub encrypted: bool,
    /// The user's name.
    pub user: String,
    /// The state of its queues.
    pub examined: Diagnostics,
}

impl Facts {
    /// Returns the facts from the rows, if the query succeeded.
    pub fn rows(&self) -> Option<&Rows> {
        self.database.as_ref().ok()?.rows.as_ref().ok()
    }
}
