//! The lane of settlements.

use std::sync::Arc;
use std::time::Duration;

use sexton_store::StoreError;
use sexton_store::dedicated_connection::DedicatedConnection;
use sexton_store::settle::{SettleOutcome, Settlement, settle};
use tokio::sync::{Mutex, OwnedMutexGuard};
use uuid::Uuid;

use super::lane::StatementKind;

#[derive(Debug)]
pub(super) struct Settlements {
    pub(super) shared: Arc<Mutex<DedicatedConnection>>,
}

impl StatementKind for Settlements {
    const TIMEOUT: Duration = Duration::from_secs(10);
    type Request = Settlement;
    type Answer = SettleOutcome;
    type Permit = OwnedMutexGuard<DedicatedConnection>;

    fn key(settlement: &Settlement) -> Uuid {
        settlement.fence.execution_id.get()
    }

    fn bytes(settlement: &Settlement) -> usize {
        settlement.output.iter().flat_map(|part| &part.chunks).map(|chunk| chunk.text.len()).sum()
    }

    async fn acquire_permit(&self) -> Self::Permit {
        Arc::clone(&self.shared).lock_owned().await
    }

    async fn write(
        &self,
        shared: &mut Self::Permit,
        requests: &[Settlement],
    ) -> Result<Vec<Option<SettleOutcome>>, StoreError> {
        let mut connection = shared.acquire().await?;
        let settled = settle(&mut *connection, requests, None).await;
        let settled = connection.release_if_answered(settled)?;
        Ok(settled
            .into_iter()
            .map(|settled| Some(settled).filter(|settled| *settled != SettleOutcome::Locked))
            .collect())
    }
}
