//! Telling that tasks were parked, beside the slots: whoever parks one goes on at once, and one loop reads
//! what the rows say of those that wait, many at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sexton_engine::parked_log::log_parked;
use sexton_model::id::ExecutionId;
use sexton_store::Store;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Tasks that wait to be told of; of what comes beyond, only the number is told.
const MAX_WAITING: usize = 1_000;
/// Rows that are read at a time.
const MAX_BATCH_ROWS: usize = 100;
/// For the rows behind the lines. The lines are a courtesy: the rows are there without them.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// For what waits when the worker stops.
const FINISH_TIMEOUT: Duration = Duration::from_secs(3);

/// Takes the ids of parked tasks. A clone takes them for the same loop.
#[derive(Clone, Debug)]
pub(crate) struct ParkedLog {
    waiting: mpsc::Sender<ExecutionId>,
    /// Parked while too many waited.
    dropped: Arc<AtomicU64>,
    stopping: CancellationToken,
    running: TaskTracker,
}

impl ParkedLog {
    /// Starts the loop.
    pub(crate) fn start(store: &Store) -> Self {
        let (waiting, receiver) = mpsc::channel(MAX_WAITING);
        let (dropped, stopping) = (Arc::default(), CancellationToken::new());
        let running = TaskTracker::new();
        let notices = Self { waiting, dropped, stopping, running };
        let (store, dropped) = (store.clone(), Arc::clone(&notices.dropped));
        notices.running.spawn(run(store, receiver, dropped, notices.stopping.clone()));
        notices.running.close();
        notices
    }

    /// A task was parked. Never waits.
    pub(crate) fn record(&self, id: ExecutionId) {
        if self.waiting.try_send(id).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Tells of what waits still, for at most [`FINISH_TIMEOUT`]. What is parked later is not told.
    pub(crate) async fn finish(&self) {
        self.stopping.cancel();
        let _ = tokio::time::timeout(FINISH_TIMEOUT, self.running.wait()).await;
    }
}

async fn run(
    store: Store,
    mut waiting: mpsc::Receiver<ExecutionId>,
    dropped: Arc<AtomicU64>,
    stopping: CancellationToken,
) {
    let mut ids = Vec::with_capacity(MAX_BATCH_ROWS);
    loop {
        tokio::select! {
            biased;
            count = waiting.recv_many(&mut ids, MAX_BATCH_ROWS) => {
                // Nobody is left who could hand in more.
                if count == 0 {
                    return;
                }
            }
            () = stopping.cancelled() => return,
        }
        log_parked(&store, &ids, QUERY_TIMEOUT).await;
        ids.clear();
        let more = dropped.swap(0, Ordering::Relaxed);
        if more > 0 {
            tracing::error!("{more} more executions are parked; `sexton failed list` shows them");
        }
    }
}
