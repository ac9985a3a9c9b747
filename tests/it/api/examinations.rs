//! Requests that examine jobs and expressions: what their bodies may be, who may send them, and how many go on at the same time.

use serde_json::{Value, json};

use super::Fixture;

const KEY: &str = "Idempotency-Key: 5f1c7a52-6f0e-4f0b-9d2e-0a6c3f6c1b7d";
const FROM: &str = "2027-01-01T00:00:00Z";

/// Each request that changes nothing and has a body.
fn examinations() -> [(&'static str, Value); 5] {
    [
        ("/cron:next", json!({"expression": "@daily", "from": FROM})),
        ("/cron:lint", json!({"expression": "0 0 13 * FRI", "from": FROM})),
        ("/jobs:lint", json!({"database": true, "from": FROM})),
        ("/jobs:preview", json!({"names": ["shop.mail"], "from": FROM})),
        ("/lock-keys:derive", json!({"name": "shop.mail", "like": "hashtext"})),
    ]
}

#[tokio::test]
async fn a_body_that_is_no_object_is_refused_as_a_whole() {
    let f = Fixture::new().await;
    let token = f.token("root", "admin").await;
    let changing = ["/lock-keys/stock/assign", "/lock-keys/stock/remove", "/jobs:apply", "/bulks"];
    for path in examinations().map(|(path, _)| path).into_iter().chain(changing) {
        for body in ["[]", " \n[7, 8]", "null", "\"{}\"", "7"] {
            let refused = f.ask(&token, "POST", path, body).await.expect(400);
            let errors = json!([{"pointer": "", "detail": "the body must be a JSON object"}]);
            assert_eq!(refused["errors"], errors, "{path}: {body}");
        }
    }
    assert_eq!(f.get(&token, "/lock-keys").await.expect(200), json!({"ranges": []}));
    f.ask(&token, "POST", "/jobs:preview", " \r\n\t{}").await.expect(200);
}

#[tokio::test]
async fn a_request_that_changes_nothing_ignores_a_key_and_stores_none() {
    let f = Fixture::new().await;
    let token = f.token("watch", "viewer").await;
    for (path, body) in examinations() {
        // The same for all of them, and one that is refused elsewhere.
        for key in [KEY, KEY, "Idempotency-Key: a b"] {
            let route = ("POST", path);
            let answer = f.ask_with(&token, route, &[key], &body.to_string()).await;
            assert_eq!(answer.header("idempotent-replayed"), None, "{path}: {}", answer.head);
            answer.expect(200);
        }
    }
    let stored = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM sexton.request_keys");
    assert_eq!(stored.fetch_one(f.console.store().pool()).await.unwrap(), 0);
    let description = f.send("GET", "/openapi.json", &["Host: x"], "").await.expect(200);
    let takes_key = |path: &str| {
        let parameters = &description["paths"][format!("/api/v1{path}")]["post"]["parameters"];
        let mut all = parameters.as_array().into_iter().flatten();
        all.any(|one| one["name"] == "Idempotency-Key")
    };
    assert!(takes_key("/jobs:apply") && takes_key("/jobs:trigger"));
    for (path, _) in examinations() {
        assert!(!takes_key(path), "{path}");
    }
}
