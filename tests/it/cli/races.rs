//! Two operators at once, on separate connections: one succeeds, the other is refused.

use sexton_model::id::{AttemptNumber, ExecutionId, JobId};
use sexton_model::job::{JobSpec, Schedule};
use sexton_store::edits::{self, AfterEdit, Edit};
use sexton_store::jobs::{Apply, apply};
use sexton_store::operator::{self, AuditContext, OperatorError};
use sexton_store::trigger::{Trigger, trigger};
use uuid::Uuid;

use super::Console;

const BY: AuditContext<'static> = AuditContext { actor: "racer", reason: None };

fn second() -> AttemptNumber {
    AttemptNumber::new(2).unwrap()
}

#[tokio::test]
async fn one_of_two_concurrent_requeues_wins() {
    let console = Console::with_jobs().await;
    let other = console.db.other_store().unwrap();
    for _ in 0..20 {
        let id = console.failed().await;
        let (a, b) = tokio::join!(
            operator::requeue(console.store(), id, second(), BY, None),
            operator::requeue(&other, id, second(), BY, None)
        );
        assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
        let lost = a.err().or(b.err()).unwrap();
        assert!(matches!(lost, OperatorError::Conflict { .. }), "{lost}");
        assert_eq!(console.state(id).await, "pending/2");
        assert_eq!(console.audit(id).await.len(), 2);
    }
}

#[tokio::test]
async fn a_requeue_and_a_discard_at_once_never_both_happen() {
    let console = Console::with_jobs().await;
    let other = console.db.other_store().unwrap();
    for _ in 0..20 {
        let id = console.failed().await;
        let (requeued, discarded) = tokio::join!(
            operator::requeue(console.store(), id, second(), BY, None),
            operator::discard(&other, id, BY, None)
        );
        assert!(requeued.is_ok() != discarded.is_ok(), "{requeued:?} {discarded:?}");
        let state = if requeued.is_ok() { "pending/2" } else { "discarded/2" };
        assert_eq!(console.state(id).await, state);
    }
}

#[tokio::test]
async fn a_requeue_of_an_earlier_attempt_does_not_requeue_a_later_failure() {
    let console = Console::with_jobs().await;
    let id = console.failed().await;
    operator::requeue(console.store(), id, second(), BY, None).await.unwrap();
    console.fail(console.open(id, 2).await, "declined again", None).await;
    let late = operator::requeue(console.store(), id, second(), BY, None).await;
    assert!(matches!(late, Err(OperatorError::Conflict { .. })), "{late:?}");
    assert_eq!(console.state(id).await, "failed/3");
}

#[tokio::test]
async fn an_operator_does_not_wait_for_ever_for_a_locked_row() {
    let console = Console::with_jobs().await;
    let id = console.failed().await;
    let other = console.db.other_store().unwrap();
    let mut tx = other.pool().begin().await.unwrap();
    sqlx::query("SELECT id FROM sexton.executions WHERE id = $1 FOR UPDATE")
        .bind(id.get())
        .execute(&mut *tx)
        .await
        .unwrap();
    let blocked = operator::discard(console.store(), id, BY, None).await;
    assert!(matches!(blocked, Err(OperatorError::Locked(_))), "{blocked:?}");
    tx.rollback().await.unwrap();
    operator::discard(console.store(), id, BY, None).await.unwrap();
}

#[tokio::test]
async fn one_of_two_concurrent_triggers_with_one_key_makes_the_execution() {
    let console = Console::with_jobs().await;
    let other = console.db.other_store().unwrap();
    for round in 0..20 {
        let key = format!("order-{round}");
        let request = || Trigger {
            job: "shop.charge",
            key: Some(&key),
            params: serde_json::Map::new(),
            id: ExecutionId::new(Uuid::now_v7()),
            claimed_by: "racer:1",
        };
        let (a, b) = tokio::join!(
            trigger(console.store(), request(), Some(BY), None),
            trigger(&other, request(), Some(BY), None)
        );
        let (a, b) = (a.unwrap(), b.unwrap());
        assert_eq!(a.id, b.id);
        assert!(a.created != b.created);
    }
}

#[tokio::test]
async fn two_applies_of_the_same_new_jobs_at_once_both_succeed() {
    let console = Console::new().await;
    let other = console.db.other_store().unwrap();
    let specs: Vec<JobSpec> =
        (0..500).map(|n| JobSpec::new(format!("a.job{n}"), "t", Schedule::None)).collect();
    let request = Apply { specs: &specs, actor: "racer", dry_run: false, prune: false };
    let fresh = || JobId::new(Uuid::now_v7());
    let (a, b) = tokio::join!(
        apply(console.store(), request, fresh, None),
        apply(&other, request, fresh, None)
    );
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!(a.created.len() + b.created.len(), 500);
    assert_eq!(a.unchanged.len() + b.unchanged.len(), 500);
}

#[tokio::test]
async fn the_second_of_two_concurrent_edits_does_not_overwrite_the_first() {
    let console = Console::with_jobs().await;
    let id = console.failed().await;
    let other = console.db.other_store().unwrap();
    let seen = serde_json::json!({"customer": 4891});
    let (one, two) = (serde_json::json!({"customer": 1}), serde_json::json!({"customer": 2}));
    let edit = |params| Edit { seen: &seen, params, pool: None, then: AfterEdit::Stay };
    let (a, b) = tokio::join!(
        edits::edit(console.store(), id, second(), edit(&one), None, BY, None),
        edits::edit(&other, id, second(), edit(&two), None, BY, None)
    );
    assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
    let lost = a.err().or(b.err()).unwrap();
    assert!(matches!(lost, OperatorError::ParamsChanged(_)), "{lost}");
    assert_eq!(console.audit(id).await.len(), 2, "one edit is recorded");
}
