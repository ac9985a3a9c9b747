//! The lane of settlements.

use std::sync::Arc;
use std::time::Duration;

use sexton_store::StoreError;
use sexton_store::own::OwnConnection;
use sexton_store::settle::{Settled, Settlement, settle};
use tokio::sync::{Mutex, OwnedMutexGuard};
use uuid::Uuid;

use super::lane::Kind;

#[derive(Debug)]
pub(super) struct Settlements {
    pub(super) own: Arc<Mutex<OwnConnection>>,
}

impl Kind for Settlements {
    const LIMIT: Duration = Duration::from_secs(10);
    type Request = Settlement;
    type Answer = Settled;
    type Turn = OwnedMutexGuard<OwnConnection>;

    fn key(settlement: &Settlement) -> Uuid {
        settlement.held.execution_id.get()
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
    ) -> Result<Vec<Option<Settled>>, StoreError> {
        let mut lent = own.lend().await?;
        let settled = settle(&mut *lent, requests, None).await;
        let settled = lent.told(settled)?;
        Ok(settled
            .into_iter()
            .map(|settled| Some(settled).filter(|settled| *settled != Settled::Locked))
            .collect())
    }
}
