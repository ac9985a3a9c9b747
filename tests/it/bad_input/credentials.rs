//! Credentials that a server refuses: the programs go on trying, say so once, show why they are not
//! ready, never show the password, and end in good order at SIGTERM.

use std::time::Duration;

use sexton_tests::platform::{Platform, Program};
use sexton_tests::servers::{PostgresOptions, PostgresServer, shared};

use super::probe::{assert_sound, first_readiness, lines, lines_with, not_ready};
use super::{CATALOGUE, DEADLINE, platform};

/// Stands in URLs; it must stand nowhere else.
const PASSWORD: &str = "hunter2-is-secret";

/// A scheduler and a worker that find these variables.
async fn start_both(platform: &Platform, variables: &[(&str, &str)]) -> [Program; 2] {
    let programs = [
        platform.start_scheduler("s1", variables).unwrap(),
        platform.start_worker("w1", variables).unwrap(),
    ];
    let first = tokio::join!(first_readiness(&programs[0]), first_readiness(&programs[1]));
    assert_eq!(first.0["ready"], false, "a scheduler is ready before it has reached anything");
    assert_eq!(first.1["ready"], false, "a worker is ready before it has reached anything");
    programs
}

fn assert_secret(program: &Program, readiness: &str) {
    let log = program.log();
    assert!(!log.contains(PASSWORD), "the password is in the log: {log}");
    assert!(!readiness.contains(PASSWORD), "the password is in the readiness: {readiness}");
}

/// At SIGTERM a program that cannot do anything stops at once and logs no error.
async fn ends_in_good_order(mut program: Program) {
    assert_sound(&program);
    program.terminate();
    let status = program.exit(Duration::from_secs(20)).await;
    assert_eq!(status.code(), Some(0), "{}", program.log());
    assert!(lines(&program) < 20, "{}", program.log());
}

#[tokio::test]
async fn programs_whose_database_password_is_wrong_wait_until_it_is_right() {
    let options = PostgresOptions::default();
    let (postgres, shared) = tokio::join!(PostgresServer::start_private(options), shared());
    let postgres = postgres.unwrap();
    let mut platform = Platform::on(postgres.url(), &shared.unwrap().amqp_url).await.unwrap();
    platform.catalogue(CATALOGUE);
    let role = async |statement: &'static str| {
        sqlx::query(statement).execute(platform.store().pool()).await.unwrap();
    };
    role("CREATE ROLE app LOGIN SUPERUSER PASSWORD 'another'").await;
    let (_, address) = platform.database_url().split_once('@').unwrap();
    let url = format!("postgres://app:{PASSWORD}@{address}");

    let mut programs = start_both(&platform, &[("DATABASE_URL", &url)]).await;
    for program in &programs {
        let words = ["refuses the connection", "user \"app\"", "check user, password"];
        let readiness = not_ready(&platform, program, "database", &words).await;
        assert_secret(program, &readiness);
    }
    role("ALTER ROLE app PASSWORD 'hunter2-is-secret'").await;
    for program in &mut programs {
        program.ready().await;
        assert_eq!(lines_with(program, "cannot reach the database"), 1, "{}", program.log());
        assert_eq!(lines_with(program, "the database answers again"), 1, "{}", program.log());
        assert_secret(program, "");
    }
    for program in programs {
        ends_in_good_order(program).await;
    }
}

#[tokio::test]
async fn programs_report_a_missing_database_and_end_on_sigterm() {
    let platform = platform().await;
    let url = format!("{}_nowhere", platform.database_url());
    for program in start_both(&platform, &[("DATABASE_URL", &url)]).await {
        let words = ["_nowhere\" does not exist", "check user, password and database"];
        not_ready(&platform, &program, "database", &words).await;
        let what = "the log reports it";
        let is_logged =
            async || (lines_with(&program, "cannot reach the database") == 1).then_some(());
        platform.eventually(what, DEADLINE, is_logged).await;
        ends_in_good_order(program).await;
    }
}

#[tokio::test]
async fn programs_report_a_wrong_broker_password_once_and_end_on_sigterm() {
    let platform = platform().await;
    let (_, address) = platform.amqp_url().rsplit_once('@').unwrap();
    let url = format!("amqp://guest:{PASSWORD}@{address}");
    for program in start_both(&platform, &[("AMQP_URL", &url)]).await {
        let words = ["refuses user `guest`", "check user and password in AMQP_URL"];
        let readiness = not_ready(&platform, &program, "broker", &words).await;
        assert_secret(&program, &readiness);
        // The worker has two connections.
        let is_logged = lines_with(&program, "no connection to the broker");
        assert!((1..=2).contains(&is_logged), "{}", program.log());
        assert_secret(&program, "");
        ends_in_good_order(program).await;
    }
}
