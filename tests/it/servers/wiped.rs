//! A server loses all its data under load.

use sexton_servers::{PostgresOptions, PostgresServer, RabbitOptions, RabbitServer, shared};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use super::stage::Stage;
use super::{BROKER, DATABASE, IN_THE_END, Machine, private};
use crate::bad_input::probe::not_ready;

/// What RabbitMQ had is in the rows: tickets that waited are published again, and so are those that
/// were parked.
#[tokio::test]
async fn rabbitmq_wiped_under_load_loses_no_execution() {
    Box::pin(rabbitmq_wiped(Machine::Shared)).await;
}

pub(super) async fn rabbitmq_wiped(machine: Machine) {
    let _private = private().await;
    let (rabbit, shared) =
        tokio::join!(RabbitServer::start_private(RabbitOptions::default()), shared());
    let mut rabbit = rabbit.unwrap();
    let mut stage = Stage::on(&shared.unwrap().database_url, rabbit.url(), 1, machine).await;

    // Nobody takes what is published now, so that it is lost.
    stage.stops("w1").await;
    let published = "state IN ('pending', 'retrying') AND ticket_published_at IS NOT NULL";
    stage.at_least(&format!("executions WHERE {published}"), 5).await;
    stage.fault();
    rabbit.wipe().await.unwrap();
    // The reconciler is patient for five minutes; let them pass, for the rows.
    sqlx::query(AssertSqlSafe(format!(
        "UPDATE executions SET next_attempt_at = next_attempt_at - interval '10 minutes',
             ticket_published_at = ticket_published_at - interval '10 minutes'
         WHERE {published}"
    )))
    .execute(stage.platform.store().pool())
    .await
    .unwrap();
    // Reconciler and sweep look when they start, and then every half minute.
    stage.add_scheduler("s2");
    stage.add_worker("w2");
    stage.program("w2").ready().await;
    stage.resumes("a wiped RabbitMQ", BROKER).await;
    stage.end().await;
}

/// What PostgreSQL had is gone: nothing is promised for it. But the programs live on, say what is to
/// be done, and work on what is claimed afterwards; what was under way in a lease that nobody can
/// renew ends, and tickets of rows that are gone are parked.
#[tokio::test]
async fn postgresql_wiped_under_load_is_told_and_after_a_migration_work_goes_on() {
    Box::pin(postgresql_wiped(Machine::Shared)).await;
}

pub(super) async fn postgresql_wiped(machine: Machine) {
    let _private = private().await;
    let options = PostgresOptions::default();
    let (postgres, shared) = tokio::join!(PostgresServer::start_private(options), shared());
    let mut postgres = postgres.unwrap();
    let mut stage = Stage::on(postgres.url(), &shared.unwrap().amqp_url, 1, machine).await;

    stage.fault();
    let task = stage.endless_task().await;
    postgres.wipe().await.unwrap();
    stage.dies(task).await;
    for program in &stage.programs {
        not_ready(&stage.platform, program, "database", &["refuses the connection"]).await;
    }
    let status = stage.platform.sexton(&["status"]).await;
    assert_eq!(status.status.code(), Some(5), "{status}");

    let name = stage.platform.database_url().rsplit('/').next().unwrap();
    let mut connection = PgConnection::connect(postgres.url()).await.unwrap();
    let create = AssertSqlSafe(format!("CREATE DATABASE {name}"));
    sqlx::raw_sql(create).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    for program in &stage.programs {
        not_ready(&stage.platform, program, "database", &["sexton migrate"]).await;
    }
    let status = stage.platform.sexton(&["status"]).await;
    assert_eq!(status.status.code(), Some(6), "{status}");
    assert!(status.stderr.contains("run `sexton migrate`"), "{status}");

    let before = stage.ledger.keys("end").len();
    let migrated = stage.platform.sexton(&["migrate"]).await;
    assert!(migrated.status.success(), "{migrated}");
    stage.apply_jobs().await;
    for program in &mut stage.programs {
        program.ready().await;
    }
    stage.resumes("a wiped PostgreSQL", DATABASE).await;
    stage.flows().await;
    stage.stream_ends().await;
    stage.every_firing_has_its_execution().await;
    stage.nothing_ran_twice();
    stage.nothing_stormed().await;
    let succeeded = stage.number("count(*) FROM executions WHERE state = 'succeeded'").await;
    assert_eq!(succeeded, Some((stage.ledger.keys("end").len() - before) as i64));
    let failed = stage.number("count(*) FROM executions WHERE state = 'failed'").await.unwrap();
    let what = "nothing waits, and what failed is parked";
    let check = async || {
        let parked = i64::from(stage.parked().await?);
        (stage.waiting().await? == 0 && parked >= failed).then_some(())
    };
    stage.platform.eventually(what, IN_THE_END, check).await;
}
