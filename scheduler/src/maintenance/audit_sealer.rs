//! The audit sealer: appends operators' actions to the chain of hashes that shows changes and removals.
//!
//! Actions are recorded unsealed, so that operators and bulks never wait for one another. Every scheduler runs this loop; the one that
//! locks the state of the chain seals a batch, the others return at once. A crash in between leaves the actions in their queue.

use std::time::Duration;

use sexton_store::operator::chain::{Sealed, seal};
use sexton_store::timeout::with_timeout;
use sexton_store::{Now, Store};

use crate::adaptive_batch::AdaptiveBatch;
use crate::background_loop::{BackgroundLoop, LoopError, Pause, QUERY_TIMEOUT};

/// The most actions of one transaction.
const MAX_BATCH_ACTIONS: usize = 1_000;
/// Pause after a round that left nothing.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The loop that seals the audit.
#[derive(Debug)]
pub struct AuditSealer {
    store: Store,
    batch: AdaptiveBatch,
}

impl AuditSealer {
    /// Creates the loop, whose first round runs at once.
    pub const fn new(store: Store) -> Self {
        Self { store, batch: AdaptiveBatch::with_max(MAX_BATCH_ACTIONS) }
    }
}

impl BackgroundLoop for AuditSealer {
    const NAME: &'static str = "audit_sealer";
    const ROUND_TIMEOUT: Duration = Duration::from_mins(1);
    type Report = Sealed;

    async fn run_once(&self, _: Now) -> Result<Sealed, LoopError> {
        let limit = self.batch.size();
        match with_timeout(QUERY_TIMEOUT, seal(&self.store, limit as i32)).await {
            Ok(sealed) => {
                self.batch.grow(sealed.actions.unsigned_abs() as usize);
                Ok(sealed)
            }
            Err(error) => {
                self.batch.shrink(limit);
                Err(error.into())
            }
        }
    }

    fn pause(&self, sealed: &Sealed) -> Pause {
        Pause::AtMost(if sealed.more { Duration::ZERO } else { POLL_INTERVAL })
    }
}
