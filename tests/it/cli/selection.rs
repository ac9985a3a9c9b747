//! Commands that select failed executions: one filter for all of them, and nothing that it leaves out unsaid.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sexton_model::fingerprint::fingerprint;

use super::{Console, run};

/// Two failures of one group and one of another; the first ran on the worker `w1`. Returns the larger group.
async fn three(console: &Console) -> String {
    for error in ["card 4891 declined", "card 7 declined", "disk full"] {
        let id = console.trigger("shop.charge").await;
        console.fail(console.open(id, 1).await, error, None).await;
        if error.starts_with("card 4891") {
            sqlx::query("UPDATE sexton.failures SET worker = 'w1' WHERE execution_id = $1")
                .bind(id.get())
                .execute(console.db.pool())
                .await
                .unwrap();
        }
    }
    fingerprint("exit_1", "card 1 declined").to_string()
}

async fn mute(console: &Console, group: &str) {
    console.run(&["groups", "mute", group, "--reason", "known"]).await.expect(0);
}

/// The preview of a bulk; nothing is done.
async fn preview(console: &Console, action: &[&str], filter: &[&str]) -> Value {
    let answer = console.json(&[&["failed"], action, &["--dry-run"], filter].concat()).await;
    answer["preview"].clone()
}

const REQUEUE: &[&str] = &["requeue"];
const DISCARD: &[&str] = &["discard", "--reason", "test orders"];

#[tokio::test]
async fn a_preview_names_the_excluded_muted_groups_and_muted_selects_them() {
    let console = Console::with_jobs().await;
    let group = three(&console).await;
    mute(&console, &group).await;
    let warning =
        format!("2 executions of a muted group ({group}: 2); --muted selects them as well");
    for action in [REQUEUE, DISCARD] {
        let refused = console.run(&[&["failed"], action, &["--all"]].concat()).await.expect(7);
        for part in ["1 execution will be", &format!("left out  {warning}")] {
            assert!(refused.stdout.contains(part), "{part}: {}", refused.stdout);
        }
        let left_out = json!({"count": 2, "more": false, "groups": [[group, 2]]});
        let dry = preview(&console, action, &["--all"]).await;
        assert_eq!((&dry["count"], &dry["muted"]), (&json!(1), &left_out));
        // Only what fits is left out.
        let dry = preview(&console, action, &["--text", "card 7"]).await;
        assert_eq!((&dry["count"], &dry["muted"]["count"]), (&json!(0), &json!(1)));
        let none = ["--text", "card", "--yes"];
        let none = console.run(&[&["failed"], action, &none[..]].concat()).await.expect(4);
        assert!(none.stderr.contains(&format!("nothing was done. {warning}")), "{}", none.stderr);
        for (filter, count) in [
            (&["--all", "--muted"][..], 3),
            (&["--job", "shop.charge", "--muted"], 3),
            (&["--group", &group], 2),
            (&["--group", &group[..6]], 2),
        ] {
            let dry = preview(&console, action, filter).await;
            assert_eq!((&dry["count"], &dry["muted"]["count"]), (&json!(count), &json!(0)));
        }
        // `--muted` selects nothing by itself, and ids need no filter.
        console.run(&[&["failed"], action, &["--muted", "--yes"]].concat()).await.expect(2);
        let id = console.items(&["failed", "list"]).await[0]["id"].as_str().unwrap().to_owned();
        console.run(&[&["failed"], action, &[&id, "--muted", "--yes"]].concat()).await.expect(2);
    }
    // Without a preview the command warns as well, and beside JSON on standard error.
    let done = console.run(&["failed", "requeue", "--all", "--yes", "--detach"]).await.expect(0);
    assert!(done.stderr.contains(&warning), "{}", done.stderr);
    let all = ["--json", "failed", "requeue", "--all", "--muted", "--yes", "--detach"];
    let done = console.run(&all).await.expect(0);
    assert_eq!(done.stderr, "");
    let filter_of = |bulk: &Value| bulk["selector"]["filter"].clone();
    let bulks = console.items(&["bulks", "list"]).await;
    assert_eq!((filter_of(&bulks[0]), filter_of(&bulks[1])), (json!({"muted": true}), json!({})));
}

#[tokio::test]
async fn a_list_names_what_it_excludes_and_never_excludes_discarded_executions() {
    let console = Console::with_jobs().await;
    let group = three(&console).await;
    assert_eq!(console.run(&["failed", "list"]).await.expect(0).stderr, "");
    mute(&console, &group).await;
    let warning =
        format!("sexton: left out: 2 executions of a muted group ({group}: 2); --muted selects");
    for json in [&[][..], &["--json"]] {
        let list = console.run(&[json, &["failed", "list"]].concat()).await.expect(0);
        assert!(list.stderr.starts_with(&warning), "{}", list.stderr);
        let none = [json, &["failed", "list", "--job", "shop.mail"]].concat();
        assert_eq!(console.run(&none).await.expect(0).stderr, "");
        for all in [&["--muted"][..], &["--group", &group[..5]]] {
            let list = console.run(&[json, &["failed", "list"], all].concat()).await.expect(0);
            assert_eq!(list.stderr, "");
        }
    }
    let ids = console.items(&["failed", "list", "--muted"]).await;
    for row in ids.as_array().unwrap() {
        let id = row["id"].as_str().unwrap();
        let discard = ["failed", "discard", id, "--reason", "x", "--yes"];
        console.run(&discard).await.expect(0);
    }
    let discarded = console.run(&["--json", "failed", "list", "--discarded"]).await.expect(0);
    assert_eq!(
        (discarded.json()["items"].as_array().unwrap().len(), discarded.stderr.as_str()),
        (3, "")
    );
    let dry = preview(&console, &["restore"], &["--all"]).await;
    assert_eq!((&dry["count"], &dry["muted"]["count"]), (&json!(3), &json!(0)));
}

#[tokio::test]
async fn every_command_that_selects_takes_the_same_executions_for_the_same_filter() {
    let console = Console::with_jobs().await;
    let group = three(&console).await;
    let many = |filter: &[&str]| filter.iter().map(|&part| part.to_owned()).collect::<Vec<_>>();
    for (filter, count) in [
        (many(&["--job", "shop.charge"]), 3),
        (many(&["--job", "shop.mail"]), 0),
        (many(&["--task-type", "work", "--pool", "default"]), 3),
        (many(&["--error-class", "exit_1", "--text", "card 48"]), 1),
        (many(&["--group", &group[..4]]), 2),
        (many(&["--group", &group]), 2),
        (many(&["--worker", "w1"]), 1),
        (many(&["--worker", "nobody"]), 0),
        (many(&["--since", "1h", "--until", "2200-01-01"]), 3),
        (many(&["--params", "customer=4891", "--muted"]), 3),
        (many(&["--label", "team=none"]), 0),
    ] {
        let filter: Vec<&str> = filter.iter().map(String::as_str).collect();
        let listed = console.items(&[&["failed", "list"][..], &filter].concat()).await;
        assert_eq!(listed.as_array().unwrap().len(), count, "{filter:?}");
        for action in [REQUEUE, DISCARD] {
            assert_eq!(preview(&console, action, &filter).await["count"], count, "{filter:?}");
        }
    }
    // All that is wrong is message at once, as a list does.
    let wrong = ["failed", "requeue", "--yes", "--text", "!?", "--label", "x", "--group", "xyz"];
    let message = console.run(&wrong).await.expect(2).stderr;
    for part in ["--text", "--label", "xyz"] {
        assert!(message.contains(part), "{part}: {message}");
    }
}

/// The options of a command's help, each with its text.
async fn options(command: &[&str]) -> BTreeMap<String, String> {
    let help = run(&[command, &["--help"]].concat(), &[], "").await.expect(0).stdout;
    let mut options = BTreeMap::new();
    let mut name = None;
    for line in help.lines().map(str::trim) {
        if line.starts_with('-') {
            name = line.split_whitespace().find(|word| word.starts_with("--")).map(str::to_owned);
        }
        if let Some(name) = name.as_ref().filter(|_| !line.is_empty()) {
            let text: &mut String = options.entry(name.clone()).or_default();
            for word in line.split_whitespace() {
                text.push(' ');
                text.push_str(word);
            }
        }
    }
    options
}

#[tokio::test]
async fn every_command_that_selects_has_the_same_options_with_the_same_help() {
    let list = options(&["failed", "list"]).await;
    let filter: Vec<&str> = [
        "--job",
        "--task-type",
        "--pool",
        "--error-class",
        "--text",
        "--group",
        "--since",
        "--until",
        "--worker",
        "--label",
        "--params",
    ]
    .into();
    for (noun, verb) in [
        ("failed", "requeue"),
        ("failed", "discard"),
        ("failed", "restore"),
        ("executions", "list"),
        ("executions", "cancel"),
    ] {
        let options = options(&[noun, verb]).await;
        for name in &filter {
            assert!(list.contains_key(*name), "{name}: {list:?}");
            assert_eq!(options.get(*name), list.get(*name), "{noun} {verb}");
        }
        if noun == "failed" {
            assert_eq!(options.get("--muted"), list.get("--muted"), "{verb}");
            assert!(options["--all"].contains("--muted"), "{options:?}");
        }
    }
}
