//! The watch: says every few seconds that this scheduler is there and whether it is ready.
//!
//! For people and for `sexton status`. Nothing is decided by it: a scheduler that died is missed by
//! nobody, the others claim what it would have claimed.

use std::time::Duration;

use sexton_service::health::Readiness;
use sexton_store::answer::within;
use sexton_store::instances::{self, Introduction};
use sexton_store::{Now, Store};

use crate::step::{ANSWER, Pause, Step, StepError};

const EVERY: Duration = Duration::from_secs(5);

/// The loop.
#[derive(Debug)]
pub struct Watch {
    store: Store,
    who: Introduction,
    readiness: Readiness,
}

impl Watch {
    /// Introduces `who`, as ready as `readiness` says.
    pub fn new(store: Store, who: Introduction, readiness: Readiness) -> Self {
        Self { store, who, readiness }
    }
}

impl Step for Watch {
    const NAME: &'static str = "watch";
    const LIMIT: Duration = Duration::from_secs(30);
    type Report = bool;

    /// Says that the process is alive, and whether it is ready, which it returns.
    async fn run_once(&self, now: Now) -> Result<bool, StepError> {
        let ready = self.readiness.is_ready();
        within(ANSWER, instances::heartbeat(&self.store, &self.who, ready, now)).await?;
        Ok(ready)
    }

    /// Shorter until the process is ready, so that nobody waits for a state that is over.
    fn pause(&self, ready: &bool) -> Pause {
        Pause::AtMost(if *ready { EVERY } else { Duration::from_secs(1) })
    }
}
