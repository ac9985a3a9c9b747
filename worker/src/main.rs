//! The worker: runs the tasks of opened attempts.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use sexton_broker::{Endpoint, Namespace, PoolName};
use sexton_model::pool::PoolNameError;
use sexton_model::retry::RetryPolicy;
use sexton_service::health::{Health, HealthServer, Liveness, Readiness};
use sexton_service::lifecycle::{Lifecycle, Signals};
use sexton_service::settings::{Program, WorkerSettings, process_environment};
use sexton_service::{arguments, clock, fault, telemetry};
use sexton_store::task::TaskDatabase;
use sexton_store::{Store, StoreOptions};
use sexton_worker::catalogue::Catalogue;
use sexton_worker::command::CommandHost;
use sexton_worker::email::EmailHost;
use sexton_worker::executor::WallClock;
use sexton_worker::guard::{GuardProgram, main_if_asked};
use sexton_worker::http::HttpHost;
use sexton_worker::secret::SecretSource;
use sexton_worker::tasks::{Hosts, Tasks};
use sexton_worker::worker::{ACK_DEADLINE, WorkerOptions, run};

/// How long a slot's runtime may go without a beat before `/livez` says so.
const MAX_SILENCE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    // Before anything else exists: a guard must start fast and stay small.
    main_if_asked();
    if let Some(status) = arguments::handle(Program::Worker, std::env::args_os().skip(1)) {
        return status;
    }
    let settings = match WorkerSettings::from_env(process_environment()) {
        Ok(settings) => settings,
        Err(problems) => {
            eprintln!("{problems}");
            return ExitCode::from(arguments::EXIT_USAGE);
        }
    };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let outcome = runtime
        .context("failed to start the runtime")
        .and_then(|runtime| runtime.block_on(work(settings)));
    match outcome {
        Ok(status) => status,
        Err(error) => {
            eprintln!("worker: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn work(settings: WorkerSettings) -> anyhow::Result<ExitCode> {
    let signals = Signals::install().context("failed to listen for signals")?;
    telemetry::init(&settings.service.telemetry)?;
    let options = options(&settings)?;
    let lifecycle = Lifecycle::new(settings.service.shutdown_grace);
    let (readiness, liveness) = (Readiness::new(), Liveness::new());
    let health = Health {
        readiness: readiness.clone(),
        liveness: liveness.clone(),
        stopping: lifecycle.soft(),
    };
    let _health = HealthServer::start(settings.service.health_addr, health).await?;
    let heartbeat = liveness.register("runtime", MAX_SILENCE);
    tokio::spawn(async move {
        loop {
            heartbeat.beat();
            tokio::time::sleep(MAX_SILENCE / 6).await;
        }
    });
    let life = lifecycle.clone();
    lifecycle.spawn("worker", async move { run(options, &life, &readiness, &liveness).await });
    Ok(lifecycle.run_until_stopped(signals).await.into())
}

fn pools(settings: &WorkerSettings) -> anyhow::Result<Vec<(PoolName, u32)>> {
    let slots = settings.pool_slots.iter().copied();
    let pools = settings.pools.iter().zip(slots);
    Ok(pools
        .map(|(pool, slots)| Ok((PoolName::new(pool)?, slots)))
        .collect::<Result<_, PoolNameError>>()?)
}

fn options(settings: &WorkerSettings) -> anyhow::Result<WorkerOptions> {
    let service = &settings.service;
    let path = settings.tasks.as_deref().context(
        "WORKER_TASKS is not set: it names the task catalogue, without which a worker runs nothing",
    )?;
    let catalogue = Catalogue::load(path).context("WORKER_TASKS")?;
    let database = |purpose: &str, connections| {
        let application = format!("sexton worker {}{purpose}", service.instance);
        let options = StoreOptions::new(service.database_url.expose(), application);
        StoreOptions { pool_size: connections, ..options }
    };
    // One listens.
    let store = Store::open(&database("", service.db_pool_size - 1))?;
    let clock: WallClock = Arc::new(clock::now);
    let secrets = SecretSource::new(std::env::vars_os());
    let command = CommandHost::new(GuardProgram::own(), std::env::vars_os(), Arc::clone(&clock));
    let hosts = Hosts {
        command: Arc::new(command),
        http: Arc::new(HttpHost::new(secrets.clone(), Arc::clone(&clock))),
        email: Arc::new(EmailHost::new(secrets, clock)),
        database: TaskDatabase::open(&database(" tasks", settings.slots), &store)?,
    };
    Ok(WorkerOptions {
        store,
        endpoint: Endpoint::parse(service.amqp_url.expose())?,
        namespace: Namespace::new(&service.namespace)?,
        pools: pools(settings)?,
        prefetch: settings.prefetch,
        tasks: Tasks::from_catalogue(&catalogue, &hosts),
        lease: settings.lease,
        mask: settings.mask.clone().map(Arc::new),
        retry: RetryPolicy {
            max_retries: service.retry.max_retries,
            delay: service.retry.delay,
            multiplier: service.retry.multiplier,
            ..RetryPolicy::default()
        },
        instance: service.instance.clone(),
        state_dir: Some(settings.state_dir.clone()),
        ack_deadline: fault::time(ACK_DEADLINE, "ACK_DEADLINE_MS"),
    })
}
