//! `sexton failed`: seeing what failed, and why.

use serde_json::{Value, json};
use sexton_model::fingerprint::fingerprint;
use sexton_model::output::{Chunk, Line, Stream};
use sexton_store::output::OutputPart;

use super::{Console, keys};

fn output(text: &str) -> OutputPart {
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    let lines: Vec<Line> = text
        .lines()
        .map(|text| Line { at, stream: Stream::Stderr, text: text.to_owned() })
        .collect();
    let bytes = text.len() as i64;
    OutputPart { chunks: vec![Chunk::new(1, 0, bytes, &lines).into()], ..OutputPart::default() }
}

/// Three failures of two groups.
async fn three(console: &Console) -> Vec<String> {
    let mut ids = Vec::new();
    for error in ["card 4891 declined", "card 7 declined", "disk full"] {
        let id = console.trigger("shop.charge").await;
        console.fail(console.open(id, 1).await, error, None).await;
        ids.push(id.to_string());
    }
    ids
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn failed_executions_are_found_by_every_filter_and_paged() {
    let console = Console::with_jobs().await;
    let all = three(&console).await;
    let newest: Vec<&str> = all.iter().rev().map(String::as_str).collect();
    assert_eq!(ids(&console.items(&["failed", "list"]).await), newest);
    let group = fingerprint("exit_1", "card 1 declined").to_string();
    for (filter, expected) in [
        (&["--text", "card 48"][..], &newest[2..]),
        (&["--group", &group[..6]], &newest[1..]),
        (&["--params", "customer=4891", "--text", "disk"], &newest[..1]),
        (&["--error-class", "exit_1", "--task-type", "work", "--pool", "default"], &newest),
        (&["--job", "shop.charge", "--since", "1h", "--until", "2200-01-01"], &newest),
        (&["--job", "shop.mail"], &[]),
        (&["--worker", "nobody"], &[]),
    ] {
        let args = [&["failed", "list"], filter].concat();
        assert_eq!(ids(&console.items(&args).await), expected, "{filter:?}");
    }
    let first = console.json(&["failed", "list", "--limit", "2", "--sort", "oldest"]).await;
    assert_eq!(ids(&first["items"]), [&all[0], &all[1]]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let after = ["failed", "list", "--sort", "oldest", "--cursor", cursor];
    let last = console.json(&after).await;
    assert_eq!((ids(&last["items"]), &last["next_cursor"]), (vec![&*all[2]], &Value::Null));
    let first_page = console.run(&["failed", "list", "--limit", "2"]).await.expect(0).stdout;
    let cursor = first_page.split("add --cursor ").nth(1).unwrap().trim();
    assert_eq!(ids(&console.items(&["failed", "list", "--cursor", cursor]).await), [&all[0]]);
    let other = console.run(&["failed", "list", "--sort", "oldest", "--cursor", cursor]).await;
    assert!(other.expect(2).stderr.contains("next_cursor"));
}

#[tokio::test]
async fn every_problem_of_a_filter_is_reported_at_once_with_suggestions() {
    let console = Console::with_jobs().await;
    three(&console).await;
    let args = [
        "failed",
        "list",
        "--job",
        "shop.chrge",
        "--text",
        "!?",
        "--since",
        "tomorrow",
        "--label",
        "x",
        "--params",
        "=1",
        "--group",
        "xyz",
        "--error-class",
        "",
    ];
    let stderr = console.run(&args).await.expect(2).stderr;
    for part in [
        "shop.chrge",
        "--text",
        "--since \"tomorrow\"",
        "--label",
        "--params",
        "xyz",
        "--error-class",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    let group = fingerprint("exit_1", "disk full").to_string();
    let near = format!(
        "{}{}",
        &group[..8],
        if &group[8..] == "00000000" { "11111111" } else { "00000000" }
    );
    let stderr = console.run(&["failed", "list", "--group", &near]).await.expect(3).stderr;
    assert!(stderr.contains(&format!("did you mean {group}?")), "{stderr}");
    let stderr = console.run(&["failed", "list", "--job", "shop.chrge"]).await.expect(3).stderr;
    assert!(stderr.contains("sexton jobs list"), "{stderr}");
    console.run(&["failed", "list", "--cursor", "n123"]).await.expect(2);
    let backwards = ["failed", "list", "--since", "1h", "--until", "2h"];
    assert!(console.run(&backwards).await.expect(2).stderr.contains("--until"));
    let gone = "00000000-0000-7000-8000-000000000000";
    console.run(&["failed", "show", gone]).await.expect(3);
}

#[tokio::test]
async fn failed_show_prints_output_group_and_message_without_secrets() {
    let console = Console::with_jobs().await;
    let file = console.file(
        "secret.toml",
        "[[job]]\nname = \"shop.pay\"\ntask = \"work\"\n\
         params = { api_key = \"k-4711\", url = \"https://ann:hunter2@bank.example/\", note = \"fine\" }\n",
    );
    console.run(&["jobs", "apply", "-f", &file]).await.expect(0);
    let id = console.trigger("shop.pay").await;
    let lines: Vec<String> = (1..=40).map(|n| format!("line {n}")).collect();
    let evil = format!("{}\n\u{1b}[2Jwiped\n{}", lines.join("\n"), "x".repeat(100_000));
    console
        .fail(console.open(id, 1).await, "card \u{1b}]0;owned\u{7} declined", Some(output(&evil)))
        .await;
    let id = id.to_string();
    let shown = console.json(&["failed", "show", &id]).await;
    assert_eq!(shown["params"]["api_key"], "***");
    assert_eq!(shown["params"]["url"], "https://ann:***@bank.example/");
    assert_eq!(shown["params"]["note"], "fine");
    assert_eq!(shown["parked_message"]["body"]["attempt"], 2);
    assert_eq!(shown["parked_message"]["body"]["params_scheduler"]["api_key"], "***");
    assert_eq!(shown["parked_message"]["published_at"], Value::Null, "it is unpublished");
    assert_eq!(
        (&shown["group"]["standing"], &shown["group"]["state"]),
        (&json!(1), &json!("open"))
    );
    assert_eq!(shown["group"]["fingerprint"], shown["fingerprint"]);
    let tail = shown["output_tail"]["lines"].as_array().unwrap();
    assert_eq!((tail.len(), &shown["output_tail"]["lines_before"]), (10, &json!(32)));
    assert!(tail[9]["text"].as_str().unwrap().chars().count() < 500);
    assert_eq!(shown["attempts"][0]["exit_code"], 1);
    let shown = console.run(&["failed", "show", &id]).await.expect(0).stdout;
    for part in ["\\u{1b}[2Jwiped", "failed queue", "line 40", "Group", "after 32 lines", "not yet"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    for text in [&shown, &console.run(&["failed", "list"]).await.expect(0).stdout] {
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        assert!(!text.contains("k-4711") && !text.contains("hunter2"), "{text}");
    }
    let list = console.run(&["--json", "failed", "list"]).await.expect(0).stdout;
    assert!(!list.contains("k-4711"), "{list}");
}

#[tokio::test]
async fn groups_are_listed_noted_muted_resolved_and_reopen() {
    let console = Console::with_jobs().await;
    let all = three(&console).await;
    let groups = console.items(&["groups", "list"]).await;
    assert_eq!(
        (&groups[0]["pattern"], &groups[0]["standing"]),
        (&json!("card <n> declined"), &json!(2))
    );
    assert_eq!(groups[0]["trend"].as_array().unwrap().last(), Some(&json!(2)));
    assert_eq!(
        keys(&groups[0]),
        [
            "decided_at",
            "decided_by",
            "error_class",
            "example",
            "fingerprint",
            "first_seen",
            "jobs",
            "last_seen",
            "note",
            "pattern",
            "standing",
            "state",
            "trend"
        ]
    );
    let group = groups[0]["fingerprint"].as_str().unwrap();
    console.run(&["groups", "note", group, "bank \u{1b}[31mdown"]).await.expect(0);
    console.run(&["groups", "mute", group, "--reason", "known"]).await.expect(0);
    console.run(&["groups", "mute", &group[..5]]).await.expect(4);
    assert_eq!(ids(&console.items(&["failed", "list"]).await), [&all[2]]);
    assert_eq!(ids(&console.items(&["failed", "list", "--muted"]).await).len(), 3);
    let groups = console.run(&["groups", "list"]).await.expect(0).stdout;
    assert!(groups.contains("muted") && groups.contains("[bank \\u{1b}[31mdown]"), "{groups}");
    console.run(&["groups", "resolve", group]).await.expect(0);
    let id = console.trigger("shop.charge").await;
    console.fail(console.open(id, 1).await, "card 99 declined", None).await;
    let reopened = console.items(&["groups", "list", "--state", "reopened"]).await;
    assert_eq!(reopened[0]["fingerprint"], group);
    let shown = console.run(&["groups", "show", group]).await.expect(0).stdout;
    assert!(shown.contains("reopened") && shown.contains(&id.to_string()), "{shown}");
    console.run(&["groups", "reopen", group]).await.expect(0);
    assert_eq!(console.json(&["groups", "show", group]).await["state"], "open");
    console.run(&["groups", "mute", "0000000000000000"]).await.expect(3);
    console.run(&["groups", "list", "--job", "shop.nothing"]).await.expect(3);
    let actors: Vec<String> = sqlx::query_scalar(
        "SELECT action FROM sexton.operator_actions WHERE job_id IS NULL ORDER BY id",
    )
    .fetch_all(console.store().pool())
    .await
    .unwrap();
    assert_eq!(actors, ["group_note", "group_mute", "group_resolve", "group_reopen"]);
}
