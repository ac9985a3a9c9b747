//! Which messages of other programs become rows: those of a type that is offered or listed, whose params fit, and
//! of a bounded number of types. All others are parked as they are, with what to do.

use serde_json::json;
use sexton_model::foreign::MAX_FOREIGN_JOBS;
use sexton_tests::platform::{Platform, Program};

use super::probe::assert_sound;
use super::wire::{Message, Wire};
use super::{CATALOGUE, DEADLINE, one_slot, platform, succeeded};

/// What waits for a worker that offers its type waits for a moment.
const SOON: (&str, &str) = ("FOREIGN_DELAY_MS", "1");

async fn worker(platform: &Platform, name: &str, env: &[(&str, &str)]) -> Program {
    let env = [&[SOON, ("WORKER_SLOTS", "1")][..], env].concat();
    let mut worker = platform.start_worker(name, &env).unwrap();
    worker.ready().await;
    worker
}

async fn count(platform: &Platform, what: &str) -> i64 {
    let statement = format!("SELECT count(*) FROM {what}");
    let counting = sqlx::query_scalar(sqlx::AssertSqlSafe(statement));
    counting.fetch_one(platform.store().pool()).await.unwrap()
}

async fn sql(platform: &Platform, statement: &str) -> u64 {
    let pool = platform.store().pool();
    let done = sqlx::query(sqlx::AssertSqlSafe(statement.to_owned())).execute(pool).await;
    done.unwrap().rows_affected()
}

/// Waits until a row that `what` describes is there.
async fn there(platform: &Platform, what: &str) {
    let found = async || (count(platform, what).await > 0).then_some(());
    platform.eventually(what, DEADLINE, found).await;
}

fn of_type(task_type: &str) -> Message {
    Message::new(json!({"type": task_type}).to_string())
}

async fn rows(platform: &Platform) -> Vec<(String, i64)> {
    let tables: Vec<String> = sqlx::query_scalar(
        "SELECT tablename::text FROM pg_tables WHERE schemaname = 'sexton'
         AND tablename NOT IN ('instances', 'offers') ORDER BY 1",
    )
    .fetch_all(platform.store().pool())
    .await
    .unwrap();
    let mut all = Vec::new();
    for table in tables {
        let rows = count(platform, &format!("sexton.{table}")).await;
        all.push((table, rows));
    }
    all
}

#[tokio::test]
async fn a_thousand_messages_of_a_thousand_types_that_nobody_offers_grow_no_table() {
    const MESSAGES: usize = 1_000;
    let platform = platform().await;
    let worker = worker(&platform, "w1", &[("WORKER_SLOTS", "8")]).await;
    let wire = Wire::connect(&platform).await;
    wire.send(&[of_type("report").id("first")]).await;
    succeeded(&platform, "first").await;
    let before = rows(&platform).await;
    let random = |number| {
        let message = of_type(&format!("rubbish-{number}"));
        if number % 2 == 0 { message.id(format!("id-{number}")) } else { message }
    };
    wire.send(&(0..MESSAGES).map(random).collect::<Vec<_>>()).await;
    let parked = wire.parked(&platform, MESSAGES).await;
    assert_eq!(rows(&platform).await, before);
    let mut types: Vec<_> = parked.iter().map(|one| &one.body).collect();
    types.sort();
    types.dedup();
    assert_eq!((parked.len(), types.len()), (MESSAGES, MESSAGES), "each of them, once");
    for one in &parked {
        let body: serde_json::Value = serde_json::from_slice(&one.body).unwrap();
        let reason = one.reason.as_deref().unwrap();
        for word in [body["type"].as_str().unwrap(), "pool default", "WORKER_FOREIGN_TYPES"] {
            assert!(reason.contains(word), "{word:?} is missing: {reason}");
        }
    }
    // The worker that offers the type runs its tasks meanwhile.
    wire.send(&[of_type("report").id("behind")]).await;
    succeeded(&platform, "behind").await;
    assert_sound(&worker);
}

#[tokio::test]
async fn an_unoffered_message_is_listed_with_its_reason_and_runs_when_restored_to_a_pool_that_offers_it()
 {
    let mut platform = platform().await;
    let mut lacking = worker(&platform, "w1", &[]).await;
    let wire = Wire::connect(&platform).await;
    wire.send(&[of_type("later").id("early")]).await;
    let parked = async || (wire.depth(wire.failed()).await == 1).then_some(());
    platform.eventually("it is parked", DEADLINE, parked).await;
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    there(&platform, "sexton.unknown_messages").await;
    let listed = platform.sexton_items(&["unknown", "list"]).await;
    assert_eq!(listed[0]["kind"], "foreign", "{listed}");
    let reason = listed[0]["reason"].as_str().unwrap();
    assert!(reason.contains("offers the task type later: start one"), "{reason}");

    lacking.terminate();
    lacking.exit(DEADLINE).await;
    platform.catalogue("[tasks.later]\ncommand = [\"/bin/true\"]\n");
    let _offering = worker(&platform, "w2", &[]).await;
    let taken = wire.take(wire.failed()).await.unwrap();
    wire.send(&[Message::new(taken.body).id(taken.id.unwrap())]).await;
    succeeded(&platform, "early").await;
}

#[tokio::test]
async fn a_message_that_arrives_before_its_worker_waits_and_runs() {
    let mut platform = platform().await;
    // Here it waits as long as it does in earnest.
    let mut lacking = platform.start_worker("w1", &[("WORKER_SLOTS", "1")]).unwrap();
    lacking.ready().await;
    let wire = Wire::connect(&platform).await;
    wire.send(&[of_type("later").id("early"), of_type("report").id("behind")]).await;
    succeeded(&platform, "behind").await;
    assert_eq!(count(&platform, "sexton.executions").await, 1, "it waits without a row");
    platform.catalogue("[tasks.later]\ncommand = [\"/bin/true\"]\n");
    let _offering = worker(&platform, "w2", &[]).await;
    succeeded(&platform, "early").await;
    assert_eq!(wire.depth(wire.failed()).await, 0);
}

#[tokio::test]
async fn a_foreign_type_is_adopted_if_a_worker_offered_it_within_the_hour_or_it_is_listed() {
    let mut platform = platform().await;
    platform.catalogue("[tasks.restarting]\ncommand = [\"/bin/true\"]\n");
    let mut gone = worker(&platform, "w0", &[]).await;
    gone.terminate();
    gone.exit(DEADLINE).await;
    for (name, pool, heard, stopped, offers) in [
        ("live", "default", "now()", "NULL", "elsewhere"),
        ("frozen", "default", "now() - interval '50 minutes'", "NULL", "silent"),
        ("other", "other", "now()", "NULL", "far"),
        (
            "old",
            "default",
            "now() - interval '70 minutes'",
            "now() - interval '70 minutes'",
            "past",
        ),
    ] {
        let introduced = format!(
            "WITH w AS (INSERT INTO sexton.instances (id, kind, name, pid, version, pools, started_at, heartbeat_at,
                                               stopped_at)
                 VALUES (gen_random_uuid(), 'worker', '{name}', 1, '1', '{{{pool}}}', now(), {heard}, {stopped})
                 RETURNING id)
             INSERT INTO sexton.offers (instance_id, task_type) SELECT id, '{offers}' FROM w"
        );
        assert_eq!(sql(&platform, &introduced).await, 1);
    }
    platform.catalogue(CATALOGUE);
    let worker = worker(&platform, "w1", &[("WORKER_FOREIGN_TYPES", "listed.*, x")]).await;
    let wire = Wire::connect(&platform).await;
    let types = ["restarting", "elsewhere", "silent", "listed.charge", "far", "past", "listed"];
    wire.send(&types.map(|task_type| of_type(task_type).id(task_type))).await;
    let parked = wire.parked(&platform, 3).await;
    let mut refused: Vec<_> = parked.iter().map(|one| one.id.as_deref().unwrap()).collect();
    refused.sort_unstable();
    assert_eq!(refused, ["far", "listed", "past"]);
    let adopted: Vec<String> =
        sqlx::query_scalar("SELECT e.execution_key FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
                            WHERE j.name = 'foreign.' || e.execution_key AND e.state = 'pending' ORDER BY 1")
            .fetch_all(platform.store().pool())
            .await
            .unwrap();
    assert_eq!(adopted, ["elsewhere", "listed.charge", "restarting", "silent"]);
    // A worker says from time to time what it offers, and then forgets what nobody offers any more.
    assert_eq!(count(&platform, "sexton.offers WHERE task_type = 'past'").await, 0);
    assert_sound(&worker);
}

#[tokio::test]
async fn beyond_the_limit_of_foreign_jobs_a_new_type_is_parked_until_one_is_deleted() {
    let platform = platform().await;
    let filled = format!(
        "INSERT INTO sexton.jobs (id, name, description, schedule_kind, task_type, params, pool, overlap,
                           misfire_policy, misfire_window_ms, misfire_limit, timeout_ms, created_at, updated_at)
         SELECT gen_random_uuid(), 'foreign.fill-' || n, '', 'none', 'fill-' || n, '{{}}', 'default', 'allow',
                'skip', 0, 1, 3600000, now(), now() FROM generate_series(1, {MAX_FOREIGN_JOBS} - 1) n"
    );
    assert_eq!(sql(&platform, &filled).await, MAX_FOREIGN_JOBS as u64 - 1);
    let worker = worker(&platform, "w1", &[("WORKER_FOREIGN_TYPES", "*")]).await;
    let wire = Wire::connect(&platform).await;
    wire.send(&[of_type("report").id("last"), of_type("more").id("m"), of_type("report").id("n")])
        .await;
    succeeded(&platform, "n").await;
    let parked = wire.parked(&platform, 1).await;
    let reason = parked[0].reason.as_deref().unwrap();
    for word in
        ["there are 1000 jobs", "none for the task type more", "sexton jobs delete foreign."]
    {
        assert!(reason.contains(word), "{word:?} is missing: {reason}");
    }
    assert_eq!(count(&platform, "sexton.jobs").await, MAX_FOREIGN_JOBS);
    let delete = ["jobs", "delete", "foreign.fill-1", "--reason", "unused", "--yes"];
    let done = platform.sexton(&delete).await;
    assert!(done.status.success(), "{done}");
    wire.send(&[of_type("more").id("m")]).await;
    there(&platform, "sexton.jobs WHERE name = 'foreign.more'").await;
    assert_sound(&worker);
}

#[tokio::test]
async fn the_next_message_recreates_a_deleted_foreign_job() {
    let platform = platform().await;
    let worker = one_slot(&platform).await;
    let wire = Wire::connect(&platform).await;
    wire.send(&[of_type("report").id("a")]).await;
    succeeded(&platform, "a").await;
    let delete = ["jobs", "delete", "foreign.report", "--reason", "tidy", "--yes"];
    let done = platform.sexton(&delete).await;
    assert!(done.status.success(), "{done}");
    assert_eq!(platform.sexton_items(&["jobs", "list"]).await, json!([]));
    let listed = platform.sexton_items(&["executions", "list", "--job", "foreign.report"]).await;
    assert_eq!(listed[0]["execution_key"], "a", "{listed}");
    wire.send(&[of_type("report").id("b")]).await;
    succeeded(&platform, "b").await;
    assert_eq!(count(&platform, "sexton.jobs WHERE deleted_at IS NULL").await, 1);
    // Keys are those of the job that is gone.
    wire.send(&[of_type("report").id("a"), of_type("report").id("c")]).await;
    succeeded(&platform, "c").await;
    assert_eq!(count(&platform, "sexton.executions WHERE execution_key = 'a'").await, 2);
    // Those of the job that is there still count.
    wire.send(&[of_type("report").id("b"), of_type("report").id("d")]).await;
    succeeded(&platform, "d").await;
    assert_eq!(count(&platform, "sexton.all_attempts").await, 5);
    assert_eq!(wire.depth(wire.failed()).await, 0);
    assert_sound(&worker);
}

const SCHEMA: &str = r#"
[tasks.report]
command = ["/bin/true"]
params_schema = { required = ["customer"], properties = { customer = { type = "integer" }, cents = { minimum = 0 } } }
"#;

#[tokio::test]
async fn params_that_do_not_fit_the_schema_are_parked_with_all_problems_at_once_and_without_a_row()
{
    let mut platform = platform().await;
    platform.catalogue(SCHEMA);
    let worker = worker(&platform, "w1", &[]).await;
    let wire = Wire::connect(&platform).await;
    let body =
        |params| Message::new(json!({"type": "report", "params_scheduler": params}).to_string());
    wire.send(&[
        body(json!({"customer": "s3cret", "cents": -4711})).id("bad"),
        body(json!({"cents": 1})),
        body(json!({"customer": 1})).id("good"),
    ])
    .await;
    succeeded(&platform, "good").await;
    assert_eq!(count(&platform, "sexton.executions").await, 1);
    let parked = wire.parked(&platform, 2).await;
    let reason = |at: usize| parked[at].reason.as_deref().unwrap();
    for word in ["params_schema of report", "/customer: ", "/cents: must be 0 or more"] {
        assert!(reason(0).contains(word), "{word:?} is missing: {}", reason(0));
    }
    assert!(!reason(0).contains("s3cret") && !reason(0).contains("4711"), "{}", reason(0));
    assert!(reason(1).contains("/: ") && reason(1).contains("customer"), "{}", reason(1));
    assert_sound(&worker);
}

#[tokio::test]
async fn a_redelivered_message_finds_its_execution_after_its_type_was_withdrawn_or_got_a_schema() {
    let mut platform = platform().await;
    let mut first = one_slot(&platform).await;
    let wire = Wire::connect(&platform).await;
    wire.send(&[of_type("report").id("a")]).await;
    succeeded(&platform, "a").await;
    first.terminate();
    first.exit(DEADLINE).await;
    let again = of_type("report").id("a");
    for catalogue in [SCHEMA, "[tasks.other]\ncommand = [\"/bin/true\"]\n"] {
        platform.catalogue(catalogue);
        let mut next = worker(&platform, "w1", &[]).await;
        // As if it had been gone for long.
        sql(
            &platform,
            "DELETE FROM sexton.offers o USING sexton.instances i WHERE i.id = o.instance_id
                        AND i.stopped_at IS NOT NULL",
        )
        .await;
        // With one slot, what comes behind it is looked at when it has been answered.
        wire.send(&[again.clone(), Message::new("rubbish").id("behind")]).await;
        let parked = wire.parked(&platform, 1).await;
        assert_eq!((parked.len(), parked[0].id.as_deref()), (1, Some("behind")));
        assert_eq!(wire.depth(wire.main()).await, 0);
        assert_sound(&next);
        next.terminate();
        next.exit(DEADLINE).await;
    }
    assert_eq!(
        (
            count(&platform, "sexton.executions").await,
            count(&platform, "sexton.all_attempts").await
        ),
        (1, 1)
    );
}
