//! Writes the pings that wait, many in one statement.
//!
//! Each is answered when the statement with it is committed. Two writers take turns, so that a batch gathers while another is committed.
//! A crash loses only pings that were not answered, and their clients send them again. A ping that was accepted is written whether its
//! client still waits or not: a job that ran must not look as if it had not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sexton_model::log_throttle::LogThrottle;
use sexton_operations::pings::{self, NewPing};
use sexton_store::Store;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::timeout;

/// Pings that wait at the same time; more are refused.
const MAX_WAITING: usize = 5_000;
/// Pings of one statement, and the bytes of their bodies after which no more are added.
const MAX_BATCH: usize = 1_000;
const MAX_BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Longest time of a statement, and of the wait for a connection.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time from a ping to its answer.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Statements at the same time.
const WRITERS: usize = 2;

/// What became of a ping.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recorded {
    /// It is durable.
    Yes,
    /// There is no such check.
    NoCheck,
    /// The database did not take it in time, or too many wait. Whether it was recorded may be unknown.
    Unavailable,
}

struct Waiting {
    ping: NewPing,
    answer: oneshot::Sender<Recorded>,
}

/// Where pings wait. Cheap to clone. The writers end when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Recorder {
    queue: mpsc::Sender<Waiting>,
}

impl Recorder {
    /// Begins to write. The second value ends when all waiting pings are answered, after the last recorder is dropped.
    pub fn start(store: &Store) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (queue, waiting) = mpsc::channel(MAX_WAITING);
        let waiting = Arc::new(Mutex::new(waiting));
        let writers = (0..WRITERS).map(|_| write(store.clone(), Arc::clone(&waiting)));
        let mut writers: tokio::task::JoinSet<()> = writers.collect();
        (Self { queue }, async move { while writers.join_next().await.is_some() {} })
    }

    /// Records a ping, and returns when it is durable.
    pub async fn record(&self, ping: NewPing) -> Recorded {
        let (answer, recorded) = oneshot::channel();
        if self.queue.try_send(Waiting { ping, answer }).is_err() {
            return Recorded::Unavailable;
        }
        match timeout(MAX_WAIT, recorded).await {
            Ok(Ok(recorded)) => recorded,
            _ => Recorded::Unavailable,
        }
    }
}

async fn write(store: Store, waiting: Arc<Mutex<mpsc::Receiver<Waiting>>>) {
    let throttle = LogThrottle::default();
    loop {
        let batch = take(&mut *waiting.lock().await).await;
        if batch.is_empty() {
            return;
        }
        let (pings, answers): (Vec<NewPing>, Vec<oneshot::Sender<Recorded>>) =
            batch.into_iter().map(|one| (one.ping, one.answer)).unzip();
        let recorded = timeout(WRITE_TIMEOUT, pings::record(&store, &pings)).await;
        let failure = match &recorded {
            Ok(Ok(_)) => None,
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => Some("the database did not answer in time".to_owned()),
        };
        if let Some(failure) = failure.filter(|_| throttle.permits(Instant::now())) {
            let pings = pings.len();
            tracing::warn!(
                pings,
                "pings could not be recorded and are answered with 503: {failure}"
            );
        }
        let recorded = recorded.ok().and_then(Result::ok);
        for (place, answer) in answers.into_iter().enumerate() {
            let outcome = match &recorded {
                None => Recorded::Unavailable,
                Some(recorded) if recorded.contains(&place) => Recorded::Yes,
                Some(_) => Recorded::NoCheck,
            };
            // Nobody waits any more if the client has gone.
            let _ = answer.send(outcome);
        }
    }
}

/// Waits for a ping, and takes those behind it that are there already; empty: no more will come.
async fn take(waiting: &mut mpsc::Receiver<Waiting>) -> Vec<Waiting> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    loop {
        let next = if batch.is_empty() { waiting.recv().await } else { waiting.try_recv().ok() };
        let Some(one) = next else { break };
        bytes += one.ping.body.as_ref().map_or(0, String::len);
        batch.push(one);
        if batch.len() >= MAX_BATCH || bytes >= MAX_BATCH_BYTES {
            break;
        }
    }
    batch
}
