//! `sexton failed requeue --verify`: a command is asked first whether the effect has happened.

use serde_json::json;

use super::Console;

/// What became of each, after the scheduler's part is done by hand: none is at work here.
#[tokio::test]
async fn what_has_happened_ends_well_without_running_and_the_rest_waits_or_is_left() {
    let console = Console::with_jobs().await;
    let (yes, no, odd) = (console.failed().await, console.failed().await, console.failed().await);
    let script = format!(
        "cat > {}/$SEXTON_EXECUTION_ID.json\ncase $SEXTON_EXECUTION_ID in {yes}) exit 0;; {no}) exit 1;; esac\nexit 3",
        console.folder.path().display()
    );
    let asked =
        ["failed", "requeue", "--all", "--yes", "--reason", "bank is back", "--verify", &script];
    let told = console.run_with(&asked, &[("PATH", &path())], "").await.expect(0).stdout;
    assert!(told.contains("no scheduler is at work"), "{told}");
    // All are answered for: asking again changes nothing.
    console
        .run_with(&["failed", "bulk", "verify", "1", &script], &[("PATH", &path())], "")
        .await
        .expect(0);
    let bulk = console.json(&["failed", "bulk", "show", "1"]).await;
    let counts =
        ["resolved", "left_alone", "done", "selected"].map(|name| bulk["bulk"][name].clone());
    assert_eq!(counts, [json!(1), json!(1), json!(0), json!(3)]);
    assert!(bulk["refused"][0]["note"].as_str().unwrap().contains("exit status: 3"), "{bulk}");
    let row = console.json(&["executions", "show", &yes.to_string()]).await;
    assert_eq!((&row["state"], &row["outcome"]), (&json!("succeeded"), &json!("verified")));
    assert_eq!(row["attempts"].as_array().unwrap().len(), 1, "it was not run again");
    assert_eq!(console.audit(yes).await[1], "resolve by tester because bank is back");
    assert_eq!([console.state(no).await, console.state(odd).await], ["failed/2", "failed/2"]);
    let file = console.folder.path().join(format!("{no}.json"));
    let seen: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!((&seen["params"], &seen["attempt"]), (&json!({"customer": 4891}), &json!(2)));
    // The scheduler requeues what has not happened, and nothing else.
    let portion = sexton_store::bulk::carry(console.store(), 1, None).await.unwrap().unwrap();
    assert_eq!((portion.done, portion.tickets.len()), (1, 1));
    assert_eq!([console.state(no).await, console.state(odd).await], ["pending/2", "failed/2"]);
}

fn path() -> String {
    std::env::var("PATH").unwrap()
}
