//! The lane of settlements.

use std::sync::Arc;
use std::time::Duration;

use sexton_store::StoreError;
use sexton_store::dedicated_connection::DedicatedConnection;
use sexton_store::settle::{SettleOutcome, Settlement, settle};
use tokio::sync::{Mutex, OwnedMutexGuard};
use uuid::Uuid;

use super::lane::Kind;

#[derive(Debug)]
pub(super) struct Settlements {
    pub(super) own: Arc<Mutex<DedicatedConnection>>,
}

impl Kind for Settlements {
    const LIMIT: Duration = Duration::from_secs(10);
    type Request = Settlement;
    type Answer = SettleOutcome;
    type Turn = OwnedMutexGuard<DedicatedConnection>;

    fn key(settlement: &Settlement) -> Uuid {
        settlement.fence.execution_id.get()
    }

    fn bytes(settlement: &Settlement) -> usize {
        settlement.output.iter().flat_map(|part| &part.chunks).map(|chunk| chunk.text.len()).sum()
    }

    async fn turn(&self) -> Self::Turn {
        Arc::clone(&self.own).lock_owned().await
    }

    async fn write(
        &self,
        own: &mut Self::Turn,
        requests: &[Settlement],
    ) -> Result<Vec<Option<SettleOutcome>>, StoreError> {
        let mut lent = own.acquire().await?;
        let settled = settle(&mut *lent, requests, None).await;
        let settled = lent.release_if_answered(settled)?;
        Ok(settled
            .into_iter()
            .map(|settled| Some(settled).filter(|settled| *settled != SettleOutcome::Locked))
            .collect())
    }
}
