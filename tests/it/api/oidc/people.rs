//! Who gets in, under which name and with which role.

use serde_json::{Value, json};
use sexton_model::oidc::ProviderSettings;

use super::super::LOCAL_HOST;
use super::provider::CLIENT;
use super::signing::Signing;
use super::{assert_refused, begin, beside, finish, log_in, return_path, session, settings, start};

#[tokio::test]
async fn a_person_logs_in_by_the_provider_with_the_role_that_a_claim_gives() {
    let (provider, f) = start().await;
    let page = f.send_to("GET", "/log-in?next=/jobs", &[LOCAL_HOST], "").await.expect(200);
    let link = "href=\"http://localhost:8420/log-in/oidc?next=%2Fjobs\">Log in with 127.0.0.1<";
    assert!(page.as_str().unwrap().contains(link), "{page}");
    let answer = log_in(&f).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some("/jobs")), "{}", answer.body);
    let over = "set-cookie: sexton_log_in=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0";
    assert!(answer.head.contains(over), "{}", answer.head);
    assert!(answer.head.contains("; Path=/; HttpOnly; SameSite=Lax; Max-Age=43200"));
    assert!(answer.has("cache-control: no-store"), "{}", answer.head);
    let cookie = session(&answer).unwrap();
    let me = f.visit(&cookie, "GET", "/me", "").await.expect(200);
    assert_eq!(
        (&me["name"], &me["role"], &me["how"]),
        (&"oidc ann@example.com".into(), &"operator".into(), &"oidc".into())
    );
    let page = f.send_to("GET", "/me", &[LOCAL_HOST, &cookie], "").await.expect(200);
    let page = page.as_str().unwrap();
    for words in
        ["oidc ann@example.com", "operator", "The identity provider has logged you in", "/log-out"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    f.visit(&cookie, "POST", "/jobs/shop.mail/trigger", "{}").await.expect(200);
    f.visit(&cookie, "GET", "/accounts", "").await.expect(403);
    let elsewhere = [LOCAL_HOST, &cookie, "Sec-Fetch-Site: cross-site"];
    f.send("POST", "/jobs/shop.mail/trigger", &elsewhere, "{}").await.expect(403);
    let password = json!({"current": "x", "password": "another password"}).to_string();
    f.visit(&cookie, "POST", "/me/password", &password).await.expect(409);
    let audit = f.console.json(&["audit", "list"]).await;
    let (trigger, log_in_row) = (&audit["items"][0], &audit["items"][1]);
    let actor = Value::from("oidc ann@example.com");
    assert_eq!((&trigger["action"], &trigger["actor"]), (&"trigger".into(), &actor));
    assert_eq!((&log_in_row["action"], &log_in_row["actor"]), (&"log_in".into(), &actor));
    assert_eq!(log_in_row["from_where"], "console 127.0.0.1");
    let after = json!({"name": "ann@example.com", "role": "operator", "issuer": provider.issuer(), "subject": "17"});
    assert_eq!(log_in_row["after"], after);
    let out = f.visit(&cookie, "DELETE", "/session", "").await;
    assert_eq!(out.status, 204, "{}", out.body);
    f.visit(&cookie, "GET", "/me", "").await.expect(401);
}

#[tokio::test]
async fn a_role_counts_for_its_session_and_is_judged_anew_at_each_log_in() {
    let (provider, f) = start().await;
    let cookie = session(&log_in(&f).await).unwrap();
    f.visit(&cookie, "GET", "/accounts", "").await.expect(403);
    provider.change(|behavior| {
        behavior.claims = json!({"groups": ["admins"], "aud": [CLIENT]});
        behavior.signing = Signing::Es256;
    });
    let other = session(&log_in(&f).await).unwrap();
    f.visit(&other, "GET", "/accounts", "").await.expect(200);
    f.visit(&cookie, "GET", "/accounts", "").await.expect(403);
    // By the page, too.
    let headers = [LOCAL_HOST, &other, "Sec-Fetch-Site: same-origin"];
    let out = f.send_to("POST", "/log-out", &headers, "").await;
    assert_eq!((out.status, out.header("location")), (303, Some("/log-in")), "{}", out.body);
    f.visit(&other, "GET", "/me", "").await.expect(401);
    f.visit(&cookie, "GET", "/me", "").await.expect(200);
}

#[tokio::test]
async fn a_provider_that_takes_the_secret_in_the_form_or_names_no_key_is_understood() {
    let (provider, f) = start().await;
    provider.change(|behavior| {
        behavior.metadata =
            json!({"token_endpoint_auth_methods_supported": ["client_secret_post"]});
        behavior.signing = Signing::WithoutKeyId;
    });
    assert!(session(&log_in(&f).await).is_some());
}

#[tokio::test]
async fn nobody_without_a_role_or_a_verified_name_gets_in_and_reads_why() {
    let (provider, f) = start().await;
    let no_role = "ann@example.com is known to the identity provider, but has no role here";
    for (claims, words) in [
        (json!({"groups": ["staff"]}), no_role),
        (json!({"groups": Value::Null}), "your token does not have"),
        (json!({"groups": ["Admins"]}), no_role),
        (json!({"groups": {"admins": true}}), no_role),
        (json!({"email_verified": false}), "has not verified your address"),
        (json!({"email_verified": Value::Null}), "has not verified your address"),
        (json!({"email": Value::Null}), "SERVE_OIDC_NAME_CLAIM"),
        (json!({"email": "a\u{7}@example.com"}), "control characters"),
    ] {
        provider.change(|behavior| behavior.claims = claims);
        assert_refused(&log_in(&f).await, 403, words);
    }
    // What a person has chosen at the provider is text here.
    provider.change(|behavior| behavior.claims = json!({"groups": ["<script>"]}));
    let page = log_in(&f).await.expect(403);
    assert!(!page.as_str().unwrap().contains("<script>"), "{page}");
    let audit = f.console.json(&["audit", "list"]).await;
    let rows = audit["items"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["action"] != "log_in"), "{audit}");
}

#[tokio::test]
async fn an_unverified_address_gives_no_role_under_another_name_either() {
    let (provider, f) = start().await;
    let by_subject =
        ProviderSettings { name_claim: "sub".to_owned(), ..settings(provider.issuer()) };
    let f = beside(&f, by_subject).await;
    provider.change(|behavior| {
        behavior.claims =
            json!({"email": "eve@example.com", "email_verified": false, "groups": []});
    });
    assert_refused(&log_in(&f).await, 403, "is not verified");
    provider.change(|behavior| behavior.claims = json!({"email": "eve@example.com"}));
    let me = f.visit(&session(&log_in(&f).await).unwrap(), "GET", "/me", "").await.expect(200);
    assert_eq!((&me["name"], &me["role"]), (&"oidc 17".into(), &"admin".into()));
}

#[tokio::test]
async fn a_log_in_leads_to_pages_of_this_console_alone() {
    let (_provider, f) = start().await;
    for (next, expected) in [
        ("/failed%3Fjob%3Da", "/failed?job=a"),
        ("https%3A%2F%2Fevil.example", "/"),
        ("%2F%2Fevil.example", "/"),
        ("%2F%5Cevil.example", "/"),
        ("%2F%09%2Fevil.example", "/"),
        ("%2Fa%0D%0ASet-Cookie%3A%20a%3Db", "/"),
        ("", "/"),
    ] {
        let (cookie, url) = begin(&f, next).await;
        let answer = finish(&f, &cookie, &return_path(&url).await).await;
        assert_eq!((answer.status, answer.header("location")), (303, Some(expected)), "{next}");
    }
}
