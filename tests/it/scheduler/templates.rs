//! Placeholders in a job's params and idempotency key, filled when an execution is made of it.

use std::collections::HashMap;

use lapin::options::BasicGetOptions;
use serde_json::{Value, json};
use sexton_model::id::ExecutionId;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_store::backfill::{Backfill, create_batch};
use sexton_store::operator::AuditContext;
use sexton_store::trigger::{Trigger, TriggerError, trigger};
use sexton_tests::factory::NewJob;
use uuid::Uuid;

use super::{Fixture, at, now};

const BY: AuditContext<'_> = AuditContext { actor: "ada", reason: None };
/// By month, in the job's zone.
const KEY: &str = "{job}:{{ params.tenant.id }}:{{ scheduled_for | date(\"%Y-%m\") }}";

/// A job in Vienna that fires daily at eight in UTC, at second 0 and from then on.
async fn daily(f: &Fixture) {
    let params = json!({
        "from": "{{ previous_scheduled_for }}",
        "to": ["{{ scheduled_for }}", {"local": "{{ scheduled_for | date(\"%F %T\") }}"}],
        "tenant": {"id": 7}, "of": "{{ params.tenant }}", "key": "{{execution_key}}", "braces": "{{ \"{{\" }}",
    });
    f.job(NewJob { params, ..NewJob::new("etl.day") }.cron("0 8 * * *", at(0))).await;
    let settings = "UPDATE sexton.jobs SET idempotency_template = $1, timezone = 'UTC'";
    sqlx::query(settings).bind(KEY).execute(f.db.pool()).await.unwrap();
}

/// What an execution of that job gets whose nominal time is `day` of January 2027.
fn filled(day: u32, key: &str) -> (Value, String) {
    let before = day - 1;
    let params = json!({
        "from": format!("2027-01-{before}T08:00:00Z"),
        "to": [format!("2027-01-{day}T08:00:00Z"), {"local": format!("2027-01-{day} 08:00:00")}],
        "tenant": {"id": 7}, "of": {"id": 7}, "key": key, "braces": "{{",
    });
    (params, "etl.day:7:2027-01".to_owned())
}

/// The params and the idempotency key in the row of each key.
async fn rows(f: &Fixture) -> HashMap<String, (Value, String)> {
    let reading = "SELECT execution_key, params, idempotency_key FROM sexton.executions";
    let rows: Vec<(String, Value, String)> =
        sqlx::query_as(reading).fetch_all(f.db.pool()).await.unwrap();
    rows.into_iter().map(|(key, params, idempotency)| (key, (params, idempotency))).collect()
}

#[tokio::test]
async fn a_firing_s_row_and_ticket_have_what_its_templates_become() {
    let f = Fixture::new().await;
    daily(&f).await;
    // Another job of the same claim, without templates.
    f.job(NewJob { params: json!({"a": 1}), ..NewJob::new("plain.job") }.cron("0 8 * * *", at(0)))
        .await;
    let (planner, mut dispatcher) = f.planner();
    assert_eq!(planner.run_once(now(0)).await.unwrap().claimed, 2);
    dispatcher.publish_next(now(0)).await.unwrap().unwrap();
    let key = "cron-2027-01-15T08:00:00Z";
    let of_day = sqlx::query_as::<_, (Value, String)>(
        "SELECT params, idempotency_key FROM sexton.executions WHERE task_type = 'work' AND params ? 'tenant'",
    );
    assert_eq!(of_day.fetch_one(f.db.pool()).await.unwrap(), filled(15, key));
    let mut sent = Vec::new();
    let options = BasicGetOptions { no_ack: true };
    let queue = f.namespace.main();
    while let Some(message) = f.raw.channel.basic_get(queue.as_str().into(), options).await.unwrap()
    {
        let body: Value = serde_json::from_slice(&message.delivery.data).unwrap();
        sent.push((
            body["params_scheduler"].clone(),
            body["idempotency_key"].as_str().unwrap().to_owned(),
        ));
    }
    sent.sort_by_key(|(_, key)| key.clone());
    assert_eq!(sent, [filled(15, key), (json!({"a": 1}), format!("plain.job:{key}"))]);
}

#[tokio::test]
async fn firings_that_are_caught_up_or_backfilled_each_know_the_one_before() {
    let f = Fixture::without_broker().await;
    daily(&f).await;
    sqlx::query(
        "UPDATE sexton.jobs SET misfire_policy = 'fire_all', misfire_window_ms = 604800000",
    )
    .execute(f.db.pool())
    .await
    .unwrap();
    let days = 24 * 3_600;
    assert_eq!(f.planner().0.run_once(now(2 * days)).await.unwrap().claimed, 3);
    let fresh = || ExecutionId::new(Uuid::now_v7());
    let range = Backfill {
        approved: None,
        job: "etl.day",
        from: at(-2 * days),
        to: at(-days),
        rate: None,
        allow_overlap: false,
        dry_run: false,
        claimed_by: "cli",
    };
    create_batch(f.db.store(), range, None, fresh, BY, now(2 * days)).await.unwrap();
    let keys = (13..=17).map(|day| (day, format!("cron-2027-01-{day}T08:00:00Z")));
    let expected: HashMap<_, _> = keys.map(|(day, key)| (key.clone(), filled(day, &key))).collect();
    assert_eq!(rows(&f).await, expected);
}

#[tokio::test]
async fn a_trigger_fills_them_and_what_its_caller_gives_is_no_template() {
    let f = Fixture::without_broker().await;
    daily(&f).await;
    let asks = |given: Value, key| Trigger {
        job: "etl.day",
        key: Some(key),
        params: given.as_object().cloned().unwrap_or_default(),
        id: ExecutionId::new(Uuid::now_v7()),
        claimed_by: "cli",
    };
    let given = json!({"to": "{{ job }}", "tenant": {"id": "{{ job }}"}});
    trigger(f.db.store(), asks(given, "a"), Some(BY), now(0)).await.unwrap();
    let (params, idempotency) = rows(&f).await.remove("a").unwrap();
    let expected = json!({
        "from": "2027-01-14T08:00:00Z", "to": "{{ job }}", "tenant": {"id": "{{ job }}"},
        "of": {"id": "{{ job }}"}, "key": "a", "braces": "{{",
    });
    assert_eq!((params, &*idempotency), (expected, "etl.day:{{ job }}:2027-01"));
    for (given, expected) in [
        (json!({"tenant": 1}), "params.tenant.id is missing"),
        (json!({"tenant": {"id": [1]}}), "params.tenant.id is an object or a list"),
        (json!({"tenant": {"id": "a\nb"}}), "its idempotency key holds a control character"),
        (
            json!({"tenant": {"id": "x".repeat(1_024)}}),
            "its idempotency key has more than 1,024 bytes",
        ),
        (json!({"tenant": {"id": 1, "x": "y".repeat(140_000)}}), "have 28"),
    ] {
        let refused = trigger(f.db.store(), asks(given, "b"), Some(BY), now(0)).await.unwrap_err();
        assert!(matches!(refused, TriggerError::Template(_) | TriggerError::Params(_)));
        assert!(refused.to_string().contains(expected), "{expected}: {refused}");
    }
    assert_eq!(rows(&f).await.len(), 1);
}
