//! Checks that are applied and deleted, and the keys of their pings.

use serde_json::{Value, json};
use sexton_operations::pings::key_hash;

use super::Fixture;

const FILE: &str = "[[check]]\nname = \"backup\"\nevery = \"1h\"\ngrace = \"1m\"\n";

#[tokio::test]
async fn checks_of_a_file_are_applied_as_a_whole_or_not_at_all_and_deleted() {
    let f = Fixture::new().await;
    let token = f.token("ed", "editor").await;
    let post = async |body: Value| f.ask(&token, "POST", "/checks:apply", &body.to_string()).await;
    let dry = post(json!({"text": FILE, "dry_run": true})).await.expect(200);
    let added = json!({"added": ["backup"], "changed": [], "unchanged": 0});
    assert_eq!(dry, json!({"dry_run": true, "change": added}));
    f.get(&token, "/checks/backup").await.expect(404);
    let applied = post(json!({"text": FILE, "reason": "first"})).await.expect(200);
    assert_eq!(applied, json!({"dry_run": false, "change": added}));
    let (entry, count) = f.audited("apply_check").await;
    assert_eq!((&entry["actor"], &entry["reason"]), (&json!("token ed"), &json!("first")));
    assert_eq!(count, 1);
    // The command has the same answer, and checks that are not in the file stay.
    let other = FILE.replace("backup", "report") + &FILE.replace("1m", "2m");
    let path = f.console.file("checks.toml", &other);
    let command = f.console.json(&["checks", "apply", "-f", &path, "--dry-run"]).await;
    assert_eq!(post(json!({"text": other, "dry_run": true})).await.expect(200), command);
    assert_eq!(command["change"]["changed"], json!(["backup"]));
    post(json!({"text": FILE.replace("backup", "report")})).await.expect(200);
    f.get(&token, "/checks/backup").await.expect(200);

    let wrong = FILE.replace("every", "period") + &FILE.replace("1m", "soon");
    let refused = post(json!({"text": wrong, "file": "my.toml"})).await.expect(400);
    let errors = refused["errors"].as_array().unwrap();
    assert!(errors.len() >= 2 && errors.iter().all(|one| one["line"].is_u64()), "{refused}");
    assert!(errors[0]["detail"].as_str().unwrap().starts_with("my.toml:"), "{refused}");
    let keyed = format!("{FILE}key = \"absent\"\n");
    let refused = post(json!({"text": keyed})).await.expect(400);
    assert!(refused["detail"].as_str().unwrap().contains("no ping key"), "{refused}");

    let delete = async |path: &str| f.ask(&token, "DELETE", path, "").await;
    delete("/checks/backup?reason=moved").await.expect(204);
    delete("/checks/backup").await.expect(404);
    f.get(&token, "/checks/backup").await.expect(404);
    let (entry, _) = f.audited("delete_check").await;
    assert_eq!((&entry["before"]["name"], &entry["reason"]), (&json!("backup"), &json!("moved")));
    let operator = f.token("op", "operator").await;
    f.ask(&operator, "DELETE", "/checks/report", "").await.expect(403);
}

#[tokio::test]
async fn an_admin_creates_lists_and_deletes_ping_keys_and_each_is_shown_once() {
    let f = Fixture::new().await;
    let admin = f.token("root", "admin").await;
    let new = r#"{"name": "team", "max_checks": 2, "reason": "backups"}"#;
    let post = async || {
        let route = ("POST", "/ping-keys");
        f.ask_with(&admin, route, &["Idempotency-Key: once"], new).await
    };
    let created = post().await.expect(201);
    let key = created["key"].as_str().unwrap();
    let stored: Vec<u8> =
        sqlx::query_scalar("SELECT key_hash FROM sexton.ping_keys WHERE name = 'team'")
            .fetch_one(f.console.store().pool())
            .await
            .unwrap();
    assert_eq!(stored, key_hash(key), "it is the one that pings are accepted with");
    let again = post().await.expect(409);
    assert!(!again.to_string().contains(key), "{again}");
    let listed = f.get(&admin, "/ping-keys").await.expect(200);
    assert_eq!(listed, f.console.json(&["checks", "keys"]).await);
    let row = &listed["items"][0];
    let expected = (&json!("team"), &json!(2), &json!("token root"));
    assert_eq!((&row["name"], &row["max_checks"], &row["created_by"]), expected);
    assert!(!listed.to_string().contains(key), "{listed}");
    let (entry, _) = f.audited("create_ping_key").await;
    assert_eq!((&entry["actor"], &entry["reason"]), (&json!("token root"), &json!("backups")));
    assert!(!entry.to_string().contains(key), "{entry}");

    let keyed = format!("{FILE}key = \"team\"\n");
    let apply = json!({"text": keyed}).to_string();
    f.ask(&admin, "POST", "/checks:apply", &apply).await.expect(200);
    f.ask(&admin, "POST", "/ping-keys", new).await.expect(409);
    for (body, pointer) in [
        (json!({"name": "Team"}), "/name"),
        (json!({"name": "more", "max_checks": 100_001}), "/max_checks"),
        (json!({"name": "more", "max_checks": -1}), "/max_checks"),
    ] {
        let refused = f.ask(&admin, "POST", "/ping-keys", &body.to_string()).await.expect(400);
        assert_eq!(refused["errors"][0]["pointer"], pointer, "{refused}");
    }
    f.ask(&admin, "POST", "/ping-keys", r#"{"name": "more"}"#).await.expect(201);
    let listed = f.get(&admin, "/ping-keys").await.expect(200);
    assert_eq!(listed["items"][0]["max_checks"], 100, "{listed}");
    f.ask(&admin, "DELETE", "/ping-keys/team?reason=lost", "").await.expect(204);
    f.ask(&admin, "DELETE", "/ping-keys/team", "").await.expect(404);
    let (entry, count) = f.audited("delete_ping_key").await;
    assert_eq!((&entry["reason"], count), (&json!("lost"), 1));
    let check = f.get(&admin, "/checks/backup").await.expect(200);
    assert_eq!(check["check"]["key"], Value::Null, "its check stays: {check}");
}
