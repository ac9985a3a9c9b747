//! Servers and networks that fail under load.
//!
//! Goal: whatever happens to PostgreSQL, to RabbitMQ or to one connection between a program and one of
//! them, nothing is lost, nothing runs twice at once, nothing storms, and work goes on soon after the
//! fault is over. Method: the real programs work on a steady stream of executions, each connection of
//! theirs goes through a proxy, and their tasks note in a ledger outside of the platform what really
//! ran. Faults are private servers that are stopped, killed, frozen and wiped, and proxies that cut,
//! delay and swallow. After the last of them the same is asked of rows, ledger, queues and logs each
//! time: [`loaded_platform::LoadedPlatform::end`].
//!
//! Waits are for what can be observed, each with a deadline; only how long a fault lasts is time. That
//! work goes on in the end is asked for wherever the tests run; that it goes on as soon as is promised,
//! where they have the machine for themselves: [`promised`].

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

/// What jobs of the load have as their lease.
const LEASE: Duration = Duration::from_secs(3);
/// What is promised beyond the lease, for a dead worker and a frozen server.
const BEYOND: Duration = Duration::from_secs(5);
/// What is promised after RabbitMQ was away.
const BROKER: Duration = Duration::from_secs(5);
/// What is promised after PostgreSQL was away.
const DATABASE: Duration = Duration::from_secs(10);
/// For what only has to happen in the end.
const FINAL_TIMEOUT: Duration = Duration::from_mins(2);

/// Who else is at work on the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Machine {
    /// All other tests, and perhaps more: no time can be promised.
    Shared,
    /// Nobody.
    Own,
}

impl Machine {
    /// How long something may take that is promised within `promised`.
    fn within(self, promised: Duration) -> Duration {
        match self {
            Self::Shared => FINAL_TIMEOUT,
            Self::Own => promised,
        }
    }
}

/// Private servers take memory and, at their start, seconds of a processor.
static PRIVATE: Semaphore = Semaphore::const_new(2);

/// To be held while private servers live.
async fn private() -> SemaphorePermit<'static> {
    PRIVATE.acquire().await.unwrap()
}
