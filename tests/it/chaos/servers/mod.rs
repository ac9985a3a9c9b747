//! Servers and networks that fail under load.
//!
//! Goal: whatever happens to PostgreSQL, to RabbitMQ or to one connection between a program and one
//! of them, nothing is lost, nothing runs twice at once, nothing storms, and work continues soon
//! after the fault is over. Method: the real programs run a steady stream of executions, each of
//! their connections goes through a proxy, and their tasks record in a ledger outside the platform
//! what really ran. Faults are private servers that are stopped, killed, frozen and wiped, and
//! proxies that cut, delay and swallow. After the last fault the same checks of rows, ledger,
//! queues and logs run each time: [`loaded_platform::LoadedPlatform::end`].
//!
//! The tests wait for observable events, each with a deadline; only the length of a fault is a
//! fixed time. They check wherever they run that work continues in the end, and only where they
//! have the machine for themselves that it continues within the guaranteed time:
//! [`recovery_times`].

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

mod clock;
mod console;
mod deadline;
mod hour_outage;
mod lease;
mod loaded_platform;
mod networks;
mod postgresql;
mod rabbitmq;
mod recovery_times;
mod refusing_queues;
mod server_wipes;
mod unwritable_database;

use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

/// The lease of the load's jobs.
const LEASE: Duration = Duration::from_secs(3);
/// The guaranteed time beyond the lease, for a dead worker and a frozen server.
const BEYOND: Duration = Duration::from_secs(5);
/// The guaranteed time after RabbitMQ was away.
const BROKER: Duration = Duration::from_secs(5);
/// The guaranteed time after PostgreSQL was away.
const DATABASE: Duration = Duration::from_secs(10);
/// The limit for what only has to happen in the end.
const FINAL_TIMEOUT: Duration = Duration::from_mins(2);

/// What else runs on the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Machine {
    /// All other tests, and perhaps more: no time can be guaranteed.
    Shared,
    /// Nothing else.
    Dedicated,
}

impl Machine {
    /// The limit for something that is guaranteed within `promised`.
    fn within(self, promised: Duration) -> Duration {
        match self {
            Self::Shared => FINAL_TIMEOUT,
            Self::Dedicated => promised,
        }
    }
}

/// Limits the private servers, which take memory and, at their start, seconds of a processor. A test that waits for
/// them keeps a thread from other tests, so they are not fewer.
static PRIVATE: Semaphore = Semaphore::const_new(4);

/// A permit to hold while private servers live.
async fn private() -> SemaphorePermit<'static> {
    PRIVATE.acquire().await.unwrap()
}
