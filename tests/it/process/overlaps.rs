//! Executions of one job among one another: real schedulers, real workers, tasks that see each other.

use chrono::TimeDelta;
use sexton_model::state::State;
use sexton_tests::factory::{NewExecution, NewJob};
use sexton_tests::platform::{Platform, Program};

use super::{FINAL_TIMEOUT, count, until};

/// A platform with one job that fires every two seconds, or not by itself.
struct Scene {
    platform: Platform,
    _schedulers: [Program; 2],
}

impl Scene {
    /// Two schedulers and no worker. `entry` stands in the catalogue.
    async fn new(job: &str, entry: &str) -> Self {
        let mut platform = Platform::new().await.unwrap();
        let effects = "CREATE TABLE effects (key text);
             CREATE TABLE gates (open boolean)";
        sqlx::raw_sql(effects).execute(platform.store().pool()).await.unwrap();
        platform.catalogue(&format!("[tasks.work]\n{entry}\n"));
        platform
            .apply(&format!("[[job]]\nname = \"a.b\"\ntask = \"work\"\n{job}\n"))
            .await
            .unwrap();
        let schedulers = ["s1", "s2"].map(|name| platform.start_scheduler(name, &[]).unwrap());
        Self { platform, _schedulers: schedulers }
    }

    async fn until(&self, condition: &str, wanted: i64) {
        until(&self.platform, &format!("sexton.executions WHERE {condition}"), wanted).await;
    }

    async fn count(&self, what: &str) -> i64 {
        count(&self.platform, what).await
    }

    async fn sql(&self, statement: &'static str) {
        sqlx::query(statement).execute(self.platform.store().pool()).await.unwrap();
    }

    /// The job fires within a second, whatever its schedule says: another firing each time.
    async fn fires(&self) {
        let next = "UPDATE sexton.jobs SET next_fire_at = coalesce(
             (SELECT max(scheduled_for) + interval '1 second' FROM sexton.executions),
             date_trunc('second', now()))";
        self.sql(next).await;
        // Both planners look at once, not within five seconds.
        self.sql("SELECT pg_notify('sexton', 'jobs')").await;
    }

    /// The statement runs in the database.
    async fn has_begun(&self) {
        let active = "pg_stat_activity WHERE datname = current_database() AND state = 'active'
             AND application_name LIKE 'sexton worker % tasks' AND query LIKE '%gated%'";
        until(&self.platform, active, 1).await;
    }

    /// Each attempt began after those of all earlier executions had ended.
    async fn one_after_the_other(&self) {
        let together = "sexton.all_attempts a JOIN sexton.executions x ON x.id = a.execution_id, sexton.executions y
             JOIN sexton.all_attempts b ON b.execution_id = y.id
             WHERE (x.scheduled_for, x.id) < (y.scheduled_for, y.id)
               AND b.opened_at < coalesce(a.finished_at, 'infinity')";
        assert_eq!(self.count(together).await, 0, "{}", self.platform.log_tails());
    }

    fn worker(&self, name: &str) -> Program {
        let env = [("WORKER_SLOTS", "2"), ("LEASE_MS", "3000")];
        self.platform.start_worker(name, &env).unwrap()
    }
}

const SELDOM: &str = "schedule = \"0 0 29 2 *\"";
const WAITER: &str = "state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL";

/// Waits in the database until its gate is open, and then has an effect.
const GATED: &str = "
CREATE FUNCTION gated(key text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO effects VALUES (key);
    WHILE NOT EXISTS (SELECT FROM gates) LOOP PERFORM pg_sleep(0.02); END LOOP;
END $$";

#[tokio::test]
async fn queued_firings_run_one_after_the_other_in_their_order() {
    let entry = "command = [\"sleep\", \"2.5\"]";
    let scene = Scene::new("every = \"1s\"\noverlap = \"queue\"\nlease = \"3s\"", entry).await;
    let _workers = ["w1", "w2"].map(|name| scene.worker(name));
    let ran = async || {
        let done =
            scene.count("sexton.executions WHERE state = 'succeeded' AND waits = 'queue'").await;
        (done >= 4).then_some(())
    };
    scene.platform.eventually("four that were queued have run", FINAL_TIMEOUT, ran).await;
    let skipped = "sexton.executions WHERE state = 'skipped' AND skip_reason = 'overlap'";
    assert!(scene.count(skipped).await > 0, "a task of 2.5 s, a firing each second");
    // Each began after the one before had ended, and in the order of their nominal times.
    scene.one_after_the_other().await;
    // How long a waiter waits after its job is free.
    let waited: f64 = sqlx::query_scalar(
        "SELECT max(extract(epoch FROM w.admitted_at - f.finished_at))::float8 FROM sexton.executions w,
             LATERAL (SELECT max(finished_at) AS finished_at FROM sexton.executions e
                      WHERE e.state = 'succeeded' AND e.finished_at <= w.admitted_at) f
         WHERE w.admitted_at IS NOT NULL",
    )
    .fetch_one(scene.platform.store().pool())
    .await
    .unwrap();
    println!("MEASURED a waiter was let go at most {:.0} ms after its job was free", waited * 1e3);
    assert!(waited < 5.0, "{waited} s");
}

#[tokio::test]
async fn a_statement_that_is_replaced_in_the_middle_leaves_nothing_and_the_new_one_its_effect_once()
{
    let entry = "sql = \"select gated($2)\"";
    let scene = Scene::new(&format!("{SELDOM}\noverlap = \"replace\""), entry).await;
    scene.sql(GATED).await;
    let _worker = scene.worker("w1");
    scene.fires().await;
    scene.has_begun().await;
    scene.fires().await;
    scene.until("true", 2).await;
    scene.until("state = 'cancelled' AND outcome = 'replaced'", 1).await;
    scene.until("state = 'running' AND waits = 'replace' AND admitted_at IS NOT NULL", 1).await;
    assert_eq!(scene.count("effects").await, 0, "rolled back, and not committed");
    scene.sql("INSERT INTO gates VALUES (true)").await;
    scene.until("state = 'succeeded'", 1).await;
    assert_eq!(scene.count("effects").await, 1);
    let of_new =
        "effects f JOIN sexton.executions e ON e.idempotency_key = f.key AND e.state = 'succeeded'";
    assert_eq!(scene.count(of_new).await, 1);
}

#[tokio::test]
async fn a_task_of_a_frozen_worker_is_replaced_only_after_its_lease() {
    let entry = "sql = \"select gated($2)\"";
    let scene = Scene::new(&format!("{SELDOM}\noverlap = \"replace\""), entry).await;
    scene.sql(GATED).await;
    let mut frozen = scene.worker("w1");
    frozen.ready().await;
    scene.fires().await;
    scene.has_begun().await;
    frozen.pause();
    let _other = scene.worker("w2");
    scene.fires().await;
    scene.until("true", 2).await;
    scene.sql("INSERT INTO gates VALUES (true)").await;
    scene.until("state = 'succeeded' AND waits = 'replace'", 1).await;
    let order = "sexton.executions o JOIN sexton.executions n ON n.id = o.replaced_by
         WHERE o.state = 'cancelled' AND n.admitted_at >= o.finished_at
           AND n.started_at >= o.finished_at";
    assert_eq!(scene.count(order).await, 1);
    assert_eq!(scene.count("sexton.all_attempts WHERE outcome = 'lost'").await, 1);
    // Its transaction may have stood open all the while; thawed, it finds that it must not commit.
    frozen.resume();
    scene.until("state = 'succeeded'", 1).await;
    let idle = "pg_stat_activity WHERE datname = current_database()
         AND application_name LIKE 'sexton worker % tasks' AND xact_start IS NOT NULL";
    until(&scene.platform, idle, 0).await;
    assert_eq!(scene.count("effects").await, 1, "of the new one alone");
}

#[tokio::test]
async fn every_trigger_waits_for_its_turn_and_runs() {
    let scene = Scene::new("overlap = \"queue\"", "command = [\"sleep\", \"0.3\"]").await;
    let mut waits = Vec::new();
    for key in ["one", "two", "three", "four"] {
        let done = scene.platform.sexton_json(&["jobs", "trigger", "a.b", "--key", key]).await;
        waits.push(done["waits"] == true);
    }
    assert_eq!(waits, [false, true, true, true]);
    let _workers = ["w1", "w2"].map(|name| scene.worker(name));
    scene.until("state = 'succeeded'", 4).await;
    scene.one_after_the_other().await;
    assert_eq!(scene.count("sexton.executions WHERE state <> 'succeeded'").await, 0);
    let list = scene.platform.sexton(&["executions", "list"]).await;
    assert!(list.status.success(), "{list}");
}

#[tokio::test]
async fn a_waiting_execution_shows_its_reason_has_no_unpublished_ticket_and_can_be_cancelled() {
    let job = format!("{SELDOM}\noverlap = \"queue\"");
    let scene = Scene::new(&job, "command = [\"sleep\", \"3000\"]").await;
    let _worker = scene.worker("w1");
    scene.fires().await;
    scene.until("state = 'running'", 1).await;
    scene.fires().await;
    scene.until("true", 2).await;
    let list = scene.platform.sexton_items(&["executions", "list", "--state", "pending"]).await;
    assert_eq!(
        (list[0]["waits"].as_str(), &list[0]["admitted_at"]),
        (Some("queue"), &serde_json::Value::Null)
    );
    let id = list[0]["id"].as_str().unwrap().to_owned();
    let shown = scene.platform.sexton(&["executions", "show", &id]).await;
    assert!(shown.stdout.contains("queued behind an earlier execution"), "{shown}");
    let status = scene.platform.sexton_json(&["status"]).await;
    assert_eq!(status["database"]["unpublished"], 0, "{status}");
    assert_eq!(
        (&status["pools"][0]["waiting"], &status["pools"][0]["pending"]),
        (&1.into(), &0.into())
    );
    // Paused, the job's executions go on; cancelled, the waiter has ended.
    let paused = scene.platform.sexton(&["jobs", "pause", "a.b", "--reason", "a test"]).await;
    assert!(paused.status.success(), "{paused}");
    scene.until(WAITER, 1).await;
    let done = scene.platform.sexton(&["executions", "cancel", &id]).await;
    assert!(done.status.success(), "{done}");
    scene.until("state = 'cancelled' AND waits = 'queue' AND admitted_at IS NULL", 1).await;
}

#[tokio::test]
async fn a_planner_round_that_fails_after_its_claims_logs_what_it_wrote() {
    let platform = Platform::new().await.unwrap();
    let pool = platform.store().pool();
    let ago = |minutes| sexton_service::clock::now() - TimeDelta::minutes(minutes);
    let busy = NewJob::new("a.queued").insert(pool).await.unwrap();
    NewExecution::new(busy, State::Pending, ago(5)).insert(pool).await.unwrap();
    let wait = "UPDATE sexton.executions SET waits = 'turn', ticket_published_at = NULL,
        relay_after = '9999-01-01'";
    sqlx::query(wait).execute(pool).await.unwrap();
    let mut late = NewJob::new("a.late").cron("0 0 1 1 *", ago(2));
    late.misfire = "skip";
    late.insert(pool).await.unwrap();
    sqlx::raw_sql(crate::scheduler::REFUSE_ADMISSIONS).execute(pool).await.unwrap();
    let _scheduler = platform.start_scheduler("s", &[]).unwrap();
    let is_logged = async || {
        platform
            .logs()
            .contains("firings that will not run, by their jobs' misfire policies: 1")
            .then_some(())
    };
    platform
        .eventually("the log names the firing that will not run", FINAL_TIMEOUT, is_logged)
        .await;
    let refused = async || platform.logs().contains("no admission today").then_some(());
    platform.eventually("the round has failed", FINAL_TIMEOUT, refused).await;
}
