//! `sexton executions`: finding, reading and ending them.

use serde_json::Value;
use sexton_model::output::Stream;

use super::logs::{chunk, part};
use super::{Console, keys};

const ROW: [&str; 45] = [
    "admitted_at",
    "attempt",
    "attempts_made",
    "backfill",
    "cancel_requested",
    "claimed_at",
    "claimed_by",
    "crashes_used",
    "error_class",
    "error_message",
    "execution_key",
    "fingerprint",
    "finished_at",
    "flow_id",
    "id",
    "idempotency_key",
    "job_id",
    "job_name",
    "lease_until",
    "max_crashes",
    "next_attempt_at",
    "outcome",
    "overlap_override",
    "own_key",
    "params",
    "pool",
    "progress",
    "reconcile_count",
    "relay_after",
    "replaced_by",
    "result",
    "retries_used",
    "rev",
    "scheduled_for",
    "skip_reason",
    "snoozes_used",
    "started_at",
    "state",
    "target",
    "task_type",
    "ticket_published_at",
    "timeouts_used",
    "tz_version",
    "waits",
    "worker_id",
];

async fn ids(console: &Console, args: &[&str]) -> Vec<String> {
    let answer = console.items(&[&["executions", "list"], args].concat()).await;
    let id = |row: &Value| row["id"].as_str().unwrap().to_owned();
    answer.as_array().unwrap().iter().map(id).collect()
}

#[tokio::test]
async fn executions_are_found_by_job_state_time_params_and_page() {
    let console = Console::with_jobs().await;
    let charge = console.trigger("shop.charge").await.to_string();
    let mail = console.trigger("shop.mail").await.to_string();
    let invoices = console.trigger("billing.invoices").await.to_string();
    for (args, found) in [
        (&[][..], vec![&invoices, &mail, &charge]),
        (&["--job", "shop.mail"], vec![&mail]),
        (&["--state", "pending", "--state", "running", "--limit", "1"], vec![&invoices]),
        (&["--state", "failed"], vec![]),
        (&["--params", "customer=4891", "--since", "1h"], vec![&charge]),
        (&["--params", "customer=489"], vec![]),
        (&["--params", "order.id=7", "--params", "customer=1"], vec![&invoices]),
        (&["--params", "order.id=7", "--params", "customer=2"], vec![]),
        (&["--since", "2000-01-01", "--until", "2000-02-01"], vec![]),
        (&["--worker", "nobody"], vec![]),
        (&["--task-type", "work", "--pool", "default"], vec![&mail, &charge]),
        (&["--pool", "nowhere"], vec![]),
        (&["--label", "team=none"], vec![]),
        (&["--error-class", "exit_1"], vec![]),
        (&["--text", "declined"], vec![]),
    ] {
        assert_eq!(ids(&console, args).await.iter().collect::<Vec<_>>(), found, "{args:?}");
    }
    for args in [
        ["--params", "=1"],
        ["--since", "soon"],
        ["--state", "lost"],
        ["--limit", "0"],
        ["--cursor", &mail],
    ] {
        console.run(&[&["executions", "list"][..], &args].concat()).await.expect(2);
    }
    for filter in [&[][..], &["--state", "pending"], &["--job", "shop.mail", "--job", "shop.mail"]]
    {
        let page = [&["executions", "list", "--limit", "1"], filter].concat();
        let page = console.run(&page).await;
        if filter.len() > 2 {
            page.expect(2);
            continue;
        }
        let stdout = page.expect(0).stdout;
        let cursor = stdout.split("add --cursor ").nth(1).unwrap().trim().to_owned();
        let rest = [filter, &["--cursor", &cursor]].concat();
        assert_eq!(ids(&console, &rest).await, [mail.clone(), charge.clone()], "{filter:?}");
    }
}

#[tokio::test]
async fn listed_and_shown_executions_use_the_column_names() {
    let console = Console::with_jobs().await;
    let id = console.failed().await.to_string();
    let list = console.items(&["executions", "list"]).await;
    assert_eq!(keys(&list[0]), ROW);
    let shown = console.json(&["executions", "show", &id]).await;
    let mut names = [&ROW[..], &["attempts", "flow", "operator_actions"]].concat();
    names.sort_unstable();
    assert_eq!(keys(&shown), names);
    assert_eq!(
        keys(&shown["attempts"][0]),
        [
            "error_class",
            "error_message",
            "execution_id",
            "exit_code",
            "finished_at",
            "late_at",
            "late_outcome",
            "number",
            "opened_at",
            "outcome",
            "progress",
            "result",
            "signal",
            "worker_id",
            "worker_name",
        ]
    );
    assert_eq!(
        keys(&shown["operator_actions"][0]),
        [
            "action",
            "actor",
            "after",
            "at",
            "before",
            "bulk_id",
            "execution_id",
            "from_address",
            "from_where",
            "id",
            "job_id",
            "reason",
        ]
    );
}

/// The cell of a table in the row that begins with the shortened `id`.
fn cell(table: &str, id: &str, column: &str) -> String {
    let heading = table.lines().next().unwrap();
    let index = heading.split_whitespace().position(|name| name == column);
    let index = index.unwrap_or_else(|| panic!("no column {column}: {table}"));
    let is_its = |line: &&str| id.starts_with(line.split_whitespace().next().unwrap_or("-"));
    let row = table.lines().find(is_its).unwrap();
    row.split_whitespace().nth(index).unwrap().to_owned()
}

#[tokio::test]
async fn tables_count_the_attempts_that_were_made_and_not_the_next_one() {
    let console = Console::with_jobs().await;
    let untried = console.trigger("shop.mail").await.to_string();
    let running = console.trigger("shop.mail").await;
    console.open(running, 1).await;
    let failed = console.failed().await.to_string();
    let table = console.run(&["executions", "list"]).await.expect(0).stdout;
    for (id, made) in [(&untried, "0"), (&running.to_string(), "1"), (&failed, "1")] {
        assert_eq!(cell(&table, id, "ATTEMPTS"), made, "{table}");
        assert_eq!(
            console.json(&["executions", "show", id]).await["attempts_made"].to_string(),
            made
        );
    }
    let table = console.run(&["failed", "list"]).await.expect(0).stdout;
    assert_eq!(cell(&table, &failed, "ATTEMPTS"), "1", "{table}");
    // `attempt` stays the number that `--attempt` takes.
    let listed = console.items(&["failed", "list"]).await;
    assert_eq!((&listed[0]["attempt"], &listed[0]["attempts_made"]), (&2.into(), &1.into()));
    // A requeue begins no attempt.
    console.run(&["failed", "requeue", &failed]).await.expect(0);
    let table = console.run(&["executions", "list"]).await.expect(0).stdout;
    assert_eq!(cell(&table, &failed, "ATTEMPTS"), "1", "{table}");
    sqlx::query("DELETE FROM sexton.attempts").execute(console.db.pool()).await.unwrap();
    let table = console.run(&["executions", "list"]).await.expect(0).stdout;
    assert_eq!(cell(&table, &failed, "ATTEMPTS"), "-", "{table}");
    assert_eq!(cell(&table, &untried, "ATTEMPTS"), "0", "{table}");
}

#[tokio::test]
async fn an_id_may_be_shortened_as_long_as_it_is_unique() {
    let console = Console::with_jobs().await;
    let id = console.trigger("shop.mail").await.to_string();
    let shown = console.json(&["executions", "show", &id[..18]]).await;
    assert_eq!(shown["id"], id.as_str());
    console.trigger("shop.mail").await;
    let ended = console.run(&["executions", "show", &id[..8]]).await.expect(2);
    assert!(ended.stderr.contains("several"), "{}", ended.stderr);
    console.run(&["executions", "show", "nonsense"]).await.expect(2);
    console.run(&["executions", "show", "00000000"]).await.expect(3);
    console.run(&["executions", "show", "00000000-0000-7000-8000-000000000000"]).await.expect(3);
}

#[tokio::test]
async fn nothing_that_a_task_wrote_reaches_the_terminal_as_an_escape() {
    let console = Console::with_jobs().await;
    let params = r#"{"note": "\u001b]0;title\u0007\u009b2J"}"#;
    let answer = console.json(&["jobs", "trigger", "shop.charge", "--params", params]).await;
    let id = answer["id"].as_str().unwrap().to_owned();
    let held = console.open(id.parse().unwrap(), 1).await;
    let evil = "\u{1b}[31mred\u{1b}[2Jgone\u{202e}";
    let chunks = [(1, 0, Stream::Stdout, evil), (4, 30, Stream::Stderr, "last")];
    let chunks =
        chunks.map(|(first, before, stream, text)| chunk(first, before, &[(stream, text)]));
    console.fail(held, evil, Some(part(&chunks))).await;
    for args in [
        &["executions", "logs", &id][..],
        &["executions", "show", &id],
        &["executions", "list"],
        &["failed", "list"],
        &["--json", "executions", "logs", &id],
        &["--json", "executions", "show", &id],
    ] {
        let ended = console.run(args).await.expect(0);
        let acts = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!ended.stdout.chars().any(acts), "{args:?}: {:?}", ended.stdout);
        assert!(ended.stdout.contains("31mred") || args.contains(&"show"), "{}", ended.stdout);
    }
    let logs = console.run(&["executions", "logs", &id, "--attempt", "1"]).await.expect(0);
    let lines: Vec<&str> = logs.stdout.lines().collect();
    assert_eq!(lines[1], "… 2 lines (10 bytes) were not kept …");
    assert_eq!(lines[2], "00:00:04.000 err last");
    let logs = console.json(&["executions", "logs", &id]).await;
    assert_eq!(keys(&logs), ["execution_id", "number", "outcome", "output"]);
    assert_eq!(logs["output"]["lines"][0]["text"], evil);
    console.run(&["executions", "logs", &id, "--attempt", "2"]).await.expect(3);
}

#[tokio::test]
async fn cancel_ends_a_waiting_execution_at_once_and_asks_a_running_one_to_end() {
    let console = Console::with_jobs().await;
    let waiting = console.trigger("shop.mail").await;
    let done = console.json(&["executions", "cancel", &waiting.to_string()]).await;
    assert_eq!(keys(&done[0]), ["done", "error", "id", "state"]);
    assert_eq!(done[0]["state"], "cancelled");
    assert_eq!(console.state(waiting).await, "cancelled/1");
    let running = console.trigger("shop.mail").await;
    console.open(running, 1).await;
    let id = running.to_string();
    let done = console.json(&["executions", "cancel", &id, "--reason", "wrong list"]).await;
    assert_eq!((&done[0]["done"], &done[0]["state"]), (&Value::Bool(true), &"running".into()));
    assert_eq!(console.state(running).await, "running/1");
    console.run(&["executions", "cancel", &id]).await.expect(4);
    assert_eq!(
        console.audit(running).await,
        ["trigger by tester because ", "cancel by tester because wrong list"]
    );
    console.run(&["executions", "cancel", &waiting.to_string()]).await.expect(4);
    let failed = console.failed().await.to_string();
    let ended = console.run(&["executions", "cancel", &failed]).await.expect(4);
    assert!(ended.stderr.contains("discard"), "{}", ended.stderr);
}

#[tokio::test]
async fn cancel_by_a_filter_previews_asks_and_leaves_a_bulk_to_the_schedulers() {
    let console = Console::with_jobs().await;
    let cancel =
        async |args: &[&str]| console.run(&[&["executions", "cancel"], args].concat()).await;
    cancel(&[]).await.expect(2);
    let mails = [console.trigger("shop.mail").await, console.trigger("shop.mail").await];
    let charge = console.trigger("shop.charge").await;
    console.open(mails[0], 1).await;
    let preview = cancel(&["--job", "shop.mail"]).await.expect(7);
    for part in ["2 executions will be cancelled", "1 wait and end at once, 1 run"] {
        assert!(preview.stdout.contains(part), "{part}: {}", preview.stdout);
    }
    for (filter, count) in [
        (&["--all"][..], 3),
        (&["--state", "running"], 1),
        (&["--state", "pending", "--since", "1h"], 2),
        (&["--params", "customer=4891"], 1),
        (&["--pool", "nowhere"], 0),
    ] {
        let dry = [&["executions", "cancel", "--dry-run"], filter].concat();
        assert_eq!(console.json(&dry).await["preview"]["count"], count, "{filter:?}");
    }
    assert_eq!(console.rows("SELECT count(*) FROM sexton.bulks").await, 0);
    let id = charge.to_string();
    for wrong in [&[&*id, "--job", "shop.mail"][..], &[&*id, "--all"], &["--state", "failed"]] {
        cancel(wrong).await.expect(2);
    }
    cancel(&["--pool", "nowhere", "--yes"]).await.expect(4);
    let done = ["--job", "shop.mail", "--reason", "wrong list", "--yes", "--rate", "1/m"];
    let stdout = cancel(&done).await.expect(0).stdout;
    assert!(stdout.contains("no scheduler runs"), "{stdout}");
    let bulk = console.json(&["bulks", "show", "1"]).await["bulk"].clone();
    assert_eq!((&bulk["kind"], &bulk["reason"]), (&"cancel".into(), &"wrong list".into()));
    let several: Vec<String> = mails.iter().map(ToString::to_string).collect();
    cancel(&[&several[0], &several[1]]).await.expect(7);
    cancel(&[&several[0], &several[1], "--yes"]).await.expect(0);
    assert_eq!(console.state(mails[1]).await, "cancelled/1");
    assert_eq!(console.state(charge).await, "pending/1");
    // One has ended, the other has a cancel requested: nothing is left to cancel.
    let dry = ["executions", "cancel", "--dry-run", &several[0], &several[1]];
    assert_eq!(console.json(&dry).await["preview"]["count"], 0);
}
