//! Plain successes: settled by a statement of their own, with nothing to tell the difference by.

use serde_json::Value;
use sexton_model::id::ExecutionId;
use sexton_model::retry::Decision;
use sexton_model::state::State;
use sexton_store::settle::{SettleOutcome, settle};

use super::{Fixture, at, fail, settlement};

/// All that the rows of an execution and its attempts say, but for what is different in any two.
async fn rows(fixture: &Fixture, id: ExecutionId) -> (Value, Value) {
    sqlx::query_as(
        "SELECT to_jsonb(e) - '{id, execution_key, idempotency_key, started_at, claimed_at}'::text[],
                to_jsonb(a) - '{execution_id, opened_at}'::text[]
         FROM sexton.executions e JOIN sexton.all_attempts a ON a.execution_id = e.id WHERE e.id = $1",
    )
    .bind(id.get())
    .fetch_one(fixture.db.pool())
    .await
    .unwrap()
}

#[tokio::test]
async fn a_plain_success_writes_what_any_settlement_writes() {
    for exit_code in [None, Some(0)] {
        let fixture = Fixture::new().await;
        let ids = [fixture.claim("a").await, fixture.claim("b").await, fixture.claim("c").await];
        let mut ends = Vec::new();
        for id in ids {
            let held = fixture.opened(id, 1, 0).await;
            let verdict = if id == ids[2] { fail() } else { Decision::Succeed };
            let mut end = settlement(held, verdict);
            if id != ids[2] {
                end.exit_code = exit_code;
            }
            ends.push(end);
        }
        // What a cancel that came too late, and an attempt before, have left in the rows.
        sqlx::query(
            "UPDATE sexton.executions SET cancel_requested = true, error_class = 'exit_1',
                error_message = 'before', fingerprint = 'f0' WHERE id <> $1",
        )
        .bind(ids[2].get())
        .execute(fixture.db.pool())
        .await
        .unwrap();
        let done = SettleOutcome::Done { state: State::Succeeded, unpublished: None };
        let now = Some(at(5));
        let plain = settle(fixture.store(), &ends[..1], now).await.unwrap();
        assert_eq!(plain, vec![done.clone()]);
        let mixed = settle(fixture.store(), &ends[1..], now).await.unwrap();
        assert_eq!(mixed[0], done);
        assert!(matches!(mixed[1], SettleOutcome::Done { state: State::Failed, .. }), "{mixed:?}");
        assert_eq!(rows(&fixture, ids[0]).await, rows(&fixture, ids[1]).await);
    }
}

#[tokio::test]
async fn each_plain_success_has_its_own_result() {
    let fixture = Fixture::new().await;
    let mut ends = Vec::new();
    for key in ["good", "overtaken", "locked", "replaced", "another"] {
        let id = fixture.claim(key).await;
        ends.push(settlement(fixture.opened(id, 1, 0).await, Decision::Succeed));
    }
    let id = |place: usize| ends[place].fence.execution_id;
    assert!(matches!(fixture.settle(ends[1].fence, fail(), 1).await, SettleOutcome::Done { .. }));
    sqlx::query("UPDATE sexton.executions SET replaced_by = $2 WHERE id = $1")
        .bind(id(3).get())
        .bind(id(4).get())
        .execute(fixture.db.pool())
        .await
        .unwrap();
    let lock = fixture.locked(id(2)).await;
    let settled = settle(fixture.store(), &ends, Some(at(2))).await.unwrap();
    let done = |state| SettleOutcome::Done { state, unpublished: None };
    assert_eq!(
        settled,
        [
            done(State::Succeeded),
            SettleOutcome::Fenced,
            SettleOutcome::Locked,
            done(State::Cancelled),
            done(State::Succeeded)
        ]
    );
    lock.rollback().await.unwrap();
    assert_eq!(fixture.state(id(2)).await, "running/1");
    assert_eq!(fixture.attempts(id(1)).await, ["1:error"]);
    assert_eq!(fixture.attempts(id(3)).await, ["1:replaced"]);
}
