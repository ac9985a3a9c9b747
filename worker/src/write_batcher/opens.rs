//! The lane of opens.
//!
//! **Hung opens.** An open touches tables that a settlement does not, and may wait for a lock on one of them.
//! Settlements must not wait for it: for a minute after an open that was not answered in time, opens use a
//! separate connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};
use std::time::Duration;

use sexton_model::open::{ExecutionRow, OpenDecision, decide_unopened};
use sexton_store::dedicated_connection::{DedicatedConnection, PgConnection};
use sexton_store::open::{OpenRequest, Opened, open, read_unopened, recover};
use sexton_store::{Store, StoreError};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;
use uuid::Uuid;

use super::Writer;
use super::lane::StatementKind;
use crate::gate::Gate;

/// The result of opening a ticket.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Opening {
    /// The attempt is open and belongs to this worker: run it.
    Opened(Box<Opened>),
    /// The firing is stale: the execution is skipped, and the ticket is used up.
    Skipped,
    /// The request opened nothing; the decision, never `Run` or `Retry`, says what to do with the ticket.
    Unopened(OpenDecision),
}

/// How long opens stay separate from settlements after one that hung.
const SEPARATION: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) struct Opens {
    /// The connection that opens share with settlements.
    shared: Arc<Mutex<DedicatedConnection>>,
    separate: Arc<Mutex<DedicatedConnection>>,
    /// Until when opens are separate.
    separate_until: StdMutex<Option<Instant>>,
    writer: Writer,
}

impl Opens {
    pub(super) fn new(
        shared: Arc<Mutex<DedicatedConnection>>,
        store: &Store,
        writer: Writer,
    ) -> Self {
        let separate = Arc::new(Mutex::new(DedicatedConnection::for_key_lookups(store)));
        Self { shared, separate, separate_until: StdMutex::default(), writer }
    }

    fn separate_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.separate_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn write_on(
        &self,
        connection: &mut PgConnection,
        requests: &[OpenRequest],
    ) -> Result<Vec<Option<Opening>>, StoreError> {
        let Writer { worker, actor, offers, lease } = &self.writer;
        let answered =
            open(&mut *connection, *worker, actor, offers, requests, *lease, None).await?;
        let skipped = answered.skipped;
        let mut opened = by_execution(answered.opened);
        let missed: Vec<OpenRequest> = requests
            .iter()
            .filter(|request| !opened.contains_key(&request.execution_id.get()))
            .filter(|request| !skipped.contains(&request.execution_id))
            .copied()
            .collect();
        let mut unopened = HashMap::new();
        if !missed.is_empty() {
            let rows: HashMap<Uuid, ExecutionRow> =
                read_unopened(&mut *connection, offers, &missed, None)
                    .await?
                    .into_iter()
                    .map(|(id, row)| (id.get(), row))
                    .collect();
            for request in &missed {
                let id = request.execution_id.get();
                unopened.insert(id, decide_unopened(request.attempt, rows.get(&id)));
            }
            if unopened.values().any(|answer| *answer == OpenDecision::Run) {
                opened.extend(by_execution(recover(&mut *connection, &missed, *lease).await?));
            }
        }
        Ok(requests
            .iter()
            .map(|request| {
                let id = request.execution_id.get();
                if let Some(opened) = opened.remove(&id) {
                    return Some(Opening::Opened(Box::new(opened)));
                }
                if skipped.contains(&request.execution_id) {
                    return Some(Opening::Skipped);
                }
                match unopened.get(&id) {
                    // `Run` without an opened row: the attempt ended at this moment, and the next try sees
                    // that.
                    None | Some(OpenDecision::Retry | OpenDecision::Run) => None,
                    Some(answer) => Some(Opening::Unopened(*answer)),
                }
            })
            .collect())
    }
}

impl StatementKind for Opens {
    const TIMEOUT: Duration = Duration::from_secs(10);
    type Request = OpenRequest;
    type Answer = Opening;
    type Permit = OwnedMutexGuard<DedicatedConnection>;

    fn key(request: &OpenRequest) -> Uuid {
        request.execution_id.get()
    }

    /// The slot compares the number of opens written since.
    fn refused(_: &Gate, _: &StoreError) {}

    async fn acquire_permit(&self) -> Self::Permit {
        if self.separate_until().is_some_and(|until| Instant::now() < until) {
            return Arc::clone(&self.separate).lock_owned().await;
        }
        // If another call holds it, that one closes or returns it, or the next one does.
        if let Ok(mut separate) = self.separate.try_lock() {
            separate.close();
        }
        Arc::clone(&self.shared).lock_owned().await
    }

    async fn write(
        &self,
        shared: &mut Self::Permit,
        requests: &[OpenRequest],
    ) -> Result<Vec<Option<Opening>>, StoreError> {
        // If this future is dropped half way, opens stay separate.
        let before = self.separate_until().replace(Instant::now() + SEPARATION);
        // Without a connection this open cannot hold up anything.
        let mut connection =
            shared.acquire().await.inspect_err(|_| *self.separate_until() = before)?;
        let outcome = self.write_on(&mut connection, requests).await;
        *self.separate_until() = before;
        connection.release_if_answered(outcome)
    }
}

fn by_execution(opened: Vec<Opened>) -> HashMap<Uuid, Opened> {
    opened.into_iter().map(|opened| (opened.execution_id.get(), opened)).collect()
}

#[cfg(test)]
mod tests {
    use sexton_model::id::{AttemptNumber, ExecutionId, OpenToken, ProcessId};
    use sexton_store::StoreOptions;
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn after_an_open_that_hung_the_next_ones_leave_the_turn_to_settlements() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgres://nobody@{}/none", silent.local_addr().unwrap());
        let store = Store::open(&StoreOptions::new(url, "test")).unwrap();
        let shared = Arc::new(Mutex::new(DedicatedConnection::for_key_lookups(&store)));
        let writer = Writer {
            worker: ProcessId::new(Uuid::nil()),
            actor: "test".into(),
            offers: Vec::new(),
            lease: Duration::from_secs(20),
        };
        let opens = Opens::new(Arc::clone(&shared), &store, writer);
        let settling = Arc::clone(&shared).lock_owned().await;
        assert!(timeout(Duration::ZERO, opens.acquire_permit()).await.is_err(), "they take turns");
        drop(settling);
        let mut permit = opens.acquire_permit().await;
        let requests = [OpenRequest {
            execution_id: ExecutionId::new(Uuid::nil()),
            attempt: AttemptNumber::FIRST,
            token: OpenToken::new(Uuid::nil()),
        }];
        let hung =
            tokio::time::timeout(Duration::from_millis(50), opens.write(&mut permit, &requests));
        assert!(hung.await.is_err());
        drop(permit);
        let _settling = shared.lock_owned().await;
        assert!(timeout(Duration::ZERO, opens.acquire_permit()).await.is_ok());
    }
}
