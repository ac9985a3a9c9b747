//! `sexton approvals`: rules, previews, requests and decisions on the command line.

use serde_json::json;

use super::Console;

#[tokio::test]
async fn rules_are_set_listed_and_deleted_and_wrong_ones_refused_with_everything_that_is_wrong() {
    let console = Console::with_jobs().await;
    let rules = |rest: &[&'static str]| [&["approvals", "rules"], rest].concat();
    let none = console.run(&rules(&["list"])).await.expect(0);
    assert!(none.stdout.contains("Nothing needs approval"), "{}", none.stdout);
    let wrong = ["set", "Money!", "--label", "team", "--people", "9", "--above", "0"];
    let refused = console.run(&rules(&wrong)).await.expect(2).stderr;
    for field in ["name", "label", "people", "above"] {
        assert!(refused.contains(field), "{field}: {refused}");
    }
    let set = ["set", "money", "--label", "team=billing", "--people", "3"];
    let shown = console.run(&rules(&set)).await.expect(0).stdout;
    assert!(shown.contains("rule money holds: 3 people, jobs: team=billing"), "{shown}");
    // In place of the one before.
    console.run(&rules(&["set", "money", "--above", "7"])).await.expect(0);
    let all = console.json(&rules(&["list"])).await;
    let rule = &all["items"][0];
    assert_eq!(
        (&rule["people"], &rule["above"], &rule["label"]),
        (&json!(2), &json!(7), &json!(null))
    );
    let table = console.run(&rules(&["list"])).await.expect(0).stdout;
    assert!(table.contains("money") && table.contains("tester@"), "{table}");
    console.run(&rules(&["delete", "money"])).await.expect(0);
    console.run(&rules(&["delete", "money"])).await.expect(3);
}

#[tokio::test]
async fn a_request_is_listed_shown_rejected_and_taken_back_and_a_preview_announces_it() {
    let console = Console::with_jobs().await;
    let one = console.failed().await.to_string();
    console.failed().await;
    console.run(&["approvals", "rules", "set", "all", "--above", "1"]).await.expect(0);
    let preview = console.run(&["failed", "requeue", "--all", "--dry-run"]).await.expect(0).stdout;
    assert!(preview.contains("1 other person (rule all)"), "{preview}");
    // One execution is requeued as ever.
    let bulk = ["failed", "requeue", "--all", "--yes", "--reason", "the bank is back"];
    let waits = console.run(&bulk).await.expect(11);
    assert!(waits.stderr.contains("waits for approval 1: requeue 2 failed"), "{}", waits.stderr);
    let discard = ["failed", "discard", &one, "--yes", "--reason", "paid in cash"];
    let waits = console.run_with(&discard, &[("USER", "ann")], "").await.expect(11);
    assert!(waits.stderr.contains("sexton approvals approve 2"), "{}", waits.stderr);
    assert_eq!(console.items(&["bulks", "list"]).await, json!([]), "no bulk was created");
    assert!(console.state(one.parse().unwrap()).await.starts_with("failed"));

    let listed = console.items(&["approvals", "list", "--limit", "1"]).await;
    assert_eq!((&listed[0]["id"], &listed[0]["state"]), (&json!(2), &json!("waiting")));
    let listed = console.run(&["approvals", "list"]).await.expect(0).stdout;
    for part in ["1 of 2", "ann@", "tester@", "paid in cash", "the bank is back"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
    let shown = console.run(&["approvals", "show", "2"]).await.expect(0).stdout;
    assert!(shown.contains("waits for one more person") && shown.contains(&one), "{shown}");

    let refused = console.run(&["approvals", "approve", "1", "--yes"]).await.expect(4);
    assert!(refused.stderr.contains("requested by you"), "{}", refused.stderr);
    // Without a terminal nobody can say yes.
    let unconfirmed = ["approvals", "approve", "2"];
    console.run(&unconfirmed).await.expect(7);
    let reject = ["approvals", "reject", "2", "--reason", "the customer paid nothing"];
    console.run(&reject).await.expect(0);
    let late = console.run(&["approvals", "approve", "2", "--yes"]).await.expect(4);
    assert!(late.stderr.contains("the customer paid nothing"), "{}", late.stderr);
    console.run(&["approvals", "reject", "1", "--reason", "a mistake"]).await.expect(0);
    let none = console.run(&["approvals", "list"]).await.expect(0).stdout;
    assert!(none.contains("No requests wait"), "{none}");
    assert_eq!(console.items(&["approvals", "list", "--all"]).await.as_array().unwrap().len(), 2);
    console.run(&["approvals", "show", "9"]).await.expect(3);
    console.run(&["approvals", "approve", "9", "--yes"]).await.expect(3);
}

#[tokio::test]
async fn an_approved_bulk_that_a_command_verifies_says_which_command_answers() {
    let console = Console::with_jobs().await;
    console.failed().await;
    console.failed().await;
    console.run(&["approvals", "rules", "set", "all", "--above", "1"]).await.expect(0);
    let bulk = ["failed", "requeue", "--all", "--yes", "--reason", "x", "--verify", "exit 1"];
    console.run(&bulk).await.expect(11);
    let bob = [("USER", "bob")];
    let approved = ["approvals", "approve", "1", "--yes"];
    let shown = console.run_with(&approved, &bob, "").await.expect(0).stdout;
    assert!(shown.contains("bulk 1 waits for `sexton bulks verify 1 COMMAND`"), "{shown}");
}

#[tokio::test]
async fn ids_one_by_one_get_round_no_rule() {
    let console = Console::with_jobs().await;
    let failed = console.failed().await.to_string();
    let pending = [console.trigger("shop.mail").await, console.trigger("shop.mail").await];
    console.run(&["approvals", "rules", "set", "all", "--above", "1"]).await.expect(0);
    // Into another pool it is an edit.
    let moved = ["failed", "requeue", &*failed, "--to-pool", "reserve", "--force", "--yes"];
    console.run(&moved).await.expect(11);
    console
        .run(&[&moved[..], &["--no-verify", "--reason", "x", "--attempt", "2"]].concat())
        .await
        .expect(11);
    assert_eq!(console.state(failed.parse().unwrap()).await, "failed/2");
    let ids: Vec<String> = pending.iter().map(ToString::to_string).collect();
    let cancel = ["executions", "cancel", &*ids[0], &*ids[1], "--yes"];
    let waits = console.run(&cancel).await.expect(11);
    assert!(waits.stderr.contains("cancel 2 executions"), "{}", waits.stderr);
    assert_eq!(console.state(pending[0]).await, "pending/1");
    console.run(&["executions", "cancel", &*ids[0], "--yes"]).await.expect(0);
    // One has ended since, so the bulk has fewer, and no others.
    let bob = [("USER", "bob")];
    let number = console.items(&["approvals", "list"]).await[0]["id"].to_string();
    let approve = ["approvals", "approve", &*number, "--yes"];
    let shown = console.run_with(&approve, &bob, "").await.expect(0).stdout;
    assert!(shown.contains("is carried out"), "{shown}");
    console.run(&["failed", "requeue", &*failed, "--yes"]).await.expect(0);
}
