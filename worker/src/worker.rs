//! Assembles a worker: links, write batcher, slots and heartbeat.

use std::sync::Arc;
use std::time::Duration;

use regex::Regex;
use sexton_broker::{
    Endpoint, Link, LinkSettings, LinkState, Namespace, PoolName, Publisher, SlotConsumer,
    Timeouts, TopologyError, names,
};
use sexton_engine::heartbeat::Heartbeat;
use sexton_engine::link_readiness::mirror_link;
use sexton_engine::start_up::wait_for_database;
use sexton_model::foreign::TypePatterns;
use sexton_model::id::ProcessId;
use sexton_model::retry::RetryPolicy;
use sexton_service::clock;
use sexton_service::health::{Liveness, Readiness};
use sexton_service::lifecycle::Lifecycle;
use sexton_service::reachability::Reachability;
use sexton_store::instances::InstanceRegistration;
use sexton_store::{Store, StoreError};
use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::consumer_liveness::ConsumerLiveness;
use crate::context::Context;
use crate::gate::Gate;
use crate::heartbeat::{InstanceHeartbeat, listen};
use crate::instance_lock::{InstanceLock, InstanceLockFile};
use crate::job_locks::JobLocks;
use crate::output::streaming::Streaming;
use crate::parked_log::ParkedLog;
use crate::queue_health::QueueHealth;
use crate::schema_cache::SchemaCache;
use crate::slot::Slot;
use crate::tasks::Tasks;
use crate::write_batcher::{WriteBatcher, Writer};

/// Lanes for publishing: workers publish little compared with what they run.
const PUBLISHER_LANES: usize = 1;
/// Pause between two tries to register the worker.
const START_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// How long a ticket may stay unacknowledged before the slot stops consuming for the remainder of its task.
/// Brokers take a consumer that holds a delivery for half an hour for dead.
pub const ACK_DEADLINE: Duration = Duration::from_mins(20);

/// The configuration of a worker.
pub struct WorkerOptions {
    /// PostgreSQL. The pool should have at least eight connections: four for the lanes, one each for the output
    /// and the heartbeat, and the others for rare statements; one more listens.
    pub store: Store,
    /// RabbitMQ.
    pub endpoint: Endpoint,
    /// The namespace of the queues.
    pub namespace: Namespace,
    /// The pools, at least one, each with the number of concurrent tasks, at least one.
    pub pools: Vec<(PoolName, u32)>,
    /// Tickets that the broker delivers to one slot ahead.
    pub prefetch: u16,
    /// The task types that it runs.
    pub tasks: Tasks,
    /// The lease of jobs without one of their own.
    pub lease: Duration,
    /// Types of foreign tasks that it adopts even if no worker offers them.
    pub foreign_types: TypePatterns,
    /// The retry policy of jobs without their own.
    pub retry: RetryPolicy,
    /// The pattern that is masked in the output of tasks and in the reasons of their failures.
    pub mask: Option<Arc<Regex>>,
    /// The instance name, `SEXTON_INSTANCE`.
    pub instance: String,
    /// The folder of the lock files; `None`: the worker runs without an instance lock.
    pub state_dir: Option<std::path::PathBuf>,
    /// See [`ACK_DEADLINE`].
    pub ack_deadline: Duration,
}

impl WorkerOptions {
    /// Returns the number of concurrent tasks.
    fn slots(&self) -> u32 {
        self.pools.iter().map(|(_, slots)| slots).sum()
    }
}

/// Why a worker cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// More pools than slots.
    #[error("{slots} slots cannot serve {pools} pools: raise WORKER_SLOTS or shorten WORKER_POOLS")]
    TooFewSlots {
        /// The configured number of slots.
        slots: u32,
        /// The configured number of pools.
        pools: usize,
    },
    /// The queues on the broker have other properties.
    #[error("{0}")]
    Topology(#[from] TopologyError),
    /// The database has content that this version cannot work with.
    #[error("{0}")]
    Store(#[from] StoreError),
}

/// Runs a worker until the lifecycle's soft stop and the end of its running tasks.
///
/// Waits for the database and its schema, and for the broker, without a limit; the readiness says so meanwhile.
/// The liveness fails when free slots do not consume although they could.
///
/// # Errors
///
/// [`WorkerError`]: a problem that waiting cannot solve.
pub async fn run(
    options: WorkerOptions,
    lifecycle: &Lifecycle,
    readiness: &Readiness,
    liveness: &Liveness,
) -> Result<(), WorkerError> {
    if options.pools.iter().any(|(_, slots)| *slots == 0) {
        let (slots, pools) = (options.slots(), options.pools.len());
        return Err(WorkerError::TooFewSlots { slots, pools });
    }
    let database = Reachability::new(readiness.condition("database", clock::now()));
    let broker_condition = readiness.condition("broker", clock::now());
    // Without a link for publishing, tickets can be neither parked nor delayed, and the relay must publish
    // retries.
    let publishing_condition = readiness.condition("broker, to publish", clock::now());
    let stop = lifecycle.soft();
    tokio::select! {
        () = stop.cancelled() => return Ok(()),
        reached = wait_for_database(&options.store, &database) => reached?,
    }
    let link = |what: &str| {
        Link::start(LinkSettings {
            endpoint: options.endpoint.clone(),
            name: format!("sexton worker {} {what}", options.instance),
            namespace: options.namespace.clone(),
            pools: options.pools.iter().map(|(pool, _)| pool.clone()).collect(),
            timeouts: Timeouts::default(),
        })
    };
    // A broker's resource alarm blocks a publishing connection completely; the acks need one that it does not
    // block.
    let (consuming, publishing) = (link("consume"), link("publish"));
    let instance_lock = instance_lock(&options);
    let lock = instance_lock.as_ref().map(InstanceLock::lock);
    let context =
        Arc::new(context(&options, &publishing, Gate::new(database), readiness, lock, lifecycle));
    let links = vec![consuming.clone(), publishing.clone()];
    let mut heartbeat = heartbeat(&options, &context, instance_lock, readiness, links);
    if !wait_until_introduced(&mut heartbeat, lifecycle).await? {
        return Ok(());
    }
    tokio::spawn(context.gate.clone().probe(options.store.clone(), context.writer.worker));
    tokio::spawn(listen(Arc::clone(&context)));
    let streaming = context.streaming.clone();
    tokio::spawn(streaming.run(options.store.clone(), context.gate.clone()));
    let (slots, consumer_liveness) = start_slots(&options, &context, &consuming);
    tokio::spawn(consumer_liveness.report(
        Arc::clone(&context),
        consuming.clone(),
        liveness.clone(),
    ));
    let beating = heartbeat.beat(async {
        slots.wait().await;
        context.parked_log.finish().await;
    });
    tokio::select! {
        () = beating => {
            // When a link ends, its slots end, too.
            for link in [&consuming, &publishing] {
                if let LinkState::Fatal(error) = &*link.state().borrow() {
                    return Err(error.clone().into());
                }
            }
        }
        error = consuming.failed() => return Err(error.into()),
        error = publishing.failed() => return Err(error.into()),
        never = mirror_link(&consuming, "consuming", &broker_condition) => match never {},
        never = mirror_link(&publishing, "publishing", &publishing_condition) => match never {},
    }
    consuming.close().await;
    publishing.close().await;
    Ok(())
}

/// Registers the worker, with as many tries as needed; `false`: the worker was stopped first.
async fn wait_until_introduced(
    heartbeat: &mut InstanceHeartbeat,
    lifecycle: &Lifecycle,
) -> Result<bool, StoreError> {
    let stop = lifecycle.soft();
    loop {
        match heartbeat.introduce().await {
            Ok(()) => return Ok(true),
            Err(error) if error.is_transient() => {}
            Err(error) => return Err(error),
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(false),
            () = tokio::time::sleep(START_RETRY_INTERVAL) => {}
        }
    }
}

fn context(
    options: &WorkerOptions,
    publishing: &Link,
    gate: Gate,
    readiness: &Readiness,
    instance_lock: Option<InstanceLockFile>,
    lifecycle: &Lifecycle,
) -> Context {
    let writer = Writer {
        worker: ProcessId::new(uuid::Uuid::now_v7()),
        actor: format!("{}:{}", options.instance, std::process::id()),
        offers: options.tasks.offers(&options.retry),
        lease: options.lease,
    };
    let publisher = Publisher::start(publishing, PUBLISHER_LANES);
    Context {
        store: options.store.clone(),
        write_batcher: WriteBatcher::start(&options.store, writer.clone(), &gate),
        gate,
        queue_health: QueueHealth::new(readiness, &publisher),
        publisher,
        parked_log: ParkedLog::start(&options.store),
        namespace: options.namespace.clone(),
        tasks: options.tasks.clone(),
        writer,
        retry: options.retry.clone(),
        foreign_types: options.foreign_types.clone(),
        schema_cache: SchemaCache::default(),
        mask: options.mask.clone(),
        streaming: Streaming::default(),
        cancels: watch::Sender::new(0),
        soft: lifecycle.soft(),
        hard: lifecycle.hard(),
        ack_deadline: options.ack_deadline,
        instance_lock,
        job_locks: JobLocks::new(&options.store, &options.instance),
    }
}

fn instance_lock(options: &WorkerOptions) -> Option<InstanceLock> {
    let folder = options.state_dir.as_ref()?;
    InstanceLock::open(folder, options.namespace.as_str(), &options.instance)
        .inspect_err(|error| {
            tracing::warn!(
                "runs without an instance lock: {} cannot be used: {error}",
                folder.display()
            );
        })
        .ok()
}

fn heartbeat(
    options: &WorkerOptions,
    context: &Arc<Context>,
    instance_lock: Option<InstanceLock>,
    readiness: &Readiness,
    links: Vec<Link>,
) -> InstanceHeartbeat {
    let registration = InstanceRegistration {
        id: context.writer.worker,
        kind: "worker",
        name: options.instance.clone(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION"),
        tz_version: None,
        pools: options.pools.iter().map(|(pool, _)| pool.to_string()).collect(),
        pool_slots: Some(options.pools.iter().map(|(_, slots)| *slots as i32).collect()),
        slots: options.slots(),
        instance_lock: None,
        // Plus the listener's connection, which the store does not count, and the write batcher's.
        db_connections: context.store.connections() + 2,
    };
    let store = context.store.clone();
    InstanceHeartbeat {
        context: Arc::clone(context),
        heartbeat: Heartbeat::new(store, registration, readiness.clone(), links),
        offers: options.tasks.schemas(),
        beats: 0,
        instance_lock,
        has_predecessors_to_settle: false,
    }
}

fn start_slots(
    options: &WorkerOptions,
    context: &Arc<Context>,
    link: &Link,
) -> (TaskTracker, ConsumerLiveness) {
    let (slots, mut consumer_liveness) = (TaskTracker::new(), ConsumerLiveness::default());
    let all_slots = options.pools.iter().flat_map(|(pool, slots)| (0..*slots).map(move |_| pool));
    for pool in all_slots {
        let queue = names::main_queue(&options.namespace, pool);
        let consumer = SlotConsumer::new(link, queue, options.prefetch);
        let slot = Slot::new(Arc::clone(context), consumer, pool.clone());
        consumer_liveness.add(pool, slot.slot_status());
        slots.spawn(slot.run());
    }
    slots.close();
    tracing::info!(
        worker.instance = options.instance,
        worker.slots = options.slots(),
        worker.pools = ?context_pools(options),
        worker.task_types = ?context.writer.types(),
        "worker {} takes tickets for {} slots",
        context.writer.actor,
        options.slots()
    );
    (slots, consumer_liveness)
}

fn context_pools(options: &WorkerOptions) -> Vec<String> {
    options.pools.iter().map(|(pool, slots)| format!("{pool}:{slots}")).collect()
}
