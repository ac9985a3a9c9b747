//! `sexton jobs list|show|trigger|pause|resume`.

use serde_json::{Value, json};
use sexton_model::job::COLUMNS;
use sexton_store::jobs::{pause, resume};
use sexton_store::operator::AuditContext;

use super::{Console, keys};

const ROW: [&str; 14] = [
    "created_at",
    "deleted_at",
    "id",
    "next_fire_at",
    "next_nominal_at",
    "paused_at",
    "paused_by",
    "paused_why",
    "planned_until",
    "revision",
    "runs_used",
    "status",
    "tz_version",
    "updated_at",
];

fn row_and(more: &[&'static str]) -> Vec<&'static str> {
    let mut names = [&COLUMNS[..], &ROW[..], more].concat();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn listed_and_shown_jobs_use_the_column_names() {
    let console = Console::with_jobs().await;
    console.trigger("shop.charge").await;
    let list = console.items(&["jobs", "list", "SHOP"]).await;
    assert_eq!(list.as_array().unwrap().len(), 2);
    assert_eq!(keys(&list[0]), row_and(&["last_execution"]));
    assert_eq!(
        keys(&list[0]["last_execution"]),
        ["finished_at", "id", "scheduled_for", "started_at", "state"]
    );
    assert_eq!(list[1]["last_execution"], Value::Null);
    let shown = console.json(&["jobs", "show", "billing.invoices"]).await;
    let more = ["gaps", "last_executions", "last_heartbeat", "next_firings", "operator_actions"];
    assert_eq!(keys(&shown), row_and(&more));
    assert_eq!(shown["next_firings"].as_array().unwrap().len(), 5);
    assert_eq!(shown["next_firings"][0], shown["next_fire_at"]);
}

#[tokio::test]
async fn an_unknown_name_is_answered_with_a_similar_one() {
    let console = Console::with_jobs().await;
    for args in [
        &["jobs", "show", "charge"][..],
        &["jobs", "trigger", "charge"],
        &["jobs", "pause", "charge", "--reason", "x"],
        &["jobs", "resume", "charge"],
        &["executions", "list", "--job", "charge"],
    ] {
        let ended = console.run(args).await.expect(3);
        assert!(ended.stderr.contains("did you mean shop.charge?"), "{args:?}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn repeated_triggers_with_one_key_make_one_execution() {
    let console = Console::with_jobs().await;
    let args =
        ["jobs", "trigger", "shop.charge", "--key", "order-7", "--params", r#"{"order": 7}"#];
    let first = console.json(&args).await;
    let fields = [
        "attempt",
        "created",
        "execution_key",
        "id",
        "job_name",
        "scheduled_for",
        "state",
        "waits",
    ];
    assert_eq!(keys(&first), fields);
    assert_eq!((&first["created"], &first["state"]), (&json!(true), &json!("pending")));
    let again = console.json(&args).await;
    assert_eq!((&again["created"], &again["id"]), (&json!(false), &first["id"]));
    let row = console.json(&["executions", "show", first["id"].as_str().unwrap()]).await;
    assert_eq!(row["params"], json!({"customer": 4891, "order": 7}));
    assert_eq!(row["idempotency_key"], "shop.charge:order-7");
    assert_eq!((&row["own_key"], &row["ticket_published_at"]), (&json!(true), &Value::Null));
    assert_eq!(row["operator_actions"], json!([]), "a program triggered it, and no operator");
}

#[tokio::test]
async fn a_trigger_of_an_untriggerable_job_is_a_usage_error() {
    let console = Console::with_jobs().await;
    let long = "x".repeat(257);
    let large = format!(r#"{{"a": "{}"}}"#, "x".repeat(120_000));
    let larger = format!(r#"{{"a": {large}, "b": {large}, "c": {large}}}"#);
    for more in [
        ["--key", " "],
        ["--key", &long],
        ["--params", "[1]"],
        ["--params", "{"],
        ["--params", r#"{"a": "\u0000"}"#],
    ] {
        let args = [&["jobs", "trigger", "shop.charge"][..], &more].concat();
        let ended = console.run(&args).await;
        assert_eq!(ended.code, 2, "{more:?}: {}", ended.stderr);
    }
    // Some systems refuse arguments of this length, so the test calls the store's own limit directly.
    let params = serde_json::from_str(&larger).unwrap();
    let request = sexton_store::trigger::Trigger {
        job: "shop.charge",
        key: None,
        params,
        id: sexton_model::id::ExecutionId::new(uuid::Uuid::now_v7()),
        claimed_by: "t:1",
    };
    let by = AuditContext { actor: "t", reason: None };
    let error = sexton_store::trigger::trigger(console.store(), request, Some(by), None).await;
    assert!(matches!(error, Err(sexton_store::trigger::TriggerError::Params(_))));
    assert_eq!(console.items(&["executions", "list"]).await, json!([]));
}

#[tokio::test]
async fn a_paused_job_shows_who_paused_it_and_why_and_can_be_triggered() {
    let console = Console::with_jobs().await;
    let name = "billing.invoices";
    let paused = console.json(&["jobs", "pause", name, "--reason", "tax audit"]).await;
    assert_eq!(paused, json!({"name": name, "status": "paused"}));
    let ended = console.run(&["jobs", "pause", name, "--reason", "other"]).await.expect(4);
    assert!(ended.stderr.contains("tax audit") && ended.stderr.contains("tester@"));
    console.run(&["jobs", "trigger", name]).await.expect(0);
    let resumed = console.json(&["jobs", "resume", name]).await;
    assert_eq!(keys(&resumed), ["name", "next_fire_at", "passed", "status"]);
    console.run(&["jobs", "resume", name]).await.expect(4);
    let shown = console.json(&["jobs", "show", name]).await;
    let did: Vec<&str> = shown["operator_actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| action["action"].as_str().unwrap())
        .collect();
    assert_eq!(did, ["resume", "pause", "apply"]);
    console.run(&["jobs", "pause", name, "--reason", ""]).await.expect(2);
}

#[tokio::test]
async fn a_pause_is_one_gap_and_not_a_flood() {
    let console = Console::with_jobs().await;
    let at = |text: &str| Some(text.parse().unwrap());
    let by = AuditContext { actor: "t", reason: Some("x") };
    let name = "billing.invoices";
    pause(console.store(), name, by, at("2030-01-15T00:00:00Z")).await.unwrap();
    sqlx::query("UPDATE sexton.jobs SET next_fire_at = '2030-02-01T01:00:00Z' WHERE name = $1")
        .bind(name)
        .execute(console.db.pool())
        .await
        .unwrap();
    let resumed = resume(console.store(), name, by, at("2030-04-01T01:00:00Z")).await.unwrap();
    assert_eq!(resumed.passed, 3);
    assert_eq!(resumed.next_fire_at, at("2030-05-01T01:00:00Z"));
    let shown = console.json(&["jobs", "show", name]).await;
    let gap = &shown["gaps"][0];
    assert_eq!((&gap["count"], &gap["reason"]), (&json!(3), &json!("paused")));
    assert_eq!(gap["first_firing"], "2030-02-01T01:00:00Z");
    assert_eq!(gap["last_firing"], "2030-04-01T01:00:00Z");
}
