//! `sexton failed edit`: other params or another pool, recorded with both sides.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use sexton_model::id::ProcessId;
use sexton_store::instances::{InstanceRegistration, heartbeat};
use sexton_store::offers::publish;
use uuid::Uuid;

use super::Console;

/// An editor: a shell script, with its path.
fn editor(console: &Console, script: &str) -> String {
    let path = console.file("editor.sh", &format!("#!/bin/sh\n{script}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test]
async fn params_are_changed_recorded_with_both_sides_and_run_again() {
    let console = Console::with_jobs().await;
    let id = console.failed().await;
    let text = id.to_string();
    let before = console.json(&["executions", "show", &text]).await;
    console.run(&["failed", "edit", &text, "--params", "{}", "--yes"]).await.expect(2);
    let dry = [
        "failed",
        "edit",
        &text,
        "--reason",
        "typo",
        "--params",
        r#"{"customer": 7}"#,
        "--dry-run",
    ];
    let stdout = console.run(&dry).await.expect(0).stdout;
    assert!(
        stdout.contains("~ /customer") && !stdout.contains("4891"),
        "places, not values: {stdout}"
    );
    assert_eq!(console.state(id).await, "failed/2");
    let file = console.file("params.json", r#"{"customer": 7, "new": true}"#);
    let from = format!("@{file}");
    let args = ["failed", "edit", &text, "--reason", "typo", "--params", &from];
    console.run(&args).await.expect(7);
    let done = console.json(&[&args[..], &["--yes"]].concat()).await;
    assert_eq!(done["changes"], json!(["~ /customer", "+ /new"]));
    let after = console.json(&["executions", "show", &text]).await;
    assert_eq!((&after["state"], &after["attempt"]), (&json!("pending"), &json!(2)));
    assert_eq!(after["params"], json!({"customer": 7, "new": true}));
    for same in ["execution_key", "idempotency_key", "pool"] {
        assert_eq!(after[same], before[same], "{same}");
    }
    let actions = after["operator_actions"].as_array().unwrap();
    let edit = actions.iter().find(|action| action["action"] == "edit").unwrap();
    assert_eq!(edit["before"]["params"], json!({"customer": 4891}), "the original is kept");
    assert_eq!(edit["after"]["params"], json!({"customer": 7, "new": true}));
    assert_eq!((&edit["reason"], actions.len()), (&json!("typo"), 3));
    let late = console.run(&[&args[..], &["--yes"]].concat()).await.expect(4);
    assert!(late.stderr.contains("requeued already") && late.stderr.contains("by tester@"));
    // What the worker opens is what was edited.
    console.open(id, 2).await;
}

#[tokio::test]
async fn an_invalid_edit_changes_nothing_and_gives_the_place() {
    let console = Console::with_jobs().await;
    let id = console.failed().await;
    let text = id.to_string();
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    for (params, message) in [
        ("[]", "no JSON object"),
        ("{\"a\": }", "line 1 column 7"),
        ("{\"a\": \"\\u0000\"}", "U+0000"),
        (deep.as_str(), "nested"),
        ("@/no/such/file", "/no/such/file cannot be read"),
    ] {
        let args = ["failed", "edit", &text, "--reason", "x", "--yes", "--params", params];
        let ended = console.run(&args).await.expect(2);
        assert!(ended.stderr.contains(message), "{params}: {}", ended.stderr);
    }
    let same =
        ["failed", "edit", &text, "--reason", "x", "--yes", "--params", r#"{"customer": 4891}"#];
    console.run(&same).await.expect(4);
    let pool = ["failed", "edit", &text, "--reason", "x", "--yes", "--pool", "reserve"];
    let ended = console.run(&pool).await.expect(3);
    assert!(ended.stderr.contains("no worker consumes"), "{}", ended.stderr);
    assert_eq!((console.state(id).await.as_str(), console.audit(id).await.len()), ("failed/2", 1));
    let left = [&pool[..], &["--force", "--no-requeue"]].concat();
    console.run(&left).await.expect(0);
    assert_eq!(console.state(id).await, "failed/2");
    assert_eq!(console.json(&["executions", "show", &text]).await["pool"], "reserve");
}

#[tokio::test]
async fn a_failing_editor_changes_nothing_and_keeps_the_text() {
    let console = Console::with_jobs().await;
    let id = console.failed().await;
    let text = id.to_string();
    let folder = console.folder.path().to_str().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap();
    let edit = async |script: &str, code: i32| {
        let editor = editor(&console, script);
        let env =
            [("EDITOR", editor.as_str()), ("TMPDIR", folder.as_str()), ("PATH", path.as_str())];
        let args = ["failed", "edit", &text, "--reason", "typo", "--yes"];
        console.run_with(&args, &env, "").await.expect(code)
    };
    let files = || {
        let all =
            std::fs::read_dir(console.folder.path()).unwrap().map(|file| file.unwrap().path());
        all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("sexton-"))
            .collect::<Vec<_>>()
    };
    edit("exit 0", 4).await;
    assert_eq!(files(), Vec::<std::path::PathBuf>::new(), "unchanged, and removed");
    for (script, code, left) in
        [("echo half > \"$1\"; exit 3", 1, "half\n"), ("echo '{' > \"$1\"", 2, "{\n")]
    {
        let ended = edit(script, code).await;
        let [saved_file] = <[std::path::PathBuf; 1]>::try_from(files()).unwrap();
        assert!(ended.stderr.contains(saved_file.to_str().unwrap()), "{}", ended.stderr);
        assert_eq!(std::fs::read_to_string(&saved_file).unwrap(), left);
        assert_eq!(std::fs::metadata(&saved_file).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(saved_file).unwrap();
    }
    assert_eq!(console.state(id).await, "failed/2");
    // Another one's edit while the editor is open is not overwritten.
    edit("sed -i s/4891/7/ \"$1\"", 0).await;
    assert_eq!(files(), Vec::<std::path::PathBuf>::new());
    let row: Value = console.json(&["executions", "show", &text]).await;
    assert_eq!((&row["params"], &row["state"]), (&json!({"customer": 7}), &json!("pending")));
}

/// A worker that is at work and offers `work`, with this schema for its params.
async fn offers(console: &Console, name: &'static str, schema: Option<Value>) {
    offers_in(console, "default", name, schema).await;
}

async fn offers_in(console: &Console, pool: &str, name: &'static str, schema: Option<Value>) {
    let who = InstanceRegistration {
        id: ProcessId::new(Uuid::now_v7()),
        kind: "worker",
        name: name.to_owned(),
        pid: 1,
        version: "0",
        tz_version: None,
        pools: vec![pool.to_owned()],
        slots: 1,
        pool_slots: Some(vec![1]),
        instance_lock: None,
        db_connections: 1,
    };
    heartbeat(console.store(), &who, true, None).await.unwrap();
    publish(console.store(), who.id, &[("work".to_owned(), schema)]).await.unwrap();
}

#[tokio::test]
async fn params_that_do_not_fit_the_schema_are_refused_with_every_place_and_kept() {
    let console = Console::with_jobs().await;
    let id = console.failed().await;
    let text = id.to_string();
    let edit = async |params: &str, code: i32| {
        let args = ["failed", "edit", &text, "--reason", "x", "--params", params, "--dry-run"];
        let ended = console.run(&args).await.expect(code);
        format!("{}{}", ended.stdout, ended.stderr)
    };
    // The schema of another pool's worker does not apply to this pool's jobs.
    offers_in(&console, "elsewhere", "w0", Some(json!({"required": ["tenant"]}))).await;
    let answer = edit("{}", 0).await;
    assert!(answer.contains("not validated: no worker at work offers work"), "{answer}");
    offers(&console, "w1", None).await;
    let answer = edit("{}", 0).await;
    assert!(
        answer.contains("not validated: no catalogue has a params_schema for work"),
        "{answer}"
    );
    let schema = json!({
        "required": ["customer"],
        "properties": {"customer": {"type": "integer"}, "lines": {"items": {"minimum": 1}}}
    });
    offers(&console, "w2", Some(schema.clone())).await;
    offers(&console, "w3", Some(schema)).await;
    let answer = edit(r#"{"customer": "secret", "lines": [1, 0, -4711]}"#, 2).await;
    for message in
        ["/customer: ", "/lines/1: must be 1 or more", "/lines/2: ", "by w2, w3", "disagree"]
    {
        assert!(answer.contains(message), "{message}: {answer}");
    }
    assert!(!answer.contains("secret") && !answer.contains("4711"), "places, not values: {answer}");
    assert!(edit(r#"{"customer": 7}"#, 0).await.contains("~ /customer"));
    // The command checks each of several schemas, and names the workers of the one that params violate.
    offers(&console, "w4", Some(json!({"required": ["account"]}))).await;
    let answer = edit(r#"{"customer": 7}"#, 2).await;
    assert!(answer.contains("account") && answer.contains("by w4"), "{answer}");
    let answer = edit(r#"{"customer": "x", "account": 1}"#, 2).await;
    assert!(answer.contains("/customer: ") && answer.contains("by w2, w3"), "{answer}");
    edit(r#"{"customer": 7, "account": 1}"#, 0).await;
    // What was written is not lost.
    let editor = editor(&console, "echo '{\"customer\": \"x\"}' > \"$1\"");
    let folder = console.folder.path().to_str().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap();
    let env = [("EDITOR", editor.as_str()), ("TMPDIR", folder.as_str()), ("PATH", path.as_str())];
    let args = ["failed", "edit", &text, "--reason", "typo", "--yes"];
    let answer = console.run_with(&args, &env, "").await.expect(2).stderr;
    let saved_file = answer.split("what you wrote is in ").nth(1).unwrap().trim();
    assert_eq!(std::fs::read_to_string(saved_file).unwrap(), "{\"customer\": \"x\"}\n");
    assert_eq!((console.state(id).await.as_str(), console.audit(id).await.len()), ("failed/2", 1));
}

#[tokio::test]
async fn each_line_of_a_file_of_triggers_has_to_fit_the_schema() {
    let console = Console::with_jobs().await;
    let schema = json!({"properties": {"order": {"type": "integer"}}});
    offers(&console, "w1", Some(schema)).await;
    let lines = [
        r#"{"key": "a", "params": {"order": 1}}"#,
        r#"{"key": "b", "params": {"order": "two"}}"#,
        r#"{"key": "c"}"#,
        r#"{"key": "d", "params": {"order": []}}"#,
    ];
    let file = console.file("orders.jsonl", &lines.join("\n"));
    let ended = console.run(&["jobs", "trigger", "shop.charge", "--each", &file]).await.expect(2);
    let messages: Vec<_> =
        ended.stderr.lines().filter(|line| line.contains("orders.jsonl:")).collect();
    assert!(
        messages.len() == 2
            && messages[0].contains(":2: /order")
            && messages[1].contains(":4: /order"),
        "{messages:?}"
    );
    assert_eq!(console.items(&["executions", "list"]).await, json!([]));
}
