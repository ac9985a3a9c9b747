//! `sexton cron next` needs no server and no settings.

use serde_json::{Value, json};

use super::run;

#[tokio::test]
async fn firings_are_told_without_any_server() {
    let args =
        ["--json", "cron", "next", "0 8 * * MON", "--from", "2026-01-01T00:00:00Z", "--count", "2"];
    // A setting that is wrong does not matter to it.
    let ended = run(&args, &[("DATABASE_URL", "rubbish")], "").await.expect(0);
    assert_eq!(
        ended.json(),
        json!({
            "expression": "0 8 * * MON", "tz": "UTC", "from": "2026-01-01T00:00:00Z",
            "next": ["2026-01-05T08:00:00Z", "2026-01-12T08:00:00Z"],
        })
    );
    let ended = run(&["cron", "next", "61 * * * *"], &[], "").await.expect(1);
    assert!(ended.stderr.contains("minute"), "{}", ended.stderr);
    let ended = run(&["cron", "next", "@daily", "--tz", "Europe/Vienna"], &[], "").await.expect(1);
    assert!(ended.stderr.contains("not supported yet"), "{}", ended.stderr);
    let ended = run(&["cron", "next", "0 0 30 2 *"], &[], "").await.expect(0);
    assert!(ended.stdout.contains("never fires"), "{}", ended.stdout);
    run(&["cron", "next"], &[], "").await.expect(2);
}

#[tokio::test]
async fn lines_on_standard_input_are_answered_one_by_one_in_order() {
    let mut input = String::new();
    for id in 0..2_000 {
        let line = match id % 3 {
            0 => json!({"id": id, "dialect": "unix5", "expr": "*/5 * * * *", "tz": "UTC",
                        "from": "2026-01-01T00:00:00Z", "count": 1})
            .to_string(),
            1 => json!({"id": id, "dialect": "unix5", "expr": "nonsense"}).to_string(),
            _ => "{".to_owned(),
        };
        input.push_str(&line);
        input.push('\n');
    }
    let ended = run(&["cron", "next", "--stdin"], &[], &input).await.expect(0);
    let answers: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 2_000);
    for (id, answer) in answers.iter().enumerate() {
        match id % 3 {
            0 => assert_eq!(*answer, json!({"id": id, "next": ["2026-01-01T00:05:00Z"]})),
            1 => assert!(answer["id"] == id && answer["error"].is_string(), "{answer}"),
            _ => assert!(answer["id"].is_null() && answer["error"].is_string(), "{answer}"),
        }
    }
}
