//! The write batcher: group commit for all slots of a worker.
//!
//! Opens, renewals, settlements and marks each have a lane. A lane writes all waiting calls as one statement
//! and takes what arrived meanwhile as the next batch: there is no timer, so an idle worker answers in one
//! round trip and a busy one shares it. Opens and settlements take turns on one connection, so that their
//! batches are large; renewals, which must not be late, have others. A row that another transaction has locked
//! moves into the next round.
//!
//! Nothing is buffered beyond the calls that wait for their answer, so a crash loses no record: the token finds
//! an unanswered open, the lease's expiry ends an unanswered settlement.

mod lane;
mod marks;
mod opens;
mod renewals;
mod settlements;

use std::sync::Arc;
use std::time::Duration;

use sexton_engine::outbox::PublishedTicket;
use sexton_model::id::ProcessId;
use sexton_store::dedicated_connection::DedicatedConnection;
use sexton_store::lease::{AttemptFence, Renewal};
use sexton_store::open::{Offer, OpenRequest};
use sexton_store::settle::{SettleOutcome, Settlement};
use sexton_store::{Store, StoreError};
use tokio::sync::Mutex;

use self::lane::Lane;
use self::marks::Marks;
pub(crate) use self::opens::Opening;
use self::opens::Opens;
use self::renewals::Renewals;
use self::settlements::Settlements;
use crate::gate::Gate;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WriteError {
    /// The database did not answer, or could not run the statement: the result is unknown. Repeat the same call
    /// when the database answers again.
    #[error("the database did not answer")]
    Unanswered,
    /// A value of this call cannot be stored; nothing was written.
    #[error("{0}")]
    Data(String),
    /// The server refused the statement for this call alone; nothing was written.
    #[error("{0}")]
    Refused(WriteRefusal),
}

/// The server's refusal of a statement for one row.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct WriteRefusal {
    pub(crate) reason: String,
    /// Whether it may pass without a change of the row.
    pub(crate) transient: bool,
}

impl WriteRefusal {
    pub(crate) fn of(error: &StoreError) -> Self {
        Self { reason: error.to_string(), transient: error.is_transient() }
    }
}

/// The identity and settings of the worker that writes.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    /// This worker process.
    pub(crate) worker: ProcessId,
    /// `<instance>:<pid>`, for the audit.
    pub(crate) actor: String,
    /// The task types that it offers.
    pub(crate) offers: Vec<Offer>,
    /// The lease of jobs without one of their own.
    pub(crate) lease: Duration,
}

impl Writer {
    /// Returns the names of the offered task types, sorted.
    pub(crate) fn types(&self) -> Vec<&str> {
        self.offers.iter().map(|offer| offer.task_type.as_str()).collect()
    }
}

/// A handle to the lanes, which end with the last handle. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct WriteBatcher {
    opens: Lane<Opens>,
    renewals: Lane<Renewals>,
    settlements: Lane<Settlements>,
    marks: Lane<Marks>,
}

impl WriteBatcher {
    /// Starts the lanes on the current runtime.
    pub(crate) fn start(store: &Store, writer: Writer, gate: &Gate) -> Self {
        let shared = Arc::new(Mutex::new(DedicatedConnection::for_key_lookups(store)));
        Self {
            opens: Lane::start(Opens::new(Arc::clone(&shared), store, writer), gate),
            renewals: Lane::start(Renewals { store: store.clone() }, gate),
            settlements: Lane::start(Settlements { shared }, gate),
            marks: Lane::start(Marks { store: store.clone() }, gate),
        }
    }

    /// Opens a ticket.
    pub(crate) async fn open(&self, request: OpenRequest) -> Result<Opening, WriteError> {
        self.opens.call(request).await
    }

    /// Renews a lease.
    pub(crate) async fn renew(
        &self,
        held: AttemptFence,
        lease: Duration,
    ) -> Result<Renewal, WriteError> {
        self.renewals.call((held, lease)).await
    }

    /// Records an attempt's end. Never answers [`SettleOutcome::Locked`] or [`SettleOutcome::Replaced`].
    pub(crate) async fn settle(&self, settlement: Settlement) -> Result<SettleOutcome, WriteError> {
        self.settlements.call(settlement).await
    }

    /// Marks a ticket as published.
    pub(crate) async fn mark(&self, published: PublishedTicket) -> Result<(), WriteError> {
        self.marks.call(published).await
    }
}
