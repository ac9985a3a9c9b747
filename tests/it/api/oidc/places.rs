//! Several servers, a base path, and HTTPS.

use serde_json::json;
use sexton_model::oidc::ProviderSettings;
use sexton_server::access::client::ProxySettings;

use super::super::{Fixture, LOCAL_HOST};
use super::provider::Provider;
use super::{
    assert_refused, begin, beside, finish, log_in, log_in_by, return_path, return_url, session,
    settings, start,
};

#[tokio::test]
async fn any_server_ends_a_log_in_that_another_began_and_knows_its_session() {
    let (provider, f) = start().await;
    let other = beside(&f, settings(provider.issuer())).await;
    let (cookie, url) = begin(&f, "/jobs").await;
    let path = return_path(&url).await;
    let session = session(&finish(&other, &cookie, &path).await).expect("any server ends it");
    for server in [&f, &other] {
        let me = server.visit(&session, "GET", "/me", "").await.expect(200);
        assert_eq!(me["name"], "oidc ann@example.com");
    }
    // The first has not seen this state, but the provider this code.
    assert_refused(&finish(&f, &cookie, &path).await, 403, "refuses the log-in (invalid_grant)");
    assert_eq!(other.visit(&session, "DELETE", "/session", "").await.status, 204);
    for server in [&f, &other] {
        server.visit(&session, "GET", "/me", "").await.expect(401);
    }
}

#[tokio::test]
async fn without_a_provider_there_is_no_such_log_in_and_its_sessions_are_over() {
    let (_provider, f) = start().await;
    let cookie = session(&log_in(&f).await).unwrap();
    f.visit(&cookie, "GET", "/me", "").await.expect(200);
    let off = Fixture::beside(&f, |backend| backend.with_provider(None)).await;
    off.visit(&cookie, "GET", "/me", "").await.expect(401);
    let page = off.send_to("GET", "/log-in", &[LOCAL_HOST], "").await.expect(200);
    assert!(!page.as_str().unwrap().contains("oidc"), "{page}");
    for path in ["/log-in/oidc", "/log-in/oidc/callback?code=a&state=b"] {
        let answer = off.send_to("GET", path, &[LOCAL_HOST], "").await;
        assert_refused(&answer, 404, "no log-in by an identity provider");
    }
}

#[tokio::test]
async fn below_a_path_every_step_of_a_log_in_is_below_it() {
    const BASE: &str = "/ops/sexton";
    let provider = Provider::start().await;
    let log_in = log_in_by(settings(provider.issuer()));
    let f = Fixture::with(|backend| backend.under(BASE).with_provider(Some(log_in))).await;
    let page = f.send_to("GET", &format!("{BASE}/log-in"), &[LOCAL_HOST], "").await.expect(200);
    let link = "href=\"http://localhost:8420/ops/sexton/log-in/oidc?next=\"";
    assert!(page.as_str().unwrap().contains(link), "{page}");
    // By a proxy that passes the path on, and by one that removes it.
    for proxy in [BASE, ""] {
        for (next, expected) in [
            ("/ops/sexton/jobs", "/ops/sexton/jobs"),
            ("/jobs", "/ops/sexton/"),
            ("/ops/sexton/../other", "/ops/sexton/"),
            ("/ops/sextons", "/ops/sexton/"),
        ] {
            let path = format!("{proxy}/log-in/oidc?next={next}");
            let begun = f.send_to("GET", &path, &[LOCAL_HOST], "").await;
            let back = return_path(begun.header("location").unwrap()).await;
            assert!(back.starts_with("/ops/sexton/log-in/oidc/callback?"), "{back}");
            let back = format!("{proxy}{}", back.strip_prefix(BASE).unwrap());
            let answer = finish(&f, &begun.cookie(), &back).await;
            assert_eq!(answer.header("location"), Some(expected), "{}", answer.body);
            assert!(answer.head.contains("Path=/; HttpOnly"), "{}", answer.head);
            let me = f.visit(&session(&answer).unwrap(), "GET", "/me", "").await.expect(200);
            assert_eq!(me["how"], "oidc");
        }
    }
    let refused = f.send_to("GET", "/log-in/oidc/callback?state=x", &[LOCAL_HOST], "").await;
    let form = "action=\"/ops/sexton/log-in\"";
    assert!(refused.body.as_str().unwrap().contains(form), "{}", refused.body);
}

#[tokio::test]
async fn by_https_the_cookies_are_those_of_this_host_alone_and_by_http_there_is_no_log_in() {
    const HOST: &str = "Host: sexton.example.com";
    let provider = Provider::start().await;
    let public_url = "https://sexton.example.com".parse().unwrap();
    let known = ProviderSettings { public_url, ..settings(provider.issuer()) };
    let log_in = log_in_by(known.clone());
    let proxies = ProxySettings { is_behind_tls: true, ..ProxySettings::default() };
    let f = Fixture::with(|backend| backend.behind(proxies).with_provider(Some(log_in))).await;
    let begun = f.send_to("GET", "/log-in/oidc?next=/jobs", &[HOST], "").await;
    let set = begun.header("set-cookie").unwrap();
    assert!(set.starts_with("__Host-sexton_log_in="), "{set}");
    assert!(set.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=600; Secure"), "{set}");
    let back = return_url(begun.header("location").unwrap()).await;
    let path = back.strip_prefix("https://sexton.example.com").unwrap();
    let cookie = begun.cookie();
    // The name of a cookie that any site of the same domain could have set.
    let plain = cookie.replace("__Host-", "");
    let by_plain = f.send_to("GET", path, &[HOST, &plain], "").await;
    assert_refused(&by_plain, 403, super::NOT_BEGUN);
    let answer = f.send_to("GET", path, &[HOST, &cookie], "").await;
    let session = answer.head.lines().find(|line| line.contains("__Host-sexton_session="));
    assert!(session.unwrap().ends_with("; Max-Age=43200; Secure"), "{}", answer.head);
    // A server that no proxy with TLS stands before.
    let open = beside(&f, known).await;
    for path in ["/log-in/oidc", path] {
        let abroad = open.send_to("GET", path, &[HOST, &cookie], "").await;
        assert_eq!((abroad.status, abroad.header("set-cookie")), (403, None), "{}", abroad.body);
        assert!(abroad.body.as_str().unwrap().contains("a log-in needs HTTPS"), "{}", abroad.body);
        // The page does not repeat the code.
        let code = path.split("code=").nth(1).and_then(|rest| rest.split('&').next());
        assert!(code.is_none_or(|code| !abroad.body.to_string().contains(code)), "{}", abroad.body);
    }
}

#[tokio::test]
async fn the_oldest_of_too_many_sessions_of_a_person_ends() {
    let (provider, f) = start().await;
    let first = session(&log_in(&f).await).unwrap();
    let mut last = first.clone();
    for _ in 0..20 {
        f.visit(&first, "GET", "/me", "").await.expect(200);
        last = session(&log_in(&f).await).unwrap();
    }
    f.visit(&first, "GET", "/me", "").await.expect(401);
    f.visit(&last, "GET", "/me", "").await.expect(200);
    // Another person has as many.
    provider.change(|behavior| behavior.claims = json!({"email": "bob@example.com"}));
    f.visit(&session(&log_in(&f).await).unwrap(), "GET", "/me", "").await.expect(200);
    f.visit(&last, "GET", "/me", "").await.expect(200);
}
