//! Batches one kind of statement.

use std::collections::HashSet;
use std::time::Duration;

use sexton_store::StoreError;
use sexton_store::timeout::with_timeout;
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::{WriteError, WriteRefusal};
use crate::gate::Gate;

/// The most calls of one statement.
const MAX_BATCH_CALLS: usize = 256;
/// Bytes of one statement; the last call may exceed it.
const MAX_BATCH_BYTES: usize = 1024 * 1024;
/// The most calls that wait for the next batch; further callers wait to enqueue.
const MAX_QUEUED_CALLS: usize = 1024;
/// Pause before locked rows are tried again, unless other calls arrive first; doubled while all rows of a batch
/// are locked.
const LOCKED_PAUSE: Duration = Duration::from_millis(1);
/// The longest such pause.
const MAX_LOCKED_PAUSE: Duration = Duration::from_secs(1);

/// A kind of statement.
pub(super) trait StatementKind: Send + Sync + 'static {
    /// Time limit of the statement. Without one, a server that vanished would block the lane, and with it every
    /// slot, for ever.
    const TIMEOUT: Duration;

    /// The request, for one execution.
    type Request: Clone + Send + Sync + 'static;
    /// The answer.
    type Answer: Send + 'static;
    /// The permit that the statement needs.
    type Permit: Send;

    /// Returns the execution: two calls for the same one never share a statement.
    fn key(request: &Self::Request) -> Uuid;

    /// Returns the approximate size of its text in bytes.
    fn bytes(_: &Self::Request) -> usize {
        0
    }

    /// Reports that the server refused the statement for one request alone, perhaps for a reason outside the
    /// request.
    fn refused(gate: &Gate, error: &StoreError) {
        gate.record_failure(error);
    }

    /// Waits until a statement may be run. Calls that arrive meanwhile join the batch.
    fn acquire_permit(&self) -> impl Future<Output = Self::Permit> + Send;

    /// Runs the statement. Answers in the order of the requests; `None`: the row was locked.
    fn write(
        &self,
        permit: &mut Self::Permit,
        requests: &[Self::Request],
    ) -> impl Future<Output = Result<Vec<Option<Self::Answer>>, StoreError>> + Send;
}

struct Call<K: StatementKind> {
    request: K::Request,
    reply: oneshot::Sender<Result<K::Answer, WriteError>>,
}

/// A handle to a lane.
#[derive(Debug)]
pub(super) struct Lane<K: StatementKind>(mpsc::Sender<Call<K>>);

impl<K: StatementKind> Clone for Lane<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: StatementKind> Lane<K> {
    pub(super) fn start(kind: K, gate: &Gate) -> Self {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED_CALLS);
        tokio::spawn(run(kind, receiver, gate.clone()));
        Self(sender)
    }

    /// Sends a request and waits for its answer. Dropping the future does not cancel the request: it may still
    /// be written.
    pub(super) async fn call(&self, request: K::Request) -> Result<K::Answer, WriteError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.0.send(Call { request, reply }).await;
        if sent.is_err() {
            return Err(WriteError::Unanswered);
        }
        answer.await.unwrap_or(Err(WriteError::Unanswered))
    }
}

async fn run<K: StatementKind>(kind: K, mut receiver: mpsc::Receiver<Call<K>>, gate: Gate) {
    let mut waiting: Vec<Call<K>> = Vec::new();
    let mut pause = LOCKED_PAUSE;
    loop {
        if waiting.is_empty() {
            if receiver.recv_many(&mut waiting, MAX_BATCH_CALLS).await == 0 {
                return;
            }
        } else {
            // `waiting` holds only calls whose rows were locked.
            let more = receiver.recv_many(&mut waiting, MAX_BATCH_CALLS);
            if let Ok(0) = tokio::time::timeout(pause, more).await {
                tokio::time::sleep(pause).await;
            }
        }
        let mut permit = kind.acquire_permit().await;
        while waiting.len() < MAX_BATCH_CALLS
            && let Ok(call) = receiver.try_recv()
        {
            waiting.push(call);
        }
        let batch = take_distinct(&mut waiting);
        let batch_size = batch.len();
        let locked = write(&kind, &mut permit, batch, &gate).await;
        drop(permit);
        let fruitless = batch_size > 0 && locked.len() == batch_size;
        pause = if fruitless { (pause * 2).min(MAX_LOCKED_PAUSE) } else { LOCKED_PAUSE };
        waiting.extend(locked);
    }
}

/// Takes up to [`MAX_BATCH_CALLS`] calls of [`MAX_BATCH_BYTES`] for distinct executions, in order.
fn take_distinct<K: StatementKind>(waiting: &mut Vec<Call<K>>) -> Vec<Call<K>> {
    let mut seen = HashSet::with_capacity(waiting.len());
    let mut batch = Vec::with_capacity(waiting.len().min(MAX_BATCH_CALLS));
    let (mut remaining, mut bytes) = (Vec::new(), 0);
    for call in waiting.drain(..) {
        // A caller that no longer waits needs no answer, and its request may be outdated.
        if call.reply.is_closed() {
            continue;
        }
        let fits = batch.len() < MAX_BATCH_CALLS && bytes < MAX_BATCH_BYTES;
        if fits && seen.insert(K::key(&call.request)) {
            bytes += K::bytes(&call.request);
            batch.push(call);
        } else {
            remaining.push(call);
        }
    }
    *waiting = remaining;
    batch
}

/// Writes a batch and answers it; returns the calls whose rows were locked.
async fn write<K: StatementKind>(
    kind: &K,
    permit: &mut K::Permit,
    batch: Vec<Call<K>>,
    gate: &Gate,
) -> Vec<Call<K>> {
    if batch.is_empty() {
        return Vec::new();
    }
    let requests: Vec<K::Request> = batch.iter().map(|call| call.request.clone()).collect();
    match with_timeout(K::TIMEOUT, kind.write(permit, &requests)).await {
        Ok(answers) => {
            gate.record_success();
            answer(batch, answers)
        }
        // One bad row must not prevent the records of the others.
        Err(error) if error.may_be_of_one_row() && batch.len() > 1 => {
            one_by_one(kind, permit, batch, gate).await
        }
        Err(error) => refuse(batch, &error, gate),
    }
}

async fn one_by_one<K: StatementKind>(
    kind: &K,
    permit: &mut K::Permit,
    batch: Vec<Call<K>>,
    gate: &Gate,
) -> Vec<Call<K>> {
    let mut locked = Vec::new();
    let mut calls = batch.into_iter();
    while let Some(call) = calls.next() {
        match with_timeout(K::TIMEOUT, kind.write(permit, std::slice::from_ref(&call.request)))
            .await
        {
            Ok(answers) => locked.extend(answer(vec![call], answers)),
            Err(error) if error.may_be_of_one_row() => {
                locked.extend(refuse(vec![call], &error, gate));
            }
            // Each of the others could wait as long, and would keep the connection from other lanes.
            Err(error) => {
                let others = [call].into_iter().chain(calls).collect();
                locked.extend(refuse(others, &error, gate));
                break;
            }
        }
    }
    locked
}

fn answer<K: StatementKind>(batch: Vec<Call<K>>, answers: Vec<Option<K::Answer>>) -> Vec<Call<K>> {
    let mut locked = Vec::new();
    for (call, answer) in batch.into_iter().zip(answers) {
        match answer {
            // A caller that has stopped waiting gets no answer; the row shows the result.
            Some(answer) => drop(call.reply.send(Ok(answer))),
            None => locked.push(call),
        }
    }
    locked
}

fn refuse<K: StatementKind>(batch: Vec<Call<K>>, error: &StoreError, gate: &Gate) -> Vec<Call<K>> {
    let answer = if let StoreError::Data(error) = error {
        WriteError::Data(error.to_string())
    } else if error.may_be_of_one_row() {
        K::refused(gate, error);
        WriteError::Refused(WriteRefusal::of(error))
    } else {
        gate.record_failure(error);
        WriteError::Unanswered
    };
    for call in batch {
        let _ = call.reply.send(Err(answer.clone()));
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use sexton_service::clock;
    use sexton_service::health::Readiness;
    use sexton_service::reachability::Reachability;

    use super::*;

    /// Refuses a statement that contains the nil id, as a trigger or a damaged row would.
    struct OneRefused;

    impl StatementKind for OneRefused {
        const TIMEOUT: Duration = Duration::from_secs(10);
        type Request = Uuid;
        type Answer = Uuid;
        type Permit = ();

        fn key(request: &Uuid) -> Uuid {
            *request
        }

        async fn acquire_permit(&self) {}

        async fn write(&self, (): &mut (), ids: &[Uuid]) -> Result<Vec<Option<Uuid>>, StoreError> {
            if ids.contains(&Uuid::nil()) {
                let (place, value) = ("attempts.state", "?".to_owned());
                return Err(StoreError::Inconsistent { place, value });
            }
            Ok(ids.iter().copied().map(Some).collect())
        }
    }

    #[tokio::test]
    async fn a_row_that_is_refused_fails_alone_and_its_neighbours_are_written() {
        let condition = Readiness::new().condition("database", clock::now());
        let gate = Gate::new(Reachability::new(condition));
        let ids = [Uuid::from_u128(1), Uuid::nil(), Uuid::from_u128(2)];
        let (batch, answers): (Vec<_>, Vec<_>) = ids
            .map(|request| {
                let (reply, answer) = oneshot::channel();
                (Call { request, reply }, answer)
            })
            .into_iter()
            .unzip();
        assert!(write(&OneRefused, &mut (), batch, &gate).await.is_empty());
        let mut outcomes = Vec::new();
        for answer in answers {
            outcomes.push(answer.await.unwrap());
        }
        assert_eq!((&outcomes[0], &outcomes[2]), (&Ok(ids[0]), &Ok(ids[2])));
        assert!(matches!(outcomes[1], Err(WriteError::Refused(_))), "{:?}", outcomes[1]);
    }
}
