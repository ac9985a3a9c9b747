//! What begins a flow, and what is refused.

use serde_json::{Value, json};
use sqlx::postgres::PgDatabaseError;

use super::{Fixture, after};

/// What the call answers: SQLSTATE, message and detail of the refusal.
async fn refusal(f: &Fixture, definition: Value) -> (String, String) {
    let calling = sqlx::query("SELECT * FROM sexton.flow($1)").bind(definition);
    let error = calling.execute(f.pool()).await.unwrap_err();
    let error = error.as_database_error().unwrap().downcast_ref::<PgDatabaseError>();
    assert!(error.hint().is_some(), "{error}");
    (
        error.code().to_owned(),
        format!("{}\n{}", error.message(), error.detail().unwrap_or_default()),
    )
}

#[tokio::test]
async fn members_without_upstream_run_at_once_and_the_others_wait() {
    let f = Fixture::new().await;
    f.begin(&[after("a", &[]), after("b", &[]), after("c", &["a", "b"])]).await;
    f.expect(&[("a", "pending"), ("b", "pending"), ("c", "blocked")]).await;
    assert_eq!(f.open().await, (3, false));
    let c = f.id("c").await;
    // A worker that gets its ticket in some way does not open it.
    assert!(f.rows.open(crate::store::request(c, 1), 5).await.is_none());
    f.succeed("a").await;
    f.expect(&[("a", "succeeded"), ("b", "pending"), ("c", "blocked")]).await;
    f.succeed("b").await;
    f.expect(&[("a", "succeeded"), ("b", "succeeded"), ("c", "pending")]).await;
    f.succeed("c").await;
    assert_eq!(f.open().await, (0, true));
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once_and_nothing_begins() {
    let f = Fixture::new().await;
    let member = |more: Value| {
        let mut one = json!({"name": "a", "job": "the.job"});
        one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        one
    };
    for (definition, code, parts) in [
        (json!([]), "SX010", &["the definition is not an object"][..]),
        (json!({"name": "f", "x": 1}), "SX010", &["unknown fields [\"x\"]", "members is no list"]),
        (json!({"name": "f", "members": []}), "SX010", &["members is no list of at least one"]),
        (
            json!({"name": "f", "members": [
                member(json!({"after": ["b"]})), member(json!({"name": "a b", "when": "never"})),
                member(json!({"name": "c", "after": ["c", "c"], "on_discard": "x", "y": 1, "params": 1})),
            ]}),
            "SX010",
            &[
                "member a: after names b, which is no member",
                "member a b: name is none of",
                "when is none of",
                "member c: unknown fields [\"y\"]; params is not an object; after names a member twice; on_discard",
            ],
        ),
        (
            json!({"name": "f", "members": [member(json!({})), member(json!({}))]}),
            "SX010",
            &["another member has its name"],
        ),
        (
            json!({"name": "f", "members": [member(json!({"after": ["b"]})), member(json!({"name": "b", "after": ["a"]}))]}),
            "SX010",
            &["member a: it waits for itself"],
        ),
        (
            json!({"name": "f", "members": [member(json!({"results": {"x": "{{ upstream.b.result }}"}}))]}),
            "SX010",
            &["results names b, which after does not name"],
        ),
        (
            json!({"name": "f", "members": [member(json!({"job": "no.job"}))]}),
            "SX001",
            &["there is no job \"no.job\""],
        ),
        (
            json!({"name": "f", "members": [member(json!({"params": {"x": "y".repeat(262_144)}}))]}),
            "SX011",
            &["member a: the params have more than 262,144 bytes"],
        ),
        (
            json!({"name": "f", "members": vec![member(json!({})); 20_001]}),
            "SX020",
            &["20001 members"],
        ),
    ] {
        let (got, text) = refusal(&f, definition).await;
        assert_eq!(got, code, "{text}");
        for part in parts {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
    f.run("UPDATE sexton.jobs SET status = 'paused', paused_at = now()").await;
    let (code, _) = refusal(&f, json!({"name": "f", "members": [member(json!({}))]})).await;
    assert_eq!(code, "SX003");
    assert_eq!(f.states().await.len(), 0);
}

#[tokio::test]
async fn a_key_makes_one_flow() {
    let f = Fixture::new().await;
    let definition = json!({"name": "f", "key": "k", "members": [{"name": "a", "job": "the.job"}]});
    let begin = async || -> (uuid::Uuid, bool, i32, i32) {
        let calling = sqlx::query_as("SELECT * FROM sexton.flow($1)").bind(&definition);
        calling.fetch_one(f.pool()).await.unwrap()
    };
    let first = begin().await;
    assert_eq!((first.1, first.2, first.3), (true, 1, 1));
    f.succeed("a").await;
    assert_eq!(begin().await, (first.0, false, 1, 0));
    assert_eq!(f.states().await.len(), 1);
}

#[tokio::test]
async fn the_verdicts_of_the_database_are_those_of_the_model() {
    use sexton_model::flow::{RunsWhen, verdict};
    let f = Fixture::new().await;
    for runs_when in [RunsWhen::AllSucceeded, RunsWhen::AllDone, RunsWhen::AnyFailed] {
        for (waits_for, unsuccessful) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (0, 3), (9, 9)] {
            let asking =
                sqlx::query_scalar::<_, Option<String>>("SELECT sexton.flow_verdict($1, $2, $3)");
            let asking = asking
                .bind(runs_when.as_str())
                .bind(i64::from(waits_for))
                .bind(i64::from(unsuccessful));
            let model = verdict(runs_when, waits_for, unsuccessful)
                .map(|verdict| verdict.as_str().to_owned());
            assert_eq!(
                asking.fetch_one(f.pool()).await.unwrap(),
                model,
                "{runs_when:?} {waits_for} {unsuccessful}"
            );
        }
    }
}
