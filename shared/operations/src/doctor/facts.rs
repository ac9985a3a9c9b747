//! What was gathered: values, as the servers said them, and no judgement.

use std::time::Duration;

use sexton_broker::diagnostics::Diagnostics;
use sexton_store::catch_up::Hold;
use sexton_store::doctor::{
    Migrations, MissingPrivileges, OverdueLeases, Process, Server, UnofferedVerifyTask,
};
use sexton_store::incidents::RecordedIncident;
use sexton_store::offers::OldWorker;
use sexton_store::parked_messages::FailedCounts;
use sexton_store::reconcile::OverduePool;
use sexton_store::schema::InvalidIndex;
use sexton_store::status::{Overview, PoolCounts};

/// Everything.
#[derive(Debug)]
pub struct Facts {
    /// This program's version.
    pub version: &'static str,
    /// The database, or why it could not be asked.
    pub database: Result<Database, String>,
    /// The broker, or why it could not be asked.
    pub broker: Result<Broker, String>,
}

/// The database.
#[derive(Debug)]
pub struct Database {
    /// Where it is, without secrets.
    pub place: String,
    /// Whether it is on this host, by its name.
    pub local: bool,
    /// The server and this session.
    pub server: Server,
    /// The middle one of five round trips.
    pub latency: Duration,
    /// How far this host's clock is ahead of the database's, in milliseconds; negative: behind.
    pub host_ahead_ms: i64,
    /// The schema.
    pub migrations: Migrations,
    /// Indexes that no question uses.
    pub invalid_indexes: Vec<InvalidIndex>,
    /// Why notifications do not arrive; none: they do.
    pub notification_failure: Option<String>,
    /// What the role may not do.
    pub missing_privileges: Vec<MissingPrivileges>,
    /// What the rows say, or why they could not be asked.
    pub rows: Result<Rows, String>,
}

/// What the rows say.
#[derive(Debug)]
pub struct Rows {
    /// Counts over everything.
    pub overview: Overview,
    /// By pool.
    pub pools: Vec<PoolCounts>,
    /// Who has not said goodbye.
    pub processes: Vec<Process>,
    /// Leases that are over.
    pub leases: OverdueLeases,
    /// What RabbitMQ did to queues of its own accord within the last day.
    pub incidents: Vec<RecordedIncident>,
    /// Whether catch-up is held.
    pub hold: Option<Hold>,
    /// Tickets that seem lost.
    pub overdue: Vec<OverduePool>,
    /// Failed rows.
    pub failed: FailedCounts,
    /// Raw messages in the failed queue, by the last sweep.
    pub unknown_messages: i64,
    /// The newest time zone data that a cursor was computed by.
    pub newest_tz: Option<String>,
    /// Verify tasks that no worker at work offers where they are asked.
    pub unoffered: Vec<UnofferedVerifyTask>,
    /// Workers at work that know nothing of questions; not asked for unless some job names a verify task.
    pub old_workers: Vec<OldWorker>,
}

/// The broker.
#[derive(Debug)]
pub struct Broker {
    /// Where it is, without secrets.
    pub place: String,
    /// Whether it is on this host, by its name.
    pub local: bool,
    /// Whether the connection is encrypted.
    pub encrypted: bool,
    /// The user's name.
    pub user: String,
    /// What was found.
    pub examined: Diagnostics,
}

impl Facts {
    /// What the rows say, if they could be asked.
    pub fn rows(&self) -> Option<&Rows> {
        self.database.as_ref().ok()?.rows.as_ref().ok()
    }
}
