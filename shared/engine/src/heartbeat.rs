//! Records in the process's row that it is alive and whether it is ready, and what its links saw RabbitMQ do to
//! queues.
//!
//! It informs people, `sexton status` and `sexton doctor`. No decision depends on a heartbeat.

use std::time::Duration;

use sexton_broker::Link;
use sexton_service::health::Readiness;
use sexton_store::instances::{self, InstanceRegistration};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store, StoreError, queue_incidents};
use tokio::time::timeout;

/// Interval of the heartbeats.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// Timeout of one statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(10);

/// One process's heartbeat. The caller decides when it is sent.
#[derive(Debug)]
pub struct Heartbeat {
    store: Store,
    /// The process's description in its row.
    pub registration: InstanceRegistration,
    readiness: Readiness,
    links: Vec<Link>,
}

impl Heartbeat {
    /// Creates the heartbeat of `registration`, with the readiness of `readiness` and the observations of
    /// `links`.
    pub const fn new(
        store: Store,
        registration: InstanceRegistration,
        readiness: Readiness,
        links: Vec<Link>,
    ) -> Self {
        Self { store, registration, readiness, links }
    }

    /// Returns whether the process is ready now.
    pub fn is_ready(&self) -> bool {
        self.readiness.is_ready()
    }

    /// Records that the process is alive and whether it is ready; returns the latter. The first heartbeat
    /// inserts the row.
    ///
    /// # Errors
    ///
    /// [`StoreError`], after at most ten seconds; the heartbeat may have been written.
    pub async fn beat(&self, now: Now) -> Result<bool, StoreError> {
        let ready = self.readiness.is_ready();
        let beating = instances::heartbeat(&self.store, &self.registration, ready, now);
        with_timeout(STATEMENT_TIMEOUT, beating).await?;
        Ok(ready)
    }

    /// Records what the links saw. The next call retries what could not be written; the process's end loses it.
    pub async fn record_queue_incidents(&self, now: Now) {
        for link in &self.links {
            let queue_incidents = link.take_queue_incidents();
            let recording = queue_incidents::record(&self.store, &queue_incidents, now);
            if let Err(error) = with_timeout(STATEMENT_TIMEOUT, recording).await {
                tracing::debug!(%error, "what happened to queues could not be written down yet");
                for incident in queue_incidents {
                    link.note_queue_incident(&incident.queue, incident.kind, incident.messages);
                }
            }
        }
    }
}

/// Marks a process as stopped, within `limit`. If that fails, the age of its last heartbeat shows that.
pub async fn mark_stopped(store: &Store, registration: &InstanceRegistration, limit: Duration) {
    let _ = timeout(limit, instances::mark_stopped(store, registration.id, None)).await;
}
