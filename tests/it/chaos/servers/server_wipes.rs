//! A server loses all its data under load.

use sexton_servers::{PostgresOptions, PostgresServer, RabbitOptions, RabbitServer, shared};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::loaded_platform::LoadedPlatform;
use super::{BROKER, DATABASE, FINAL_TIMEOUT, Machine, private};
use crate::bad_input::probe::not_ready;

/// The rows have everything that RabbitMQ had: the platform publishes waiting and parked tickets again.
#[tokio::test]
async fn rabbitmq_wiped_under_load_loses_no_execution() {
    Box::pin(rabbitmq_wiped(Machine::Shared)).await;
}

pub(super) async fn rabbitmq_wiped(machine: Machine) {
    let _private = private().await;
    let (rabbit, shared) =
        tokio::join!(RabbitServer::start_private(RabbitOptions::default()), shared());
    let mut rabbit = rabbit.unwrap();
    let mut platform_under_load =
        LoadedPlatform::on(&shared.unwrap().database_url, rabbit.url(), 1, machine).await;

    // No worker consumes what is published now, so that it is lost.
    platform_under_load.stops("w1").await;
    let published = "state IN ('pending', 'retrying') AND ticket_published_at IS NOT NULL";
    platform_under_load.at_least(&format!("sexton.executions WHERE {published}"), 5).await;
    platform_under_load.fault();
    rabbit.wipe().await.unwrap();
    // The reconciler waits for five minutes; the rows age by them.
    sqlx::query(AssertSqlSafe(format!(
        "UPDATE sexton.executions SET next_attempt_at = next_attempt_at - interval '10 minutes',
             ticket_published_at = ticket_published_at - interval '10 minutes'
         WHERE {published}"
    )))
    .execute(platform_under_load.platform.store().pool())
    .await
    .unwrap();
    // Reconciler and sweep run at the start, and then every half minute.
    platform_under_load.add_scheduler("s2");
    platform_under_load.add_worker("w2");
    platform_under_load.program("w2").ready().await;
    platform_under_load.resumes("a wiped RabbitMQ", BROKER).await;
    platform_under_load.end().await;
}

/// PostgreSQL's data are lost, and no guarantee covers them. But the programs survive, report what
/// an operator must do, and run what is claimed afterwards; a task whose lease can no longer be
/// renewed ends, and tickets without a row are parked.
#[tokio::test]
async fn postgresql_wiped_under_load_is_reported_and_work_resumes_after_a_migration() {
    Box::pin(postgresql_wiped(Machine::Shared)).await;
}

pub(super) async fn postgresql_wiped(machine: Machine) {
    let _private = private().await;
    let options = PostgresOptions::default();
    let (postgres, shared) = tokio::join!(PostgresServer::start_private(options), shared());
    let mut postgres = postgres.unwrap();
    let mut platform_under_load =
        LoadedPlatform::on(postgres.url(), &shared.unwrap().amqp_url, 1, machine).await;

    platform_under_load.fault();
    let task = platform_under_load.endless_task().await;
    postgres.wipe().await.unwrap();
    platform_under_load.dies(task).await;
    for program in &platform_under_load.programs {
        not_ready(&platform_under_load.platform, program, "database", &["refuses the connection"])
            .await;
    }
    let status = platform_under_load.platform.sexton(&["status"]).await;
    assert_eq!(status.status.code(), Some(5), "{status}");

    let name = platform_under_load.platform.database_url().rsplit('/').next().unwrap();
    let mut connection = PgConnection::connect(postgres.url()).await.unwrap();
    let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
    sqlx::raw_sql(create).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    for program in &platform_under_load.programs {
        not_ready(&platform_under_load.platform, program, "database", &["sexton migrate"]).await;
    }
    let status = platform_under_load.platform.sexton(&["status"]).await;
    assert_eq!(status.status.code(), Some(6), "{status}");
    assert!(status.stderr.contains("run `sexton migrate`"), "{status}");

    let before = platform_under_load.ledger.keys("end").len();
    let migrated = platform_under_load.platform.sexton(&["migrate"]).await;
    assert!(migrated.status.success(), "{migrated}");
    platform_under_load.apply_jobs().await;
    for program in &mut platform_under_load.programs {
        program.ready().await;
    }
    platform_under_load.resumes("a wiped PostgreSQL", DATABASE).await;
    platform_under_load.flows().await;
    platform_under_load.stream_ends().await;
    platform_under_load.every_firing_has_its_execution().await;
    platform_under_load.nothing_ran_twice();
    platform_under_load.nothing_stormed().await;
    let succeeded = platform_under_load
        .number("count(*) FROM sexton.executions WHERE state = 'succeeded'")
        .await;
    assert_eq!(succeeded, Some((platform_under_load.ledger.keys("end").len() - before) as i64));
    let failed = platform_under_load
        .number("count(*) FROM sexton.executions WHERE state = 'failed'")
        .await
        .unwrap();
    let what = "nothing waits, and what failed is parked";
    let check = async || {
        let parked = i64::from(platform_under_load.parked().await?);
        (platform_under_load.waiting().await? == 0 && parked >= failed).then_some(())
    };
    platform_under_load.platform.eventually(what, FINAL_TIMEOUT, check).await;
}
