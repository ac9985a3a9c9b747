//! The answers of single statements are lost: of the journal's, and of a claim's.

use std::time::Duration;

use sexton_tests::platform::Platform;
use tokio::time::Instant;

use super::{before_the_database, until};

/// The limit of a claim's statements; three times that is allowed on a busy machine.
const TEN_SECONDS: Duration = Duration::from_secs(10);

/// Says something, appends `begin`, sleeps, appends `end`.
fn catalogue(platform: &Platform, seconds: u32) -> String {
    let ledger = platform.folder().join("ledger");
    let script = format!(
        "echo said by the task; echo begin >> {0}; sleep {seconds}; echo end >> {0}",
        ledger.display()
    );
    format!("[tasks.work]\ncommand = [\"/bin/sh\", \"-c\", \"{script}\"]\n")
}

fn begun(platform: &Platform) -> usize {
    let text = std::fs::read_to_string(platform.folder().join("ledger")).unwrap_or_default();
    text.lines().filter(|line| *line == "begin").count()
}

async fn trigger(platform: &Platform, key: &str) {
    let done = platform.sexton(&["jobs", "trigger", "a.b", "--key", key]).await;
    assert!(done.status.success(), "{}", done.stderr);
}

/// The worker repeats the open after its limit of ten seconds; by then most of the lease is gone. A task
/// that was started on a deadline counted from the second request would run on while the rescuer has
/// the attempt ended and another worker begins the next: the task is over 24 seconds after the first
/// request, that lease after 20. Between the second request and then, a busy machine has ten seconds.
#[tokio::test]
async fn an_open_with_a_lost_answer_runs_once_on_a_fresh_lease() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue(&catalogue(&platform, 14));
    let job = "[[job]]\nname = \"a.b\"\ntask = \"work\"\nlease = \"20s\"\n";
    platform.apply(job).await.unwrap();
    let (proxy, url) = before_the_database(&platform).await;
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = platform.start_worker("w1", &[("DATABASE_URL", &url)]).unwrap();
    worker.ready().await;
    // What goes over the wire when the statement is carried out, not when it is prepared: its
    // parameter that says who opens.
    proxy.swallow_answers_matching(format!("w1:{}", worker.pid()).as_bytes(), 1);
    trigger(&platform, "k").await;
    until(&platform, "sexton.executions WHERE state = 'running'", 1).await;
    assert_eq!(begun(&platform), 0, "it is open, and its worker does not know");
    // There for the next attempt, should there wrongly be one.
    let _other = platform.start_worker("w2", &[]).unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 1).await;
    until(&platform, "sexton.all_attempts", 1).await;
    assert_eq!(begun(&platform), 1);
    assert!(worker.log().contains("no answer within"), "the answer was not lost: {}", worker.log());
}

/// Settled already, the worker is refused when it asks again. That is its own record, not a late one.
#[tokio::test]
async fn a_settlement_with_a_lost_answer_is_recorded_once_and_blocks_nobody_for_ever() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue(&catalogue(&platform, 0));
    platform.apply("[[job]]\nname = \"a.b\"\ntask = \"work\"\n").await.unwrap();
    let (proxy, url) = before_the_database(&platform).await;
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let through = [("DATABASE_URL", url.as_str()), ("WORKER_SLOTS", "2")];
    let mut worker = platform.start_worker("w1", &through).unwrap();
    worker.ready().await;
    // The task's own output, which only the settlement's parameters bear.
    proxy.swallow_answers_matching(b"said by the task", 1);
    for key in ["a", "b", "c", "d"] {
        trigger(&platform, key).await;
    }
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 4).await;
    until(&platform, "sexton.all_attempts WHERE outcome = 'succeeded' AND late_outcome IS NULL", 4)
        .await;
    assert_eq!(begun(&platform), 4);
    worker.terminate();
    assert!(worker.exit(super::FINAL_TIMEOUT).await.success());
    let log = worker.log();
    assert!(log.contains("no answer within"), "the answer was not lost: {log}");
    assert!(!log.contains("taken from this worker"), "{log}");
}

/// The claim is not committed, and the job stays locked until its connection is given up: no other
/// scheduler could have it either.
#[tokio::test]
async fn a_claim_with_a_lost_answer_delays_its_job_for_ten_seconds() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue(&catalogue(&platform, 0));
    let (proxy, url) = before_the_database(&platform).await;
    let mut scheduler = platform.start_scheduler("s1", &[("DATABASE_URL", &url)]).unwrap();
    scheduler.ready().await;
    // Who claims is a parameter of the claim alone.
    proxy.swallow_answers_matching(format!("s1:{}", scheduler.pid()).as_bytes(), 1);
    let misfire = "misfire = { policy = \"fire_all\", window = \"1h\" }";
    let job = format!("[[job]]\nname = \"a.b\"\ntask = \"work\"\nevery = \"1s\"\n{misfire}\n");
    platform.apply(&job).await.unwrap();
    let applied = Instant::now();
    let claimed = async || {
        let statement = "SELECT count(*) FROM sexton.executions";
        let count = sqlx::query_scalar::<_, i64>(statement).fetch_one(platform.store().pool());
        (count.await.unwrap() > 0).then(|| applied.elapsed())
    };
    let after = platform.eventually("the job is claimed", super::FINAL_TIMEOUT, claimed).await;
    println!("MEASURED claimed {after:?} after it was applied");
    assert!(after < TEN_SECONDS * 3, "claimed {after:?} after it was applied");
    let log = scheduler.log();
    assert!(log.contains("no answer within 10 s"), "the answer was not lost: {log}");
}
