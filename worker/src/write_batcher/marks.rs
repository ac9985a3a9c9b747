//! The lane of marks: tickets that were published after a settlement.

use std::time::Duration;

use sexton_engine::outbox::{self, MARK_TIMEOUT, PublishedTicket};
use sexton_store::{Store, StoreError};
use uuid::Uuid;

use super::lane::StatementKind;

#[derive(Debug)]
pub(super) struct Marks {
    pub(super) store: Store,
}

impl StatementKind for Marks {
    const TIMEOUT: Duration = MARK_TIMEOUT;
    type Request = PublishedTicket;
    type Answer = ();
    type Permit = ();

    fn key((id, _): &Self::Request) -> Uuid {
        id.get()
    }

    async fn acquire_permit(&self) {}

    async fn write(
        &self,
        (): &mut (),
        requests: &[Self::Request],
    ) -> Result<Vec<Option<()>>, StoreError> {
        // A row that was locked or has changed stays unmarked: the relay or the open takes care of it.
        outbox::mark(&self.store, requests, None).await?;
        Ok(vec![Some(()); requests.len()])
    }
}
