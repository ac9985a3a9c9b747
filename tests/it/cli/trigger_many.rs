//! `sexton jobs trigger --each`.

use serde_json::json;

use super::{Console, keys};

const COMMAND: [&str; 4] = ["jobs", "trigger", "shop.charge", "--each"];

fn lines(count: usize) -> String {
    let each = (1..=count).map(|n| json!({"key": format!("order-{n}"), "params": {"order": n}}));
    each.map(|one| one.to_string()).collect::<Vec<_>>().join("\n")
}

impl Console {
    async fn counted(&self, what: &'static str) -> i64 {
        sqlx::query_scalar(what).fetch_one(self.db.pool()).await.unwrap()
    }
}

#[tokio::test]
async fn each_line_triggers_one_execution_however_often_the_file_is_read() {
    let console = Console::with_jobs().await;
    let file = console.file("orders.jsonl", &lines(1_203));
    let first = console.json(&[&COMMAND[..], &[&file]].concat()).await;
    assert_eq!(keys(&first), ["created", "job_name", "known", "waiting"]);
    assert_eq!((&first["created"], &first["known"]), (&json!(1_203), &json!(0)));
    let file = console.file("orders.jsonl", &format!("\n{}\n", lines(1_205)));
    let again = console.json(&[&COMMAND[..], &[&file, "--reason", "two more"]].concat()).await;
    assert_eq!((&again["created"], &again["known"]), (&json!(2), &json!(1_203)));
    let whole = "SELECT count(*) FROM sexton.executions
        WHERE state = 'pending' AND own_key AND ticket_published_at IS NULL AND waits IS NULL
          AND execution_key = 'order-' || (params ->> 'order') AND params ->> 'customer' = '4891'
          AND idempotency_key = 'shop.charge:' || execution_key";
    assert_eq!(console.counted(whole).await, 1_205);
    let actions =
        "SELECT count(DISTINCT execution_id) FROM sexton.operator_actions WHERE action = 'trigger'";
    assert_eq!(console.counted(actions).await, 2, "without a reason it was a program that asked");
    let reasons = "SELECT count(*) FROM sexton.operator_actions WHERE reason = 'two more'";
    assert_eq!(console.counted(reasons).await, 2);
}

#[tokio::test]
async fn a_command_killed_between_two_batches_can_be_repeated() {
    let console = Console::with_jobs().await;
    let args = [&COMMAND[..], &["-"]].concat();
    let dies = [("FAULT_POINT", "console.triggered")];
    console.run_with(&args, &dies, &lines(501)).await.expect(-1);
    assert_eq!(console.counted("SELECT count(*) FROM sexton.executions").await, 500);
    let again = console.run_with(&args, &[], &lines(501)).await.expect(0);
    assert!(again.stdout.contains("500 keys had an execution already"), "{}", again.stdout);
    assert_eq!(console.counted("SELECT count(*) FROM sexton.executions").await, 501);
}

#[tokio::test]
async fn trigger_many_reports_every_problem_by_line_and_triggers_nothing() {
    let console = Console::with_jobs().await;
    let text = [
        r#"{"key": "good"}"#,
        r#"{"key": "good", "params": {"a": 1}}"#,
        "{",
        r#"{"params": {}}"#,
        r#"{"key": " "}"#,
        r#"{"key": "b", "parms": {}}"#,
        r#"{"key": "c", "params": [1]}"#,
        r#"{"key": "d", "params": {"a": "\u0000"}}"#,
    ];
    let file = console.file("orders.jsonl", &text.join("\n"));
    let ended = console.run(&[&COMMAND[..], &[&file]].concat()).await.expect(2);
    for (number, part) in [
        (2, "its key is that of line 1"),
        (3, "EOF"),
        (4, "missing field `key`"),
        (5, "key"),
        (6, "unknown field `parms`"),
        (7, "invalid type"),
        (8, "the params"),
    ] {
        let place = format!("orders.jsonl:{number}: ");
        let message = ended.stderr.lines().find(|line| line.contains(&place));
        assert!(message.is_some_and(|line| line.contains(part)), "{number}: {}", ended.stderr);
    }
    assert!(!ended.stderr.contains("orders.jsonl:1: "), "{}", ended.stderr);
    for empty in ["", "\n \n"] {
        let file = console.file("orders.jsonl", empty);
        console.run(&[&COMMAND[..], &[&file]].concat()).await.expect(2);
    }
    assert_eq!(console.counted("SELECT count(*) FROM sexton.executions").await, 0);
    let file = console.file("orders.jsonl", &lines(1));
    let ended = console.run(&["jobs", "trigger", "shop.charg", "--each", &file]).await.expect(3);
    assert!(ended.stderr.contains("did you mean shop.charge?"), "{}", ended.stderr);
    console.run(&[&COMMAND[..], &[&file, "--key", "a"]].concat()).await.expect(2);
}

#[tokio::test]
async fn triggers_of_a_non_overlapping_job_wait_after_the_first() {
    let console = Console::new().await;
    let job = "[[job]]\nname = \"shop.charge\"\ntask = \"work\"\noverlap = \"queue\"\n";
    let file = console.file("jobs.toml", job);
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    let file = console.file("orders.jsonl", &lines(501));
    let ended = console.run(&[&COMMAND[..], &[&file]].concat()).await.expect(0);
    assert!(ended.stdout.contains("500 of them wait for their turn"), "{}", ended.stdout);
    let free =
        "SELECT count(*) FROM sexton.executions WHERE waits IS NULL AND execution_key = 'order-1'";
    assert_eq!(console.counted(free).await, 1);
    // As a trigger by itself makes them: in their order, before whatever comes later.
    console.trigger("shop.charge").await;
    let waiting = "SELECT count(*) FROM sexton.executions e,
            (SELECT * FROM sexton.executions WHERE NOT own_key) one
        WHERE e.waits = one.waits AND e.relay_after = one.relay_after
          AND e.next_attempt_at = e.claimed_at AND one.next_attempt_at = one.claimed_at AND e.own_key";
    assert_eq!(console.counted(waiting).await, 500);
    let file = console.file("orders.jsonl", &lines(1_001));
    let ended = console.run(&[&COMMAND[..], &[&file]].concat()).await.expect(2);
    assert!(ended.stderr.contains("at most 1000 lines at once"), "{}", ended.stderr);
}
