//! Programs on hosts whose clocks disagree. PostgreSQL's is the only one that decides what is due, so it
//! does not matter which of them wins a firing.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sexton_servers::faketime_library;
use sexton_store::firing::CLAIM_LEAD_MS;
use sexton_tests::platform::{Platform, Program};

use super::count;

/// Two jobs whose firings must be without a break, and one that has a single one.
fn jobs(once: DateTime<Utc>) -> String {
    let job = |name: &str, schedule: &str| {
        format!("[[job]]\nname = \"clock.{name}\"\ntask = \"noop\"\n{schedule}\n")
    };
    job("every", "every = \"1s\"")
        + &job("cron", "schedule = \"*/2 * * * * *\"\ntimezone = \"Europe/Vienna\"")
        + &job("once", &format!("at = \"{}\"", once.format("%Y-%m-%dT%H:%M:%SZ")))
}

/// How a program of some kind is started.
type Start = fn(&Platform, &str, &[(&str, &str)]) -> anyhow::Result<Program>;

/// Starts a program whose clock is `seconds` off, and shows by its log that it is.
async fn start(platform: &Platform, kind: Start, name: &str, seconds: i64) -> Program {
    let library = faketime_library().await.unwrap();
    let off = format!("{seconds:+}s");
    let env = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("FAKETIME", off.as_str()),
        // Hosts whose clocks disagree agree on how long a second is.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("LOG_FORMAT", "json"),
    ];
    let off = TimeDelta::seconds(seconds);
    let before = now(platform).await + off;
    let mut program = kind(platform, name, &env).unwrap();
    program.ready().await;
    let after = now(platform).await + off;
    let log = program.log();
    let first = log.lines().find(|line| line.starts_with('{')).expect("a line of its log");
    let first: serde_json::Value = serde_json::from_str(first).unwrap();
    let logged_at: DateTime<Utc> = first["timestamp"].as_str().unwrap().parse().unwrap();
    assert!(before <= logged_at && logged_at <= after, "{name} reads the right time: {first}");
    program
}

async fn now(platform: &Platform) -> DateTime<Utc> {
    let sql = "SELECT clock_timestamp()";
    sqlx::query_scalar(sql).fetch_one(platform.store().pool()).await.unwrap()
}

/// Waits for so many more successes than there are.
async fn go_on(platform: &Platform, more: i64) {
    let succeeded = "sexton.executions WHERE state = 'succeeded'";
    let wanted = count(platform, succeeded).await + more;
    let enough = async || (count(platform, succeeded).await >= wanted).then_some(());
    platform.eventually("more firings", Duration::from_mins(2), enough).await;
}

/// Writes down when rows are claimed, whatever instant the claim itself gives them.
const WITNESS: &str = "
    CREATE TABLE witness (execution_id uuid, at timestamptz DEFAULT clock_timestamp());
    CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN INSERT INTO witness (execution_id) VALUES (NEW.id); RETURN NEW; END';
    CREATE TRIGGER witness AFTER INSERT ON sexton.executions FOR EACH ROW EXECUTE FUNCTION witness()";

/// One replica, both, and the other alone; and workers of both kinds.
async fn fire_apart(seconds: i64) {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.noop]\ncommand = [\"/bin/true\"]\n");
    sqlx::raw_sql(WITNESS).execute(platform.store().pool()).await.unwrap();
    let _slow = start(&platform, Platform::start_worker, "w1", -seconds).await;
    let _fast = start(&platform, Platform::start_worker, "w2", seconds).await;
    let mut fast = start(&platform, Platform::start_scheduler, "fast", seconds).await;
    let once = now(&platform).await + TimeDelta::seconds(10);
    platform.apply(&jobs(once)).await.unwrap();
    go_on(&platform, 6).await;
    let _slow = start(&platform, Platform::start_scheduler, "slow", -seconds).await;
    go_on(&platform, 9).await;
    fast.kill();
    go_on(&platform, 9).await;
    for job in ["clock.every", "clock.cron"] {
        platform.sexton(&["jobs", "pause", job, "--reason", "seen enough"]).await;
    }

    let early = format!(
        "sexton.executions e JOIN witness w ON w.execution_id = e.id
         WHERE w.at < e.scheduled_for - interval '{CLAIM_LEAD_MS} ms' OR e.started_at < e.scheduled_for"
    );
    assert_eq!(count(&platform, &early).await, 0, "fired before their time");
    assert_eq!(count(&platform, "sexton.gaps WHERE reason <> 'paused'").await, 0, "were missed");
    let broken: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT j.name, count(*),
                1 + extract(epoch FROM max(e.scheduled_for) - min(e.scheduled_for))::bigint
                    / CASE j.name WHEN 'clock.cron' THEN 2 ELSE 1 END
         FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id GROUP BY j.name
         HAVING count(*) <> 1 + extract(epoch FROM max(e.scheduled_for) - min(e.scheduled_for))::bigint
                    / CASE j.name WHEN 'clock.cron' THEN 2 ELSE 1 END",
    )
    .fetch_all(platform.store().pool())
    .await
    .unwrap();
    assert!(broken.is_empty(), "not one for each of their firings: {broken:?}");
    let once =
        "sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id WHERE j.name = 'clock.once'";
    assert_eq!(count(&platform, once).await, 1);
    // Leases do not ask those clocks either: nobody was taken for dead.
    assert_eq!(
        count(&platform, "sexton.all_attempts WHERE number > 1 OR outcome = 'lost'").await,
        0
    );
    let by: Vec<String> = sqlx::query_scalar(
        "SELECT DISTINCT split_part(claimed_by, ':', 1) FROM sexton.executions ORDER BY 1",
    )
    .fetch_all(platform.store().pool())
    .await
    .unwrap();
    assert_eq!(by, ["fast", "slow"], "both claimed");
}

#[tokio::test]
async fn clocks_five_seconds_apart_to_either_side_fire_each_firing_once_and_in_time() {
    fire_apart(5).await;
}

#[tokio::test]
async fn clocks_an_hour_apart_to_either_side_fire_each_firing_once_and_in_time() {
    fire_apart(3_600).await;
}
