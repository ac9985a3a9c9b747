//! A task type that no worker offers: the ticket waits for a worker that does, and after an hour the
//! execution is parked with a reason that names the type and the worker.

use sexton_tests::platform::Platform;
use uuid::Uuid;

use super::probe::assert_sound;
use super::wire::{Message, Wire};
use super::{DEADLINE, one_slot, platform, succeeded, trigger};

const JOB: &str = r#"
[[job]]
name = "billing.unheard"
task = "unheard"
params = { customer = 4891 }
"#;

#[derive(Debug, PartialEq, Eq, sqlx::FromRow)]
struct Row {
    state: String,
    attempt: i32,
    retries_used: i32,
    crashes_used: i32,
    attempts: i64,
}

async fn row(platform: &Platform, id: Uuid) -> Row {
    sqlx::query_as(
        "SELECT state, attempt, retries_used, crashes_used,
                (SELECT count(*) FROM sexton.all_attempts WHERE execution_id = id) AS attempts
         FROM sexton.executions WHERE id = $1",
    )
    .bind(id)
    .fetch_one(platform.store().pool())
    .await
    .unwrap()
}

/// Takes the ticket out of the half minute's delay queue, and hands it to the worker at once: what
/// the broker does when the time is over.
async fn cut_the_wait_short(platform: &Platform, wire: &Wire, id: Uuid) {
    let ticket = taken(platform, wire, id).await;
    hand_over(wire, id, ticket).await;
}

/// Takes the ticket out of the delay queue, so that nobody has it.
async fn taken(platform: &Platform, wire: &Wire, id: Uuid) -> Vec<u8> {
    let what = "the ticket waits in a delay queue";
    let ticket =
        platform.eventually(what, DEADLINE, async || wire.take(wire.waiting()).await).await;
    assert_eq!(ticket.id, Some(id.to_string()));
    assert_eq!(ticket.attempt, Some(1), "the wait is not counted as an attempt");
    ticket.body
}

async fn hand_over(wire: &Wire, id: Uuid, ticket: Vec<u8>) {
    wire.send(&[Message::new(ticket).id(id.to_string()).header("sexton-attempt", 1)]).await;
}

/// Lets the execution wait for more than the hour, as its row has it.
async fn age(platform: &Platform, id: Uuid) {
    let aged = sqlx::query(
        "UPDATE sexton.executions SET next_attempt_at = next_attempt_at - interval '61 minutes'
         WHERE id = $1 AND state = 'pending'",
    );
    assert_eq!(aged.bind(id).execute(platform.store().pool()).await.unwrap().rows_affected(), 1);
}

#[tokio::test]
async fn a_task_type_that_nobody_offers_waits_uncounted_and_is_parked_after_an_hour() {
    let platform = platform().await;
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let worker = one_slot(&platform).await;
    scheduler.ready().await;
    platform.apply(JOB).await.unwrap();
    let id = trigger(&platform, "billing.unheard").await;
    let wire = Wire::connect(&platform).await;

    cut_the_wait_short(&platform, &wire, id).await;
    cut_the_wait_short(&platform, &wire, id).await;
    let waiting =
        Row { state: "pending".into(), attempt: 1, retries_used: 0, crashes_used: 0, attempts: 0 };
    assert_eq!(row(&platform, id).await, waiting);

    // Aged while nobody has the ticket: a worker that is slow must not meet the old row and the new one.
    let ticket = taken(&platform, &wire, id).await;
    age(&platform, id).await;
    hand_over(&wire, id, ticket).await;

    let parked = wire.parked(&platform, 1).await;
    assert_eq!(row(&platform, id).await, Row { state: "failed".into(), attempt: 2, ..waiting });
    let (class, message): (String, String) =
        sqlx::query_as("SELECT error_class, error_message FROM sexton.executions WHERE id = $1")
            .bind(id)
            .fetch_one(platform.store().pool())
            .await
            .unwrap();
    assert_eq!(class, "unknown_task_type");
    let body: serde_json::Value = serde_json::from_slice(&parked[0].body).unwrap();
    assert_eq!((&parked[0].id, parked[0].attempt), (&Some(id.to_string()), Some(2)));
    assert_eq!(body["attempt"], 2, "the parked ticket is that of the next attempt");
    let shown = platform.sexton(&["failed", "show", &id.to_string()]).await;
    for reason in [message.as_str(), body["failed_reason"].as_str().unwrap(), &shown.stdout] {
        for word in ["unheard", "w1:", "report", "WORKER_TASKS", "requeue"] {
            assert!(reason.contains(word), "{word:?} is missing: {reason}");
        }
    }
    assert_sound(&worker);
    assert_sound(&scheduler);
}

#[tokio::test]
async fn a_stale_ticket_of_an_unoffered_type_opens_nothing_and_the_requeue_runs() {
    let mut platform = platform().await;
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut lacking = one_slot(&platform).await;
    scheduler.ready().await;
    platform.apply(JOB).await.unwrap();
    let id = trigger(&platform, "billing.unheard").await;
    let wire = Wire::connect(&platform).await;
    cut_the_wait_short(&platform, &wire, id).await;
    // Aged while nobody has the ticket: a worker that is slow must not meet the old row and the new one.
    let ticket = taken(&platform, &wire, id).await;
    age(&platform, id).await;
    hand_over(&wire, id, ticket).await;
    let what = "the execution fails";
    let failed = async || (row(&platform, id).await.state == "failed").then_some(());
    platform.eventually(what, DEADLINE, failed).await;
    lacking.terminate();
    assert!(lacking.exit(DEADLINE).await.success());

    // A worker that has the task type finds a copy of the ticket of attempt 1, which nobody opened.
    wire.send(&[Message::new("{}").id(id.to_string()).header("sexton-attempt", 1)]).await;
    platform.catalogue("[tasks.unheard]\ncommand = [\"/bin/true\"]\n");
    let mut offering = platform.start_worker("w2", &[("WORKER_SLOTS", "1")]).unwrap();
    offering.ready().await;
    let gone = async || (wire.depth(wire.main()).await == 0).then_some(());
    platform.eventually("the worker has taken the copy", DEADLINE, gone).await;

    // With one slot it has answered the copy before it receives the requeue's ticket.
    let seen = row(&platform, id).await.attempt.to_string();
    platform.sexton_json(&["failed", "requeue", &id.to_string(), "--attempt", &seen]).await;
    let key: String =
        sqlx::query_scalar("SELECT execution_key FROM sexton.executions WHERE id = $1")
            .bind(id)
            .fetch_one(platform.store().pool())
            .await
            .unwrap();
    succeeded(&platform, &key).await;
    let opened: Vec<i32> = sqlx::query_scalar(
        "SELECT number FROM sexton.all_attempts WHERE execution_id = $1 ORDER BY number",
    )
    .bind(id)
    .fetch_all(platform.store().pool())
    .await
    .unwrap();
    assert_eq!(opened, [2]);
    let actions: Vec<String> = sqlx::query_scalar(
        "SELECT action FROM sexton.operator_actions WHERE execution_id = $1 ORDER BY at, id",
    )
    .bind(id)
    .fetch_all(platform.store().pool())
    .await
    .unwrap();
    assert_eq!(actions, ["trigger", "requeue"], "nothing ran because of the copy");
    assert_sound(&offering);
    assert_sound(&scheduler);
}
