//! `sexton cron next` needs no server and no settings.

use serde_json::{Value, json};
use sexton_model::zone::tz_data_version;

use super::run;

#[tokio::test]
async fn cron_next_lists_firings_without_a_server() {
    let args =
        ["--json", "cron", "next", "0 8 * * MON", "--from", "2026-01-01T00:00:00Z", "--count", "2"];
    // A wrong setting does not affect it.
    let ended = run(&args, &[("DATABASE_URL", "rubbish")], "").await.expect(0);
    assert_eq!(
        ended.json(),
        json!({
            "expression": "0 8 * * MON", "tz": "UTC", "dst": "vixie", "days": null, "job": null,
            "from": "2026-01-01T00:00:00Z", "tz_version": tz_data_version(),
            "next": ["2026-01-05T08:00:00Z", "2026-01-12T08:00:00Z"],
        })
    );
    let ended = run(&["cron", "next", "61 * * * *"], &[], "").await.expect(1);
    assert!(ended.stderr.contains("minute"), "{}", ended.stderr);
    let ended = run(&["cron", "next", "0 0 30 2 *"], &[], "").await.expect(0);
    assert!(ended.stdout.contains("never fires"), "{}", ended.stdout);
    run(&["cron", "next"], &[], "").await.expect(2);
}

#[tokio::test]
async fn cron_next_follows_the_zone_rule_and_name_of_a_job() {
    let next = async |options: &[&str]| {
        let from = ["--json", "cron", "next", "--from", "2026-03-28T12:00:00Z", "--count", "1"];
        let ended = run(&[&from[..], options].concat(), &[], "").await.expect(0);
        ended.json()["next"][0].as_str().unwrap().to_owned()
    };
    let vienna = ["30 2 * * *", "--tz", "Europe/Vienna"];
    assert_eq!(next(&vienna).await, "2026-03-29T01:00:00Z");
    assert_eq!(next(&[&vienna[..], &["--dst", "skip"]].concat()).await, "2026-03-30T00:30:00Z");
    let zone = ["0 0 * * *", "--zone", "Asia/Kathmandu"];
    assert_eq!(next(&zone).await, "2026-03-28T18:15:00Z");
    let name = ["H H * * *", "--job", "billing.run"];
    assert_eq!(next(&name).await, "2026-03-29T03:05:00Z");
    assert_eq!(next(&["H H * * *", "--salt", "billing.run"]).await, next(&name).await);

    // The text output shows the wall clock beside the instant, and the name that H was computed for.
    let shown = run(&["cron", "next", "H 2 29 3 *", "--tz", "Europe/Vienna"], &[], "").await;
    let shown = shown.expect(0).stdout;
    assert!(shown.contains("-03-29 ") && shown.contains("+02:00"), "{shown}");
    assert!(shown.contains("--job NAME"), "{shown}");

    let ended = run(&["cron", "next", "@daily", "--tz", "Europe/Viena"], &[], "").await.expect(2);
    assert!(ended.stderr.contains("did you mean Europe/Vienna?"), "{}", ended.stderr);
    let ended = run(&["cron", "next", "@daily", "--dst", "often"], &[], "").await.expect(2);
    assert!(ended.stderr.contains("vixie, skip, wall"), "{}", ended.stderr);
}

#[tokio::test]
async fn a_bad_line_is_answered_with_an_error_and_the_next_one_is_read() {
    let long = format!(r#"{{"id":2,"expr":"{}"}}"#, "*,".repeat(40_000));
    let lines = [
        r#"{"id":1,"expr":"30 2 * * *","zone":"Europe/Vienna","from":"2026-10-24T12:00:00Z","dst":"wall","count":2}"#,
        &long,
        r#"{"id":3,"expr":"@daily","tz":"Mars/Base"}"#,
        r#"{"id":4,"expr":"0 0 *,L * *"}"#,
        r#"{"id":5,"expr":"H * * * *","salt":"billing.run","from":"2026-01-01T00:00:00Z","count":1}"#,
    ];
    let ended = run(&["cron", "next", "--stdin"], &[], &lines.join("\n")).await.expect(0);
    let answers: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let next = ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"];
    assert_eq!(answers[0], json!({"id": 1, "next": next}));
    let error = |index: usize| answers[index]["error"].as_str().unwrap();
    assert!(answers[1]["id"].is_null() && error(1).contains("longer than"), "{}", answers[1]);
    assert!(error(2).contains("is not a time zone"), "{}", answers[2]);
    assert!(error(3).contains("cannot stand in one list"), "{}", answers[3]);
    assert_eq!(answers[4], json!({"id": 5, "next": ["2026-01-01T00:05:00Z"]}));
    assert_eq!(answers.len(), 5);
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
