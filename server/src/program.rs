//! Assembles `sexton serve` and runs it until its orderly end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::middleware::from_fn_with_state;
use hyper_util::service::TowerToHyperService;
use sexton_operations::pings::beat;
use sexton_outbound::http::HttpClient;
use sexton_service::clock;
use sexton_service::health::{Condition, Health, HealthServer, Liveness, Readiness};
use sexton_service::http_server::{Limits, accept, listen, raise_open_files};
use sexton_service::lifecycle::{ExitOutcome, Lifecycle, Signals};
use sexton_service::metrics::{self, Program, table};
use sexton_service::settings::ServerSettings;
use sexton_store::{Store, StoreOptions};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::access::client::ProxySettings;
use crate::access::provider::ProviderLogIn;
use crate::access::{Backend, READ_TIMEOUT, Stores};
use crate::api::examination::Examiner;
use crate::api::{self, BASE_PATH};
use crate::base_path::below;
use crate::events::Hub;
use crate::first_run::announce;
use crate::pages;
use crate::pings::recorder::Recorder;
use crate::pings::routes::{Pings, routes};
use crate::probe::{agent, probe};
use crate::rate_limit::RateLimit;
use crate::timing::timed;

/// How often the server records that it accepts pings. After 5 seconds without such a record no ping counts as missed, until the next one.
const BEAT_INTERVAL: Duration = Duration::from_secs(3);
/// Time limit for that record.
const BEAT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for closing the connections to the database.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);
const MINUTE: Duration = Duration::from_mins(1);
/// Files that are no connections of clients: those to the database, of the health server, and the program's own.
const OTHER_FILES: usize = 200;
const LIMITS: Limits = Limits {
    connections: 10_000,
    head: Duration::from_secs(10),
    head_bytes: 16 * 1024,
    stalled: Duration::from_secs(30),
    connection: Duration::from_mins(10),
    last_answer: Duration::from_mins(1),
    keep_alive: true,
};

/// Runs `sexton serve` until a signal or a fatal error.
///
/// # Errors
///
/// The error that prevents a start.
pub async fn run_server(settings: ServerSettings, signals: Signals) -> anyhow::Result<ExitOutcome> {
    metrics::init(Program::Server, env!("CARGO_PKG_VERSION"));
    let lifecycle = Lifecycle::new(settings.shutdown_grace);
    let (readiness, liveness) = (Readiness::new(), Liveness::new());
    let database = readiness.condition("database", clock::now());
    let health = Health { readiness, liveness, stopping: lifecycle.soft() };
    let _health = HealthServer::start(settings.health_addr, health).await?;
    let address = settings.serve_addr;
    let listener = listen(address).with_context(|| {
        format!("cannot listen on {address}; set SERVE_ADDR to a free address, or its port to 0 for any free one")
    })?;
    let bound = listener.local_addr()?;
    let store = open_store(&settings, settings.db_pool_size, None)?;
    let backend = Backend::new(Stores::open(&store_options(&settings))?);
    let provider = settings.provider.clone();
    let provider = provider.map(|known| ProviderLogIn::new(known, HttpClient::default()));
    let backend = backend
        .on(&settings.instance)
        .with_local_role(settings.local_role)
        .behind(proxy_settings(&settings))
        .with_provider(provider)
        .with_requests_per_minute(settings.requests_per_minute)
        .under(&settings.base_path)
        .showing(&settings.effective);
    let hub = Hub::new(lifecycle.soft());
    let polled = open_store(&settings, 1, Some(READ_TIMEOUT))?;
    let (recorder, written) = Recorder::start(&store);
    let pings_per_minute = settings.pings_per_minute;
    let limit = Arc::new(RateLimit::new(pings_per_minute, MINUTE, pings_per_minute));
    let creations = Arc::new(Semaphore::new(1));
    let pings = Pings { store: store.clone(), recorder, limit, creations };
    let probe = agent();
    let timing = from_fn_with_state(Arc::clone(&probe), timed);
    let examiner = Examiner::new(settings.doctor.clone(), &settings.instance);
    let router = Router::new()
        .merge(routes(pings))
        .merge(api::routes_with(backend.clone(), examiner.clone()))
        .merge(pages::routes(backend.clone(), hub.clone(), examiner))
        .layer(timing);
    let router = below(backend.base_path(), router);
    let service = TowerToHyperService::new(router);
    let (stopping, hard) = (lifecycle.soft(), lifecycle.hard());
    let background_work = backend.background_work().clone();
    let limits = limits(raise_open_files(), settings.db_pool_size as usize);
    lifecycle.spawn("requests", async move {
        let answered = async {
            accept(listener, service, limits, stopping).await;
            // Pings that were accepted are written.
            written.await;
            background_work.close();
            background_work.wait().await;
        };
        hard.run_until_cancelled(answered).await;
        if !background_work.is_empty() {
            tracing::warn!(
                "{} requests are cut short; `sexton approvals list` shows those that were approved",
                background_work.len()
            );
        }
        Ok::<_, std::convert::Infallible>(())
    });
    lifecycle.spawn("beat", beats(store.clone(), (bound, probe), database, lifecycle.soft()));
    lifecycle.spawn("console poller", hub.run(polled));
    lifecycle.spawn("first run", announce(backend, bound, lifecycle.soft()));
    let site = format!("http://{bound}{}", settings.base_path);
    tracing::info!(serve.address = %bound, "the console is at {site}/, the API at {site}{BASE_PATH}, and pings are accepted at {site}/ping/");
    let ended = lifecycle.run_until_stopped(signals).await;
    let _ = timeout(CLOSE_TIMEOUT, store.close()).await;
    Ok(ended)
}

/// Fewer connections where the system allows too few files: the connections to the database must find one.
fn limits(files: usize, pool: usize) -> Limits {
    let connections = LIMITS.connections.min(files.saturating_sub(OTHER_FILES + pool).max(1));
    if connections < LIMITS.connections {
        tracing::warn!(
            "at most {connections} connections at the same time are accepted, since the process may have {files} files open; raise the \
             hard limit of open files for up to {}",
            LIMITS.connections
        );
    }
    Limits { connections, ..LIMITS }
}

fn proxy_settings(settings: &ServerSettings) -> ProxySettings {
    ProxySettings {
        trusted: settings.trusted_proxies.clone(),
        // The settings' rule lets only names of headers pass.
        user_header: settings.proxy_user_header.as_ref().and_then(|name| name.parse().ok()),
        role_header: settings.proxy_role_header.as_ref().and_then(|name| name.parse().ok()),
        role: settings.proxy_role,
        is_behind_tls: settings.is_behind_tls,
    }
}

/// Says that pings are accepted, as long as one gets through.
async fn beats(
    store: Store,
    (bound, agent): (SocketAddr, Arc<str>),
    database: Condition,
    stopping: CancellationToken,
) -> Result<(), std::convert::Infallible> {
    let mut was_up = true;
    while !stopping.is_cancelled() {
        let beating = async {
            probe(bound, &agent).await?;
            let beat = timeout(BEAT_TIMEOUT, beat(&store)).await;
            let beat = beat.map_err(|_| "the database did not answer in time".to_owned())?;
            beat.map_err(|error| error.to_string())
        };
        let reason = beating.await.err();
        match &reason {
            None => {
                database.ready(clock::now());
                if !was_up {
                    tracing::info!("pings are recorded again");
                }
            }
            Some(reason) => {
                database.not_ready(reason, clock::now());
                if was_up {
                    tracing::warn!(
                        "pings cannot be recorded, and most are answered with 503: {reason}"
                    );
                }
            }
        }
        was_up = reason.is_none();
        tokio::select! {
            () = stopping.cancelled() => {}
            () = tokio::time::sleep(BEAT_INTERVAL) => {}
        }
    }
    Ok(())
}

fn open_store(
    settings: &ServerSettings,
    connections: u32,
    read_timeout: Option<Duration>,
) -> anyhow::Result<Store> {
    let options = StoreOptions { pool_size: connections, read_timeout, ..store_options(settings) };
    Ok(Store::open(&options)?)
}

/// What all connections of the server have in common.
fn store_options(settings: &ServerSettings) -> StoreOptions {
    let application = format!("sexton serve {}", settings.instance);
    let mut options = StoreOptions::new(settings.database_url.expose(), application);
    options.on_begin = Some(|waited| table::DB_ACQUIRE.observe([], waited));
    options
}
