//! Several processes, with clocks that are wrong by seconds and by an hour, some of which die.

use std::time::Duration;

use sexton_guard::CREATE_SHEDLOCK;
use sexton_servers::faketime_library;
use sexton_tests::platform::{Platform, Program};

use super::super::{PATIENCE, RUNS};

/// Starts an instance whose clock is this many seconds off.
async fn start(platform: &Platform, name: &str, seconds: i64) -> Program {
    let library = faketime_library().await.unwrap();
    let off = format!("{seconds:+}s");
    let env = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("FAKETIME", off.as_str()),
        // Hosts whose clocks disagree agree on how long a second is.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    let program = platform.start_cron_instance(name, &env).unwrap();
    let is_ready = async || program.log().contains("ready").then_some(());
    platform.eventually("the instance is ready", PATIENCE, is_ready).await;
    program
}

async fn count(platform: &Platform, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(platform.store().pool()).await.unwrap()
}

/// Waits for so many more runs of both jobs.
async fn go_on(platform: &Platform, more: i64) {
    let runs =
        "SELECT coalesce(min(n), 0) FROM (SELECT count(*) AS n FROM runs GROUP BY lock) AS of_jobs";
    let wanted = count(platform, runs).await + more;
    let enough = async || (count(platform, runs).await >= wanted).then_some(());
    platform.eventually("more ticks", Duration::from_mins(1), enough).await;
}

async fn fleet() -> Platform {
    let platform = Platform::new().await.unwrap();
    sqlx::raw_sql(RUNS).execute(platform.store().pool()).await.unwrap();
    sqlx::raw_sql(CREATE_SHEDLOCK).execute(platform.store().pool()).await.unwrap();
    platform
}

/// The column `ended` has the tick.
#[tokio::test]
async fn each_tick_runs_once_and_not_early_whatever_the_clocks_of_the_instances_say() {
    let platform = fleet().await;
    let mut instances = Vec::new();
    for (name, seconds) in [("right", 0), ("ahead", 5), ("behind", -5)] {
        instances.push(start(&platform, name, seconds).await);
    }
    go_on(&platform, 5).await;
    instances.push(start(&platform, "hour-ahead", 3_600).await);
    instances.push(start(&platform, "hour-behind", -3_600).await);
    go_on(&platform, 5).await;
    // Without the one that was right.
    instances[0].kill();
    go_on(&platform, 5).await;
    instances[3].kill();
    instances[4].pause();
    go_on(&platform, 5).await;
    instances[4].resume();
    go_on(&platform, 3).await;
    for instance in &mut instances {
        instance.kill();
    }
    let twice =
        "SELECT count(*) FROM (SELECT FROM runs GROUP BY lock, ended HAVING count(*) > 1) AS t";
    assert_eq!(count(&platform, twice).await, 0, "a tick ran twice");
    let early =
        "SELECT count(*) FROM runs WHERE began < ended OR ended <> date_trunc('second', ended)";
    assert_eq!(count(&platform, early).await, 0, "a tick ran early");
    let late = "SELECT (extract(epoch FROM max(began - ended)) * 1000)::bigint FROM runs";
    println!(
        "MEASURED the latest begin of a tick: {} ms after its instant",
        count(&platform, late).await
    );
    let of_jobs =
        "SELECT min(n) FROM (SELECT count(DISTINCT pid) AS n FROM runs GROUP BY lock) AS t";
    assert!(count(&platform, of_jobs).await > 1, "one instance ran everything");
    let lost = "SELECT count(*) FROM sexton.guard_ticks WHERE outcome IS DISTINCT FROM 'succeeded'";
    // Those of the two that were killed, and the one that was killed last.
    assert!(count(&platform, lost).await <= 5, "ticks without an end");
}

#[tokio::test]
async fn an_instance_ends_in_good_order_with_its_counts_after_sigterm() {
    let platform = fleet().await;
    let mut instance = platform.start_cron_instance("one", &[]).unwrap();
    go_on(&platform, 3).await;
    instance.terminate();
    let status = instance.exit(PATIENCE).await;
    let log = instance.log();
    assert!(status.success(), "{log}");
    assert!(log.contains("\"row\": JobCounts { succeeded: "), "{log}");
    let unended = "SELECT count(*) FROM sexton.guard_ticks WHERE outcome IS NULL";
    assert_eq!(count(&platform, unended).await, 0);
    let locked =
        "SELECT count(*) FROM shedlock WHERE lock_until > timezone('utc', clock_timestamp())";
    assert_eq!(count(&platform, locked).await, 0);
}

#[tokio::test]
async fn jobs_of_the_environment_are_checked_as_a_whole_before_anything_runs() {
    let platform = fleet().await;
    let jobs = r#"{"sesion": {"schedule": "* * * * *"}, "row": {"schedule": "* * * * *", "lockKey": 1},
                   "session": {"schedule": "0 0 13 * FRI", "lockKey": 9007199254740993}}"#;
    let mut instance = platform.start_cron_instance("one", &[("CRON_JOBS", jobs)]).unwrap();
    assert!(!instance.exit(PATIENCE).await.success());
    let log = instance.log();
    for part in [
        "CRON_JOBS: job \"sesion\": name: is not a job of this program; it has session, row",
        "CRON_JOBS: job \"session\": days: must be \"both\" or \"either\"",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    let slower = r#"{"session": {"schedule": "0 0 1 1 *"}}"#;
    let instance = platform.start_cron_instance("two", &[("CRON_JOBS", slower)]).unwrap();
    let runs = "SELECT count(*) FROM runs WHERE lock = 'row'";
    let enough = async || (count(&platform, runs).await >= 3).then_some(());
    platform.eventually("the other job runs", PATIENCE, enough).await;
    assert_eq!(count(&platform, "SELECT count(*) FROM runs WHERE lock = 'session'").await, 0);
    drop(instance);
}
