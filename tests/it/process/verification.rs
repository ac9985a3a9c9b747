//! A job's own verify task says whether the effect has happened, before anything is run again.
//!
//! Method: real programs. The charge writes a line for each run and fails until there is a bank; the verify task
//! writes what it was given, and says what the execution's key begins with.

mod waiting;

use std::time::Duration;

use serde_json::{Value, json};
use sexton_tests::platform::Platform;

use super::{FINAL_TIMEOUT, until};

const CATALOGUE: &str = r#"
[tasks.charge]
command = ["/bin/sh", "-c", "echo $SEXTON_EXECUTION_KEY >> runs; test -e bank"]
retry = { max_retries = 0 }

[tasks.charged]
command = ["/bin/sh", "-c", '''
    echo "$SEXTON_JOB $SEXTON_EXECUTION_KEY $SEXTON_IDEMPOTENCY_KEY $(cat)" >> asked
    case $SEXTON_EXECUTION_KEY in
    yes*) echo true > $SEXTON_RESULT_FILE;;
    no*) echo '{"happened": false}' > $SEXTON_RESULT_FILE;;
    slow*) while ! test -e go; do sleep 0.05; done; echo false > $SEXTON_RESULT_FILE;;
    odd*) echo '"perhaps"' > $SEXTON_RESULT_FILE;;
    broken*) exit 3;;
    esac''']
"#;

const JOBS: &str = r#"
[[job]]
name = "shop.charge"
task = "charge"
verify = "charged"
params = { customer = 4891 }
retry = { max_retries = 0 }
"#;

/// Of the worker that dies: shorter than usual, so that a test need not wait long for the rescuer.
const LEASE: (&str, &str) = ("LEASE_MS", "10000");

struct Scene {
    platform: Platform,
}

impl Scene {
    /// With a charge of each of these keys that has failed, and a bank that is back.
    async fn failed(keys: &[&str]) -> Self {
        let mut platform = Platform::new().await.unwrap();
        platform.catalogue(CATALOGUE);
        platform.apply(JOBS).await.unwrap();
        let scene = Self { platform };
        let mut scheduler = scene.platform.start_scheduler("s0", &[]).unwrap();
        let mut worker = scene.platform.start_worker("w0", &[]).unwrap();
        for (n, key) in keys.iter().enumerate() {
            scene.sexton(&["jobs", "trigger", "shop.charge", "--key", key], 0).await;
            // One after the other, so that a bulk takes them in this order.
            until(&scene.platform, "sexton.executions WHERE state = 'failed'", n as i64 + 1).await;
        }
        for program in [&mut scheduler, &mut worker] {
            program.terminate();
            program.exit(FINAL_TIMEOUT).await;
        }
        std::fs::write(scene.platform.folder().join("bank"), "").unwrap();
        scene
    }

    async fn sexton(&self, args: &[&str], code: i32) -> String {
        let ended = self.platform.sexton(args).await;
        assert_eq!(ended.status.code(), Some(code), "{args:?}: {ended}");
        format!("{}{}", ended.stdout, ended.stderr)
    }

    async fn row(&self, key: &str) -> (String, i32, Option<String>) {
        sqlx::query_as(
            "SELECT state, attempt, outcome FROM sexton.executions WHERE execution_key = $1",
        )
        .bind(key)
        .fetch_one(self.platform.store().pool())
        .await
        .unwrap()
    }

    async fn id(&self, key: &str) -> String {
        sqlx::query_scalar("SELECT id::text FROM sexton.executions WHERE execution_key = $1")
            .bind(key)
            .fetch_one(self.platform.store().pool())
            .await
            .unwrap()
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.platform.folder().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn runs(&self, key: &str) -> usize {
        self.lines("runs").iter().filter(|line| *line == key).count()
    }

    async fn wait_for_questions(&self, times: usize) {
        let what = format!("it was asked {times} times");
        let is_complete = async || (self.lines("asked").len() == times).then_some(());
        self.platform.eventually(&what, FINAL_TIMEOUT, is_complete).await;
    }

    fn go(&self) {
        std::fs::write(self.platform.folder().join("go"), "").unwrap();
    }

    async fn bulk(&self, id: &str) -> Value {
        self.platform.sexton_json(&["bulks", "show", id]).await
    }
}

fn succeeded(attempt: i32, outcome: &str) -> (String, i32, Option<String>) {
    ("succeeded".to_owned(), attempt, Some(outcome.to_owned()))
}

#[tokio::test]
async fn a_verified_requeue_resolves_applied_effects_runs_missing_ones_and_reports_the_rest() {
    let scene = Scene::failed(&["yes-1", "no-1", "odd-1", "broken-1", "silent-1"]).await;
    let all = ["failed", "requeue", "--all", "--yes", "--reason", "bank is back"];
    let preview = scene.sexton(&[&all[..], &["--dry-run"]].concat(), 0).await;
    assert!(
        preview.contains("verification") && preview.contains("5, by the verify task"),
        "{preview}"
    );
    let _scheduler = scene.platform.start_scheduler("s1", &[]).unwrap();
    let _worker = scene.platform.start_worker("w1", &[]).unwrap();
    scene.sexton(&[&all[..], &["--detach"]].concat(), 0).await;
    until(&scene.platform, "sexton.bulks WHERE state = 'done'", 1).await;
    until(
        &scene.platform,
        "sexton.executions WHERE state = 'succeeded' AND task_type = 'charge'",
        2,
    )
    .await;
    assert_eq!(scene.row("yes-1").await, succeeded(2, "verified"));
    assert_eq!(scene.row("no-1").await, succeeded(2, "succeeded"));
    for key in ["odd-1", "broken-1", "silent-1"] {
        assert_eq!((scene.row(key).await.0.as_str(), scene.runs(key)), ("failed", 1), "{key}");
    }
    assert_eq!([scene.runs("yes-1"), scene.runs("no-1")], [1, 2]);
    let bulk = scene.bulk("1").await;
    let counts =
        ["resolved", "done", "left_alone", "refused"].map(|name| bulk["bulk"][name].clone());
    assert_eq!(counts, [json!(1), json!(1), json!(3), json!(0)]);
    let notes = bulk["refused"].to_string();
    for note in ["neither true nor false", "its verify task failed: exit_3", "handed back none"] {
        assert!(notes.contains(note), "{note}: {notes}");
    }
    // The task finds what the failed one found, and no question is among the failed executions.
    let line = r#"shop.charge yes-1 shop.charge:yes-1 {"customer":4891}"#;
    assert!(
        scene.lines("asked").iter().any(|question| question == line),
        "{:?}",
        scene.lines("asked")
    );
    until(
        &scene.platform,
        "sexton.executions WHERE state = 'failed' AND asks_about IS NOT NULL",
        0,
    )
    .await;
    let audit = scene.sexton(&["audit", "list"], 0).await;
    assert!(audit.contains("resolve"), "{audit}");
}

#[tokio::test]
async fn a_single_requeue_or_edit_verifies_and_no_verify_is_recorded_in_the_audit() {
    let scene = Scene::failed(&["yes-1", "no-1", "yes-2", "yes-3"]).await;
    let _scheduler = scene.platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = scene.platform.start_worker("w1", &[]).unwrap();
    worker.ready().await;
    let [yes, no, other, edited] = [
        scene.id("yes-1").await,
        scene.id("no-1").await,
        scene.id("yes-2").await,
        scene.id("yes-3").await,
    ];
    let stdout = scene.sexton(&["failed", "requeue", &yes], 0).await;
    assert!(stdout.contains("1 had happened already"), "{stdout}");
    assert_eq!(scene.row("yes-1").await, succeeded(2, "verified"));
    let again = scene.sexton(&["failed", "requeue", &yes], 4).await;
    assert!(again.contains("succeeded") && again.contains("resolve"), "{again}");
    let stdout = scene.sexton(&["failed", "requeue", &no, "--attempt", "2"], 0).await;
    assert!(stdout.contains("1 of 1 requeued"), "{stdout}");
    // Before its question: the edit is done, and the verify task runs.
    let edit = ["failed", "edit", &edited, "--params", "{}", "--reason", "typo", "--yes"];
    scene.sexton(&edit, 0).await;
    assert_eq!(scene.row("yes-3").await, succeeded(2, "verified"));
    scene.wait_for_questions(3).await;
    scene.sexton(&["failed", "requeue", &other, "--no-verify"], 2).await;
    let stdout = ["failed", "requeue", &other, "--no-verify", "--reason", "looked myself"];
    scene.sexton(&stdout, 0).await;
    until(
        &scene.platform,
        "sexton.executions WHERE execution_key IN ('no-1', 'yes-2') AND outcome = 'succeeded'",
        2,
    )
    .await;
    assert_eq!((scene.lines("asked").len(), scene.runs("yes-2")), (3, 2));
    let unasked = "sexton.operator_actions WHERE action = 'requeue' AND reason = 'looked myself'
        AND after ->> 'verify' = 'none'";
    until(&scene.platform, unasked, 1).await;
}

#[tokio::test]
async fn a_verify_task_killed_with_its_worker_is_retried_before_anything_runs() {
    let scene = Scene::failed(&["slow-1"]).await;
    let _scheduler = scene.platform.start_scheduler("s1", &[]).unwrap();
    let mut doomed = scene.platform.start_worker("w1", &[LEASE]).unwrap();
    scene.sexton(&["failed", "requeue", "--all", "--yes", "--detach"], 0).await;
    scene.wait_for_questions(1).await;
    doomed.kill();
    let _other = scene.platform.start_worker("w2", &[]).unwrap();
    scene.wait_for_questions(2).await;
    assert_eq!((scene.row("slow-1").await.0.as_str(), scene.runs("slow-1")), ("failed", 1));
    scene.go();
    until(&scene.platform, "sexton.bulks WHERE state = 'done' AND done = 1", 1).await;
    until(
        &scene.platform,
        "sexton.executions WHERE outcome = 'succeeded' AND execution_key = 'slow-1'",
        1,
    )
    .await;
    assert_eq!((scene.runs("slow-1"), scene.lines("asked").len()), (2, 2));
}

#[tokio::test]
async fn the_next_scheduler_continues_an_open_verify_task() {
    let scene = Scene::failed(&["slow-1", "yes-1"]).await;
    let mut doomed = scene.platform.start_scheduler("s1", &[]).unwrap();
    let _worker = scene.platform.start_worker("w1", &[]).unwrap();
    scene.sexton(&["failed", "requeue", "--all", "--yes", "--detach"], 0).await;
    scene.wait_for_questions(2).await;
    doomed.kill();
    scene.go();
    until(
        &scene.platform,
        "sexton.executions WHERE state = 'succeeded' AND asks_about IS NOT NULL",
        2,
    )
    .await;
    assert_eq!(scene.row("slow-1").await.0, "failed", "nobody has acted upon the answer");
    let _heir = scene.platform.start_scheduler("s2", &[]).unwrap();
    let done = "sexton.bulks WHERE state = 'done' AND done = 1 AND resolved = 1";
    until(&scene.platform, done, 1).await;
    until(
        &scene.platform,
        "sexton.executions WHERE outcome = 'succeeded' AND execution_key = 'slow-1'",
        1,
    )
    .await;
    assert_eq!((scene.lines("asked").len(), scene.runs("slow-1"), scene.runs("yes-1")), (2, 2, 1));
}

#[tokio::test]
async fn one_of_two_verifying_operators_requeues_and_the_other_gets_a_conflict() {
    let scene = Scene::failed(&["slow-1"]).await;
    let _schedulers = ["s1", "s2"].map(|name| scene.platform.start_scheduler(name, &[]).unwrap());
    let _worker = scene.platform.start_worker("w1", &[]).unwrap();
    for _ in 0..2 {
        scene.sexton(&["failed", "requeue", "--all", "--yes", "--detach"], 0).await;
    }
    scene.wait_for_questions(2).await;
    scene.go();
    until(&scene.platform, "sexton.bulks WHERE state = 'done'", 2).await;
    until(&scene.platform, "sexton.bulks WHERE done = 1 AND refused = 0", 1).await;
    until(&scene.platform, "sexton.bulks WHERE done = 0 AND refused = 1", 1).await;
    until(
        &scene.platform,
        "sexton.executions WHERE outcome = 'succeeded' AND execution_key = 'slow-1'",
        1,
    )
    .await;
    assert_eq!(scene.runs("slow-1"), 2);
}

#[tokio::test]
async fn a_canary_counts_executions_that_ran_and_limits_verify_tasks() {
    let scene = Scene::failed(&["yes-1", "no-1", "no-2", "slow-1"]).await;
    std::fs::remove_file(scene.platform.folder().join("bank")).unwrap();
    let _scheduler = scene.platform.start_scheduler("s1", &[]).unwrap();
    let _worker = scene.platform.start_worker("w1", &[]).unwrap();
    scene.sexton(&["failed", "requeue", "--all", "--yes", "--detach", "--canary", "1"], 0).await;
    until(&scene.platform, "sexton.bulks WHERE state = 'paused' AND resolved = 1 AND done = 1", 1)
        .await;
    assert_eq!([scene.runs("yes-1"), scene.runs("no-1"), scene.runs("no-2")], [1, 2, 1]);
    assert_eq!(scene.row("slow-1").await.0, "failed");
    assert_eq!(scene.lines("asked").len(), 2, "{:?}", scene.lines("asked"));
    std::fs::write(scene.platform.folder().join("bank"), "").unwrap();
    scene.go();
    scene.sexton(&["bulks", "resume", "1"], 0).await;
    until(&scene.platform, "sexton.bulks WHERE state = 'done' AND resolved = 1 AND done = 3", 1)
        .await;
    let ran =
        "sexton.executions WHERE outcome = 'succeeded' AND execution_key IN ('no-2', 'slow-1')";
    until(&scene.platform, ran, 2).await;
    tokio::time::timeout(Duration::from_mins(1), scene.wait_for_questions(4)).await.unwrap();
}
