//! RabbitMQ is restarted, killed and frozen under load.

use sexton_servers::{RabbitOptions, RabbitServer, shared};
use tokio::time::{Instant, sleep_until};

use super::loaded_platform::LoadedPlatform;
use super::{BEYOND, BROKER, LEASE, Machine, private};

/// The tickets of claims that were made without a broker.
const UNPUBLISHED: &str =
    "sexton.executions WHERE state = 'pending' AND ticket_published_at IS NULL";

#[tokio::test]
async fn rabbitmq_restarted_killed_and_frozen_under_load_costs_nothing_but_time() {
    restarted_killed_and_frozen(Machine::Shared).await;
}

pub(super) async fn restarted_killed_and_frozen(machine: Machine) {
    let _private = private().await;
    let (rabbit, shared) =
        tokio::join!(RabbitServer::start_private(RabbitOptions::default()), shared());
    let mut rabbit = rabbit.unwrap();
    let platform_under_load =
        LoadedPlatform::on(&shared.unwrap().database_url, rabbit.url(), 2, machine).await;

    platform_under_load.fault();
    rabbit.restart().await.unwrap();
    platform_under_load.resumes("a restart of RabbitMQ", BROKER).await;

    platform_under_load.fault();
    rabbit.kill().await.unwrap();
    platform_under_load.at_least(UNPUBLISHED, 5).await;
    rabbit.restart().await.unwrap();
    platform_under_load.resumes("a SIGKILL of RabbitMQ", BROKER).await;

    platform_under_load.fault();
    platform_under_load.long_task_begins().await;
    rabbit.pause().await.unwrap();
    sleep_until(Instant::now() + LEASE + BEYOND).await;
    rabbit.resume().await.unwrap();
    platform_under_load.resumes("a freeze of RabbitMQ", BROKER).await;
    platform_under_load.end().await;
}
