//! The worker as a program: settings, logs, health, signals, and an orderly end around
//! [`worker::run`](crate::worker::run).

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use sexton_broker::{Endpoint, Namespace, PoolName};
use sexton_model::pool::PoolNameError;
use sexton_service::health::{Health, HealthServer, Liveness, Readiness};
use sexton_service::lifecycle::{Lifecycle, Signals};
use sexton_service::metrics::{self, Program, table};
use sexton_service::settings::{WorkerSettings, variables_for_others};
use sexton_service::{clock, fault, telemetry, traces};
use sexton_store::task::TaskDatabase;
use sexton_store::{Store, StoreOptions};
use sexton_tls::TlsClient;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::builder::Handlers;
use crate::catalogue::Catalogue;
use crate::executor::WallClock;
use crate::executor::command::CommandHost;
use crate::executor::email::EmailHost;
use crate::executor::http::HttpHost;
use crate::guard::GuardProgram;
use crate::handler::HandlerHost;
use crate::tasks::{Hosts, Tasks};
use crate::worker::{ACK_DEADLINE, WorkerOptions, run};
use sexton_outbound::secret::SecretSource;

/// How long a runtime may miss its heartbeat before `/livez` says so.
const MAX_BEAT_INTERVAL: Duration = Duration::from_secs(30);
/// How long the protocol's runtime may take for its remaining work at the end.
const RUNTIME_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);
/// Threads for the protocol: renewals, tickets, requests, output.
const PROTOCOL_THREADS: usize = 2;

/// Runs a worker with these settings and handlers to the end of the process.
pub(crate) fn main(settings: &WorkerSettings, handlers: Handlers) -> anyhow::Result<ExitCode> {
    let started = |runtime: &mut Builder| runtime.enable_all().build();
    let runtime = started(Builder::new_multi_thread().worker_threads(PROTOCOL_THREADS))
        .context("failed to start the runtime")?;
    // Separate threads: a handler that blocks its thread must not delay the renewal of leases.
    let handler_runtime = (!handlers.is_empty())
        .then(|| started(Builder::new_multi_thread().thread_name("sexton-handler")))
        .transpose()
        .context("failed to start the handlers' runtime")?;
    let outcome = runtime.block_on(run_worker(
        settings,
        handlers,
        handler_runtime.as_ref().map(Runtime::handle),
    ));
    // Neither a handler that still blocks nor a disk that does not answer may keep the process from ending.
    handler_runtime.into_iter().for_each(Runtime::shutdown_background);
    runtime.shutdown_timeout(RUNTIME_SHUTDOWN_TIMEOUT);
    outcome
}

async fn run_worker(
    settings: &WorkerSettings,
    handlers: Handlers,
    handler_threads: Option<&Handle>,
) -> anyhow::Result<ExitCode> {
    let signals = Signals::install().context("failed to listen for signals")?;
    telemetry::init(&settings.service.telemetry)?;
    traces::init(settings.service.traces.as_ref(), &settings.service.instance)?;
    let options = options(settings, handlers, handler_threads)?;
    metrics::init(Program::Worker, env!("CARGO_PKG_VERSION"));
    let lifecycle = Lifecycle::new(settings.service.shutdown_grace);
    let (readiness, liveness) = (Readiness::new(), Liveness::new());
    let health = Health {
        readiness: readiness.clone(),
        liveness: liveness.clone(),
        stopping: lifecycle.soft(),
    };
    let _health = HealthServer::start(settings.service.health_addr, health).await?;
    beat(&liveness, "runtime", &Handle::current());
    if let Some(handler_threads) = handler_threads {
        beat(&liveness, "threads of the handlers", handler_threads);
    }
    let life = lifecycle.clone();
    lifecycle.spawn("worker", async move { run(options, &life, &readiness, &liveness).await });
    let ended = lifecycle.run_until_stopped(signals).await;
    traces::shut_down().await;
    Ok(ended.into())
}

/// Sends a heartbeat to the liveness from a task of this runtime, to show that its tasks get a thread.
fn beat(liveness: &Liveness, name: &str, runtime: &Handle) {
    let silence = fault::test_override(MAX_BEAT_INTERVAL, "RUNTIME_SILENCE_MS");
    let heartbeat = liveness.register(name, silence);
    runtime.spawn(async move {
        loop {
            heartbeat.beat();
            tokio::time::sleep(silence / 6).await;
        }
    });
}

fn pools(settings: &WorkerSettings) -> anyhow::Result<Vec<(PoolName, u32)>> {
    let slots = settings.pool_slots.iter().copied();
    let pools = settings.pools.iter().zip(slots);
    Ok(pools
        .map(|(pool, slots)| Ok((PoolName::new(pool)?, slots)))
        .collect::<Result<_, PoolNameError>>()?)
}

/// Returns the task types of the catalogue, if there is one, and of the handlers.
fn tasks(
    settings: &WorkerSettings,
    handlers: Handlers,
    handler_threads: Option<&Handle>,
    store: &Store,
) -> anyhow::Result<Tasks> {
    let catalogue = settings.tasks.as_deref().map(Catalogue::load).transpose();
    let catalogue = catalogue.context("WORKER_TASKS")?;
    anyhow::ensure!(
        catalogue.is_some() || !handlers.is_empty(),
        "WORKER_TASKS is not set: it names the task catalogue, without which a worker runs nothing"
    );
    let clock: WallClock = Arc::new(clock::now);
    let (secrets, tls) = (SecretSource::new(variables_for_others()), TlsClient::default());
    let command = CommandHost::new(
        GuardProgram::current_executable(),
        std::env::vars_os(),
        Arc::clone(&clock),
    );
    let database = TaskDatabase::open(&database(settings, " tasks", settings.slots), store)?;
    let hosts = Hosts {
        command: Arc::new(command),
        http: Arc::new(HttpHost::new(secrets.clone(), Arc::clone(&clock), tls.clone())),
        email: Arc::new(EmailHost::new(secrets, Arc::clone(&clock), tls)),
        database: database.clone(),
    };
    let mut tasks = catalogue
        .map_or_else(Tasks::default, |catalogue| Tasks::from_catalogue(&catalogue, &hosts));
    if let Some(runtime) = handler_threads.cloned() {
        let host = Arc::new(HandlerHost { runtime, database: Some(database), clock });
        for (name, task) in handlers.into_tasks(&host) {
            anyhow::ensure!(
                tasks.get(&name).is_none(),
                "WORKER_TASKS: the catalogue has the task type {name}, which this program has a \
                 handler for: rename one of them"
            );
            tasks.add(name, task);
        }
    }
    Ok(tasks)
}

fn database(settings: &WorkerSettings, purpose: &str, connections: u32) -> StoreOptions {
    let service = &settings.service;
    let application = format!("sexton worker {}{purpose}", service.instance);
    let options = StoreOptions::new(service.database_url.expose(), application);
    let direct_url = service.database_direct_url.as_ref().map(|url| url.expose().to_owned());
    let on_begin: Option<fn(Duration)> = Some(|waited| table::DB_ACQUIRE.observe([], waited));
    StoreOptions { pool_size: connections, direct_url, on_begin, ..options }
}

fn options(
    settings: &WorkerSettings,
    handlers: Handlers,
    handler_threads: Option<&Handle>,
) -> anyhow::Result<WorkerOptions> {
    let service = &settings.service;
    // One connection is reserved for the listener.
    let store = Store::open(&database(settings, "", service.db_pool_size - 1))?;
    let tasks = tasks(settings, handlers, handler_threads, &store)?;
    Ok(WorkerOptions {
        store,
        endpoint: Endpoint::parse(service.amqp_url.expose())?,
        namespace: Namespace::new(&service.namespace)?,
        pools: pools(settings)?,
        prefetch: settings.prefetch,
        tasks,
        lease: settings.lease,
        foreign_types: settings.foreign_types.clone(),
        mask: settings.mask.clone().map(Arc::new),
        retry: service.retry.clone(),
        instance: service.instance.clone(),
        state_dir: Some(settings.state_dir.clone()),
        ack_deadline: fault::test_override(ACK_DEADLINE, "ACK_DEADLINE_MS"),
    })
}
