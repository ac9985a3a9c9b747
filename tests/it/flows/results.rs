//! A member's params get the results of those before it when it becomes due.

use serde_json::{Value, json};
use sexton_model::retry::Decision;
use sexton_store::settle::settle;

use super::{Fixture, later};
use crate::store::settlement;

impl Fixture {
    async fn succeed_with(&self, member: &str, result: Value) {
        let held = self.rows.opened(self.id(member).await, 1, 0).await;
        let mut end = settlement(held, Decision::Succeed);
        end.result = Some(result);
        settle(self.rows.store(), &[end], later(1)).await.unwrap();
    }

    async fn params(&self, member: &str) -> Value {
        let reading = sqlx::query_scalar("SELECT params FROM sexton.executions WHERE id = $1");
        reading.bind(self.id(member).await.get()).fetch_one(self.pool()).await.unwrap()
    }
}

#[tokio::test]
async fn the_results_of_the_members_before_are_filled_in_once() {
    let f = Fixture::new().await;
    f.begin(&[
        ("a", &[], json!({})),
        ("b", &[], json!({})),
        (
            "c",
            &["a", "b"],
            json!({"params": {"name": "{{ upstream.a.result.rows }}", "rows": 0}, "results": {
                "rows": "{{ upstream.a.result.rows }}",
                "first": "file {{ upstream.a.result.files.0 }} of {{ upstream.b.state }}",
                "all": "{{ upstream.b.result }}",
                "none": "{{ upstream.b.result.none }}",
                "job": "{{ job }}",
            }}),
        ),
    ])
    .await;
    f.succeed_with("a", json!({"rows": 42, "files": ["x.csv"]})).await;
    assert_eq!(f.params("c").await["rows"], 0, "not before all have ended");
    f.succeed_with("b", json!({"note": "{{ upstream.a.result.rows }}"})).await;
    let expected = json!({
        "a": 1, "rows": 42, "first": "file x.csv of succeeded", "none": null, "job": "{{ job }}",
        // Neither what a result holds is a template, nor what a caller passes as params.
        "all": {"note": "{{ upstream.a.result.rows }}"}, "name": "{{ upstream.a.result.rows }}",
    });
    assert_eq!(f.params("c").await, expected);
}

#[tokio::test]
async fn results_that_make_the_params_too_large_park_the_member_and_the_end_before_it_stands() {
    let f = Fixture::new().await;
    let many = vec!["{{ upstream.a.result }}"; 30];
    f.begin(&[
        ("a", &[], json!({})),
        ("b", &["a"], json!({"results": {"many": many}})),
        ("c", &["b"], json!({})),
    ])
    .await;
    f.succeed_with("a", json!("x".repeat(10_000))).await;
    f.expect(&[("a", "succeeded"), ("b", "failed"), ("c", "blocked")]).await;
    let b = f.id("b").await;
    let message = f.rows.column(b, "error_message").await.unwrap();
    assert!(message.contains("more than 262,144 bytes with the results"), "{message}");
    assert_eq!(f.params("b").await, json!({"a": 1}), "for an operator to edit");
}
