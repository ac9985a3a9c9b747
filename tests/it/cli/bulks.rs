//! `sexton failed` on many executions: selection, preview, confirmation, and control of the bulk.

use serde_json::json;

use super::{Console, keys};

#[tokio::test]
async fn a_bulk_needs_a_selection_and_a_confirmation() {
    let console = Console::with_jobs().await;
    let (one, two) = (console.failed().await, console.failed().await);
    let nothing = console.run(&["failed", "requeue", "--yes"]).await.expect(2);
    assert!(nothing.stderr.contains("--all"), "{}", nothing.stderr);
    let both = ["failed", "requeue", &one.to_string(), "--job", "shop.charge"];
    console.run(&both).await.expect(2);
    console.run(&["failed", "requeue", "--job", "shop.chrage", "--yes"]).await.expect(3);
    console.run(&["failed", "requeue", "--label", "team", "--yes"]).await.expect(2);
    // Without a terminal nobody can say yes.
    let preview = console.run(&["failed", "requeue", "--all"]).await.expect(7);
    assert!(preview.stdout.contains("2 executions") && preview.stdout.contains("shop.charge 2"));
    assert!(
        preview.stderr.contains("2 executions will be requeued: add --yes"),
        "{}",
        preview.stderr
    );
    let dry = console.json(&["failed", "requeue", "--job", "shop.charge", "--dry-run"]).await;
    assert_eq!((&dry["preview"]["count"], &dry["bulk"]), (&json!(2), &json!(null)));
    assert_eq!(dry["preview"]["jobs"], json!([["shop.charge", 2]]));
    let none = console.run(&["failed", "requeue", "--job", "shop.mail", "--yes"]).await.expect(4);
    assert!(none.stderr.contains("no such executions"), "{}", none.stderr);
    assert_eq!(console.items(&["bulks", "list"]).await, json!([]), "no bulk was created");
    assert_eq!([console.state(one).await, console.state(two).await], ["failed/2", "failed/2"]);
}

#[tokio::test]
async fn a_bulk_without_a_scheduler_is_recorded_shown_stopped_and_resumed() {
    let console = Console::with_jobs().await;
    console.failed().await;
    let arguments =
        ["failed", "discard", "--error-class", "exit_1", "--reason", "test orders", "--yes"];
    let stdout = console.run(&arguments).await.expect(0).stdout;
    assert!(stdout.contains("no scheduler runs") && stdout.contains("bulks watch 1"), "{stdout}");
    let shown = console.json(&["bulks", "show", "1"]).await;
    assert_eq!(keys(&shown), ["bulk", "refused", "waits"]);
    assert_eq!(shown["bulk"]["selector"], json!({"filter": {"error_class": "exit_1"}}));
    assert_eq!(
        (&shown["bulk"]["kind"], &shown["bulk"]["state"]),
        (&json!("discard"), &json!("preparing"))
    );
    let who = shown["bulk"]["actor"].as_str().unwrap();
    assert!(who.starts_with("tester@"), "{who}");
    console.run(&["bulks", "stop", "1", "--reason", "wrong ones"]).await.expect(0);
    let again = console.run(&["bulks", "stop", "1"]).await.expect(4);
    assert!(again.stderr.contains("stopped by tester@"), "{}", again.stderr);
    let watched = console.run(&["bulks", "watch", "1"]).await.expect(0).stdout;
    assert!(watched.contains("no scheduler runs"), "{watched}");
    console.run(&["bulks", "resume", "1"]).await.expect(0);
    console.run(&["bulks", "resume", "1"]).await.expect(4);
    console.run(&["bulks", "show", "7"]).await.expect(3);
    console.run(&["bulks", "stop", "7"]).await.expect(3);
    console.run(&["failed", "restore", "--bulk", "7", "--yes"]).await.expect(3);
    // All of a bulk, or what is named: not one as the other.
    let job = ["--job", "shop.charge"];
    for beside in [&job[..], &["--all"], &["--muted"], &["0199aabb"]] {
        let both = [&["failed", "restore", "--bulk", "1", "--yes"][..], beside].concat();
        console.run(&both).await.expect(2);
    }
    let list = console.run(&["bulks", "list"]).await.expect(0).stdout;
    assert!(list.contains("discard") && list.contains("tester@"), "{list}");
}

#[tokio::test]
async fn the_second_of_two_operators_learns_who_was_faster() {
    let console = Console::with_jobs().await;
    let id = console.failed().await.to_string();
    console.run_with(&["failed", "requeue", &id], &[("USER", "ann")], "").await.expect(0);
    let late =
        console.run_with(&["failed", "requeue", &id], &[("USER", "bob")], "").await.expect(4);
    assert!(late.stderr.contains("requeue by ann@"), "{}", late.stderr);
    assert!(late.stderr.contains("pending at attempt 2"), "{}", late.stderr);
    let discard = ["failed", "discard", &id, "--reason", "x", "--yes"];
    let late = console.run_with(&discard, &[("USER", "bob")], "").await.expect(4);
    assert!(
        late.stderr.contains("executions cancel") && late.stderr.contains("ann@"),
        "{}",
        late.stderr
    );
}

#[tokio::test]
async fn a_requeue_to_another_pool_needs_workers_there_or_force() {
    let console = Console::with_jobs().await;
    let id = console.failed().await;
    let text = id.to_string();
    let refused =
        console.run(&["failed", "requeue", &text, "--to-pool", "reserve"]).await.expect(3);
    assert!(
        refused.stderr.contains("no worker consumes from the pool reserve"),
        "{}",
        refused.stderr
    );
    console.run(&["failed", "requeue", &text, "--to-pool", "No!"]).await.expect(2);
    assert_eq!(console.state(id).await, "failed/2");
    console.run(&["failed", "requeue", &text, "--to-pool", "reserve", "--force"]).await.expect(0);
    assert_eq!(console.json(&["executions", "show", &text]).await["pool"], "reserve");
}
