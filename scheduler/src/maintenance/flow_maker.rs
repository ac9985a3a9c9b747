//! Makes the members of flows that an execution of their job has begun.
//!
//! A claim writes the flow's row alone, so that it takes no longer than without; the members follow here, one flow after
//! another. One that has ended by then is followed in the same transaction. A crash before the commit leaves the flows
//! for the next round, of any replica.

use std::sync::Arc;
use std::time::Duration;

use sexton_service::fault;
use sexton_store::flows::make_members;
use sexton_store::{Now, Store};
use tokio::sync::Notify;

use crate::background_loop::{BackgroundLoop, LoopError, Pause};

/// About as many members are made in one transaction; the last flow may have a thousand more.
const MAX_BATCH_MEMBERS: i32 = 2_000;
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The loop that makes members.
#[derive(Debug)]
pub struct FlowMaker {
    store: Store,
    relay: Arc<Notify>,
}

/// What a round did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowMakerReport {
    /// Members that were made; `None`: no flow waited for any.
    pub made: Option<u64>,
}

impl FlowMaker {
    /// Creates it; `relay` is woken when members may be due.
    pub const fn new(store: Store, relay: Arc<Notify>) -> Self {
        Self { store, relay }
    }
}

impl BackgroundLoop for FlowMaker {
    const NAME: &'static str = "flow_maker";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(2);
    type Report = FlowMakerReport;

    async fn run_once(&self, _: Now) -> Result<FlowMakerReport, LoopError> {
        let made = make_members(&self.store, MAX_BATCH_MEMBERS).await?;
        if made.is_some() {
            fault::point("scheduler.flow_made");
            self.relay.notify_one();
        }
        Ok(FlowMakerReport { made })
    }

    fn pause(&self, report: &FlowMakerReport) -> Pause {
        match report.made {
            Some(_) => Pause::Exactly(Duration::ZERO),
            None => Pause::AtMost(POLL_INTERVAL),
        }
    }
}
