//! Logs parked executions outside the slots: a slot that parks one continues at once, and one loop reads the
//! rows of the waiting ones in batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sexton_engine::parked_log::log_parked;
use sexton_model::id::ExecutionId;
use sexton_store::Store;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Executions that may wait for their log line; beyond that only their number is logged.
const MAX_WAITING: usize = 1_000;
/// Rows that one query reads.
const MAX_BATCH_ROWS: usize = 100;
/// Time limit of that query. The log is a convenience: the rows exist without it.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit for the waiting ones when the worker stops.
const FINISH_TIMEOUT: Duration = Duration::from_secs(3);

/// Accepts the ids of parked executions. Clones feed the same loop.
#[derive(Clone, Debug)]
pub(crate) struct ParkedLog {
    waiting: mpsc::Sender<ExecutionId>,
    /// The number of executions that were parked while too many waited.
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

    /// Records a parked execution. Never waits.
    pub(crate) fn record(&self, id: ExecutionId) {
        if self.waiting.try_send(id).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Logs what still waits, for at most [`FINISH_TIMEOUT`]. Executions that are parked later are not logged.
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
                // All senders are dropped.
                if count == 0 {
                    return;
                }
            }
            () = stopping.cancelled() => return,
        }
        log_parked(&store, &ids, QUERY_TIMEOUT).await;
        ids.clear();
        let dropped_count = dropped.swap(0, Ordering::Relaxed);
        if dropped_count > 0 {
            tracing::error!(
                "{dropped_count} more executions are parked; `sexton failed list` shows them"
            );
        }
    }
}
