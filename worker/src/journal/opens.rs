//! The lane of opens.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sexton_model::open::{Answer, Row, answer};
use sexton_store::StoreError;
use sexton_store::open::{OpenRequest, Opened, look, open, recover};
use sexton_store::own::OwnConnection;
use tokio::sync::{Mutex, OwnedMutexGuard};
use uuid::Uuid;

use super::Writer;
use super::lane::Kind;

/// What became of a ticket.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Opening {
    /// The attempt is open and this worker's: run it.
    Opened(Box<Opened>),
    /// It came later than its job wants it to be begun: the execution is skipped, the ticket spent.
    Skipped,
    /// It opened nothing; what to do with the ticket instead. Never `Run` or `AskAgain`.
    Unopened(Answer),
}

#[derive(Debug)]
pub(super) struct Opens {
    pub(super) own: Arc<Mutex<OwnConnection>>,
    pub(super) writer: Writer,
}

impl Kind for Opens {
    const LIMIT: Duration = Duration::from_secs(10);
    type Request = OpenRequest;
    type Answer = Opening;
    type Turn = OwnedMutexGuard<OwnConnection>;

    fn key(request: &OpenRequest) -> Uuid {
        request.execution_id.get()
    }

    async fn turn(&self) -> Self::Turn {
        Arc::clone(&self.own).lock_owned().await
    }

    async fn write(
        &self,
        own: &mut Self::Turn,
        requests: &[OpenRequest],
    ) -> Result<Vec<Option<Opening>>, StoreError> {
        let connection = own.get().await?;
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
            let rows: HashMap<Uuid, Row> = look(&mut *connection, offers, &missed, None)
                .await?
                .into_iter()
                .map(|(id, row)| (id.get(), row))
                .collect();
            for request in &missed {
                let id = request.execution_id.get();
                unopened.insert(id, answer(request.attempt, rows.get(&id)));
            }
            if unopened.values().any(|answer| *answer == Answer::Run) {
                opened.extend(by_execution(recover(&mut *connection, &missed, *lease).await?));
            }
        }
        own.answered();
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
                    // `Run` without a row to run: it ended in this moment, the next look will tell.
                    None | Some(Answer::AskAgain | Answer::Run) => None,
                    Some(answer) => Some(Opening::Unopened(*answer)),
                }
            })
            .collect())
    }
}

fn by_execution(opened: Vec<Opened>) -> HashMap<Uuid, Opened> {
    opened.into_iter().map(|opened| (opened.execution_id.get(), opened)).collect()
}
