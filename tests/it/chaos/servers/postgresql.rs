//! PostgreSQL is restarted, killed and frozen under load.

use sexton_servers::{PostgresOptions, PostgresServer, shared};
use tokio::time::{Instant, sleep_until};

use super::loaded_platform::LoadedPlatform;
use super::{BEYOND, DATABASE, LEASE, Machine, private};

#[tokio::test]
async fn postgresql_restarted_killed_and_frozen_under_load_costs_nothing_but_time() {
    Box::pin(restarted_killed_and_frozen(Machine::Shared)).await;
}

pub(super) async fn restarted_killed_and_frozen(machine: Machine) {
    let _private = private().await;
    let options = PostgresOptions::default();
    let (postgres, shared) = tokio::join!(PostgresServer::start_private(options), shared());
    let mut postgres = postgres.unwrap();
    let platform_under_load =
        LoadedPlatform::on(postgres.url(), &shared.unwrap().amqp_url, 2, machine).await;

    platform_under_load.fault();
    postgres.restart().await.unwrap();
    platform_under_load.resumes("a restart of PostgreSQL", DATABASE).await;

    platform_under_load.fault();
    postgres.kill().await.unwrap();
    postgres.restart().await.unwrap();
    platform_under_load.resumes("a SIGKILL of PostgreSQL", DATABASE).await;

    // Frozen, the server holds every connection and answers no request. A task whose lease cannot
    // be renewed ends by its worker's own clock, while the server is still frozen.
    platform_under_load.fault();
    let task = platform_under_load.endless_task().await;
    postgres.pause().await.unwrap();
    let frozen = Instant::now();
    let survived = platform_under_load.dies(task).await - frozen;
    println!("MEASURED a task lived for {survived:?} after PostgreSQL was frozen, lease {LEASE:?}");
    assert!(survived < machine.within(LEASE + BEYOND), "a task lived for {survived:?}");
    sleep_until(frozen + LEASE + BEYOND).await;
    postgres.resume().await.unwrap();
    platform_under_load.resumes("a freeze of PostgreSQL", DATABASE).await;
    platform_under_load.at_least("sexton.all_attempts WHERE outcome = 'lost'", 1).await;
    platform_under_load.end().await;
}
