//! Settle: what a worker may record, and what follows from it.

use serde_json::json;
use sexton_model::retry::Verdict;
use sexton_model::state::State;
use sexton_store::StoreError;
use sexton_store::settle::{Settled, settle};

use super::{Fixture, at, fail, n, retry, settlement};

async fn request_cancel(fixture: &Fixture, id: sexton_model::id::ExecutionId) {
    sqlx::query("UPDATE executions SET cancel_requested = true WHERE id = $1")
        .bind(id.get())
        .execute(fixture.db.pool())
        .await
        .unwrap();
}

#[tokio::test]
async fn success_is_final_and_owes_nothing() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    let settled = fixture.settle(held, Verdict::Succeed, 1).await;
    assert_eq!(settled, Settled::Done { state: State::Succeeded, owed: None });
    assert_eq!(fixture.state(id).await, "succeeded/1");
    assert_eq!(fixture.attempts(id).await, ["1:succeeded"]);
    // The worker asks again because the answer was lost: nothing changes, nothing follows.
    assert_eq!(fixture.settle(held, fail(), 2).await, Settled::Fenced);
    assert_eq!(fixture.state(id).await, "succeeded/1");
}

#[tokio::test]
async fn a_retry_owes_the_next_ticket_and_a_failure_the_parked_one() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    let Settled::Done { state, owed: Some(owed) } = fixture.settle(held, retry(30, 1), 10).await
    else {
        panic!("a retry owes a ticket")
    };
    assert_eq!((state, owed.ticket.attempt, owed.state), (State::Retrying, n(2), State::Retrying));
    assert_eq!(owed.due_in, chrono::Duration::seconds(30));
    assert!(owed.parked.is_none());

    let held = fixture.opened(id, 2, 40).await;
    let Settled::Done { owed: Some(owed), .. } = fixture.settle(held, fail(), 41).await else {
        panic!("a failure owes its parked ticket")
    };
    let parked = owed.parked.expect("the parked body tells why");
    assert_eq!((owed.ticket.attempt, parked.retry_count), (n(3), 3));
    assert_eq!((parked.failed_at, parked.failed_reason.as_str()), (at(41), "it said no"));
    assert_eq!(fixture.attempts(id).await, ["1:error", "2:error"]);
}

#[tokio::test]
async fn a_cancel_comes_before_a_retry_and_a_failure_but_not_before_success() {
    let fixture = Fixture::new().await;
    let verdicts = [
        ("a", retry(1, 1), "cancelled/1"),
        ("b", fail(), "cancelled/1"),
        ("c", Verdict::Succeed, "succeeded/1"),
    ];
    for (key, verdict, becomes) in verdicts {
        let id = fixture.claim(key).await;
        let held = fixture.opened(id, 1, 0).await;
        request_cancel(&fixture, id).await;
        let Settled::Done { owed, .. } = fixture.settle(held, verdict, 1).await else {
            panic!("{key} was not settled")
        };
        assert_eq!((fixture.state(id).await.as_str(), owed), (becomes, None), "{key}");
    }
}

#[tokio::test]
async fn a_value_that_cannot_be_stored_spoils_its_whole_batch_and_says_so() {
    let fixture = Fixture::new().await;
    let (good, bad) = (fixture.claim("a").await, fixture.claim("b").await);
    let good = settlement(fixture.opened(good, 1, 0).await, Verdict::Succeed);
    let mut bad = settlement(fixture.opened(bad, 1, 0).await, Verdict::Succeed);
    bad.output = Some(json!({ "lines": ["\u{0}"] }));
    let batch = [good.clone(), bad];
    let error = settle(fixture.store(), &batch, Some(at(1))).await.unwrap_err();
    assert!(matches!(error, StoreError::Data(_)), "{error}");
    assert_eq!(fixture.state(good.held.execution_id).await, "running/1", "nothing was written");
}

#[tokio::test]
async fn a_row_that_somebody_has_locked_is_told_from_a_fenced_one() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    let mut other = fixture.db.pool().begin().await.unwrap();
    sqlx::query("SELECT 1 FROM executions WHERE id = $1 FOR NO KEY UPDATE")
        .bind(id.get())
        .execute(&mut *other)
        .await
        .unwrap();
    assert_eq!(fixture.settle(held, Verdict::Succeed, 1).await, Settled::Locked);
    other.rollback().await.unwrap();
    let settled = fixture.settle(held, Verdict::Succeed, 1).await;
    assert!(matches!(settled, Settled::Done { .. }));
}
