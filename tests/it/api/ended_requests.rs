//! Requests for approval that are refused, or end, because nobody could ever carry them out.

use serde_json::{Value, json};
use sexton_store::approvals::{self, VoteOutcome};
use sexton_store::operator::AuditContext;

use super::Fixture;
use super::approvals::{approve, discard, executions_of, people, rule};
use super::trigger_all::execute;

/// The database takes no other value in any execution.
const REFUSAL: &str = "
    CREATE FUNCTION public.refuse_value() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'no such value' USING ERRCODE = '23514';
    END $$;
    CREATE TRIGGER refuse_value BEFORE UPDATE ON sexton.executions FOR EACH ROW EXECUTE FUNCTION public.refuse_value()";

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

#[tokio::test]
async fn what_the_database_refuses_ends_the_request_and_is_not_tried_again() {
    let f = Fixture::new().await;
    let [ann, bob, eve] = people(&f).await;
    rule(&f, &[]).await;
    let id = f.console.failed().await;
    let waits = discard(&f, &ann, id).await;
    execute(&f, REFUSAL).await;
    let failed = approve(&f, &bob, &waits, 200).await;
    assert_eq!(failed["state"], "failed", "{failed}");
    assert!(failed["outcome"].as_str().unwrap().contains("no such value"), "{failed}");
    assert_eq!(f.console.state(id).await, "failed/2");
    let again = approve(&f, &eve, &waits, 409).await;
    assert!(again["detail"].as_str().unwrap().contains("could not be carried out"), "{again}");
}

#[tokio::test]
async fn an_exception_of_a_trigger_and_a_limit_of_the_database_end_the_request() {
    let f = Fixture::new().await;
    let [ann, bob, eve] = people(&f).await;
    rule(&f, &[]).await;
    let id = f.console.failed().await;
    execute(&f, REFUSAL).await;
    let refusals = [
        (
            "not on Sundays",
            "CREATE OR REPLACE FUNCTION public.refuse_value() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                RAISE EXCEPTION 'not on Sundays';
            END $$",
        ),
        (
            "too many columns",
            "CREATE OR REPLACE FUNCTION public.refuse_value() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                RAISE EXCEPTION 'too many columns' USING ERRCODE = '54011';
            END $$",
        ),
    ];
    for (reason, refusal) in refusals {
        let waits = discard(&f, &ann, id).await;
        execute(&f, refusal).await;
        let failed = approve(&f, &bob, &waits, 200).await;
        assert_eq!(failed["state"], "failed", "{failed}");
        assert!(failed["outcome"].as_str().unwrap().contains(reason), "{failed}");
        assert_eq!(f.console.state(id).await, "failed/2");
        approve(&f, &eve, &waits, 409).await;
    }
}

#[tokio::test]
async fn a_long_reason_of_the_database_is_cut_in_the_request_and_in_the_audit() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &[]).await;
    let id = f.console.failed().await;
    let waits = discard(&f, &ann, id).await;
    execute(&f, REFUSAL).await;
    let long = "CREATE OR REPLACE FUNCTION public.refuse_value() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION '%', repeat('é', 9000);
    END $$";
    execute(&f, long).await;
    let failed = approve(&f, &bob, &waits, 200).await;
    let bytes = failed["outcome"].as_str().unwrap().len();
    // Two bytes each.
    assert!((3_999..=4_000).contains(&bytes), "{bytes}: {failed}");
    let audit = f.console.items(&["audit", "list", "--action", "fail_request"]).await;
    assert_eq!(audit[0]["after"]["outcome"], failed["outcome"], "{audit}");
}

#[tokio::test]
async fn a_clock_that_was_set_back_leaves_the_request_approved() {
    let f = Fixture::new().await;
    let [ann, bob, eve] = people(&f).await;
    rule(&f, &["--above", "1"]).await;
    f.console.failed().await;
    let bulk = r#"{"kind": "discard", "all": true, "reason": "x"}"#;
    let bulk = f.visit(&ann, "POST", "/bulks", bulk).await.expect(202);
    let quarter = r#"{"since": "2024-01-01T00:00:00Z", "until": "2024-04-01T00:00:00Z"}"#;
    let path = "/jobs/billing.invoices/backfills";
    let backfill = f.visit(&ann, "POST", path, quarter).await.expect(202);
    // As if the database's clock had been ahead when they were requested.
    let ahead = r#"
        UPDATE sexton.approval_requests SET proposal = jsonb_set(proposal, '{previewed_at}', '"2999-01-01T00:00:00Z"')
        WHERE kind = 'bulk_discard';
        UPDATE sexton.approval_requests SET proposal = jsonb_set(proposal, '{until}', '"2999-01-01T00:00:00Z"')
        WHERE kind = 'backfill'"#;
    execute(&f, ahead).await;
    for waits in [&bulk, &backfill] {
        let refused = approve(&f, &bob, waits, 503).await;
        assert!(refused["detail"].as_str().unwrap().contains("clock is behind"), "{refused}");
        let path = format!("/approvals/{}", waits["id"]);
        let found = f.visit(&ann, "GET", &path, "").await.expect(200);
        assert_eq!((&found["state"], &found["outcome"]), (&json!("approved"), &Value::Null));
    }
    assert_eq!(f.console.items(&["bulks", "list"]).await, json!([]));
    assert_eq!(executions_of(&f, "billing.invoices").await, 0);

    let reached = r#"
        UPDATE sexton.approval_requests SET proposal = jsonb_set(proposal, '{previewed_at}', to_jsonb(requested_at))
        WHERE kind = 'bulk_discard';
        UPDATE sexton.approval_requests SET proposal = jsonb_set(proposal, '{until}', '"2024-04-01T00:00:00Z"')
        WHERE kind = 'backfill'"#;
    execute(&f, reached).await;
    for waits in [&bulk, &backfill] {
        let done = approve(&f, &eve, waits, 200).await;
        assert_eq!(done["state"], "carried_out", "{done}");
    }
    assert_eq!(executions_of(&f, "billing.invoices").await, 3);
}

#[tokio::test]
async fn a_value_of_an_action_that_cannot_be_read_is_not_quoted() {
    let f = Fixture::new().await;
    let [ann, bob, eve] = people(&f).await;
    rule(&f, &[]).await;
    let waits = discard(&f, &ann, f.console.failed().await).await;
    let change = r#"UPDATE sexton.approval_requests SET proposal = jsonb_set(proposal, '{attempt}', '"hunter2"')"#;
    execute(&f, change).await;
    let refused = approve(&f, &bob, &waits, 409).await.to_string();
    let (id, store) = (waits["id"].as_i64().unwrap(), f.console.store());
    let by = AuditContext { actor: "account bob", reason: None };
    let voted = approvals::approve(store, id, 2, &["bob".to_owned()], by, None).await.unwrap();
    assert_eq!(voted, VoteOutcome::Recorded);
    let outcome = approve(&f, &eve, &waits, 200).await["outcome"].to_string();
    let audit = f.console.items(&["audit", "list", "--action", "fail_request"]).await.to_string();
    for shown in [refused, outcome, audit] {
        assert!(shown.contains("its action cannot be read"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}

#[tokio::test]
async fn a_part_that_this_version_cannot_read_ends_the_request() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &[]).await;
    f.console.failed().await;
    let bulk = r#"{"kind": "discard", "all": true, "reason": "x"}"#;
    let changes = [
        (
            "rate",
            r#"UPDATE sexton.approval_requests SET proposal = jsonb_set(proposal, '{rate}', '"soon"')"#,
        ),
        (
            "verify",
            r#"UPDATE sexton.approval_requests SET proposal = jsonb_set(proposal, '{verify}', '"soon"')"#,
        ),
        (
            "filter",
            "UPDATE sexton.approval_requests SET proposal = jsonb_set(proposal, '{filter}', '7')",
        ),
    ];
    for (part, change) in changes {
        let waits = f.visit(&ann, "POST", "/bulks", bulk).await.expect(202);
        execute(&f, change).await;
        let failed = approve(&f, &bob, &waits, 200).await;
        assert_eq!(failed["state"], "failed", "{failed}");
        let expected = format!("another version of Sexton, and its {part}");
        assert!(failed["outcome"].as_str().unwrap().contains(&expected), "{failed}");
    }
    assert_eq!(f.console.items(&["bulks", "list"]).await, json!([]));
}

#[tokio::test]
async fn nobody_approves_what_cannot_be_read_and_if_it_was_approved_before_it_ends() {
    let f = Fixture::new().await;
    let [ann, bob, eve] = people(&f).await;
    rule(&f, &[]).await;
    let execution = f.console.failed().await;
    let waits = discard(&f, &ann, execution).await;
    execute(&f, "UPDATE sexton.approval_requests SET proposal = proposal - 'attempt'").await;
    let refused = approve(&f, &bob, &waits, 409).await;
    assert!(refused["detail"].as_str().unwrap().contains("another version"), "{refused}");
    let (id, store) = (waits["id"].as_i64().unwrap(), f.console.store());
    let path = format!("/approvals/{id}");
    assert_eq!(f.visit(&ann, "GET", &path, "").await.expect(200)["state"], "waiting");
    // By a process of the version that can read it, which has ended since.
    let by = AuditContext { actor: "account bob", reason: None };
    let voted = approvals::approve(store, id, 2, &["bob".to_owned()], by, None).await.unwrap();
    assert_eq!(voted, VoteOutcome::Recorded);
    let failed = approve(&f, &eve, &waits, 200).await;
    assert_eq!((&failed["state"], &failed["ended_by"]), (&json!("failed"), &json!("account eve")));
    assert!(failed["outcome"].as_str().unwrap().contains("another version"), "{failed}");
    assert_eq!(f.console.state(execution).await, "failed/2");
}

#[tokio::test]
async fn nobody_approves_an_action_with_a_field_that_this_version_does_not_know() {
    let f = Fixture::new().await;
    let [ann, bob, _] = people(&f).await;
    rule(&f, &["--above", "1"]).await;
    let ids = [f.console.failed().await, f.console.failed().await];
    f.console.trigger("shop.mail").await;
    f.console.trigger("shop.mail").await;
    let actions = [
        (
            "edit",
            format!("/failures/{}/edit", ids[0]),
            r#"{"merge": {"customer": 7}, "requeue": false, "reason": "x"}"#,
        ),
        ("discard", format!("/failures/{}/discard", ids[0]), r#"{"reason": "x"}"#),
        ("bulk_requeue", "/bulks".to_owned(), r#"{"kind": "requeue", "all": true}"#),
        ("bulk_discard", "/bulks".to_owned(), r#"{"kind": "discard", "all": true, "reason": "x"}"#),
        (
            "bulk_cancel",
            "/bulks".to_owned(),
            r#"{"kind": "cancel", "filter": {"job": "shop.mail"}}"#,
        ),
        (
            "backfill",
            "/jobs/billing.invoices/backfills".to_owned(),
            r#"{"since": "2024-01-01T00:00:00Z", "until": "2024-04-01T00:00:00Z"}"#,
        ),
    ];
    let mut requests = Vec::new();
    for (kind, path, body) in &actions {
        let waits = f.visit(&ann, "POST", path, body).await.expect(202);
        assert_eq!(waits["kind"], *kind, "{waits}");
        requests.push(waits);
    }
    let newer =
        r"UPDATE sexton.approval_requests SET proposal = jsonb_set(proposal, '{at_most}', '1')";
    execute(&f, newer).await;
    for waits in &requests {
        let refused = approve(&f, &bob, waits, 409).await;
        let detail = refused["detail"].as_str().unwrap();
        assert!(detail.contains("another version"), "{waits}: {refused}");
    }
    assert_eq!(f.console.state(ids[0]).await, "failed/2");
    // Only the field was in the way.
    execute(&f, "UPDATE sexton.approval_requests SET proposal = proposal - 'at_most'").await;
    assert_eq!(approve(&f, &bob, &requests[1], 200).await["state"], "carried_out");
}
