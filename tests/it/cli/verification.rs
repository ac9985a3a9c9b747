//! `sexton failed requeue --verify`: a command first tells whether the effect has happened.

use serde_json::json;

use sexton_tests::factory::NewJob;

use super::Console;

/// What became of each, after the scheduler's part is done by hand: none is at work here.
#[tokio::test]
async fn an_applied_effect_resolves_without_running_and_the_others_wait_or_stay_failed() {
    let console = Console::with_jobs().await;
    let (yes, no, odd) = (console.failed().await, console.failed().await, console.failed().await);
    let script = format!(
        "cat > {}/$SEXTON_EXECUTION_ID.json\ncase $SEXTON_EXECUTION_ID in {yes}) exit 0;; {no}) exit 1;; esac\nexit 3",
        console.folder.path().display()
    );
    let arguments =
        ["failed", "requeue", "--all", "--yes", "--reason", "bank is back", "--verify", &script];
    let stdout = console.run_with(&arguments, &[("PATH", &path())], "").await.expect(0).stdout;
    assert!(stdout.contains("no scheduler runs"), "{stdout}");
    // All are answered for: asking again changes nothing.
    console.run_with(&["bulks", "verify", "1", &script], &[("PATH", &path())], "").await.expect(0);
    let bulk = console.json(&["bulks", "show", "1"]).await;
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
    let batch = sexton_store::bulk::execute_batch(console.store(), 1, None).await.unwrap().unwrap();
    assert_eq!((batch.done, batch.tickets.len()), (1, 1));
    assert_eq!([console.state(no).await, console.state(odd).await], ["pending/2", "failed/2"]);
}

#[tokio::test]
async fn a_resolution_is_recorded_as_the_action_of_the_operator_of_the_command() {
    let console = Console::with_jobs().await;
    let ids = [console.failed().await, console.failed().await];
    let path = path();
    // Ann's command is interrupted before it has written anything. What its shell has started ends with it: it would
    // keep the standard error that is read here to its end.
    let script = "sleep 600 & kill -INT $PPID; wait";
    let arguments =
        ["failed", "requeue", "--all", "--yes", "--reason", "bank is back", "--verify", script];
    let ann = [("PATH", path.as_str()), ("USER", "ann")];
    let left = console.run_with(&arguments, &ann, "").await.expect(9);
    assert!(left.stderr.contains("sexton bulks verify 1 CMD"), "{}", left.stderr);
    assert!(left.stderr.contains("2 wait for the verify command"), "{}", left.stderr);
    let alive = sexton_store::bulk::list_active(console.store(), 0).await.unwrap();
    assert_eq!(alive, [0_i64; 0], "no scheduler has anything to do");
    let watched = console.run(&["bulks", "watch", "1"]).await.expect(9);
    assert!(watched.stderr.contains("bulks verify 1 CMD"), "{}", watched.stderr);
    // Bob goes on.
    let bob = [("PATH", path.as_str()), ("USER", "bob")];
    let verify = ["bulks", "verify", "1", "exit 0", "--reason", "looked at the bank"];
    console.run_with(&verify, &bob, "").await.expect(0);
    for id in ids {
        assert_eq!(console.state(id).await, "succeeded/2");
        assert_eq!(
            console.audit(id).await.pop().unwrap(),
            "resolve by bob because looked at the bank"
        );
    }
    let actions = console.items(&["audit", "list", "--action", "bulk_verify"]).await;
    let commands: Vec<_> = actions
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            (it["actor"].as_str().unwrap().split('@').next().unwrap(), &it["after"]["command"])
        })
        .collect();
    assert_eq!(commands, [("bob", &json!("exit 0")), ("ann", &json!(script))]);
    // Nothing is left to ask: who asks all the same is not recorded.
    console.run_with(&verify, &bob, "").await.expect(0);
    let actions = console.items(&["audit", "list", "--action", "bulk_verify"]).await;
    assert_eq!(actions.as_array().unwrap().len(), 2);
    console.run_with(&["bulks", "verify", "7", "exit 0"], &bob, "").await.expect(3);
}

/// A preview sees the first hundred thousand; what a bulk means beyond that may be of a job that asks.
#[tokio::test]
async fn a_bulk_verifies_wherever_a_job_has_a_verify_task() {
    let console = Console::with_jobs().await;
    console.failed().await;
    let arguments = ["failed", "requeue", "--job", "shop.charge", "--yes", "--detach"];
    console.run(&arguments).await.expect(0);
    NewJob::new("other.job").insert(console.store().pool()).await.unwrap();
    sqlx::query("UPDATE sexton.jobs SET verify_task = 'charged' WHERE name = 'other.job'")
        .execute(console.store().pool())
        .await
        .unwrap();
    console.run(&arguments).await.expect(0);
    let mut verify = Vec::new();
    for id in ["1", "2"] {
        verify.push(console.json(&["bulks", "show", id]).await["bulk"]["verify"].clone());
    }
    assert_eq!(verify, [json!(null), json!("task")]);
}

fn path() -> String {
    std::env::var("PATH").unwrap()
}
