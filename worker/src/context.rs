//! What the slots of a worker share.

use std::sync::Arc;
use std::time::Duration;

use regex::Regex;
use sexton_broker::{Namespace, Publication, PublishError, Publisher};
use sexton_model::foreign::TypePatterns;
use sexton_model::id::OpenToken;
use sexton_model::retry::RetryPolicy;
use sexton_store::Store;
use sexton_store::open::Opened;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::gate::Gate;
use crate::instance_lock::InstanceLockFile;
use crate::output::streaming::Streaming;
use crate::parked_log::ParkedLog;
use crate::queue_health::QueueHealth;
use crate::schema_cache::SchemaCache;
use crate::tasks::Tasks;
use crate::write_batcher::{WriteBatcher, Writer};

/// One per worker, behind an `Arc`.
pub(crate) struct Context {
    pub(crate) store: Store,
    pub(crate) write_batcher: WriteBatcher,
    pub(crate) gate: Gate,
    pub(crate) publisher: Publisher,
    pub(crate) queue_health: QueueHealth,
    /// Tells of parked tasks.
    pub(crate) parked_log: ParkedLog,
    pub(crate) namespace: Namespace,
    pub(crate) tasks: Tasks,
    pub(crate) writer: Writer,
    /// For jobs that do not say.
    pub(crate) retry: RetryPolicy,
    /// Types of tasks of other programs that are adopted though no worker offers them.
    pub(crate) foreign_types: TypePatterns,
    /// For the params of tasks of other programs.
    pub(crate) schema_cache: SchemaCache,
    /// What is masked in output and messages.
    pub(crate) mask: Option<Arc<Regex>>,
    /// What running attempts write is stored by it.
    pub(crate) streaming: Streaming,
    /// Counts the cancels that were heard of; each makes every running attempt renew at once.
    pub(crate) cancels: watch::Sender<u64>,
    /// Cancelled when no further ticket may be taken.
    pub(crate) soft: CancellationToken,
    /// Cancelled when running tasks must end.
    pub(crate) hard: CancellationToken,
    /// How long a ticket may stay unacknowledged.
    pub(crate) ack_deadline: Duration,
    /// What the guards of tasks hold, if this worker has a lock file.
    pub(crate) instance_lock: Option<InstanceLockFile>,
}

impl Context {
    /// Publishes one message, and reports how its queue took it.
    pub(crate) async fn publish(&self, publication: Publication) -> Result<(), PublishError> {
        let queue = publication.queue().to_owned();
        let published = self.publisher.publish_one(publication).await;
        self.queue_health.published(&queue, &published);
        published
    }

    /// By which policy the end of an attempt is decided: the job's, where that says nothing the
    /// catalogue's, then this worker's.
    pub(crate) fn policy(&self, opened: &Opened) -> RetryPolicy {
        match self.tasks.get(&opened.task_type) {
            Some(task) => self.retry.with(&task.retry).with(&opened.retry),
            None => self.retry.with(&opened.retry),
        }
    }

    /// A fresh mark for an open.
    pub(crate) fn new_token() -> OpenToken {
        OpenToken::new(Uuid::new_v4())
    }
}
