//! Sessions of people who log in with an account.

use serde_json::{Value, json};
use sexton_server::access::client::ProxySettings;
use sexton_store::operator::AuditContext;
use sexton_store::sessions::{NewSession, SessionOwner, end_all, start};
use sqlx::AssertSqlSafe;

use super::oidc::sessions::one_waits;
use super::turns::Gate;
use super::{Fixture, LOCAL_HOST, log_in_body};

async fn sql(f: &Fixture, statement: &str) {
    let pool = f.console.store().pool();
    sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(pool).await.unwrap();
}

#[tokio::test]
async fn a_person_logs_in_acts_and_logs_out() {
    let f = Fixture::new().await;
    let password = f.account("ann", "operator").await;
    let answer = f.log_in("ann", &password).await;
    let set = answer.header("set-cookie").unwrap().to_owned();
    assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=604800"), "{set}");
    let cookie = answer.cookie();
    let secret = cookie.split('=').nth(1).unwrap();
    assert_eq!(secret.len(), 43, "256 random bits");
    let me = f.visit(&cookie, "GET", "/me", "").await.expect(200);
    assert_eq!(
        (&me["name"], &me["role"], &me["how"]),
        (&"account ann".into(), &"operator".into(), &"account".into())
    );
    assert!(me["session_expires_at"].is_string(), "{me}");
    f.visit(&cookie, "POST", "/jobs/shop.mail/trigger", "{}").await.expect(200);
    let audit = f.console.json(&["audit", "list", "--job", "shop.mail"]).await;
    let row = &audit["items"][0];
    assert_eq!(
        (&row["actor"], &row["from_where"]),
        (&"account ann".into(), &"console 127.0.0.1".into())
    );
    // A token counts alone, a wrong one too.
    let authorization = format!("Authorization: Bearer {}", f.token("watch", "viewer").await);
    let both = [LOCAL_HOST, &cookie, &authorization];
    let me = f.send("GET", "/me", &both, "").await.expect(200);
    assert_eq!(
        (&me["name"], &me["how"], &me["session_expires_at"]),
        (&"token watch".into(), &"token".into(), &Value::Null)
    );
    f.send("GET", "/me", &[LOCAL_HOST, &cookie, "Authorization: Bearer x"], "").await.expect(401);
    f.send("DELETE", "/session", &both, "").await.expect(409);
    // The database knows only its hash.
    let rows: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sexton.sessions s WHERE strpos(s::text, $1) > 0")
            .bind(secret)
            .fetch_one(f.console.store().pool())
            .await
            .unwrap();
    assert_eq!(rows, 0);
    let out = f.visit(&cookie, "DELETE", "/session", "").await;
    assert_eq!(out.status, 204, "{}", out.body);
    assert!(out.header("set-cookie").unwrap().contains("sexton_session=; Path=/"), "{}", out.head);
    f.visit(&cookie, "GET", "/me", "").await.expect(401);
    f.visit("Cookie: sexton_session=guess", "GET", "/me", "").await.expect(401);
}

#[tokio::test]
async fn a_wrong_password_an_unknown_name_and_a_disabled_account_look_the_same() {
    let f = Fixture::new().await;
    let password = f.account("ann", "admin").await;
    let gone = f.account("gone", "admin").await;
    f.console.run(&["accounts", "disable", "gone"]).await.expect(0);
    let refused = f.log_in("ann", "wrong password").await.expect(401);
    for (name, password) in
        [("nobody", "wrong password"), ("gone", &*gone), ("Not a name", &password), ("", "")]
    {
        assert_eq!(f.log_in(name, password).await.expect(401), refused, "{name}");
    }
    let long = "a".repeat(4_000);
    assert_eq!(f.log_in("ann", &long).await.expect(401), refused);
    assert_eq!(f.log_in("ann", &password).await.status, 204);
}

#[tokio::test]
async fn a_session_ends_when_it_is_unused_or_old_and_with_every_change_of_its_account() {
    let f = Fixture::new().await;
    let password = f.account("ann", "viewer").await;
    let status = async |cookie: &str| f.visit(cookie, "GET", "/me", "").await.status;
    let changes: [(&str, &[&str]); 3] =
        [("set-role", &["editor"]), ("disable", &[]), ("set-password", &["--generate"])];
    for (change, more) in changes {
        let cookie = f.log_in("ann", &password).await.cookie();
        assert_eq!(status(&cookie).await, 200);
        f.console.run(&[&["accounts", change, "ann"], more].concat()).await.expect(0);
        assert_eq!(status(&cookie).await, 401, "{change}");
        if change == "disable" {
            f.console.run(&["accounts", "enable", "ann"]).await.expect(0);
            assert_eq!(status(&cookie).await, 401, "an enabled account begins anew");
        }
    }
    for late in [
        "last_used_at = now() - interval '12 hours 1 second'",
        "expires_at = now()",
        "ended_at = now()",
    ] {
        let cookie = f.session(&format!("user{}", late.len()), "viewer").await;
        assert_eq!(status(&cookie).await, 200);
        sql(&f, &format!("UPDATE sexton.sessions SET {late}")).await;
        assert_eq!(status(&cookie).await, 401, "{late}");
    }
    let cookie = f.session("busy", "viewer").await;
    sql(&f, "UPDATE sexton.sessions SET last_used_at = now() - interval '11 hours'").await;
    assert_eq!(status(&cookie).await, 200);
}

/// The comparison of a password takes a while, in which the account may change.
#[tokio::test]
async fn a_log_in_that_is_overtaken_by_a_change_of_the_account_starts_no_session() {
    let f = Fixture::new().await;
    f.account("ann", "viewer").await;
    let store = f.console.store();
    let hash = sexton_store::accounts::read_password_hash(store, "ann").await.unwrap().unwrap();
    let by = sexton_store::operator::AuditContext { actor: "account ann", reason: None };
    let begin = async |secret: u8| {
        let new = NewSession { secret_hash: &[secret; 32], account: "ann", password_hash: &hash };
        start(store, &new, by, None).await.unwrap()
    };
    assert!(begin(1).await.is_some());
    f.console.run(&["accounts", "disable", "ann"]).await.expect(0);
    assert_eq!(begin(2).await, None);
    f.console.run(&["accounts", "enable", "ann"]).await.expect(0);
    f.console.run(&["accounts", "set-password", "ann", "--generate"]).await.expect(0);
    assert_eq!(begin(3).await, None);
}

#[tokio::test]
async fn a_person_changes_the_password_knowing_the_current_one() {
    let f = Fixture::new().await;
    let password = f.account("ann", "viewer").await;
    let (cookie, elsewhere) =
        (f.log_in("ann", &password).await.cookie(), f.log_in("ann", &password).await.cookie());
    let replace = async |cookie: &str, current: &str, new: &str| {
        let body = json!({"current": current, "password": new}).to_string();
        f.visit(cookie, "POST", "/me/password", &body).await
    };
    let wrong = replace(&cookie, "wrong password", "another password").await.expect(400);
    assert_eq!(wrong["errors"][0]["pointer"], "/current");
    let short = replace(&cookie, &password, "short").await.expect(400);
    assert_eq!(short["errors"][0]["pointer"], "/password");
    let replaced = replace(&cookie, &password, "another password").await;
    assert_eq!(replaced.status, 204, "{}", replaced.body);
    for ended in [&cookie, &elsewhere] {
        f.visit(ended, "GET", "/me", "").await.expect(401);
    }
    f.visit(&replaced.cookie(), "GET", "/me", "").await.expect(200);
    assert_eq!(f.log_in("ann", &password).await.status, 401);
    assert_eq!(f.log_in("ann", "another password").await.status, 204);
    for guess in 0.. {
        let answer = replace(&replaced.cookie(), "guess", "another password").await;
        if answer.status == 429 {
            break;
        }
        assert_eq!(answer.status, 400, "{}", answer.body);
        assert!(guess < 100, "guesses are never limited");
    }
    replace(&replaced.cookie(), "another password", "a third password").await.expect(429);
    let token = f.token("ci", "admin").await;
    let body = json!({"current": "x", "password": "another password"}).to_string();
    f.ask(&token, "POST", "/me/password", &body).await.expect(409);
}

#[tokio::test]
async fn no_page_of_another_site_changes_anything_by_a_session() {
    let f = Fixture::new().await;
    let cookie = f.session("root", "admin").await;
    let description = f.send("GET", "/openapi.json", &["Host: x"], "").await.expect(200);
    let mut walked = 0;
    for (path, item) in description["paths"].as_object().unwrap() {
        let route = super::access::example(path.strip_prefix("/api/v1").unwrap());
        for (method, operation) in item.as_object().unwrap() {
            if method == "get" || operation["x-role"] == "none" {
                continue;
            }
            let method = method.to_uppercase();
            let body = if method == "DELETE" { "" } else { "[]" };
            for page in [
                "X-None: nothing says where it comes from",
                "Sec-Fetch-Site: cross-site",
                "Sec-Fetch-Site: same-site",
                "Origin: http://evil.example",
                "Origin: null",
                "Origin: http://localhost:9000",
            ] {
                let refused = f.send(&method, &route, &[LOCAL_HOST, &cookie, page], body).await;
                assert_eq!(refused.status, 403, "{method} {path} {page}: {}", refused.body);
            }
            if route != "/session" {
                for page in ["Origin: http://localhost", "Sec-Fetch-Site: same-origin"] {
                    let answer = f.send(&method, &route, &[LOCAL_HOST, &cookie, page], body).await;
                    assert!(![401, 403].contains(&answer.status), "{method} {path} {page}");
                }
            }
            walked += 1;
        }
    }
    assert!(walked >= 16, "{walked}");
    // It can look: other sites' pages cannot read the answer, and browsers send no cookie with their requests.
    f.send("GET", "/me", &[LOCAL_HOST, &cookie], "").await.expect(200);
    let json = "Content-Type: application/json";
    let body = log_in_body("root", "wrong password");
    for page in ["Sec-Fetch-Site: cross-site", "Origin: http://evil.example"] {
        f.send("POST", "/session", &[LOCAL_HOST, json, page], &body).await.expect(403);
    }
}

#[tokio::test]
async fn a_password_is_taken_only_where_nobody_on_the_way_reads_it() {
    let trusted = vec!["127.0.0.0/8".parse().unwrap()];
    let proxies = ProxySettings { trusted, ..ProxySettings::default() };
    let f = Fixture::with(|backend| backend.behind(proxies)).await;
    let password = f.account("ann", "viewer").await;
    let json = "Content-Type: application/json";
    let body = log_in_body("ann", &password);
    let post = async |headers: &[&str]| {
        f.send("POST", "/session", &[headers, &[json]].concat(), &body).await
    };
    let plain = post(&["Host: sexton.example.com"]).await.expect(403);
    assert!(plain["detail"].as_str().unwrap().contains("HTTPS"), "{plain}");
    let http = ["Host: sexton.example.com", "X-Forwarded-Proto: http"];
    post(&http).await.expect(403);
    // A proxy that passes on the address that it connects to, or says nothing of HTTPS, is no browser on this machine.
    for more in ["X-Forwarded-Proto: http", "X-Forwarded-For: 203.0.113.7", "Via: 1.1 proxy"] {
        post(&["Host: 127.0.0.1:8420", more]).await.expect(403);
    }
    // Neither is there a form to type the password into.
    for page in ["/log-in", "/set-up"] {
        let page = f.send_to("GET", page, &["Host: sexton.example.com"], "").await.expect(403);
        assert!(!page.as_str().unwrap().contains("type=\"password\""), "{page}");
    }
    let https =
        ["Host: sexton.example.com", "X-Forwarded-Proto: https", "X-Forwarded-For: 203.0.113.7"];
    let answer = post(&https).await;
    assert_eq!(answer.status, 204, "{}", answer.body);
    let set = answer.header("set-cookie").unwrap();
    assert!(set.starts_with("__Host-sexton_session=") && set.ends_with("; Secure"), "{set}");
    let cookie = answer.cookie();
    let me = async |headers: &[&str]| {
        f.send("GET", "/me", &[headers, &[&cookie]].concat(), "").await.status
    };
    assert_eq!(me(&https).await, 200);
    assert_eq!(me(&http).await, 401, "by plain HTTP nobody sends such a cookie");
    let audit = f.console.json(&["audit", "list"]).await;
    assert_eq!(audit["items"][0]["action"], json!("log_in"));
    assert_eq!(audit["items"][0]["from_where"], json!("console 203.0.113.7"));
    // Where no proxy is trusted, anybody can say so.
    let f = Fixture::new().await;
    f.account("ann", "viewer").await;
    f.send("POST", "/session", &[&https[..], &[json]].concat(), &body).await.expect(403);
    let f = Fixture::with(|backend| {
        backend.behind(ProxySettings { is_behind_tls: true, ..ProxySettings::default() })
    })
    .await;
    let password = f.account("ann", "viewer").await;
    let body = log_in_body("ann", &password);
    let answer = f.send("POST", "/session", &["Host: sexton.example.com", json], &body).await;
    assert!(answer.cookie().starts_with("Cookie: __Host-"), "{}", answer.head);
}

#[tokio::test]
async fn an_end_of_all_sessions_of_an_account_waits_for_a_log_in_and_ends_its_session() {
    let f = Fixture::new().await;
    let password = f.account("ann", "operator").await;
    let before = f.log_in("ann", &password).await.cookie();
    let gate = Gate::close(&f, "sexton.sessions").await;
    let end = async {
        gate.is_reached(1).await;
        let by = AuditContext { actor: "account eve", reason: None };
        let ended = end_all(f.console.store(), SessionOwner::Account("ann"), by, None);
        let release = async {
            one_waits(&f).await;
            gate.open().await;
        };
        tokio::join!(ended, release).0.unwrap()
    };
    let (after, ended) = tokio::join!(f.log_in("ann", &password), end);
    assert_eq!(ended, 2);
    for cookie in [before, after.cookie()] {
        f.visit(&cookie, "GET", "/me", "").await.expect(401);
    }
}
