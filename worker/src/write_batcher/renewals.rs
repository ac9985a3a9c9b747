//! The lane of lease renewals.

use std::time::Duration;

use sexton_store::lease::{AttemptFence, Renewal, renew};
use sexton_store::{Store, StoreError};
use uuid::Uuid;

use super::lane::StatementKind;

#[derive(Debug)]
pub(super) struct Renewals {
    pub(super) store: Store,
}

impl StatementKind for Renewals {
    const TIMEOUT: Duration = Duration::from_secs(5);
    type Request = (AttemptFence, Duration);
    type Answer = Renewal;
    type Permit = ();

    fn key((held, _): &Self::Request) -> Uuid {
        held.execution_id.get()
    }

    async fn acquire_permit(&self) {}

    async fn write(
        &self,
        (): &mut (),
        requests: &[Self::Request],
    ) -> Result<Vec<Option<Renewal>>, StoreError> {
        let renewals = renew(&self.store, requests, None).await?;
        Ok(renewals
            .into_iter()
            .map(|renewal| Some(renewal).filter(|renewal| *renewal != Renewal::Locked))
            .collect())
    }
}
