//! A key stands for one execution: for ever, while that has not ended, or for a period.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::json;
use sexton_client::{Client, Enqueue, IfExists, UniqueFor};
use sexton_service::clock;

use super::{Fixture, JOB, charge};

#[tokio::test]
async fn a_key_makes_one_execution_and_the_answer_says_whether_it_is_new() {
    let f = Fixture::new().await;
    let first = f.enqueue(&charge().key("order-1")).await.unwrap();
    let again =
        f.enqueue(&charge().key("order-1").params(&json!({"a": 1})).unwrap()).await.unwrap();
    assert!(first.created && !again.created);
    assert_eq!(
        (first.execution_id, "order-1", "pending"),
        (again.execution_id, &*again.key, &*again.state)
    );
    assert_eq!(f.row(first.execution_id).await["params"], json!({"currency": "EUR"}), "kept");
    // Without a key each call makes one, with a key of its own.
    let without = [f.enqueue(&charge()).await.unwrap(), f.enqueue(&charge()).await.unwrap()];
    assert!(without.iter().all(|one| one.created));
    assert_eq!(f.count().await, 3);
}

#[tokio::test]
async fn the_row_has_everything_that_a_trigger_s_row_has() {
    let f = Fixture::new().await;
    let request =
        charge().key("order-1").params(&json!({"cents": 9_007_199_254_740_993_i64})).unwrap();
    let made = f.enqueue(&request.label("team", "billing")).await.unwrap();
    let row = f.row(made.execution_id).await;
    assert_eq!(row["params"], json!({"currency": "EUR", "cents": 9_007_199_254_740_993_i64}));
    assert_eq!(row["labels"], json!({"team": "billing"}));
    assert_eq!(row["idempotency_key"], json!("billing.charge:order-1"));
    assert_eq!(
        (&row["own_key"], &row["task_type"], &row["pool"]),
        (&json!(true), &json!("work"), &json!("default"))
    );
    for equal in ["next_attempt_at", "relay_after", "claimed_at"] {
        assert_eq!(row[equal], row["scheduled_for"], "{equal}");
    }
    assert!(row["claimed_by"].as_str().unwrap().contains('@'), "{row}");
    assert_eq!(made.execution_id.get_version_num(), 7);
}

#[tokio::test]
async fn one_and_many_write_the_same_row() {
    let f = Fixture::new().await;
    for unique_for in [UniqueFor::Ever, UniqueFor::Open, UniqueFor::Period(Duration::from_hours(1))]
    {
        let request = |key: &str| {
            charge()
                .key(key)
                .unique_for(unique_for)
                .params(&json!({"b": 2}))
                .unwrap()
                .label("c", "d")
        };
        let one = f.enqueue(&request("one")).await.unwrap();
        let mut connection = f.connect().await;
        let many = Client::new().enqueue_many(&mut connection, &[request("many")]).await.unwrap();
        let mut rows = [f.row(one.execution_id).await, f.row(many[0].execution_id).await];
        for (row, name) in rows.iter_mut().zip(["one", "many"]) {
            let row = row.as_object_mut().unwrap();
            let text =
                |value: &serde_json::Value| value.as_str().map(|text| text.replace(name, "key"));
            for column in ["execution_key", "idempotency_key", "unique_key"] {
                row[column] = json!(text(&row[column]));
            }
            let id = row.remove("id").unwrap();
            for made in ["execution_key", "idempotency_key"] {
                let key = row[made].as_str().unwrap().replace(id.as_str().unwrap(), "id");
                row[made] = json!(key);
            }
            for column in
                ["scheduled_for", "next_attempt_at", "relay_after", "claimed_at", "claimed_by"]
            {
                assert!(row.remove(column).unwrap().is_string());
            }
        }
        assert_eq!(rows[0], rows[1], "{unique_for:?}");
    }
}

#[tokio::test]
async fn an_open_key_is_free_again_when_its_execution_has_ended_and_not_before() {
    let f = Fixture::new().await;
    let request = charge().key("sync-7").unique_for(UniqueFor::Open);
    let first = f.enqueue(&request).await.unwrap();
    for state in ["pending", "retrying", "failed"] {
        let finished = if state == "failed" { "now()" } else { "NULL" };
        let due = if state == "failed" { "NULL" } else { "now()" };
        let set = format!(
            "UPDATE sexton.executions SET state = '{state}', finished_at = {finished}, next_attempt_at = {due}"
        );
        sqlx::query(sqlx::AssertSqlSafe(set)).execute(f.pool()).await.unwrap();
        let again = f.enqueue(&request).await.unwrap();
        assert_eq!(
            (again.execution_id, again.created, &*again.state),
            (first.execution_id, false, state)
        );
    }
    f.run("UPDATE sexton.executions SET state = 'discarded'").await;
    let next = f.enqueue(&request).await.unwrap();
    assert!(next.created && next.execution_id != first.execution_id);
    assert_eq!(next.key, "sync-7");
    let mut connection = f.connect().await;
    let found = Client::new().execution_by_key(&mut connection, JOB, "sync-7").await.unwrap();
    assert_eq!(found.unwrap().execution_id, next.execution_id, "the newest");
    assert_ne!(
        f.row(first.execution_id).await["idempotency_key"],
        f.row(next.execution_id).await["idempotency_key"],
        "two pieces of work"
    );
}

#[tokio::test]
async fn a_restore_leaves_an_execution_discarded_whose_open_key_another_has_by_now() {
    let f = Fixture::new().await;
    let request = charge().key("sync-7").unique_for(UniqueFor::Open);
    let first = f.enqueue(&request).await.unwrap().execution_id;
    f.run("UPDATE sexton.executions SET state = 'discarded', next_attempt_at = NULL, finished_at = now()").await;
    let restore = async || {
        let by = sexton_store::operator::AuditContext { actor: "t", reason: None };
        let id = sexton_model::id::ExecutionId::new(first);
        sexton_store::operator::restore(f.db.store(), id, by, None).await
    };
    let second = f.enqueue(&request).await.unwrap().execution_id;
    restore().await.unwrap_err();
    assert_eq!(f.row(first).await["state"], json!("discarded"));
    let mut connection = f.connect().await;
    assert!(Client::new().cancel(&mut connection, JOB, "sync-7", None).await.unwrap().cancelled);
    assert_eq!(f.row(second).await["state"], json!("cancelled"));
    restore().await.unwrap();
    assert_eq!(f.row(first).await["state"], json!("failed"));
}

#[tokio::test]
async fn a_period_has_one_execution_by_when_it_is_to_run() {
    let f = Fixture::new().await;
    let at = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
    let tomorrow = (clock::now() + Duration::from_hours(48)).date_naive();
    let hour = |text: &str| at(&format!("{tomorrow}T{text}Z"));
    let request = |time| {
        charge().key("digest").unique_for(UniqueFor::Period(Duration::from_hours(1))).run_at(time)
    };
    let first = f.enqueue(&request(hour("10:05:00"))).await.unwrap();
    let same = f.enqueue(&request(hour("10:59:59.999"))).await.unwrap();
    let next = f.enqueue(&request(hour("11:00:00"))).await.unwrap();
    assert_eq!((first.created, same.created, next.created), (true, false, true));
    assert_eq!(first.execution_id, same.execution_id);
    assert_eq!(first.key, format!("digest@{tomorrow}T10:00:00Z"));
}

#[tokio::test]
async fn one_that_has_not_begun_can_be_replaced_or_postponed_and_one_that_has_cannot() {
    let f = Fixture::new().await;
    let request = |n: i64, if_exists| {
        charge().key("order-1").params(&json!({"n": n})).unwrap().if_exists(if_exists)
    };
    let id = f.enqueue(&request(1, IfExists::Keep)).await.unwrap().execution_id;
    f.run("UPDATE sexton.executions SET ticket_published_at = now()").await;
    let before = f.row(id).await;
    f.enqueue(&request(2, IfExists::Replace).delay(Duration::from_mins(5))).await.unwrap();
    let replaced = f.row(id).await;
    assert_eq!(replaced["params"]["n"], json!(2));
    assert_eq!(replaced["scheduled_for"], before["scheduled_for"]);
    assert_eq!(
        replaced["ticket_published_at"], before["ticket_published_at"],
        "its ticket names the row"
    );
    let delay = Duration::from_hours(1);
    f.enqueue(&request(3, IfExists::Postpone).delay(delay)).await.unwrap();
    let postponed = f.row(id).await;
    assert_eq!(postponed["params"]["n"], json!(3));
    let due: DateTime<Utc> = postponed["scheduled_for"].as_str().unwrap().parse().unwrap();
    assert!(due > clock::now() + Duration::from_mins(59), "{due}");
    assert_eq!(postponed["next_attempt_at"], postponed["scheduled_for"]);
    assert_eq!(postponed["relay_after"], postponed["scheduled_for"]);
    assert!(postponed["ticket_published_at"].is_null(), "another ticket, for then");
    assert_eq!((&postponed["waits"], &postponed["admitted_at"]), (&json!("turn"), &json!(null)));
    assert_eq!(postponed["rev"], json!(before["rev"].as_i64().unwrap() + 2));
    // One that has begun, or is to be tried again, stays as it is.
    f.run("UPDATE sexton.executions SET state = 'retrying', attempt = 2, started_at = now()").await;
    let begun = f.row(id).await;
    for if_exists in [IfExists::Replace, IfExists::Postpone] {
        let answer = f.enqueue(&request(4, if_exists)).await.unwrap();
        assert_eq!((answer.created, &*answer.state), (false, "retrying"));
        assert_eq!(f.row(id).await, begun);
    }
}

#[tokio::test]
async fn what_no_caller_enqueued_is_neither_changed_nor_cancelled_by_one() {
    let f = Fixture::new().await;
    // As an operator's trigger without a key of its own, or a task of another program.
    let id = f.enqueue(&charge().key("manual-1")).await.unwrap().execution_id;
    f.run("UPDATE sexton.executions SET own_key = false").await;
    let before = f.row(id).await;
    let request = charge().key("manual-1").if_exists(IfExists::Postpone);
    assert!(!f.enqueue(&request.delay(Duration::from_hours(1))).await.unwrap().created);
    let mut connection = f.connect().await;
    let cancelled = Client::new().cancel(&mut connection, JOB, "manual-1", None).await.unwrap();
    assert_eq!((cancelled.execution_id, cancelled.cancelled), (None, false));
    assert_eq!(f.row(id).await, before);
    for key in
        ["cron-2026-12-01T08:00:00Z", "every-2026-12-01T08:00:00Z", "once-2026-12-01T08:00:00Z"]
    {
        assert!(f.enqueue(&charge().key(key)).await.is_err(), "{key} is a firing's");
    }
}

#[tokio::test]
async fn a_batch_answers_each_item_in_its_place() {
    let f = Fixture::new().await;
    let there = f.enqueue(&charge().key("there")).await.unwrap();
    let mut connection = f.connect().await;
    let numbered = |key: &str, n: i64| charge().key(key).params(&json!({"n": n})).unwrap();
    let all = [
        numbered("b", 1),
        numbered("there", 2),
        numbered("a", 3),
        numbered("b", 4).if_exists(IfExists::Replace),
        numbered("b", 5),
        charge(),
    ];
    let answers = Client::new().enqueue_many(&mut connection, &all).await.unwrap();
    let created: Vec<bool> = answers.iter().map(|one| one.created).collect();
    assert_eq!(created, [true, false, true, false, false, true]);
    assert_eq!(answers[1].execution_id, there.execution_id);
    assert!(
        answers[3].execution_id == answers[0].execution_id
            && answers[4].execution_id == answers[0].execution_id
    );
    assert_eq!(
        f.row(answers[0].execution_id).await["params"]["n"],
        json!(4),
        "the last that replaces"
    );
    // In the order given: the ids of those that are due at once are.
    let ids: Vec<_> = [0, 2, 5].map(|place: usize| answers[place].execution_id).to_vec();
    assert!(ids.is_sorted(), "{ids:?}");
    assert!(Client::new().enqueue_many(&mut connection, &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn thousands_of_one_batch_have_distinct_ids_in_their_order() {
    let f = Fixture::new().await;
    let mut connection = f.connect().await;
    let all: Vec<Enqueue> = (0..10_001).map(|n| charge().key(format!("k-{n}"))).collect();
    let answers = Client::new().enqueue_many(&mut connection, &all).await.unwrap();
    assert_eq!(answers.len(), 10_001);
    assert!(answers.iter().all(|one| one.created));
    assert!(answers[..10_000].is_sorted_by(|a, b| a.execution_id < b.execution_id));
    assert_eq!(f.count().await, 10_001);
}

#[tokio::test]
async fn a_delay_means_the_same_in_a_call_for_one_and_in_one_for_many() {
    let f = Fixture::new().await;
    let seconds = [
        ("90s", 90.0),
        ("500ms", 0.5),
        ("1h30m", 5_400.0),
        ("10 minutes", 600.0),
        ("1 day 02:30:00", 95_400.0),
        ("00:01:00", 60.0),
        ("2 days 3 hours", 183_600.0),
        ("0.5 seconds", 0.5),
    ];
    for (delay, expected) in seconds {
        for call in [
            "SELECT execution_id FROM sexton.enqueue($1, delay => $2::text::interval)",
            "SELECT execution_id FROM sexton.enqueue_many($1, jsonb_build_array(jsonb_build_object('delay', $2::text)))",
        ] {
            let id: uuid::Uuid =
                sqlx::query_scalar(call).bind(JOB).bind(delay).fetch_one(f.pool()).await.unwrap();
            let reading = "SELECT extract(epoch FROM scheduled_for - claimed_at)::float8 FROM sexton.executions WHERE id = $1";
            let wait: f64 = sqlx::query_scalar(reading).bind(id).fetch_one(f.pool()).await.unwrap();
            assert!((wait - expected).abs() < 1e-3, "{delay}: {wait} by {call}");
        }
    }
    // The second call for a key is an answer, whatever the time was of which the first was made.
    for at in ["-infinity", "0044-03-15 BC", "1970-01-01"] {
        for created in [true, false] {
            let answer: bool = sqlx::query_scalar(
                "SELECT created FROM sexton.enqueue($1, 'null', key => $2, run_at => $2::timestamptz)",
            )
            .bind(JOB)
            .bind(at)
            .fetch_one(f.pool())
            .await
            .unwrap();
            assert_eq!(answer, created, "{at}");
        }
    }
}

#[tokio::test]
async fn a_key_names_the_open_execution_before_one_that_has_ended() {
    let f = Fixture::new().await;
    let client = Client::new();
    let mut connection = f.connect().await;
    let open = f.enqueue(&charge().key("shared").unique_for(UniqueFor::Open)).await.unwrap();
    let ever = f.enqueue(&charge().key("shared")).await.unwrap();
    assert!(open.created && ever.created, "two kinds of keys are two keys");
    let first = client.cancel(&mut connection, JOB, "shared", None).await.unwrap();
    let second = client.cancel(&mut connection, JOB, "shared", None).await.unwrap();
    assert!(first.cancelled && second.cancelled && first.execution_id != second.execution_id);
    assert!(!client.cancel(&mut connection, JOB, "shared", None).await.unwrap().cancelled);
    let unknown = client.cancel(&mut connection, JOB, "unknown", None).await.unwrap();
    assert_eq!((unknown.execution_id, unknown.cancelled, unknown.state), (None, false, None));
    assert_eq!(client.execution_by_key(&mut connection, JOB, "unknown").await.unwrap(), None);
}
