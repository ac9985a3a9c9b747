//! Requests for approval that are refused, or end, because nobody could ever carry them out.

use serde_json::json;

use super::Fixture;
use super::approvals::{people, rule};

#[tokio::test]
async fn an_edit_that_is_too_large_to_wait_is_refused_by_what_the_database_would_store() {
    let f = Fixture::new().await;
    let [ann, ..] = people(&f).await;
    rule(&f, &[]).await;
    let id = f.console.failed().await;
    let path = format!("/failures/{id}/edit");
    // Six bytes each here, and 303 each in the database.
    let numbers = |count: usize| {
        let numbers = vec!["1e300"; count].join(",");
        format!(r#"{{"merge": {{"numbers": [{numbers}]}}, "requeue": false, "reason": "typo"}}"#)
    };
    let refused = f.visit(&ann, "POST", &path, &numbers(4_000)).await.expect(400);
    assert!(refused["detail"].as_str().unwrap().contains("too large to wait"), "{refused}");
    assert_eq!(f.console.items(&["approvals", "list"]).await, json!([]));
    let waits = f.visit(&ann, "POST", &path, &numbers(3_000)).await.expect(202);
    assert_eq!(waits["state"], "waiting", "{waits}");
}
