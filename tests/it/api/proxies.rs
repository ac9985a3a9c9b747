//! People whom a proxy has logged in.

use sexton_model::access::Role;
use sexton_server::access::client::ProxySettings;

use super::Fixture;

const HOST: &str = "Host: sexton.example.com";

fn proxies(trusted: &str, role: Option<Role>) -> ProxySettings {
    ProxySettings {
        trusted: vec![trusted.parse().unwrap()],
        user_header: Some("x-forwarded-user".parse().unwrap()),
        role_header: Some("x-forwarded-role".parse().unwrap()),
        role,
        is_behind_tls: false,
    }
}

#[tokio::test]
async fn a_trusted_proxy_names_the_person_and_the_role() {
    let f = Fixture::with(|backend| backend.behind(proxies("127.0.0.1", Some(Role::Viewer)))).await;
    let get = async |headers: &[&str]| f.send("GET", "/me", &[&[HOST], headers].concat(), "").await;
    let me = get(&["X-Forwarded-User: ann@example.com"]).await.expect(200);
    assert_eq!(
        (&me["name"], &me["role"], &me["how"]),
        (&"proxy ann@example.com".into(), &"viewer".into(), &"proxy".into())
    );
    let me = get(&["X-Forwarded-User: ann", "X-Forwarded-Role: operator"]).await.expect(200);
    assert_eq!(me["role"], "operator");
    get(&[]).await.expect(401);
    get(&["X-Forwarded-User: "]).await.expect(401);
    // The client's own header before that of the proxy.
    get(&["X-Forwarded-User: root", "X-Forwarded-User: ann"]).await.expect(401);
    get(&["X-Forwarded-User: ann", "X-Forwarded-Role: Operator"]).await.expect(401);
    get(&["X-Forwarded-User: ann", "X-Forwarded-Role: "]).await.expect(401);
    let token = format!("Authorization: Bearer {}", f.token("watch", "viewer").await);
    let me = get(&["X-Forwarded-User: ann", &token]).await.expect(200);
    assert_eq!(me["name"], "token watch");
    let person = [HOST, "X-Forwarded-User: ann", "X-Forwarded-Role: operator"];
    let trigger = async |more: &[&str]| {
        f.send("POST", "/jobs/shop.mail/trigger", &[&person, more].concat(), "").await
    };
    // The proxy adds its header to every request of the browser, those of other sites' pages among them.
    trigger(&[]).await.expect(403);
    trigger(&["Origin: https://evil.example"]).await.expect(403);
    trigger(&["Origin: https://sexton.example.com", "X-Forwarded-For: 203.0.113.7"])
        .await
        .expect(200);
    let audit = f.console.json(&["audit", "list", "--job", "shop.mail"]).await;
    let row = &audit["items"][0];
    assert_eq!(
        (&row["actor"], &row["from_where"]),
        (&"proxy ann".into(), &"console 203.0.113.7".into())
    );
}

#[tokio::test]
async fn nobody_else_passes_for_somebody() {
    for trusted in ["10.0.0.0/8", "::1"] {
        let proxies = proxies(trusted, Some(Role::Admin));
        let f = Fixture::with(|backend| backend.behind(proxies)).await;
        f.send("GET", "/me", &[HOST, "X-Forwarded-User: root"], "").await.expect(401);
        let token = format!("Authorization: Bearer {}", f.token("ci", "operator").await);
        let headers = [HOST, &token, "X-Forwarded-For: 203.0.113.7"];
        f.send("POST", "/jobs/shop.mail/trigger", &headers, "").await.expect(200);
        let audit = f.console.json(&["audit", "list", "--job", "shop.mail"]).await;
        assert_eq!(audit["items"][0]["from_where"], "api 127.0.0.1");
    }
    let f = Fixture::with(|backend| backend.behind(proxies("127.0.0.1", None))).await;
    let refused = f.send("GET", "/me", &[HOST, "X-Forwarded-User: ann"], "").await.expect(401);
    assert!(refused["detail"].as_str().unwrap().contains("SERVE_PROXY_ROLE"), "{refused}");
}
