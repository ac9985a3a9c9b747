//! Tasks that another system publishes, twice or without an id.

use super::probe::assert_sound;
use super::wire::{Message, Wire};
use super::{DEADLINE, one_slot, platform, succeeded};

const BODY: &str = r#"{"type":"report","id":25,"params_scheduler":{"customer":4891}}"#;

#[tokio::test]
async fn a_message_that_another_system_publishes_twice_runs_once() {
    let platform = platform().await;
    let worker = one_slot(&platform).await;
    let wire = Wire::connect(&platform).await;
    let message = Message::new(BODY).id("order-17");
    wire.send(&[message.clone(), message.clone()]).await;
    succeeded(&platform, "order-17").await;
    // Also long after it has ended.
    wire.send(&[message, Message::new(BODY).id("behind")]).await;
    succeeded(&platform, "behind").await;

    let attempts: Vec<(String, i32, Option<String>)> = sqlx::query_as(
        "SELECT e.execution_key, a.number, a.outcome
         FROM sexton.executions e LEFT JOIN sexton.all_attempts a ON a.execution_id = e.id ORDER BY 1, 2",
    )
    .fetch_all(platform.store().pool())
    .await
    .unwrap();
    let done = Some("succeeded".to_owned());
    assert_eq!(
        attempts,
        [("behind".to_owned(), 1, done.clone()), ("order-17".to_owned(), 1, done)]
    );
    assert_eq!(wire.depth(wire.failed()).await, 0, "a duplicate is no failure");
    assert_eq!(wire.depth(wire.main()).await, 0);
    assert_sound(&worker);
}

#[tokio::test]
async fn a_message_without_an_id_is_taken_over_and_runs() {
    let platform = platform().await;
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let worker = one_slot(&platform).await;
    scheduler.ready().await;
    let wire = Wire::connect(&platform).await;
    wire.send(&[Message::new(BODY)]).await;

    let pool = platform.store().pool();
    let check = async || {
        sqlx::query_as::<_, (String, String, serde_json::Value, i64)>(
            "SELECT j.name, e.target, e.params, (SELECT count(*) FROM sexton.all_attempts)
             FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id WHERE e.state = 'succeeded'",
        )
        .fetch_optional(pool)
        .await
        .ok()?
    };
    let (job, target, params, attempts) = platform.eventually("it succeeds", DEADLINE, check).await;
    assert_eq!((job.as_str(), target.as_str(), attempts), ("foreign.report", "25", 1));
    assert_eq!(params["customer"], 4891);
    assert_eq!(wire.depth(wire.failed()).await, 0);
    assert_sound(&worker);
    assert_sound(&scheduler);
}
