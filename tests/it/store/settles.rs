//! Settle: what a worker may record, and what follows from it.

use serde_json::{Value, json};
use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::output::{Chunk, Line, Stream};
use sexton_model::retry::{Decision, Usage};
use sexton_model::state::State;
use sexton_store::executions;
use sexton_store::output::OutputPart;
use sexton_store::settle::{SettleOutcome, Settlement, settle};
use sexton_store::{StoreError, attempts};

use super::{Fixture, at, fail, n, retry, settlement};

async fn request_cancel(fixture: &Fixture, id: sexton_model::id::ExecutionId) {
    sqlx::query("UPDATE sexton.executions SET cancel_requested = true WHERE id = $1")
        .bind(id.get())
        .execute(fixture.db.pool())
        .await
        .unwrap();
}

#[tokio::test]
async fn success_is_final_and_leaves_no_unpublished_ticket() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    let settled = fixture.settle(held, Decision::Succeed, 1).await;
    assert_eq!(settled, SettleOutcome::Done { state: State::Succeeded, unpublished: None });
    assert_eq!(fixture.state(id).await, "succeeded/1");
    assert_eq!(fixture.attempts(id).await, ["1:succeeded"]);
    // The worker asks again because the answer was lost: nothing changes, nothing follows.
    assert_eq!(fixture.settle(held, fail(), 2).await, SettleOutcome::Fenced);
    assert_eq!(fixture.state(id).await, "succeeded/1");
}

#[tokio::test]
async fn a_retry_leaves_the_next_ticket_unpublished_and_a_failure_the_parked_one() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    let SettleOutcome::Done { state, unpublished: Some(unpublished) } =
        fixture.settle(held, retry(30, 1), 10).await
    else {
        panic!("a retry has an unpublished ticket")
    };
    assert_eq!(
        (state, unpublished.ticket.attempt, unpublished.state),
        (State::Retrying, n(2), State::Retrying)
    );
    assert_eq!(unpublished.due_in, chrono::Duration::seconds(30));
    assert!(unpublished.parked.is_none());

    let held = fixture.opened(id, 2, 40).await;
    let SettleOutcome::Done { unpublished: Some(unpublished), .. } =
        fixture.settle(held, fail(), 41).await
    else {
        panic!("a failure has an unpublished parked ticket")
    };
    let parked = unpublished.parked.expect("the parked body tells why");
    assert_eq!((unpublished.ticket.attempt, parked.retry_count), (n(3), 3));
    assert_eq!((parked.failed_at, parked.failed_reason.as_str()), (at(41), "it said no"));
    assert_eq!(fixture.attempts(id).await, ["1:error", "2:error"]);
}

#[tokio::test]
async fn a_cancel_comes_before_a_retry_and_a_failure_but_not_before_success() {
    let fixture = Fixture::new().await;
    let verdicts = [
        ("a", retry(1, 1), "cancelled/1"),
        ("b", fail(), "cancelled/1"),
        ("c", Decision::Succeed, "succeeded/1"),
    ];
    for (key, verdict, becomes) in verdicts {
        let id = fixture.claim(key).await;
        let held = fixture.opened(id, 1, 0).await;
        request_cancel(&fixture, id).await;
        let SettleOutcome::Done { unpublished, .. } = fixture.settle(held, verdict, 1).await else {
            panic!("{key} was not settled")
        };
        assert_eq!((fixture.state(id).await.as_str(), unpublished), (becomes, None), "{key}");
    }
}

#[tokio::test]
async fn a_value_that_cannot_be_stored_spoils_its_whole_batch_and_says_so() {
    let fixture = Fixture::new().await;
    let (good, bad) = (fixture.claim("a").await, fixture.claim("b").await);
    let good = settlement(fixture.opened(good, 1, 0).await, Decision::Succeed);
    let bad = settlement(fixture.opened(bad, 1, 0).await, Decision::Succeed);
    let line = Line { at: at(1), stream: Stream::Stdout, text: "\0".to_owned() };
    let chunks = vec![Chunk::new(1, 0, 2, &[line]).into()];
    let output = Some(OutputPart { chunks, ..OutputPart::default() });
    let result = Some(json!({ "lines": ["\u{0}"] }));
    for bad in [Settlement { output, ..bad.clone() }, Settlement { result, ..bad.clone() }] {
        let batch = [good.clone(), bad];
        let error = settle(fixture.store(), &batch, Some(at(1))).await.unwrap_err();
        assert!(matches!(error, StoreError::Data(_)), "{error}");
        assert_eq!(
            fixture.state(good.fence.execution_id).await,
            "running/1",
            "nothing was written"
        );
    }
}

/// The result of an execution and those of its attempts, in order.
async fn results(fixture: &Fixture, id: sexton_model::id::ExecutionId) -> (Value, Vec<Value>) {
    let execution = executions::find(fixture.store(), id.get()).await.unwrap().unwrap();
    let attempts = attempts::list_by_execution(fixture.store(), id.get(), 10).await.unwrap();
    let or_null = Option::unwrap_or_default;
    (or_null(execution.result), attempts.into_iter().map(|a| or_null(a.result)).collect())
}

#[tokio::test]
async fn a_result_stays_with_its_attempt_and_that_of_a_success_is_the_execution_s() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let handed_back = async |number, verdict, result: Option<Value>| {
        let held = fixture.opened(id, number, 100 * i64::from(number)).await;
        let settlement = Settlement { result, ..settlement(held, verdict) };
        let now = Some(at(100 * i64::from(number) + 1));
        let settled = settle(fixture.store(), &[settlement], now).await.unwrap();
        assert!(matches!(settled[0], SettleOutcome::Done { .. }));
    };
    let (half, all) = (json!({"records": 600}), json!({"records": 1200}));
    handed_back(1, retry(1, 1), Some(half.clone())).await;
    assert_eq!(results(&fixture, id).await, (Value::Null, vec![half.clone()]));
    handed_back(2, Decision::Succeed, Some(all.clone())).await;
    assert_eq!(results(&fixture, id).await, (all.clone(), vec![half, all]));
    let shown = executions::list(
        fixture.store(),
        &ExecutionFilter::default(),
        None,
        1,
        executions::MAX_WALKED_EXECUTIONS,
    )
    .await
    .unwrap()
    .executions;
    assert_eq!(shown[0].result, Some(json!({"records": 1200})));
}

#[tokio::test]
async fn a_locked_row_is_distinguished_from_a_fenced_one() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    let other = fixture.locked(id).await;
    assert_eq!(fixture.settle(held, Decision::Succeed, 1).await, SettleOutcome::Locked);
    other.rollback().await.unwrap();
    let settled = fixture.settle(held, Decision::Succeed, 1).await;
    assert!(matches!(settled, SettleOutcome::Done { .. }));
}

#[tokio::test]
async fn an_attempt_without_memory_that_is_one_too_many_leaves_the_evidence_on_the_row() {
    let fixture = Fixture::new().await;
    fixture.introduce("w1").await;
    let id = fixture.claim("k").await;
    let crashed = |crashes| Usage { crashes, ..Usage::default() };
    let end = async |number, second, verdict, signal| {
        let held = fixture.opened(id, number, second).await;
        let error = Some(("out_of_memory".to_owned(), "it had 64 MiB".to_owned()));
        let settlement = settlement(held, verdict);
        let settlement =
            Settlement { outcome: "out_of_memory", error, exit_code: None, signal, ..settlement };
        settle(fixture.store(), &[settlement], Some(at(second + 1))).await.unwrap();
    };
    let again = Decision::Retry { after: std::time::Duration::ZERO, used: crashed(1) };
    end(1, 0, again, Some(9)).await;
    assert_eq!(fixture.column(id, "error_message").await.as_deref(), Some("it had 64 MiB"));
    // An error in between is not a crash.
    let held = fixture.opened(id, 2, 5).await;
    let used = Usage { retries: 1, crashes: 1, ..Usage::default() };
    fixture.settle(held, Decision::Retry { after: std::time::Duration::ZERO, used }, 6).await;
    end(3, 10, Decision::Fail { used: Usage { crashes: 2, ..used } }, Some(9)).await;
    assert_eq!(fixture.state(id).await, "failed/4");
    let begun = |second| at(second).format("%Y-%m-%d %H:%M:%S UTC");
    let message = format!(
        "it had 64 MiB; 2 crashed, no more are allowed: attempt 1 out of memory on w1, begun {}, \
         signal 9; attempt 3 out of memory on w1, begun {}, signal 9",
        begun(0),
        begun(10)
    );
    assert_eq!(fixture.column(id, "error_message").await.unwrap(), message);
}
