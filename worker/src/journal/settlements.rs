//! The lane of settlements.

use std::time::Duration;

use sexton_store::settle::{Settled, Settlement, settle};
use sexton_store::{Store, StoreError};
use uuid::Uuid;

use super::lane::Kind;

#[derive(Debug)]
pub(super) struct Settlements {
    pub(super) store: Store,
}

impl Kind for Settlements {
    const LIMIT: Duration = Duration::from_secs(10);
    type Request = Settlement;
    type Answer = Settled;

    fn key(settlement: &Settlement) -> Uuid {
        settlement.held.execution_id.get()
    }

    fn bytes(settlement: &Settlement) -> usize {
        settlement.output.iter().flat_map(|part| &part.chunks).map(|chunk| chunk.text.len()).sum()
    }

    async fn write(&self, requests: &[Settlement]) -> Result<Vec<Option<Settled>>, StoreError> {
        let settled = settle(&self.store, requests, None).await?;
        Ok(settled
            .into_iter()
            .map(|settled| Some(settled).filter(|settled| *settled != Settled::Locked))
            .collect())
    }
}
