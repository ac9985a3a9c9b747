//! Accounts, by the command line and by the API.

use serde_json::{Value, json};
use sexton_model::access::MAX_SESSIONS_PER_ACCOUNT;
use sexton_store::retention::{Position, RetentionPolicy, RetentionTarget, prune_batch};
use sqlx::AssertSqlSafe;

use super::Fixture;

const PASSWORD: &str = "correct horse battery";

async fn sql(f: &Fixture, statement: &str) {
    let pool = f.console.store().pool();
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(pool).await.unwrap();
}

#[tokio::test]
async fn the_command_line_creates_changes_and_lists_accounts_and_the_audit_has_all_but_passwords() {
    let f = Fixture::new().await;
    let create = ["--json", "accounts", "create", "ann", "--role", "operator", "--reason", "new"];
    let piped = format!("{PASSWORD}\n");
    let created = f.console.run_with(&create, &[], &piped).await.expect(0).text();
    assert!(!created.contains(PASSWORD), "{created}");
    assert_eq!(f.log_in("ann", PASSWORD).await.status, 204);
    let run = async |arguments: &[&str]| f.console.json(&[&["accounts"], arguments].concat()).await;
    assert_eq!(run(&["set-role", "ann", "admin"]).await["ended_sessions"], 1);
    let generated = run(&["set-password", "ann", "--generate"]).await;
    let password = generated["password"].as_str().unwrap().to_owned();
    assert_eq!(f.log_in("ann", PASSWORD).await.status, 401);
    assert_eq!(f.log_in("ann", &password).await.status, 204);
    assert_eq!(run(&["disable", "ann"]).await["ended_sessions"], 1);
    assert_eq!(f.log_in("ann", &password).await.status, 401);
    assert_eq!(run(&["list"]).await["items"], json!([]));
    let listed = run(&["list", "--all"]).await;
    assert_eq!(
        listed["items"][0]["disabled_by"].as_str().unwrap().split('@').next(),
        Some("tester")
    );
    run(&["enable", "ann"]).await;
    assert_eq!(f.log_in("ann", &password).await.status, 204);
    let audit = f.console.json(&["audit", "list", "--limit", "50"]).await;
    let actions: Vec<_> = audit["items"].as_array().unwrap().iter().rev().collect();
    let names: Vec<_> = actions.iter().map(|row| row["action"].as_str().unwrap()).collect();
    let expected = [
        "create_account",
        "log_in",
        "set_account_role",
        "set_account_password",
        "log_in",
        "disable_account",
        "enable_account",
        "log_in",
    ];
    assert_eq!(names[names.len() - expected.len()..], expected);
    let logged_in = actions[actions.len() - 1];
    assert_eq!(
        (&logged_in["actor"], &logged_in["from_where"]),
        (&"account ann".into(), &"console 127.0.0.1".into())
    );
    for secret in [PASSWORD, &password, "argon2"] {
        assert!(!audit.to_string().contains(secret), "{audit}");
        assert!(!listed.to_string().contains(secret), "{listed}");
    }
}

#[tokio::test]
async fn what_cannot_be_an_account_is_refused_with_everything_that_is_wrong() {
    let f = Fixture::new().await;
    let create = async |name: &str, password: &str| {
        f.console.run_with(&["accounts", "create", name, "--role", "viewer"], &[], password).await
    };
    let refused = create("Ann Lee", "short").await.expect(2).text();
    assert!(refused.contains("--name") && refused.contains("12 characters"), "{refused}");
    assert!(!refused.contains("short"), "{refused}");
    create("ann", "").await.expect(2);
    create("ann", "correct horse\nbattery\n").await.expect(2);
    create("ann", &"a".repeat(300)).await.expect(2);
    create("ann", PASSWORD).await.expect(0);
    assert!(create("ann", PASSWORD).await.expect(4).text().contains("already"));
    f.console.run(&["accounts", "set-role", "ann", "viewer"]).await.expect(4);
    f.console.run(&["accounts", "enable", "ann"]).await.expect(4);
    f.console.run(&["accounts", "disable", "ann"]).await.expect(0);
    f.console.run(&["accounts", "disable", "ann"]).await.expect(4);
    let missing = f.console.run(&["accounts", "disable", "nobody"]).await.expect(3).text();
    assert!(missing.contains("sexton accounts list"), "{missing}");
}

#[tokio::test]
async fn an_admin_manages_accounts_by_the_api() {
    let f = Fixture::new().await;
    let admin = f.token("root", "admin").await;
    let post = async |path: &str, body: Value| f.ask(&admin, "POST", path, &body.to_string()).await;
    let new = json!({"name": "ann", "role": "viewer", "password": PASSWORD});
    post("/accounts", new.clone()).await.expect(204);
    post("/accounts", new).await.expect(409);
    let cookie = f.log_in("ann", PASSWORD).await.cookie();
    let wrong = json!({"name": "B", "role": "viewer", "password": "short"});
    let refused = post("/accounts", wrong).await.expect(400);
    let places: Vec<_> =
        refused["errors"].as_array().unwrap().iter().map(|one| &one["pointer"]).collect();
    assert_eq!(places, ["/name", "/password"], "{refused}");
    let changed = post("/accounts/ann/role", json!({"role": "editor"})).await.expect(200);
    assert_eq!(changed, json!({"name": "ann", "ended_sessions": 1}));
    f.visit(&cookie, "GET", "/me", "").await.expect(401);
    let other = json!({"password": "another password", "reason": "forgotten"});
    post("/accounts/ann/password", other).await.expect(200);
    post("/accounts/ann/disable", json!({})).await.expect(200);
    post("/accounts/ann/disable", json!({})).await.expect(409);
    post("/accounts/ann/enable", json!({})).await.expect(204);
    post("/accounts/nobody/enable", json!({})).await.expect(404);
    let listed = f.get(&admin, "/accounts").await.expect(200);
    assert_eq!(listed, f.console.json(&["accounts", "list"]).await);
    assert_eq!(
        (&listed["items"][0]["role"], &listed["items"][0]["created_by"]),
        (&"editor".into(), &"token root".into())
    );
}

#[tokio::test]
async fn the_oldest_session_ends_with_one_too_many_and_retention_removes_what_has_ended() {
    let f = Fixture::new().await;
    let password = f.account("ann", "viewer").await;
    let mut cookies = Vec::new();
    for _ in 0..=MAX_SESSIONS_PER_ACCOUNT {
        cookies.push(f.log_in("ann", &password).await.cookie());
    }
    f.visit(&cookies[0], "GET", "/me", "").await.expect(401);
    f.visit(&cookies[1], "GET", "/me", "").await.expect(200);
    f.visit(cookies.last().unwrap(), "GET", "/me", "").await.expect(200);
    let prune = async || {
        let (policy, mut position) =
            (RetentionPolicy { days: 30, audit_days: None }, Position::default());
        let store = f.console.store();
        prune_batch(store, RetentionTarget::Sessions, &mut position, policy, 100, None)
            .await
            .unwrap()
            .removed
    };
    assert_eq!(prune().await, 0);
    sql(&f, "UPDATE sexton.sessions SET ended_at = ended_at - interval '31 days'").await;
    assert_eq!(prune().await, 1);
    sql(&f, "UPDATE sexton.sessions SET expires_at = now() - interval '31 days'").await;
    assert_eq!(prune().await, u64::from(MAX_SESSIONS_PER_ACCOUNT));
}
