//! Who may do what.

use serde_json::Value;
use sexton_model::access::Role;

use super::{Fixture, LOCAL_HOST};

#[tokio::test]
async fn a_request_without_an_accepted_token_is_refused() {
    let f = Fixture::new().await;
    let token = f.token("deploy", "viewer").await;
    let me = f.get(&token, "/me").await.expect(200);
    assert_eq!((&me["name"], &me["role"]), (&"token deploy".into(), &"viewer".into()));
    let (id, _) = token.rsplit_once('_').unwrap();
    let wrong_secret = format!("Authorization: Bearer {id}_{}", "A".repeat(43));
    let unknown = format!("Authorization: Bearer sxt_{}_{}", "0".repeat(16), "A".repeat(43));
    let basic = format!("Authorization: Basic {token}");
    let none = "X-Token: none";
    for header in
        [none, "Authorization: Bearer", "Authorization: Bearer x", &wrong_secret, &unknown, &basic]
    {
        // From this machine, which helps nobody unless the settings say so.
        let answer = f.send("GET", "/jobs", &[LOCAL_HOST, header], "").await;
        assert!(answer.has("www-authenticate: bearer"), "{header}: {}", answer.head);
        assert!(answer.has("content-type: application/problem+json"), "{}", answer.head);
        assert!(answer.has("cache-control: no-store"), "{}", answer.head);
        assert_eq!(answer.expect(401)["code"], "unauthenticated", "{header}");
    }
    f.console.run(&["tokens", "revoke", "deploy"]).await.expect(0);
    let refused = f.get(&token, "/me").await.expect(401);
    assert!(refused["detail"].as_str().unwrap().contains("revoked"), "{refused}");
}

/// For a parameter of a path, a value that names nothing.
pub(super) fn example(path: &str) -> String {
    path.replace("{id}", "01a21e8b-dbe2-7304-91c3-cd3c8aa248e3").replace("{name}", "no-such-name")
}

/// What a POST answers that changes nothing: it has a body since that may be large.
const READING_POSTS: [&str; 5] =
    ["/cron:lint", "/cron:next", "/jobs:lint", "/jobs:preview", "/lock-keys:derive"];

#[tokio::test]
async fn each_route_needs_the_role_that_its_description_says() {
    let f = Fixture::new().await;
    let description = f.send("GET", "/openapi.json", &["Host: x"], "").await.expect(200);
    let mut callers = Vec::new();
    for role in Role::ALL {
        let name = role.as_str();
        callers.push((role, f.token(name, name).await, f.session(name, name).await));
    }
    let mut walked = 0;
    let mut open = Vec::new();
    for (path, item) in description["paths"].as_object().unwrap() {
        let route = example(path.strip_prefix("/api/v1").unwrap());
        for (method, operation) in item.as_object().unwrap() {
            if operation["x-role"] == "none" {
                open.push(format!("{method} {path}"));
                continue;
            }
            let needed = operation["x-role"].as_str().and_then(Role::parse);
            let needed = needed.unwrap_or_else(|| panic!("{method} {path} names no role"));
            let is_of_admins =
                ["/tokens", "/accounts", "/ping-keys"].iter().any(|part| path.contains(part));
            let least = match (method.as_str(), is_of_admins) {
                (_, true) => Role::Admin,
                ("get", _) => Role::Viewer,
                ("post", _) if READING_POSTS.contains(&route.as_str()) => Role::Viewer,
                // Everybody may log out, and change a password of theirs.
                _ if path.ends_with("/session") || path.ends_with("/me/password") => Role::Viewer,
                _ => Role::Operator,
            };
            assert!(needed >= least, "{method} {path} needs no more than {needed:?}");
            let method = method.to_uppercase();
            // One that nothing can be done with, so that only the role decides.
            let body = if method == "GET" || method == "DELETE" { "" } else { "[]" };
            f.send(&method, &route, &["Host: x"], body).await.expect(401);
            for (role, token, cookie) in &callers {
                let status = f.ask(token, &method, &route, body).await.status;
                assert_eq!(status == 403, *role < needed, "{method} {path} as {role:?}: {status}");
                if route == "/session" {
                    // It would end the session; `sessions` tests it.
                    continue;
                }
                let status = f.visit(cookie, &method, &route, body).await.status;
                let about = format!("{method} {path} in a session as {role:?}: {status}");
                assert_eq!(status == 403, *role < needed, "{about}");
                assert_ne!(status, 401, "{about}");
            }
            walked += 1;
        }
    }
    assert!(walked >= 16, "{walked}");
    assert_eq!(open, ["post /api/v1/session"], "routes for everybody");
}

#[tokio::test]
async fn a_role_that_does_not_suffice_is_named() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    let refused = f.ask(&token, "POST", "/jobs/shop.mail/trigger", "{}").await.expect(403);
    let detail = "token watch has the role viewer; this needs the role operator";
    assert_eq!((&refused["code"], &refused["detail"]), (&"forbidden".into(), &detail.into()));
    let executions = f.console.json(&["executions", "list"]).await;
    assert_eq!(executions["items"], Value::Array(Vec::new()));
}

#[tokio::test]
async fn requests_of_this_machine_need_no_token_if_the_settings_say_so() {
    let f = Fixture::with_local_role(Some(Role::Operator)).await;
    let local = ["Host: localhost:8420"];
    let me = f.send("GET", "/me", &local, "").await.expect(200);
    assert_eq!((&me["name"], &me["role"]), (&"local".into(), &"operator".into()));
    f.send("POST", "/jobs/shop.mail/trigger", &local, "").await.expect(200);
    f.send("GET", "/tokens", &local, "").await.expect(403);
    for header in [
        "Host: rebound.example.com",
        "Origin: http://evil.example",
        "Sec-Fetch-Site: cross-site",
        "X-Forwarded-For: 10.0.0.7",
        "Forwarded: for=10.0.0.7",
    ] {
        let headers: &[&str] =
            if header.starts_with("Host") { &[header] } else { &[local[0], header] };
        f.send("POST", "/jobs/shop.mail/trigger", headers, "").await.expect(401);
    }
    // A wrong token is refused there, too.
    f.get("sxt_wrong", "/me").await.expect(401);
}
