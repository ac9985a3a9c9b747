//! The audit as evidence: verified, and exported in parts.

use serde_json::{Value, json};
use sexton_store::operator::chain::seal;

use super::Fixture;

/// The documents of a part of an export, and its last line.
async fn part(f: &Fixture, token: &str, query: &str) -> (Vec<String>, Value) {
    let text = f.get(token, &format!("/audit/export?{query}")).await.expect(200);
    let mut lines: Vec<String> = text.as_str().unwrap().lines().map(str::to_owned).collect();
    let end = serde_json::from_str(&lines.pop().unwrap()).unwrap();
    (lines, end)
}

async fn sha256(f: &Fixture, lines: &[String]) -> String {
    let text = lines.iter().fold(String::new(), |text, line| text + line + "\n");
    sqlx::query_scalar("SELECT encode(sha256(convert_to($1, 'UTF8')), 'hex')")
        .bind(text)
        .fetch_one(f.console.store().pool())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_verification_is_that_of_the_command_line_and_finds_what_was_changed() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    seal(f.console.store(), 2).await.unwrap();
    let noted = f.get(&token, "/audit/head").await.expect(200)["head"].clone();
    let noted = noted.as_str().unwrap();
    let intact = f.get(&token, &format!("/audit/verify?head={noted}")).await.expect(200);
    assert_eq!(intact, f.console.json(&["audit", "verify", "--head", noted]).await);
    assert_eq!((&intact["is_intact"], &intact["verified"]), (&json!(true), &json!(2)), "{intact}");
    let unread = f.get(&token, "/audit/verify?head=yesterday").await.expect(400);
    assert_eq!(unread["errors"][0]["parameter"], "head", "{unread}");
    let tamper = "BEGIN; SET LOCAL session_replication_role = replica;
                  UPDATE sexton.operator_actions SET actor = 'bob' WHERE id = 2; COMMIT";
    sqlx::raw_sql(tamper).execute(f.console.store().pool()).await.unwrap();
    let found = f.get(&token, "/audit/verify").await.expect(200);
    assert_eq!((&found["is_intact"], &found["verified"]), (&json!(false), &json!(1)), "{found}");
    let problem = &found["problem"];
    assert_eq!((&problem["kind"], &problem["position"]), (&json!("changed"), &json!(2)), "{found}");
}

#[tokio::test]
async fn an_export_in_parts_has_the_lines_of_the_command_line() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    for reason in ["one", "two"] {
        f.console.run(&["jobs", "pause", "shop.mail", "--reason", reason]).await.expect(0);
        f.console.run(&["jobs", "resume", "shop.mail"]).await.expect(0);
    }
    let text = f.console.run(&["audit", "export"]).await.expect(0).text();
    let mut printed: Vec<String> = text.lines().map(str::to_owned).collect();
    let printed_end: Value = serde_json::from_str(&printed.pop().unwrap()).unwrap();
    let (all, end) = part(&f, &token, "limit=1000").await;
    assert_eq!((&all, &end), (&printed, &printed_end));
    let (mut found, mut after) = (Vec::new(), json!(0));
    loop {
        let (lines, end) = part(&f, &token, &format!("limit=3&after={after}")).await;
        let sum = sha256(&f, &lines).await;
        assert_eq!((&end["sha256"], &end["actions"]), (&json!(sum), &json!(lines.len())));
        assert!(lines.len() <= 3, "{lines:?}");
        let is_last = end["complete"] == true;
        assert_eq!(is_last, end["through"] == printed_end["through"], "{end}");
        found.extend(lines);
        after = end["through"].clone();
        if is_last {
            break;
        }
    }
    assert_eq!((found, &after), (all, &printed_end["through"]));
    // A filter may leave out the last ones, which a later part need not read again.
    let (paused, end) = part(&f, &token, "action=pause&limit=50").await;
    assert_eq!((paused.len(), &end["through"]), (2, &printed_end["through"]));
    assert_eq!(end["complete"], true, "{end}");
    f.get(&token, "/audit/export?limit=0").await.expect(400);
    f.get(&token, "/audit/export?job=no.such").await.expect(404);
}

#[tokio::test]
async fn a_part_of_an_export_looks_through_a_limited_part_of_the_audit() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    f.console.run(&["jobs", "pause", "shop.mail", "--reason", "x"]).await.expect(0);
    // As if 120,000 others had been recorded between the two.
    let others = "SELECT setval(pg_get_serial_sequence('sexton.operator_actions', 'id'), 120000)";
    sqlx::query(others).execute(f.console.store().pool()).await.unwrap();
    f.console.run(&["jobs", "resume", "shop.mail"]).await.expect(0);
    let (mut counts, mut after) = (Vec::new(), json!(0));
    loop {
        let query = format!("action=resume&limit=10&after={after}");
        let (lines, end) = part(&f, &token, &query).await;
        counts.push((lines.len(), end["through"].as_i64().unwrap()));
        after = end["through"].clone();
        if end["complete"] == true {
            break;
        }
    }
    assert_eq!(counts, [(0, 50_000), (0, 100_000), (1, 120_001)]);
    let (pauses, end) = part(&f, &token, "action=pause").await;
    assert_eq!((pauses.len(), &end["complete"]), (1, &json!(false)), "{end}");
    // What retention has removed is not looked through once more.
    let removed = "UPDATE sexton.retention SET audit_removed_to = 100000";
    sqlx::query(removed).execute(f.console.store().pool()).await.unwrap();
    let (resumed, end) = part(&f, &token, "action=resume").await;
    assert_eq!((resumed.len(), &end["complete"]), (1, &json!(true)), "{end}");
}
