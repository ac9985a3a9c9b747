//! The broker is away for an hour.
//!
//! The hour is the rows': the broker is really away for some seconds, in which the firings of an hour
//! are claimed and made an hour old. What would grow in a scheduler grows with what it claims, not
//! with the time.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use lapin::options::{BasicGetOptions, BasicNackOptions};
use lapin::{Connection, ConnectionProperties};
use serde_json::Value;
use sexton_broker::{PoolName, names};
use sexton_scheduler::publish::relay::MAX_BATCH_TICKETS;
use sexton_servers::{RabbitOptions, RabbitServer, shared};
use sexton_tests::platform::{Platform, Program};

use super::{FINAL_TIMEOUT, private};
use crate::bad_input::probe::{assert_sound, not_ready, resident};
use crate::process::{count, until};

/// Jobs whose firings of an hour are claimed, one job after the other.
const JOBS: [&str; 5] = ["hour.a", "hour.b", "hour.c", "hour.d", "hour.e"];
/// After so many of them a scheduler has all the memory that it needs for one.
const WARM_UP_JOBS: usize = 2;
/// Of each job: one every 18 s.
const FIRINGS: i64 = 200;
/// Params of each ticket.
const PARAMS: usize = 24 * 1024;
/// Allowed to grow by; the params of what was claimed meanwhile are more than twice as much.
const GROWTH: u64 = 6 << 20;
/// Between two full rounds of the relay a quarter of a second passes.
const BETWEEN_FULL: Duration = Duration::from_millis(240);
/// Lines of a scheduler in all.
const LINES: usize = 60;

const UNPUBLISHED: &str =
    "sexton.executions WHERE state = 'pending' AND ticket_published_at IS NULL";

/// The jobs, and one that fires every second.
fn jobs() -> String {
    let misfire = "misfire = { policy = \"fire_all\", window = \"2h\", limit = 1000 }";
    let text = "x".repeat(PARAMS);
    let one = |name: &str, every: &str, text: &str| {
        format!(
            "[[job]]\nname = \"{name}\"\ntask = \"work\"\nevery = \"{every}\"\n\
             params = {{ text = \"{text}\" }}\n{misfire}\n"
        )
    };
    JOBS.map(|job| one(job, "18s", &text)).concat() + &one("hour.tick", "1s", "")
}

/// Lets an hour of a job's firings pass unclaimed until now, and waits until they are claimed.
async fn an_hour_passes(platform: &Platform, job: &str) {
    let pool = platform.store().pool();
    let before = "UPDATE sexton.jobs SET next_fire_at = next_fire_at - interval '61 minutes' WHERE name = $1";
    sqlx::query(before).bind(job).execute(pool).await.unwrap();
    sqlx::query("SELECT pg_notify('sexton', 'jobs')").execute(pool).await.unwrap();
    let theirs = format!(
        "sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
         WHERE j.name = '{job}' AND e.scheduled_for < now() - interval '1 minute'"
    );
    let claimed = async || (count(platform, &theirs).await >= FIRINGS - 4).then_some(());
    platform.eventually("an hour's firings are claimed", FINAL_TIMEOUT, claimed).await;
}

/// As if each had been claimed at its time.
async fn made_as_old_as_they_are(platform: &Platform) {
    sqlx::query(
        "UPDATE sexton.executions SET claimed_at = scheduled_for, next_attempt_at = scheduled_for,
             relay_after = scheduled_for + interval '5 s' WHERE state = 'pending'",
    )
    .execute(platform.store().pool())
    .await
    .unwrap();
}

/// What `sexton status` shows: how many tickets are unpublished, and for how many seconds.
async fn unpublished_tickets(platform: &Platform) -> (i64, i64) {
    let status = platform.sexton_json(&["status"]).await;
    assert_eq!(status["broker"]["reachable"], false, "{status}");
    let database = &status["database"];
    let age_ms = database["oldest_unpublished_ms"].as_i64().unwrap();
    (database["unpublished"].as_i64().unwrap(), age_ms / 1000)
}

/// The nominal times of all tickets in the main queue, in their order there; each ticket once.
async fn arrived(platform: &Platform) -> Vec<DateTime<Utc>> {
    let properties = ConnectionProperties::default();
    let connection = Connection::connect(platform.amqp_url(), properties).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let queue = names::main_queue(platform.namespace(), &PoolName::default_pool());
    let get = || channel.basic_get(queue.as_str().into(), BasicGetOptions::default());
    let (mut times, mut seen, mut last) = (Vec::new(), HashSet::new(), None);
    while let Some(message) = get().await.unwrap() {
        let body: Value = serde_json::from_slice(&message.data).unwrap();
        if seen.insert(body["execution_id"].to_string()) {
            times.push(body["scheduled_for"].as_str().unwrap().parse().unwrap());
        }
        last = Some(message);
    }
    let options = BasicNackOptions { multiple: true, requeue: true };
    assert!(last.unwrap().acker.nack(options).await.unwrap());
    connection.close(200, "done".into()).await.unwrap();
    times
}

/// Tickets of one batch may overtake one another, those of different ones may not.
fn assert_in_nominal_order(times: &[DateTime<Utc>]) {
    let mut sorted: Vec<usize> = (0..times.len()).collect();
    sorted.sort_by_key(|&place| (times[place], place));
    let furthest = sorted.iter().enumerate().map(|(rank, &place)| rank.abs_diff(place)).max();
    println!("MEASURED a ticket arrived {furthest:?} places from its own, of {}", times.len());
    assert!(furthest.unwrap() <= MAX_BATCH_TICKETS, "{furthest:?} places of {}", times.len());
}

/// Every full round is followed by a rest.
async fn assert_bounded_rate(platform: &Platform, before: DateTime<Utc>) {
    let rounds: Vec<(DateTime<Utc>, i64)> = sqlx::query_as(
        // What a round takes it hides from others by one and the same instant.
        "SELECT relay_after, count(*) FROM sexton.executions WHERE scheduled_for < $1 AND relay_after > $1
         GROUP BY 1 HAVING count(*) > 1 ORDER BY 1",
    )
    .bind(before)
    .fetch_all(platform.store().pool())
    .await
    .unwrap();
    println!("MEASURED rounds of {:?}", rounds.iter().map(|round| round.1).collect::<Vec<_>>());
    assert!(rounds.len() >= JOBS.len() * FIRINGS as usize / MAX_BATCH_TICKETS, "{rounds:?}");
    assert!(rounds.iter().all(|(_, tickets)| *tickets <= MAX_BATCH_TICKETS as i64), "{rounds:?}");
    for pair in rounds.windows(2).filter(|pair| pair[0].1 == MAX_BATCH_TICKETS as i64) {
        assert!((pair[1].0 - pair[0].0).to_std().unwrap() >= BETWEEN_FULL, "{rounds:?}");
    }
}

async fn assert_claims_go_on(platform: &Platform) {
    let ticks =
        "sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id WHERE j.name = 'hour.tick'";
    let before = count(platform, ticks).await;
    let more = async || (count(platform, ticks).await >= before + 3).then_some(());
    platform.eventually("three more are claimed", FINAL_TIMEOUT, more).await;
}

async fn all_run_once(platform: &Platform, scheduler: &Program) {
    for job in JOBS.iter().chain(&["hour.tick"]) {
        let done = platform.sexton(&["jobs", "pause", job, "--reason", "the end"]).await;
        assert!(done.status.success(), "{done}");
    }
    let mut worker = platform.start_worker("w1", &[("WORKER_SLOTS", "16")]).unwrap();
    worker.ready().await;
    until(platform, "sexton.executions WHERE state <> 'succeeded'", 0).await;
    let executions = count(platform, "sexton.executions").await;
    assert_eq!(count(platform, "sexton.all_attempts").await, executions);
    let text = std::fs::read_to_string(platform.folder().join("ledger")).unwrap();
    let keys: HashSet<&str> = text.lines().collect();
    assert_eq!((keys.len(), text.lines().count()), (executions as usize, executions as usize));
    assert_eq!(count(platform, "sexton.gaps").await, 0);
    for program in [scheduler, &worker] {
        assert_sound(program);
        // A worker tells how each attempt ended.
        let other = |line: &&str| !line.contains("sexton_worker::attempt");
        let lines = program.log().lines().filter(other).count();
        assert!(lines <= LINES, "{} said {lines} lines\n{}", program.name(), program.log());
    }
}

#[tokio::test]
async fn firings_of_an_hour_without_a_broker_are_claimed_logged_and_published_in_order_at_a_bounded_rate()
 {
    let _private = private().await;
    let (rabbit, shared) =
        tokio::join!(RabbitServer::start_private(RabbitOptions::default()), shared());
    let mut rabbit = rabbit.unwrap();
    let mut platform = Platform::on(&shared.unwrap().database_url, rabbit.url()).await.unwrap();
    let task = "read text; echo $SEXTON_IDEMPOTENCY_KEY >> ledger";
    platform.catalogue(&format!("[tasks.work]\ncommand = [\"/bin/sh\", \"-c\", \"{task}\"]\n"));
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    scheduler.ready().await;
    rabbit.kill().await.unwrap();
    not_ready(&platform, &scheduler, "broker", &["check AMQP_URL"]).await;
    platform.apply(&jobs()).await.unwrap();

    let mut warm = 0;
    for (number, job) in JOBS.into_iter().enumerate() {
        if number == WARM_UP_JOBS {
            warm = resident(&scheduler);
        }
        an_hour_passes(&platform, job).await;
    }
    let cold = resident(&scheduler);
    println!("MEASURED resident {} KiB, then {} KiB", warm >> 10, cold >> 10);
    assert!(cold < warm + GROWTH, "it grew from {warm} to {cold} bytes");
    assert_claims_go_on(&platform).await;
    made_as_old_as_they_are(&platform).await;
    let least = count(&platform, UNPUBLISHED).await;
    let (shown_count, age_s) = unpublished_tickets(&platform).await;
    assert!((least..least + 1000).contains(&shown_count), "{shown_count} of {least} are shown");
    assert!((3590..5400).contains(&age_s), "the oldest for {age_s} s");
    let shown = platform.sexton(&["status"]).await.stdout;
    assert!(shown.contains("not published, the oldest for 1 h"), "{shown}");

    let back = sexton_service::clock::now();
    rabbit.restart().await.unwrap();
    until(&platform, UNPUBLISHED, 0).await;
    let times = arrived(&platform).await;
    let of_the_hour: Vec<_> = times.into_iter().filter(|time| *time < back).collect();
    assert!(of_the_hour.len() as i64 >= least, "{} of {least}", of_the_hour.len());
    assert_in_nominal_order(&of_the_hour);
    assert_bounded_rate(&platform, back).await;
    all_run_once(&platform, &scheduler).await;
}
