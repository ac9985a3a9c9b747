//! `sexton failed`: lists, shows, requeues, discards and restores failed executions.

use chrono::Days;
use serde_json::{Value, json};
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_store::executions;
use sexton_store::parked_messages::fail_unopened;
use sexton_store::retention::{RetentionPolicy, RetentionTarget};
use sexton_tests::retention::pass;

use super::{Console, keys};

#[tokio::test]
async fn a_failed_execution_is_listed_shown_and_requeued_once() {
    let console = Console::with_jobs().await;
    let failed = console.failed().await;
    let id = failed.to_string();
    let list = console.items(&["failed", "list", "--job", "shop.charge"]).await;
    assert_eq!((&list[0]["id"], &list[0]["error_message"]), (&json!(id), &json!("card declined")));
    assert_eq!(console.json(&["failed", "show", &id]).await["attempts"][0]["exit_code"], 1);
    assert_ne!(list[0]["ticket_published_at"], Value::Null);
    let done = console.json(&["failed", "requeue", &id, "--reason", "bank is back"]).await;
    assert_eq!(done, json!([{"id": id, "done": true, "state": "pending", "error": null}]));
    let row = console.json(&["executions", "show", &id]).await;
    assert_eq!((&row["state"], &row["attempt"]), (&json!("pending"), &json!(2)));
    assert_eq!((&row["retries_used"], &row["finished_at"]), (&json!(0), &Value::Null));
    assert_eq!(row["ticket_published_at"], Value::Null);
    let ended = console.run(&["failed", "requeue", &id]).await.expect(4);
    assert!(ended.stderr.contains("requeued already"), "{}", ended.stderr);
    assert_eq!(
        console.audit(failed).await,
        ["trigger by tester because ", "requeue by tester because bank is back"]
    );
    let action = &row["operator_actions"][1];
    assert_eq!(
        (&action["before"]["state"], &action["after"]["state"]),
        (&json!("failed"), &json!("pending"))
    );
    // The number of the parked ticket is the one that opens next.
    console.open(failed, 2).await;
}

#[tokio::test]
async fn requeue_is_refused_when_the_attempt_has_changed() {
    let console = Console::with_jobs().await;
    let failed = console.failed().await;
    let id = failed.to_string();
    let shown = console.run(&["failed", "show", &id]).await.expect(0).stdout;
    let hint = format!("sexton failed requeue {id} --attempt 2");
    assert!(shown.contains(&hint), "{shown}");
    assert_eq!(console.items(&["failed", "list"]).await[0]["attempt"], 2);
    // Meanwhile somebody else requeues it, and it fails again, for another reason perhaps.
    console.run(&["failed", "requeue", &id]).await.expect(0);
    console.fail(console.open(failed, 2).await, "card stolen", None).await;
    let ended = console.run(&["failed", "requeue", &id, "--attempt", "2"]).await.expect(4);
    assert!(ended.stderr.contains("failed again since you looked"), "{}", ended.stderr);
    assert_eq!(console.state(failed).await, "failed/3");
    console.run(&["failed", "requeue", &id, "--attempt", "3"]).await.expect(0);
    assert_eq!(console.state(failed).await, "pending/3");
    let (other, third) = (console.failed().await.to_string(), console.failed().await.to_string());
    let several = ["failed", "requeue", &other, &third, "--yes", "--attempt", "2"];
    let ended = console.run(&several).await.expect(2);
    assert!(ended.stderr.contains("goes with one id"), "{}", ended.stderr);
}

#[tokio::test]
async fn several_executions_are_requeued_after_confirmation_and_each_is_reported() {
    let console = Console::with_jobs().await;
    let (one, two) = (console.failed().await, console.failed().await);
    let (a, b) = (one.to_string(), two.to_string());
    let gone = "00000000-0000-7000-8000-000000000000";
    console.run(&["failed", "requeue", &a, &b]).await.expect(7);
    assert_eq!(console.state(one).await, "failed/2");
    console.run(&["failed", "requeue", &a]).await.expect(0);
    let args = ["--json", "failed", "requeue", &a, &b, &b, gone, "--yes"];
    let answer = console.run(&args).await.expect(4).json();
    let done: Vec<&Value> = answer.as_array().unwrap().iter().map(|row| &row["done"]).collect();
    assert_eq!(done, [&json!(false), &json!(true), &json!(false)]);
    assert_eq!(keys(&answer[0]), ["done", "error", "id", "state"]);
    assert_eq!(console.state(two).await, "pending/2");
}

#[tokio::test]
async fn a_discard_needs_a_reason_and_a_confirmation_and_can_be_restored() {
    let console = Console::with_jobs().await;
    let failed = console.failed().await;
    let id = failed.to_string();
    console.run(&["failed", "discard", &id, "--yes"]).await.expect(2);
    console.run(&["failed", "discard", &id, "--reason", "test order"]).await.expect(7);
    assert_eq!(console.state(failed).await, "failed/2");
    let args = ["failed", "discard", &id, "--reason", "test order", "--yes"];
    console.run(&args).await.expect(0);
    assert_eq!(console.state(failed).await, "discarded/2");
    console.run(&args).await.expect(4);
    let ended = console.run(&["failed", "requeue", &id]).await.expect(4);
    assert!(ended.stderr.contains("failed restore"), "{}", ended.stderr);
    assert_eq!(console.items(&["failed", "list"]).await, json!([]));
    assert_eq!(console.items(&["failed", "list", "--discarded"]).await[0]["id"], json!(id));
    console.run(&["failed", "restore", &id]).await.expect(0);
    let row = console.json(&["failed", "show", &id]).await;
    assert_eq!((&row["state"], &row["attempt"]), (&json!("failed"), &json!(2)));
    assert_eq!(row["ticket_published_at"], Value::Null, "its parked ticket is unpublished again");
    console.run(&["failed", "restore", &id]).await.expect(4);
    let actions = console.audit(failed).await;
    assert_eq!((actions.len(), actions[1].as_str()), (3, "discard by tester because test order"));
}

#[tokio::test]
async fn an_attempt_number_that_was_never_opened_is_shown_in_the_history() {
    let console = Console::with_jobs().await;
    let execution = console.trigger("shop.charge").await;
    let id = execution.to_string();
    let (class, reason) = ("unknown_task_type", "no worker of pool default offered it");
    let first = AttemptNumber::FIRST;
    let failing = fail_unopened(console.store(), execution, first, class, reason, None);
    assert!(failing.await.unwrap());
    let line = |shown: &str, number: &str| {
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let found = shown.lines().map(words).find(|line| line.starts_with(number));
        found.unwrap_or_else(|| panic!("no line of attempt {number}: {shown}"))
    };
    let shown = console.run(&["failed", "show", &id]).await.expect(0).stdout;
    assert_eq!(line(&shown, "1 "), format!("1 unopened - - - {reason}"));
    assert!(shown.contains("2 is next"), "{shown}");
    assert!(!shown.contains("executions logs"), "nothing was written that could be shown: {shown}");
    assert!(shown.contains(&format!("sexton failed requeue {id} --attempt 2")), "{shown}");

    console.run(&["failed", "requeue", &id, "--attempt", "2"]).await.expect(0);
    console.fail(console.open(execution, 2).await, "card declined", None).await;
    let shown = console.run(&["executions", "show", &id]).await.expect(0).stdout;
    assert_eq!(line(&shown, "1 "), "1 unopened - - - no worker could open its ticket");
    assert!(line(&shown, "2 ").starts_with("2 error "), "{shown}");
    let shown = console.json(&["executions", "show", &id]).await;
    let numbers: Vec<_> =
        shown["attempts"].as_array().unwrap().iter().map(|a| &a["number"]).collect();
    assert_eq!(numbers, [&json!(2)], "an attempt is what was opened");
    console.run(&["executions", "logs", &id, "--attempt", "1"]).await.expect(3);
}

#[tokio::test]
async fn a_history_removed_by_retention_is_not_shown_as_failures() {
    let console = Console::with_jobs().await;
    let mut ids = Vec::new();
    for key in ["opened", "unopened"] {
        let made = console.json(&["jobs", "trigger", "shop.charge", "--key", key]).await;
        ids.push(made["id"].as_str().unwrap().parse::<ExecutionId>().unwrap());
    }
    console.fail(console.open(ids[0], 1).await, "card declined", None).await;
    let (first, reason) = (AttemptNumber::FIRST, "no worker offered it");
    let failing = fail_unopened(console.store(), ids[1], first, "unopenable", reason, None);
    assert!(failing.await.unwrap());
    for id in &ids {
        console.run(&["failed", "requeue", &id.to_string()]).await.expect(0);
        console.run(&["executions", "cancel", &id.to_string()]).await.expect(0);
    }
    let show = async |id: ExecutionId| {
        console.run(&["executions", "show", &id.to_string()]).await.expect(0).stdout
    };
    assert!(show(ids[0]).await.contains("card declined"));

    // Kept for their keys, stripped of the rest.
    let row = executions::find(console.store(), ids[1].get()).await.unwrap().unwrap();
    let later = row.finished_at.unwrap() + Days::new(31);
    let terms = RetentionPolicy { days: 30, audit_days: None };
    let pruned =
        pass(console.store(), terms, &RetentionTarget::ALL, 100, Some(later)).await.unwrap();
    assert_eq!((pruned.executions, pruned.stripped), (0, 2));
    let removed = "attempts were removed by retention";
    let opened = show(ids[0]).await;
    assert!(opened.contains(removed) && !opened.contains("unopened"), "{opened}");
    let never = show(ids[1]).await;
    assert!(!never.contains(removed) && never.contains("unopened"), "{never}");
}
