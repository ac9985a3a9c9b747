//! The watch: says every few seconds that this scheduler is there and whether it is ready, and what it saw RabbitMQ do
//! to queues of its own accord.
//!
//! For people and for `sexton status`. Nothing is decided by it: a scheduler that died is missed by
//! nobody, the others claim what it would have claimed.

use std::time::Duration;

use sexton_broker::Link;
use sexton_service::health::Readiness;
use sexton_store::instances::{self, InstanceRegistration};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store, incidents};

use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);

/// The loop.
#[derive(Debug)]
pub struct InstanceHeartbeat {
    store: Store,
    registration: InstanceRegistration,
    readiness: Readiness,
    link: Link,
}

impl InstanceHeartbeat {
    /// Introduces `registration`, as ready as `readiness` says, and writes down what `link` saw happen to queues.
    pub fn new(
        store: Store,
        registration: InstanceRegistration,
        readiness: Readiness,
        link: Link,
    ) -> Self {
        Self { store, registration, readiness, link }
    }

    /// For people, too: so if it cannot be written, it is tried again, and forgotten with the process.
    async fn record_incidents(&self, now: Now) {
        let seen = self.link.take_incidents();
        if let Err(error) =
            with_timeout(QUERY_TIMEOUT, incidents::record(&self.store, &seen, now)).await
        {
            tracing::debug!(%error, "what happened to queues could not be written down yet");
            for one in seen {
                self.link.note_incident(&one.queue, one.kind, one.messages);
            }
        }
    }
}

impl BackgroundLoop for InstanceHeartbeat {
    const NAME: &'static str = "watch";
    const ROUND_TIMEOUT: Duration = Duration::from_secs(30);
    type Report = bool;

    /// Says that the process is alive, and whether it is ready, which it returns.
    async fn run_once(&self, now: Now) -> Result<bool, LoopError> {
        let ready = self.readiness.is_ready();
        with_timeout(
            QUERY_TIMEOUT,
            instances::heartbeat(&self.store, &self.registration, ready, now),
        )
        .await?;
        self.record_incidents(now).await;
        Ok(ready)
    }

    /// Shorter until the process is ready, so that nobody waits for a state that is over.
    fn pause(&self, ready: &bool) -> Pause {
        Pause::AtMost(if *ready { HEARTBEAT_INTERVAL } else { Duration::from_secs(1) })
    }
}
