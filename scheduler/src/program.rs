//! Assembles the scheduler and runs it until its orderly end.
//!
//! After the soft stop no round begins; running rounds end, and claimed tickets are published. Tickets that are
//! not published within the grace stay unpublished in their rows, as after a crash.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use sexton_broker::publish::DEFAULT_LANES;
use sexton_broker::{
    Endpoint, Link, LinkSettings, Namespace, PoolName, Publisher, Timeouts, TopologyError,
};
use sexton_engine::heartbeat::{Heartbeat, mark_stopped};
use sexton_engine::link_readiness::mirror_link;
use sexton_model::heartbeat;
use sexton_model::id::ProcessId;
use sexton_model::job::JobSpec;
use sexton_model::zone::tz_data_version;
use sexton_outbound::channel::send::Sender;
use sexton_outbound::secret::SecretSource;
use sexton_service::clock;
use sexton_service::health::{Condition, Health, HealthServer, Liveness, Readiness};
use sexton_service::lifecycle::{ExitOutcome, Lifecycle, Signals};
use sexton_service::metrics::{self, Program, table};
use sexton_service::reachability::Reachability;
use sexton_service::settings::{SchedulerSettings, ServiceSettings, variables_for_others};
use sexton_store::instances::InstanceRegistration;
use sexton_store::retention::RetentionPolicy;
use sexton_store::{Store, StoreOptions};
use sexton_tls::TlsClient;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::alerts::check_monitors::CheckMonitors;
use crate::alerts::dead_man::DeadManSwitch;
use crate::alerts::delivery::NotificationSender;
use crate::alerts::heartbeat_delivery::HeartbeatSender;
use crate::alerts::job_monitors::JobMonitors;
use crate::alerts::platform_monitors::PlatformMonitors;
use crate::background_loop::BackgroundLoop;
use crate::background_loop::runner::{LoopContext, run};
use crate::bulks::Bulks;
use crate::maintenance::audit_sealer::AuditSealer;
use crate::maintenance::failure_aggregator::FailureAggregator;
use crate::maintenance::flow_maker::FlowMaker;
use crate::maintenance::heartbeat::InstanceHeartbeat;
use crate::maintenance::ledger_check::LedgerCheck;
use crate::maintenance::ping_trimmer::PingTrimmer;
use crate::maintenance::platform_metrics::PlatformMetrics;
use crate::maintenance::pruner::Pruner;
use crate::maintenance::reconciler::Reconciler;
use crate::maintenance::rescuer::Rescuer;
use crate::notifications::NotificationListener;
use crate::planner::Planner;
use crate::planner::cursors::Cursors;
use crate::publish::dispatch::dispatch;
use crate::publish::outbox::Outbox;
use crate::publish::relay::Relay;
use crate::start_up::{StartError, start_up};
use crate::sweep::Sweep;

/// Time limit for closing the connections to the database.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs the scheduler until a signal or a fatal error. `jobs` are those of the environment.
///
/// # Errors
///
/// The error that prevents a start; nothing has been claimed then.
pub async fn run_scheduler(
    settings: SchedulerSettings,
    jobs: Vec<JobSpec>,
    signals: Signals,
) -> anyhow::Result<ExitOutcome> {
    let service = &settings.service;
    metrics::init(Program::Scheduler, env!("CARGO_PKG_VERSION"));
    let lifecycle = Lifecycle::new(service.shutdown_grace);
    let (readiness, liveness) = (Readiness::new(), Liveness::new());
    let database = Reachability::new(readiness.condition("database", clock::now()));
    let condition = readiness.condition("broker", clock::now());
    let stopping = lifecycle.soft();
    let health = Health { readiness: readiness.clone(), liveness: liveness.clone(), stopping };
    let _health = HealthServer::start(service.health_addr, health).await?;
    let store = open_store(service)?;
    let link = Link::start(link_settings(service)?);
    lifecycle.spawn("broker", follow_link(link.clone(), condition, lifecycle.soft()));
    let context = LoopContext {
        started: CancellationToken::new(),
        soft: lifecycle.soft(),
        hard: lifecycle.hard(),
        liveness,
        database,
    };
    let registration = introduction(&service.instance, service.db_pool_size);
    let loops = Loops { lifecycle: &lifecycle, context, store: &store, link: &link };
    loops.start(registration.clone(), jobs, readiness);
    loops.spawn_all(&settings);
    let ended = lifecycle.run_until_stopped(signals).await;
    mark_stopped(&store, &registration, CLOSE_TIMEOUT).await;
    link.close().await;
    let _ = timeout(CLOSE_TIMEOUT, store.close()).await;
    Ok(ended)
}

/// Shows the link's state in `/readyz` until the shutdown.
///
/// # Errors
///
/// [`TopologyError`], which ends the process: a queue exists with other arguments; the message gives the
/// remedy.
async fn follow_link(
    link: Link,
    condition: Condition,
    soft: CancellationToken,
) -> Result<(), TopologyError> {
    tokio::select! {
        () = soft.cancelled() => Ok(()),
        error = link.failed() => Err(error),
        never = mirror_link(&link, "broker", &condition) => match never {},
    }
}

struct Loops<'a> {
    lifecycle: &'a Lifecycle,
    context: LoopContext,
    store: &'a Store,
    link: &'a Link,
}

impl Loops<'_> {
    /// Waits for the database, lets the loops begin, and reports when everything is ready.
    fn start(&self, registration: InstanceRegistration, jobs: Vec<JobSpec>, readiness: Readiness) {
        let (store, link, context) = (self.store.clone(), self.link.clone(), self.context.clone());
        let name = registration.name.clone();
        let heartbeat = Heartbeat::new(store.clone(), registration, readiness, vec![link.clone()]);
        self.spawn(InstanceHeartbeat(heartbeat), &Arc::default());
        self.lifecycle.spawn("start", async move {
            let actor = format!("scheduler {name}");
            let starting = async {
                start_up(&store, &jobs, &actor, &context.database).await?;
                context.started.cancel();
                if !link.is_up() {
                    tracing::info!("claims firings, and waits for the broker to publish them");
                }
                if link.up().await.is_some() {
                    tracing::info!(instance.name = name, "the scheduler is at work");
                }
                // The task lasts as long as the loops.
                context.soft.cancelled().await;
                Ok::<_, StartError>(())
            };
            tokio::select! {
                () = context.soft.cancelled() => Ok(()),
                ended = starting => ended,
            }
        });
    }

    fn spawn_all(&self, settings: &SchedulerSettings) {
        let service = &settings.service;
        let (store, link) = (self.store, self.link);
        let publisher = Publisher::start(link, DEFAULT_LANES);
        let outbox = Arc::new(Outbox::new(store.clone(), link.clone(), publisher.clone()));
        let (dispatch, dispatcher) = dispatch(Arc::clone(&outbox));
        let by = format!("{}:{}", service.instance, std::process::id());
        let planner = Planner::new(store.clone(), dispatch, by).hold_after(settings.hold_after);
        let planner = Arc::new(planner);
        let (jobs, unpublished) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (bulks, flows) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let listener = NotificationListener {
            planner: Arc::clone(&planner),
            jobs: Arc::clone(&jobs),
            unpublished: Arc::clone(&unpublished),
            bulks: Arc::clone(&bulks),
            flows: Arc::clone(&flows),
        };
        let stop = self.context.soft.clone();

        let dispatching = dispatcher.run(self.context.clone());
        self.lifecycle.spawn("dispatcher", async {
            dispatching.await;
            Ok::<_, Infallible>(())
        });
        self.lifecycle.spawn("wakes", listener.run(store.clone(), self.context.clone()));
        self.spawn(planner, &jobs);
        self.spawn(Bulks::new(store.clone(), Arc::clone(&outbox)), &bulks);
        self.spawn(Relay::new(store.clone(), outbox), &unpublished);
        self.spawn(FlowMaker::new(store.clone(), Arc::clone(&unpublished)), &flows);
        self.spawn(Cursors::new(store.clone()), &Arc::default());
        self.spawn(FailureAggregator::new(store.clone()), &Arc::default());
        self.spawn_senders(settings, &stop);
        self.spawn(AuditSealer::new(store.clone()), &Arc::default());
        self.spawn(LedgerCheck::new(store.clone()), &Arc::default());
        self.spawn(JobMonitors::new(store.clone()), &Arc::default());
        self.spawn(CheckMonitors::new(store.clone()), &Arc::default());
        self.spawn(PingTrimmer::new(store.clone()), &Arc::default());
        let doctor = settings.doctor.clone();
        self.spawn(PlatformMonitors::new(store.clone(), doctor), &Arc::default());
        self.spawn(PlatformMetrics::new(store.clone(), settings.metrics_per_job), &Arc::default());
        let quiet = Arc::default();
        self.spawn(
            Rescuer::new(store.clone(), service.retry.clone(), Arc::clone(&unpublished)),
            &quiet,
        );
        let quiet = Arc::default();
        self.spawn(Reconciler::new(store.clone(), link.clone(), Arc::clone(&unpublished)), &quiet);
        let sweep = Sweep::new(store.clone(), link.clone(), publisher, unpublished, stop.clone());
        self.spawn(sweep, &Arc::default());
        let terms = RetentionPolicy {
            days: settings.retention_days as i32,
            audit_days: settings.audit_days.map(|days| days as i32),
        };
        self.spawn(Pruner::new(store.clone(), terms, stop), &Arc::default());
    }

    /// Starts the loops that send to other systems.
    fn spawn_senders(&self, settings: &SchedulerSettings, stop: &CancellationToken) {
        let (store, quiet) = (self.store, Arc::default());
        let secrets = SecretSource::new(variables_for_others());
        let sender = Sender::new(secrets, TlsClient::default());
        let pinger = sender.clone().within(heartbeat::SEND_TIMEOUT);
        self.spawn(NotificationSender::new(store.clone(), sender, stop.clone()), &quiet);
        let heartbeats = HeartbeatSender::new(store.clone(), pinger.clone(), stop.clone());
        self.spawn(heartbeats, &quiet);
        let watcher = settings.dead_man.as_ref();
        let target = watcher.map(|(url, period)| (url.expose().clone(), *period));
        let switch = DeadManSwitch::new(store.clone(), self.link.clone(), pinger, target);
        self.spawn(switch, &quiet);
    }

    fn spawn<S: BackgroundLoop>(&self, background_loop: S, wakeup: &Arc<Notify>) {
        self.lifecycle
            .spawn(S::NAME, run(background_loop, Arc::clone(wakeup), self.context.clone()));
    }
}

fn open_store(service: &ServiceSettings) -> anyhow::Result<Store> {
    let application = format!("sexton scheduler {}", service.instance);
    let mut options = StoreOptions::new(service.database_url.expose(), application);
    options.on_begin = Some(|waited| table::DB_ACQUIRE.observe([], waited));
    options.direct_url = service.database_direct_url.as_ref().map(|url| url.expose().to_owned());
    // One listens.
    options.pool_size = service.db_pool_size - 1;
    Ok(Store::open(&options)?)
}

fn link_settings(service: &ServiceSettings) -> anyhow::Result<LinkSettings> {
    Ok(LinkSettings {
        endpoint: Endpoint::parse(service.amqp_url.expose())?,
        name: format!("scheduler {}", service.instance),
        namespace: Namespace::new(&service.namespace)?,
        pools: vec![PoolName::default_pool()],
        timeouts: Timeouts::default(),
    })
}

fn introduction(instance: &str, db_pool_size: u32) -> InstanceRegistration {
    InstanceRegistration {
        id: ProcessId::new(Uuid::now_v7()),
        kind: "scheduler",
        name: instance.to_owned(),
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION"),
        tz_version: Some(tz_data_version()),
        pools: Vec::new(),
        slots: 0,
        pool_slots: None,
        instance_lock: None,
        // The planner and the pruner have connections of their own; the pool's size includes the listener's.
        db_connections: db_pool_size + 2,
    }
}
