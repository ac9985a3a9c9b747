//! `sexton audit`: what operators did, listed and exported.

use serde_json::{Value, json};
use sexton_store::operator::chain;
use sexton_store::retention::{RetentionPolicy, RetentionTarget};
use sexton_tests::retention::pass;

use super::{Console, JOBS, keys};

#[tokio::test]
async fn audit_list_shows_actions_on_jobs_and_executions_with_actor_and_origin() {
    let console = Console::with_jobs().await;
    let id = console.failed().await.to_string();
    console.run(&["jobs", "pause", "shop.mail", "--reason", "a change"]).await.expect(0);
    console.run(&["failed", "requeue", &id, "--reason", "\u{1b}[31mred"]).await.expect(0);
    let all = console.items(&["audit", "list"]).await;
    let actions: Vec<&Value> = all.as_array().unwrap().iter().map(|row| &row["action"]).collect();
    assert_eq!(actions[..3], [&json!("requeue"), &json!("pause"), &json!("trigger")]);
    assert!(actions.len() == 6, "three jobs were applied: {actions:?}");
    for row in all.as_array().unwrap() {
        let place = row["from_where"].as_str().unwrap();
        assert!(
            place.split_once(':').is_some_and(|(_, pid)| pid.parse::<u32>().is_ok()),
            "{place}"
        );
        assert!(row["actor"].as_str().unwrap().starts_with("tester@"));
    }
    let list = console.run(&["audit", "list", "--execution", &id]).await.expect(0).stdout;
    assert!(
        list.contains("requeue") && !list.contains('\u{1b}') && !list.contains("pause"),
        "{list}"
    );
    let job = console.items(&["audit", "list", "--job", "shop.mail"]).await;
    assert_eq!(job.as_array().unwrap().len(), 2, "applied and paused: {job}");
    let page = console.json(&["audit", "list", "--limit", "1"]).await;
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = console.items(&["audit", "list", "--limit", "1", "--cursor", cursor]).await;
    assert_eq!((&page["items"][0]["id"], &next[0]["id"]), (&json!(6), &json!(5)));
    assert_eq!(console.items(&["audit", "list", "--actor", "nobody"]).await, json!([]));
    console.run(&["audit", "list", "--job", "no.such"]).await.expect(3);
    console.run(&["audit", "list", "--since", "yesterday"]).await.expect(2);
}

#[tokio::test]
async fn an_export_is_complete_and_ordered_and_continues_after_the_previous_one() {
    let console = Console::with_jobs().await;
    let id = console.failed().await.to_string();
    console.run(&["failed", "requeue", &id, "--reason", "a, \"b\"\nc"]).await.expect(0);
    let lines = async |args: &[&str]| {
        let text = console.run(&[&["audit", "export"], args].concat()).await.expect(0).stdout;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let end = lines.pop().filter(|line| line.starts_with("{\"through\":"));
        (lines, end.map(|end| serde_json::from_str::<Value>(&end).unwrap()))
    };
    chain::seal(console.store(), 3).await.unwrap();
    let (all, end) = lines(&[]).await;
    let end = end.unwrap();
    let digest: String = sqlx::query_scalar("SELECT encode(sha256(convert_to($1, 'UTF8')), 'hex')")
        .bind(format!("{}\n", all.join("\n")))
        .fetch_one(console.store().pool())
        .await
        .unwrap();
    assert_eq!(
        (&end["through"], &end["actions"], &end["sha256"], &end["unsealed"]),
        (&json!(5), &json!(5), &json!(digest), &json!(2))
    );
    let head = console.run(&["audit", "head"]).await.expect(0);
    assert_eq!(
        (head.stdout.trim(), head.stderr.trim()),
        (end["head"].as_str().unwrap(), "sexton: 2 not sealed yet")
    );
    assert_eq!(all, lines(&["--unsettled"]).await.0, "nobody records anything just now");
    let ids: Vec<Value> =
        all.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].clone()).collect();
    assert_eq!(json!(ids), json!([1, 2, 3, 4, 5]));
    let row: Value = serde_json::from_str(&all[4]).unwrap();
    assert_eq!(
        keys(&row),
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
            "reason"
        ]
    );
    assert_eq!(row["reason"], "a, \"b\"\nc");
    assert_eq!(lines(&["--after", "3"]).await.0.len(), 2);
    let (none, end) = lines(&["--action", "restore"]).await;
    assert_eq!(
        (none.len(), &end.unwrap()["through"]),
        (0, &json!(5)),
        "others need not be read again"
    );
    let csv =
        console.run(&["audit", "export", "--format", "csv", "--action", "requeue"]).await.expect(0);
    assert!(csv.stderr.contains("1 action, through 5; the audit's head is 3:"), "{csv:?}");
    let csv: Vec<_> = csv.stdout.lines().collect();
    assert_eq!(csv.len(), 2, "a heading and a line: {csv:?}");
    assert!(
        csv[0].starts_with("id,at,actor,action,") && csv[1].contains(r#""a, ""b""\nc""#),
        "{csv:?}"
    );
}

/// An action of a transaction that is open for long has the lower number and is committed last. Two exports,
/// one meanwhile and one after, have every action once.
#[tokio::test]
async fn an_export_misses_nothing_that_a_slow_transaction_records() {
    let console = Console::with_jobs().await;
    let id = console.failed().await.to_string();
    let mut slow = console.store().pool().begin().await.unwrap();
    let number: i64 = sqlx::query_scalar(
        "INSERT INTO sexton.operator_actions (at, actor, action)
         VALUES (now() - interval '1 hour', 'slow', 'edit') RETURNING id",
    )
    .fetch_one(&mut *slow)
    .await
    .unwrap();
    console.run(&["failed", "requeue", &id, "--reason", "fast"]).await.expect(0);
    let export = async |after: i64| {
        let after = after.to_string();
        let ended = console.run(&["audit", "export", "--after", &after]).await.expect(0);
        let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].as_i64();
        let end: Value = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
        let ids: Vec<i64> = ended.stdout.lines().filter_map(id).collect();
        (ids, ended.stderr, end["through"].as_i64().unwrap())
    };
    let (first, stderr, through) = export(0).await;
    assert_eq!(first, (1..number).collect::<Vec<_>>(), "it ends before what may come yet");
    assert!(stderr.contains(&format!("before action {number}")), "{stderr}");
    assert_eq!(through, number - 1);
    slow.commit().await.unwrap();
    let (second, stderr, through) = export(through).await;
    assert_eq!((second, stderr.as_str()), (vec![number, number + 1], ""));
    assert_eq!(through, number + 1);
}

/// A number of a transaction that rolled back delays an export only until that transaction has ended.
#[tokio::test]
async fn an_export_skips_unused_sequence_numbers() {
    let console = Console::with_jobs().await;
    let mut undone = console.store().pool().begin().await.unwrap();
    let draw =
        "INSERT INTO sexton.operator_actions (at, actor, action) VALUES (now(), 'nobody', 'edit')";
    sqlx::query(draw).execute(&mut *undone).await.unwrap();
    console.run(&["jobs", "pause", "shop.mail", "--reason", "a change"]).await.expect(0);
    undone.rollback().await.unwrap();
    let ended = console.run(&["audit", "export"]).await.expect(0);
    assert_eq!((ended.stdout.lines().count(), ended.stderr.as_str()), (5, ""));
}

/// What retention has removed is not taken for what somebody is recording.
#[tokio::test]
async fn an_export_starts_at_the_retention_frontier() {
    let console = Console::new().await;
    let pool = console.store().pool();
    let old = "INSERT INTO sexton.operator_actions (at, actor, action)
               SELECT now() - interval '500 days', 'ann', 'edit' FROM generate_series(1, 10) RETURNING id";
    let last: i64 = sqlx::query_scalar::<_, i64>(old).fetch_all(pool).await.unwrap()[9];
    let jobs = console.file("jobs.toml", JOBS);
    console.run(&["jobs", "apply", "-f", &jobs]).await.expect(0);
    console.run(&["jobs", "pause", "shop.mail", "--reason", "a change"]).await.expect(0);
    let terms = RetentionPolicy { days: 30, audit_days: Some(400) };
    chain::seal(console.store(), 100).await.unwrap();
    let gone = pass(console.store(), terms, &[RetentionTarget::Audit], 4, None).await.unwrap();
    assert_eq!(gone.other, 10);
    let verified = console.run(&["audit", "verify"]).await.expect(0).stdout;
    assert!(
        verified.contains("actions up to position 10 were removed")
            && verified.contains("Retention keeps 30 days at least"),
        "{verified}"
    );
    let mut slow = pool.begin().await.unwrap();
    let draw =
        "INSERT INTO sexton.operator_actions (at, actor, action) VALUES (now(), 'slow', 'edit')";
    sqlx::query(draw).execute(&mut *slow).await.unwrap();
    let after = (last - 5).to_string();
    let ended = console.run(&["audit", "export", "--after", &after]).await.expect(0);
    assert_eq!((ended.stdout.lines().count(), ended.stderr.as_str()), (5, ""));
    assert!(ended.stdout.contains("a change"), "{}", ended.stdout);
    slow.rollback().await.unwrap();
}

#[tokio::test]
async fn a_trigger_by_a_program_is_no_operator_action_and_its_execution_names_the_program() {
    let console = Console::with_jobs().await;
    let listed = async || {
        let all = console.items(&["audit", "list", "--action", "trigger"]).await;
        all.as_array().unwrap().len()
    };
    // Nobody sits at a terminal here.
    let by_program = ["jobs", "trigger", "shop.charge", "--key", "march-17"];
    let id = console.json(&by_program).await["id"].as_str().unwrap().to_owned();
    assert_eq!(listed().await, 0);
    let row = console.json(&["executions", "show", &id]).await;
    assert!(row["claimed_by"].as_str().unwrap().starts_with("tester@"), "{row}");
    console
        .run(&[&by_program[..4], &["march-18", "--reason", "asked to"]].concat())
        .await
        .expect(0);
    assert_eq!(listed().await, 1, "an operator gives a reason");
    console.run(&["jobs", "trigger", "shop.charge"]).await.expect(0);
    assert_eq!(listed().await, 2, "and has no key of his own");
}

#[tokio::test]
async fn secrets_before_and_after_an_edit_are_shown_only_on_request() {
    let console = Console::with_jobs().await;
    let id = console.failed().await.to_string();
    let params = r#"{"customer": 7, "password": "geheim"}"#;
    let edit = ["failed", "edit", &id, "--reason", "new", "--params", params, "--yes"];
    console.run(&edit).await.expect(0);
    for command in [
        &["--json", "audit", "list"][..],
        &["audit", "export"],
        &["audit", "export", "--format", "csv"],
        &["executions", "show", &id],
        &["--json", "executions", "show", &id],
    ] {
        let shown = console.run(command).await.expect(0).stdout;
        assert!(shown.contains("***") && !shown.contains("geheim"), "{command:?}: {shown}");
        let all = console.run(&[command, &["--unmasked"]].concat()).await.expect(0).stdout;
        assert!(all.contains("geheim"), "{command:?}: {all}");
    }
    let listed = console.run(&["--json", "executions", "list"]).await.expect(0).stdout;
    assert!(listed.contains("***") && !listed.contains("geheim"), "{listed}");
}

#[tokio::test]
async fn a_verification_says_what_it_verified_and_its_status_whether_the_audit_is_intact() {
    let console = Console::with_jobs().await;
    chain::seal(console.store(), 2).await.unwrap();
    let noted = console.run(&["audit", "head"]).await.expect(0).stdout;
    let noted = noted.trim();
    let verified = console.run(&["audit", "verify", "--head", noted]).await.expect(0).stdout;
    assert!(verified.starts_with("2 actions are intact, recorded from 20"), "{verified}");
    assert!(verified.contains(&format!("head {noted}\n1 not sealed yet\n")), "{verified}");
    let document = console.json(&["audit", "verify"]).await;
    assert_eq!(
        keys(&document),
        ["anchor", "head", "is_intact", "problem", "since", "unsealed", "verified"]
    );
    let later = noted.replacen('2', "7", 1);
    let beyond = console.run(&["audit", "verify", "--head", &later]).await.expect(8);
    assert!(beyond.stderr.contains("is not in the chain"), "{beyond:?}");
    let unread = console.run(&["audit", "verify", "--head", "yesterday"]).await.expect(2);
    assert!(unread.stderr.contains("POSITION:HASH"), "{unread:?}");
    let tamper = "BEGIN; SET LOCAL session_replication_role = replica;
                  UPDATE sexton.operator_actions SET actor = 'bob' WHERE id = 2; COMMIT";
    sqlx::raw_sql(tamper).execute(console.store().pool()).await.unwrap();
    let found = console.run(&["audit", "verify"]).await.expect(8);
    assert!(found.stdout.starts_with("1 action is intact before the first problem"), "{found:?}");
    assert!(found.stderr.contains("action 2 at position 2 does not have the hash"), "{found:?}");
}
