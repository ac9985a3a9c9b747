//! Ranges of services: assigned one after another, and never across one another.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sexton_model::lock_key::assignment::RangeRequest;
use sexton_store::lock_keys::assign;
use sexton_store::operator::AuditContext;
use sqlx::AssertSqlSafe;
use sqlx::error::DatabaseError;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{ASSIGNMENTS, Fixture};

const SESSIONS: usize = 20;
/// For a loaded machine.
const PATIENCE: Duration = Duration::from_mins(1);

const OVERLAPS: &str = "SELECT count(*) FROM sexton.lock_key_ranges a JOIN sexton.lock_key_ranges b
    ON a.service < b.service AND a.first_key < b.first_key + b.keys AND b.first_key < a.first_key + a.keys";

#[tokio::test]
async fn of_many_sessions_that_take_the_next_range_each_gets_another_one() {
    let f = Fixture::new().await;
    let barrier = Arc::new(Barrier::new(SESSIONS));
    let mut sessions = JoinSet::new();
    for number in 0..SESSIONS {
        let (store, barrier) = (f.db.other_store().unwrap(), Arc::clone(&barrier));
        sessions.spawn(async move {
            let service = format!("service{number}");
            let request = RangeRequest { service, first: None, keys: None };
            let by = AuditContext { actor: "test", reason: None };
            barrier.wait().await;
            assign(&store, &[request], false, by, None).await.unwrap();
            store.close().await;
        });
    }
    timeout(PATIENCE, sessions.join_all()).await.unwrap();
    assert_eq!(f.count("SELECT count(*) FROM sexton.lock_key_ranges").await, SESSIONS as i64);
    assert_eq!(f.count(OVERLAPS).await, 0);
    // One behind the other, without a hole.
    assert_eq!(f.count("SELECT min(first_key) FROM sexton.lock_key_ranges").await, 1_000);
    assert_eq!(f.count("SELECT max(first_key) FROM sexton.lock_key_ranges").await, 1_950);
    assert_eq!(f.count(ASSIGNMENTS).await, SESSIONS as i64);
}

/// The fence below the program: whatever writes.
#[tokio::test]
async fn the_database_refuses_ranges_that_overlap_or_reach_too_far() {
    let f = Fixture::new().await;
    let insert = async |service: &str, first_key: i64, keys: i32| {
        let statement = format!(
            "INSERT INTO sexton.lock_key_ranges (service, first_key, keys, assigned_by, assigned_at)
             VALUES ('{service}', {first_key}, {keys}, 'sql', now())"
        );
        let done = sqlx::query(AssertSqlSafe(statement)).execute(f.db.pool()).await;
        done.err().and_then(|error| {
            error
                .as_database_error()
                .and_then(DatabaseError::code)
                .map(std::borrow::Cow::into_owned)
        })
    };
    let (sound, overlap, check) = (None, Some("23P01"), Some("23514"));
    for (service, first_key, keys, expected) in [
        ("billing", 1_300, 50, sound),
        ("shop", 1_350, 50, sound),
        ("web", 1_349, 1, overlap),
        ("web", 1_200, 300, overlap),
        ("web", 9_007_199_254_740_991, 1, sound),
        ("mail", 9_007_199_254_740_991, 2, check),
        ("mail", -9_007_199_254_740_992, 1, check),
        ("mail", 1, 0, check),
        ("mail", 1, 10_001, check),
        ("a.b", 1, 1, check),
        ("", 1, 1, check),
    ] {
        let code = insert(service, first_key, keys).await;
        assert_eq!(code.as_deref(), expected, "{service} {first_key} {keys}");
    }
}

#[tokio::test]
async fn a_range_is_assigned_listed_and_changed_and_the_audit_says_so() {
    let f = Fixture::new().await;
    let none = f.run(&["keys", "list"]).await.expect(0).text();
    assert!(none.contains("sexton keys assign SERVICE"), "{none}");
    let text = f.run(&["keys", "assign", "billing", "--reason", "new team"]).await.expect(0).text();
    assert_eq!(text, "+ billing (1000 to 1049)\n");
    f.run(&["keys", "assign", "shop", "--start", "-70", "--keys", "20"]).await.expect(0);
    f.apply(&[("billing.run", "lock_key = 1000"), ("billing.stop", "lock_key = 1002")])
        .await
        .expect(0);
    let csv = f.run(&["keys", "list", "--format", "csv"]).await.expect(0).text();
    assert_eq!(
        csv,
        "service,start,keys,end,used,next\nshop,-70,20,-51,0,-70\nbilling,1000,50,1049,2,1001\n"
    );
    let listed = f.json(&["keys", "list", "BILL"], 0).await;
    let [one] = &listed["ranges"].as_array().unwrap()[..] else { panic!("{listed}") };
    assert_eq!(
        (&one["service"], &one["start"], &one["next"]),
        (&json!("billing"), &json!(1000), &json!(1001))
    );
    assert!(one["assigned_by"].as_str().unwrap().starts_with("tester@"), "{one}");
    let table = f.run(&["keys", "list"]).await.expect(0).text();
    assert!(
        table.contains("billing") && table.contains("1001") && table.contains("tester@"),
        "{table}"
    );
    // A repetition changes nothing, and a longer range keeps its start.
    let again = f.run(&["keys", "assign", "billing"]).await.expect(4).text();
    assert!(again.contains("billing (1000 to 1049) has that range already"), "{again}");
    let longer = f.json(&["keys", "assign", "billing", "--keys", "100"], 0).await;
    let (before, after) = (
        json!({"service": "billing", "start": 1000, "keys": 50}),
        json!({"service": "billing", "start": 1000, "keys": 100}),
    );
    assert_eq!(longer, json!({"before": before, "after": after}));
    let actions: Vec<(Option<String>, Option<serde_json::Value>, serde_json::Value)> = sqlx::query_as(
        "SELECT reason, before, after FROM sexton.operator_actions WHERE action = 'assign_keys' ORDER BY id",
    )
    .fetch_all(f.db.pool())
    .await
    .unwrap();
    assert_eq!(actions[0], (Some("new team".to_owned()), None, before.clone()));
    assert_eq!(actions[2], (None, Some(before), after));
    assert_eq!(actions.len(), 3);
}

#[tokio::test]
async fn a_range_that_cannot_be_is_refused_with_the_reason_and_nothing_changes() {
    let f = Fixture::new().await;
    f.run(&["keys", "assign", "billing", "--start", "1300"]).await.expect(0);
    f.apply(&[("billing.run", "lock_key = 1349")]).await.expect(0);
    let too_far = ["--start", "9007199254740991", "--keys", "2"];
    for (args, code, part) in [
        (
            &["shop", "--start", "1349"][..],
            4,
            "shop (1349 to 1398) overlaps billing (1300 to 1349)",
        ),
        (&["billing", "--keys", "49"], 4, "billing.run uses 1349, which billing would lose"),
        (&["billing", "--start", "2000"], 4, "billing.run uses 1349"),
        (&["shop", "--keys", "0"], 2, "--keys: 0 is no number of keys; 1 to 10000"),
        (&["shop", "--keys", "-1"], 2, "--keys"),
        (
            &[&["shop"], &too_far[..]].concat(),
            2,
            "--start: 9007199254740991 to 9007199254740992 reaches beyond",
        ),
        (&["shop", "--start", "9223372036854775808"], 2, "--start"),
        (&["billing.run"], 2, "\"billing.run\" is no service: a job is named <service>.<jobName>"),
        (&[""], 2, "\"\" is no service"),
    ] {
        let text = f.run(&[&["keys", "assign"], args].concat()).await.expect(code).text();
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(f.ranges().await, ["billing 1300 50"]);
    assert_eq!(f.count(ASSIGNMENTS).await, 1);
}
