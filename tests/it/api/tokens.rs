//! Tokens, by the API and by the command line.

use sexton_operations::tokens::accept;
use sqlx::AssertSqlSafe;

use super::{Fixture, eventually};

#[tokio::test]
async fn an_admin_creates_lists_and_revokes_tokens_and_the_audit_has_it() {
    let f = Fixture::new().await;
    let admin = f.token("root", "admin").await;
    let new = r#"{"name": "ci", "role": "operator", "valid_for_s": 3600, "reason": "pipeline"}"#;
    let created = f.ask(&admin, "POST", "/tokens", new).await.expect(201);
    let token = created["token"].as_str().unwrap().to_owned();
    assert_eq!(f.get(&token, "/me").await.expect(200)["role"], "operator");
    let twice = f.ask(&admin, "POST", "/tokens", new).await.expect(409);
    assert!(twice["detail"].as_str().unwrap().contains("already"), "{twice}");
    let listed = f.get(&admin, "/tokens").await.expect(200);
    let ci = &listed["items"][0];
    assert_eq!((&ci["name"], &ci["created_by"]), (&"ci".into(), &"token root".into()));
    assert!(ci["last_used_at"].is_string() && ci["expires_at"].is_string(), "{ci}");
    assert!(!listed.to_string().contains("secret"), "{listed}");
    assert_eq!(f.console.json(&["tokens", "list"]).await, listed);
    f.ask(&admin, "DELETE", "/tokens/ci?reason=done", "").await.expect(204);
    f.get(&token, "/me").await.expect(401);
    f.ask(&admin, "DELETE", "/tokens/ci", "").await.expect(404);
    // The name is free again, and the old token stays refused.
    f.ask(&admin, "POST", "/tokens", new).await.expect(201);
    f.get(&token, "/me").await.expect(401);
    let audit = f.console.json(&["audit", "list"]).await;
    let actions: Vec<_> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let text = |column: &str| row[column].as_str().unwrap_or_default().to_owned();
            (text("action"), text("actor"), text("reason"), text("from_where"))
        })
        .collect();
    let by_api = |action: &str, reason: &str| {
        (action.to_owned(), "token root".to_owned(), reason.to_owned(), "api 127.0.0.1".to_owned())
    };
    assert_eq!(actions[..2], [by_api("create_token", "pipeline"), by_api("revoke_token", "done")]);
}

#[tokio::test]
async fn an_expired_token_is_refused_and_its_use_is_recorded_to_the_minute() {
    let f = Fixture::new().await;
    let token = f.token("short", "viewer").await;
    let run = async |statement: &str| {
        let pool = f.console.store().pool();
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(pool).await.unwrap();
    };
    let used = async || -> Option<String> {
        let query = "SELECT last_used_at::text FROM sexton.tokens";
        sqlx::query_scalar(query).fetch_one(f.console.store().pool()).await.unwrap()
    };
    // It is recorded beside the answer.
    let used_after = async |before: Option<String>| {
        eventually("its use is recorded", async || used().await != before).await;
        used().await
    };
    f.get(&token, "/me").await.expect(200);
    let first = used_after(None).await;
    f.get(&token, "/me").await.expect(200);
    f.get(&token, "/me").await.expect(200);
    assert_eq!(used().await, first);
    run("UPDATE sexton.tokens SET last_used_at = now() - interval '61 seconds'").await;
    let before = used().await;
    f.get(&token, "/me").await.expect(200);
    used_after(before).await;
    // Its row is locked, as by another request with it: nobody waits for that. Nor is anybody kept from looking while nothing can be written.
    run("UPDATE sexton.tokens SET last_used_at = now() - interval '61 seconds'").await;
    let mut tx = f.console.store().pool().begin().await.unwrap();
    sqlx::query("SELECT FROM sexton.tokens FOR UPDATE").execute(&mut *tx).await.unwrap();
    f.get(&token, "/me").await.expect(200);
    tx.rollback().await.unwrap();
    run("UPDATE sexton.tokens SET expires_at = now()").await;
    f.get(&token, "/me").await.expect(401);
    // One that a newer version created for another purpose.
    run("ALTER TABLE sexton.tokens DROP CONSTRAINT tokens_role_check;
         UPDATE sexton.tokens SET expires_at = NULL, role = 'auditor'")
    .await;
    let accepted = accept(f.console.store(), f.console.store(), &token).await.unwrap().unwrap();
    assert_eq!(accepted.role, None);
    f.get(&token, "/me").await.expect(401);
}

#[tokio::test]
async fn what_cannot_be_a_token_is_refused_by_the_command_line() {
    let f = Fixture::new().await;
    let refused =
        f.console.run(&["tokens", "create", "Not Good", "--role", "viewer"]).await.expect(2);
    assert!(refused.text().contains("--name"), "{}", refused.text());
    let role = f.console.run(&["tokens", "create", "a", "--role", "king"]).await.expect(2);
    assert!(role.text().contains("viewer, operator, editor or admin"), "{}", role.text());
    let long = ["tokens", "create", "a", "--role", "viewer", "--valid-for", "99999d"];
    let refused = f.console.run(&long).await.expect(2);
    assert!(refused.text().contains("--valid-for"), "{}", refused.text());
    let missing = f.console.run(&["tokens", "revoke", "nobody"]).await.expect(3);
    assert!(missing.text().contains("sexton tokens list"), "{}", missing.text());
}
