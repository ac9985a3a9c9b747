//! The lock of a job: real workers, and others that take the same key or row.

use sexton_tests::platform::{Platform, Program};
use sqlx::{Connection as _, PgConnection};

use super::ledger::Ledger;
use super::{FINAL_TIMEOUT, by_hand, count, until};

/// A platform whose tasks note it when two of them run at once.
struct Scene {
    platform: Platform,
    ledger: Ledger,
    _scheduler: Program,
}

impl Scene {
    /// The jobs `a.b` and `c.d` with these fields. `body` is what their tasks do.
    async fn new(jobs: [&str; 2], body: &str) -> Self {
        let mut platform = Platform::new().await.unwrap();
        let folder = platform.folder();
        let alone = format!(
            "exec 8>>\"{folder}/alone\"
             flock -n 8 || echo \"overlap of two jobs\" >> \"{folder}/ledger\"
             {body}",
            folder = folder.display()
        );
        let ledger = Ledger::new(&platform, &alone);
        let sql = "[tasks.alone]\nsql = \"select alone()\"\n";
        platform.catalogue(&format!("{}{sql}", ledger.catalogue()));
        let [first, second] = jobs;
        let jobs = [by_hand("a.b", "work", first), by_hand("c.d", "work", second)];
        platform.apply(&jobs.concat()).await.unwrap();
        let scheduler = platform.start_scheduler("s1", &[]).unwrap();
        Self { platform, ledger, _scheduler: scheduler }
    }

    fn worker(&self, name: &str) -> Program {
        self.platform.start_worker(name, &[("WORKER_SLOTS", "2")]).unwrap()
    }

    async fn trigger(&self, job: &str) -> String {
        let answer = self.platform.sexton_json(&["jobs", "trigger", job]).await;
        answer["id"].as_str().unwrap().to_owned()
    }

    async fn until(&self, condition: &str, wanted: i64) {
        until(&self.platform, &format!("sexton.executions WHERE {condition}"), wanted).await;
    }

    async fn attempts(&self, condition: &str) -> i64 {
        count(&self.platform, &format!("sexton.attempts WHERE {condition}")).await
    }

    async fn session(&self) -> PgConnection {
        PgConnection::connect(self.platform.database_url()).await.unwrap()
    }

    async fn begun(&self, number: usize) {
        let begun = async || (self.ledger.lines("begin").len() >= number).then_some(());
        self.platform.eventually("the task has begun", FINAL_TIMEOUT, begun).await;
    }

    async fn text(&self, query: &'static str) -> String {
        sqlx::query_scalar(query).fetch_one(self.platform.store().pool()).await.unwrap()
    }
}

const SKIP: &str = "lock_key = 5101";
const WAIT: &str = "lock_key = 5101\non_locked = \"wait\"";
const KEY: i64 = 5101;

async fn locks(session: &mut PgConnection) -> bool {
    sqlx::query_scalar("SELECT pg_try_advisory_lock($1)")
        .bind(KEY)
        .fetch_one(session)
        .await
        .unwrap()
}

async fn unlocks(session: &mut PgConnection) -> bool {
    sqlx::query_scalar("SELECT pg_advisory_unlock($1)").bind(KEY).fetch_one(session).await.unwrap()
}

#[tokio::test]
async fn executions_with_one_key_run_one_at_a_time_on_whatever_worker() {
    let scene = Scene::new([WAIT, ""], "sleep 0.1").await;
    let _workers = ["w1", "w2"].map(|name| scene.worker(name));
    for _ in 0..6 {
        scene.trigger("a.b").await;
    }
    scene.until("state = 'succeeded'", 6).await;
    scene.ledger.no_overlap();
    assert!(scene.attempts("outcome = 'locked'").await > 0, "six at once, on four slots");
    // No budget was used, and nothing else went wrong.
    assert_eq!(scene.attempts("outcome NOT IN ('locked', 'succeeded')").await, 0);
    scene.until("retries_used + timeouts_used + crashes_used = 0", 6).await;
}

#[tokio::test]
async fn a_service_that_holds_the_key_makes_an_execution_skip_and_finds_it_taken_while_a_task_runs()
{
    let scene =
        Scene::new([SKIP, ""], "while [ ! -e \"$(dirname $0)/gate\" ]; do sleep 0.05; done").await;
    let _worker = scene.worker("w1");
    let mut service = scene.session().await;
    sqlx::query("SET application_name = 'billing service'").execute(&mut service).await.unwrap();
    assert!(locks(&mut service).await);
    scene.trigger("a.b").await;
    scene.until("state = 'skipped' AND error_class IS NULL AND finished_at IS NOT NULL", 1).await;
    let reason = scene.text("SELECT skip_reason FROM sexton.executions").await;
    assert!(reason.starts_with("lock 5101 is held by billing service (backend "), "{reason}");
    assert!(unlocks(&mut service).await);

    let id = scene.trigger("a.b").await;
    scene.begun(1).await;
    assert!(!locks(&mut service).await, "the worker holds it");
    std::fs::write(scene.platform.folder().join("gate"), "").unwrap();
    scene.until("state = 'succeeded'", 1).await;
    let free = async || locks(&mut scene.session().await).await.then_some(());
    scene.platform.eventually("the lock is free again", FINAL_TIMEOUT, free).await;
    let shown = scene.platform.sexton(&["executions", "show", &id]).await;
    assert!(shown.stdout.contains("succeeded"), "{shown}");
}

#[tokio::test]
async fn a_key_that_is_lost_while_the_task_runs_ends_the_task_and_the_attempt_is_lost() {
    let scene = Scene::new([SKIP, ""], "[ $SEXTON_ATTEMPT = 1 ] && exec sleep 3000").await;
    let _worker = scene.worker("w1");
    scene.trigger("a.b").await;
    scene.begun(1).await;
    // The view shows the locks of all databases, and other tests hold this key in theirs.
    let ended = "SELECT pg_terminate_backend(pid)::text FROM pg_locks
         WHERE locktype = 'advisory' AND objid = 5101 AND granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(scene.text(ended).await, "true");
    // The second attempt notes it if the first is still alive.
    scene.until("state = 'succeeded' AND crashes_used = 1", 1).await;
    assert_eq!(scene.attempts("outcome = 'lost' AND error_class = 'lock_lost'").await, 1);
    scene.ledger.no_overlap();
}

/// Its first attempt may have failed half way.
#[tokio::test]
async fn an_execution_that_has_begun_waits_for_its_lock_and_is_not_skipped() {
    let skip_and_retry = "lock_key = 5101\nretry = { delay = \"3s\", jitter = 0.0 }";
    let scene = Scene::new([skip_and_retry, ""], "[ $SEXTON_ATTEMPT != 1 ] || exit 1").await;
    let _worker = scene.worker("w1");
    scene.trigger("a.b").await;
    scene.until("state = 'retrying' AND attempt = 2", 1).await;
    let mut service = scene.session().await;
    let taken = async || locks(&mut service).await.then_some(());
    scene.platform.eventually("the failed attempt has released it", FINAL_TIMEOUT, taken).await;
    let tried =
        "state = 'skipped' OR EXISTS (SELECT FROM sexton.attempts WHERE outcome = 'locked')";
    scene.until(tried, 1).await;
    assert_ne!(scene.text("SELECT state FROM sexton.executions").await, "skipped");
    assert!(unlocks(&mut service).await);
    scene.until("state = 'succeeded'", 1).await;
}

#[tokio::test]
async fn a_killed_worker_frees_its_key_long_before_its_lease_is_over() {
    let scene = Scene::new(["lock_key = 5101\nlease = \"1h\"", ""], "exec sleep 3000").await;
    let mut worker = scene.worker("w1");
    scene.trigger("a.b").await;
    scene.begun(1).await;
    let mut service = scene.session().await;
    assert!(!locks(&mut service).await);
    worker.kill();
    let free = async || locks(&mut scene.session().await).await.then_some(());
    scene.platform.eventually("the key of the dead worker is free", FINAL_TIMEOUT, free).await;
    scene.until("state = 'running'", 1).await;
}

#[tokio::test]
async fn effects_in_the_database_are_committed_before_the_lock_is_free() {
    let scene = Scene::new([ROWS_WAIT; 2], ":").await;
    // A task that gets in while another's effects are not committed yet finds the second lock taken.
    let alone = "CREATE FUNCTION alone() RETURNS void LANGUAGE plpgsql AS $$
         BEGIN
             IF NOT pg_try_advisory_xact_lock(7, 7) THEN RAISE EXCEPTION 'two at once'; END IF;
         END $$";
    sqlx::raw_sql(alone).execute(scene.platform.store().pool()).await.unwrap();
    let jobs = ["a.b", "c.d"].map(|name| by_hand(name, "alone", ROWS_WAIT)).concat();
    scene.platform.apply(&jobs).await.unwrap();
    // The first worker stands still between its task and the commit.
    let stops =
        [("FAULT_POINT", "worker.sql_ran"), ("FAULT_ACTION", "stop"), ("WORKER_SLOTS", "1")];
    let first = scene.platform.start_worker("w1", &stops).unwrap();
    scene.trigger("a.b").await;
    let stopped = async || first.log().contains("stopping this process").then_some(());
    scene.platform.eventually("the task has run", FINAL_TIMEOUT, stopped).await;
    let _second = scene.worker("w2");
    scene.trigger("c.d").await;
    let refused = async || (scene.attempts("outcome = 'locked'").await > 0).then_some(());
    scene.platform.eventually("the other finds the lock held", FINAL_TIMEOUT, refused).await;
    assert_eq!(scene.attempts("outcome <> 'locked'").await, 0);
    first.resume();
    scene.until("state = 'succeeded'", 2).await;
    assert_eq!(scene.attempts("outcome NOT IN ('locked', 'succeeded')").await, 0);
}

const ROW: &str = "lock = { row = \"tokenCleanup\", at_most = \"10s\", at_least = \"2s\" }";
const ROWS_WAIT: &str = "lock = { row = \"tokenCleanup\", at_most = \"1m\" }\non_locked = \"wait\"";
const HELD_BY_SERVICE: &str = "INSERT INTO sexton.lock_rows
     VALUES ('tokenCleanup', timezone('utc', clock_timestamp()) + interval '1 hour',
             timezone('utc', clock_timestamp()), 'billing-7f9')";

#[tokio::test]
async fn a_row_is_held_while_the_task_runs_and_stays_for_as_long_as_it_must() {
    let scene = Scene::new([ROW; 2], ":").await;
    let _worker = scene.worker("w1");
    scene.trigger("a.b").await;
    scene.until("state = 'succeeded'", 1).await;
    let kept = async || {
        let kept = "sexton.lock_rows WHERE name = 'tokenCleanup'
             AND lock_until = locked_at + interval '2 seconds'";
        (count(&scene.platform, kept).await == 1).then_some(())
    };
    scene.platform.eventually("at_least is kept", FINAL_TIMEOUT, kept).await;
    sqlx::query("DELETE FROM sexton.lock_rows")
        .execute(scene.platform.store().pool())
        .await
        .unwrap();
    sqlx::query(HELD_BY_SERVICE).execute(scene.platform.store().pool()).await.unwrap();
    scene.trigger("c.d").await;
    scene.until("state = 'skipped'", 1).await;
    let reason =
        scene.text("SELECT skip_reason FROM sexton.executions WHERE state = 'skipped'").await;
    assert!(reason.starts_with("lock tokenCleanup is held by billing-7f9 until "), "{reason}");
}

#[tokio::test]
async fn a_row_that_somebody_else_takes_ends_the_task() {
    let scene = Scene::new([ROW; 2], "[ $SEXTON_ATTEMPT = 1 ] && exec sleep 3000").await;
    let _worker = scene.worker("w1");
    scene.trigger("a.b").await;
    scene.begun(1).await;
    let taken = "UPDATE sexton.lock_rows SET locked_by = 'billing-7f9',
         lock_until = timezone('utc', clock_timestamp())";
    sqlx::query(taken).execute(scene.platform.store().pool()).await.unwrap();
    scene.until("state = 'succeeded' AND crashes_used = 1", 1).await;
    assert_eq!(scene.attempts("outcome = 'lost' AND error_class = 'lock_lost'").await, 1);
    scene.ledger.no_overlap();
}
