//! The server below a path, by a proxy that passes it on and by one that removes it.

use serde_json::{Value, json};

use super::{Fixture, LOCAL_HOST};

const BASE: &str = "/ops/sexton";
const PAGES: [&str; 10] = [
    "/",
    "/jobs",
    "/jobs/shop.mail",
    "/failed",
    "/executions",
    "/firings",
    "/monitors",
    "/me",
    "/search?q=shop",
    "/nowhere",
];
/// Attributes with addresses.
const ADDRESSES: [&str; 4] = ["href=\"", "src=\"", "action=\"", "data-base=\""];

#[tokio::test]
async fn every_address_of_a_page_begins_with_the_path_and_answers_with_and_without_it() {
    let f = Fixture::below(BASE).await;
    let authorization = format!("Authorization: Bearer {}", f.token("ann", "admin").await);
    let headers = [LOCAL_HOST, &authorization, "Accept: text/html"];
    let mut seen = 0;
    for page in PAGES {
        let status = if page == "/nowhere" { 404 } else { 200 };
        let kept = f.send_to("GET", &format!("{BASE}{page}"), &headers, "").await.expect(status);
        let removed = f.send_to("GET", page, &headers, "").await.expect(status);
        for body in [kept, removed] {
            let text = body.as_str().expect("a page");
            for address in ADDRESSES.iter().flat_map(|attribute| text.split(attribute).skip(1)) {
                let address = address.split('"').next().unwrap();
                let is_relative = address.starts_with(['#', '?']);
                let is_below = address == BASE || address.starts_with(&format!("{BASE}/"));
                assert!(is_relative || is_below, "{page} leads to {address}");
                seen += 1;
            }
        }
    }
    assert!(seen > 200, "{seen} addresses");
}

#[tokio::test]
async fn the_api_and_the_log_in_lead_below_the_path() {
    let f = Fixture::below(BASE).await;
    let token = f.token("ed", "editor").await;
    let job = json!({"name": "a.new", "task": "work"}).to_string();
    let created = f.ask(&token, "POST", "/jobs", &job).await;
    let place = created.header("location").unwrap().to_owned();
    created.expect(201);
    assert_eq!(place, format!("{BASE}/api/v1/jobs/a.new"));
    f.console.run(&["approvals", "rules", "set", "all"]).await.expect(0);
    let discard = format!("/failures/{}/discard", f.console.failed().await);
    let waits = f.ask(&token, "POST", &discard, r#"{"reason": "x"}"#).await;
    let request = waits.header("location").unwrap().to_owned();
    let id = waits.expect(202)["id"].to_string();
    assert_eq!(request, format!("{BASE}/api/v1/approvals/{id}"));
    let authorization = format!("Authorization: Bearer {token}");
    let there = f.send_to("GET", &place, &[LOCAL_HOST, &authorization], "").await.expect(200);
    assert_eq!(there["name"], "a.new");
    let path = format!("{BASE}/api/v1/openapi.json");
    let description = f.send_to("GET", &path, &[LOCAL_HOST], "").await.expect(200);
    assert_eq!(description["servers"], json!([{"url": format!("{BASE}/")}]));
    // A stranger comes back to where the link led.
    for path in [format!("{BASE}/failed?job=a"), "/failed?job=a".to_owned()] {
        let refused = f.send_to("GET", &path, &[LOCAL_HOST], "").await;
        let next = "%2Fops%2Fsexton%2Ffailed%3Fjob%3Da";
        let log_in = format!("{BASE}/log-in?next={next}");
        assert_eq!(refused.header("location"), Some(&*log_in), "{}", refused.head);
        assert_eq!(refused.expect(303), Value::Null);
    }
    // What only begins like it is something else.
    f.send_to("GET", &format!("{BASE}s/api/v1/me"), &[LOCAL_HOST, "Accept: text/html"], "")
        .await
        .expect(404);
}
