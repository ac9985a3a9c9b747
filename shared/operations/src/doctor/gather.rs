//! Queries both servers. Every query has a time limit; a missing answer is a fact, too.

use std::time::Duration;

use sexton_broker::diagnostics::diagnose;
use sexton_broker::{Endpoint, LinkSettings, Namespace, PoolName, Timeouts};
use sexton_service::clock;
use sexton_service::settings::{ConsoleSettings, SettingsErrors};
use sexton_store::checks::endpoint;
use sexton_store::doctor::Migrations;
use sexton_store::locks::LockFilter;
use sexton_store::operator::chain;
use sexton_store::{
    Store, StoreError, bulk, catch_up, doctor, locks, offers, parked_messages, queue_incidents,
    reconcile, schema, status, unknown_messages,
};
use tokio::time::{Instant, timeout};

use super::facts::{Broker, Database, Facts, Rows};
use crate::connect::{ConnectError, Connector};
use crate::locks::{LockList, MAX_LOCKS};

/// Time limit for all queries to one server.
const SERVER_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for one step with the broker.
const BROKER_STEP_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of round trips whose median counts.
const PING_COUNT: usize = 5;
/// How long an ended lease is normal: after a worker's death the rescuer must first see it for that long.
const LEASE_GRACE_MS: i64 = 15_000;
/// Actions of the audit without a seal are counted up to this number.
const MAX_UNSEALED: i64 = 10_000;
/// Maximum number of pools examined on the broker.
const MAX_POOLS: usize = 50;

/// Gathers the facts of both servers.
///
/// # Errors
///
/// `DATABASE_URL` is not set. All other failures are facts.
pub async fn gather(connector: &Connector<'_>) -> Result<Facts, SettingsErrors> {
    let settings = connector.settings;
    let place = settings.database_url()?.to_string();
    let local = is_local(&host_of(&place));
    let database = match timeout(SERVER_TIMEOUT, database(connector, place, local)).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(too_slow("database")),
    };
    let mut pools = vec![PoolName::default_pool()];
    if let Ok(Database { rows: Ok(rows), .. }) = &database {
        let named = rows.pools.iter().filter_map(|counts| counts.pool.parse::<PoolName>().ok());
        pools.extend(named.filter(|pool| !pool.is_default()).take(MAX_POOLS));
    }
    let broker = match timeout(SERVER_TIMEOUT, broker(settings, &pools)).await {
        Ok(answer) => answer,
        Err(_) => Err(too_slow("broker")),
    };
    Ok(Facts { version: env!("CARGO_PKG_VERSION"), database, broker })
}

async fn database(
    connector: &Connector<'_>,
    place: String,
    local: bool,
) -> Result<Database, ConnectError> {
    let store = connector.open_any_schema().await?;
    let mut times = Vec::with_capacity(PING_COUNT);
    for _ in 0..PING_COUNT {
        let began = Instant::now();
        store.ping().await?;
        times.push(began.elapsed());
    }
    times.sort();
    let before = clock::now();
    let server = doctor::server(&store).await?;
    let between = before + (clock::now() - before) / 2;
    let privileges = doctor::read_privileges(&store).await?;
    let migrations = if privileges.reads_migrations {
        doctor::migrations(&store).await?
    } else {
        Migrations::default()
    };
    let invalid_indexes = schema::invalid_indexes(&store).await?;
    let notification_failure = doctor::check_notifications(&store).await;
    let rows = if migrations.missing.is_empty() {
        rows(&store).await.map_err(|error| error.to_string())
    } else {
        Err(format!("{} migrations are missing", migrations.missing.len()))
    };
    Ok(Database {
        place,
        local,
        latency: times[PING_COUNT / 2],
        host_ahead_ms: (between - server.now).num_milliseconds(),
        server,
        migrations,
        invalid_indexes,
        notification_failure,
        privileges,
        rows,
    })
}

async fn rows(store: &Store) -> Result<Rows, StoreError> {
    let of_jobs = LockFilter { of_jobs: true, ..LockFilter::default() };
    Ok(Rows {
        overview: status::overview(store, None).await?,
        pools: status::pools(store, None).await?,
        processes: doctor::processes(store, None).await?,
        leases: doctor::count_overdue_leases(store, LEASE_GRACE_MS, None).await?,
        queue_incidents: queue_incidents::list_last_day(store, None).await?,
        hold: catch_up::find_hold(store).await?,
        overdue: reconcile::list_overdue_pools(store, None).await?,
        failed: parked_messages::count_failed(store).await?,
        // Messages beyond the record's limit are unknown as well.
        unknown_messages: unknown_messages::count_queued(store).await?
            + unknown_messages::overflow(store).await?.map_or(0, |over| over.messages),
        newest_tz: doctor::newest_tz_data(store).await?,
        unoffered: doctor::list_unoffered_verify_tasks(store, None).await?,
        old_workers: if bulk::any_job_has_verify_task(store).await? {
            offers::list_old_workers(store, None).await?
        } else {
            Vec::new()
        },
        pings_unaccepted: endpoint::silent_for(store, None).await?,
        audit: chain::read_state(store, MAX_UNSEALED).await?,
        approved: doctor::list_approved_requests(store, None).await?,
        locks: LockList {
            advisory: locks::list_advisory(store, &of_jobs, MAX_LOCKS).await?,
            rows: locks::list_rows(store, &of_jobs, MAX_LOCKS).await?,
        },
    })
}

async fn broker(settings: &ConsoleSettings, pools: &[PoolName]) -> Result<Broker, String> {
    let LinkSettings { endpoint, name, namespace, timeouts, .. } = link_settings(settings, pools)?;
    let examined = diagnose(&endpoint, &name, &namespace, pools, &timeouts).await?;
    Ok(Broker {
        place: endpoint.to_string(),
        local: is_local(endpoint.host()),
        encrypted: endpoint.is_encrypted(),
        user: endpoint.user().to_owned(),
        examined,
    })
}

/// Returns the doctor's connection settings for the broker.
pub(super) fn link_settings(
    settings: &ConsoleSettings,
    pools: &[PoolName],
) -> Result<LinkSettings, String> {
    let url = settings.amqp_url().map_err(|error| error.to_string())?;
    Ok(LinkSettings {
        endpoint: Endpoint::parse(url.expose()).map_err(|error| error.to_string())?,
        name: "sexton doctor".to_owned(),
        namespace: Namespace::new(settings.namespace.clone()).map_err(|error| error.to_string())?,
        pools: pools.to_vec(),
        timeouts: Timeouts {
            connect: BROKER_STEP_TIMEOUT,
            step: BROKER_STEP_TIMEOUT,
            close: Duration::from_secs(1),
            ..Timeouts::default()
        },
    })
}

fn too_slow(server: &str) -> String {
    format!("the {server} did not answer all questions within {} s", SERVER_TIMEOUT.as_secs())
}

/// Returns the host of a URL without secrets.
fn host_of(shown: &str) -> String {
    let address = shown.split_once("://").map_or(shown, |(_, address)| address);
    let authority = address.split(['/', '?']).next().unwrap_or_default();
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    match place.strip_prefix('[').and_then(|v6| v6.split_once(']')) {
        Some((v6, _)) => v6.to_owned(),
        None => place.split(':').next().unwrap_or_default().to_owned(),
    }
}

/// Returns whether a name stands for this host: empty (a socket), `localhost`, a loopback address.
fn is_local(host: &str) -> bool {
    host.is_empty() || host == "localhost" || host == "::1" || host.starts_with("127.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_told_from_the_rest_of_a_url() {
        for (url, host, local) in [
            ("postgres://u:***@localhost:5432/x", "localhost", true),
            ("postgres://127.0.0.1/x?sslmode=require", "127.0.0.1", true),
            ("postgres://[::1]:5432/x", "::1", true),
            ("postgres:///x", "", true),
            ("postgres://db.example.org", "db.example.org", false),
            ("postgres://u@0.0.0.0:5432/x", "0.0.0.0", false),
        ] {
            assert_eq!(host_of(url), host);
            assert_eq!(is_local(host), local, "{url}");
        }
    }
}
