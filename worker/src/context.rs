//! State that the slots of a worker share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use regex::Regex;
use sexton_broker::{Namespace, Publication, PublishError, Publisher};
use sexton_model::foreign::TypePatterns;
use sexton_model::id::OpenToken;
use sexton_model::retry::RetryPolicy;
use sexton_service::metrics::table;
use sexton_store::Store;
use sexton_store::open::Opened;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::gate::Gate;
use crate::instance_lock::InstanceLockFile;
use crate::job_locks::JobLocks;
use crate::output::streaming::Streaming;
use crate::parked_log::ParkedLog;
use crate::queue_health::QueueHealth;
use crate::schema_cache::SchemaCache;
use crate::tasks::Tasks;
use crate::write_batcher::{WriteBatcher, Writer};

/// The shared state of a worker, behind an `Arc`.
pub(crate) struct Context {
    pub(crate) store: Store,
    pub(crate) write_batcher: WriteBatcher,
    pub(crate) gate: Gate,
    pub(crate) publisher: Publisher,
    pub(crate) queue_health: QueueHealth,
    /// Logs parked executions.
    pub(crate) parked_log: ParkedLog,
    pub(crate) namespace: Namespace,
    pub(crate) tasks: Tasks,
    pub(crate) writer: Writer,
    /// The retry policy of jobs without their own.
    pub(crate) retry: RetryPolicy,
    /// Types of foreign tasks that are adopted even if no worker offers them.
    pub(crate) foreign_types: TypePatterns,
    /// Validates the params of foreign tasks.
    pub(crate) schema_cache: SchemaCache,
    /// The pattern that is masked in output and messages.
    pub(crate) mask: Option<Arc<Regex>>,
    /// Stores the output of running attempts.
    pub(crate) streaming: Streaming,
    /// Counts the cancels received; each makes every running attempt renew at once.
    pub(crate) cancels: watch::Sender<u64>,
    /// Cancelled when no more tickets may be taken.
    pub(crate) soft: CancellationToken,
    /// Cancelled when running tasks must end.
    pub(crate) hard: CancellationToken,
    /// How long a ticket may stay unacknowledged.
    pub(crate) ack_deadline: Duration,
    /// The locks of jobs.
    pub(crate) job_locks: JobLocks,
    /// The lock file that the guards of tasks hold, if this worker has one.
    pub(crate) instance_lock: Option<InstanceLockFile>,
}

impl Context {
    /// Publishes one message, and records whether its queue accepted it.
    pub(crate) async fn publish(&self, publication: Publication) -> Result<(), PublishError> {
        let queue = publication.queue().to_owned();
        let began = Instant::now();
        let published = self.publisher.publish_one(publication).await;
        if published.is_ok() {
            table::PUBLISH_CONFIRM.observe([], began.elapsed());
        }
        self.queue_health.published(&queue, &published);
        published
    }

    /// Returns the policy that decides the end of an attempt: the job's settings, then the catalogue's, then
    /// this worker's.
    pub(crate) fn policy(&self, opened: &Opened) -> RetryPolicy {
        match self.tasks.get(&opened.task_type) {
            Some(task) => self.retry.with(&task.retry).with(&opened.retry),
            None => self.retry.with(&opened.retry),
        }
    }

    /// Creates a new token for an open.
    pub(crate) fn new_token() -> OpenToken {
        OpenToken::new(Uuid::new_v4())
    }
}
