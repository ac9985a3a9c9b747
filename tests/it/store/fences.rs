//! Each fence of a write, one at a time: a wrong number, a wrong token, a wrong state.

use sexton_model::id::OpenToken;
use sexton_model::retry::Decision;
use sexton_store::lease::{AttemptFence, Renewal, renew};
use sexton_store::relay::mark_published;
use sexton_store::settle::SettleOutcome;
use uuid::Uuid;

use super::{Fixture, LEASE, at, n, retry};

/// The attempt of an overtaken worker: its attempt was lost, and the next one runs elsewhere.
async fn overtaken(fixture: &Fixture) -> (AttemptFence, AttemptFence) {
    let id = fixture.claim("k").await;
    let old = fixture.opened(id, 1, 0).await;
    fixture.settle(old, retry(0, 1), 1).await;
    let new = fixture.opened(id, 2, 2).await;
    (old, new)
}

#[tokio::test]
async fn an_overtaken_worker_can_neither_renew_nor_settle() {
    let fixture = Fixture::new().await;
    let (old, new) = overtaken(&fixture).await;
    let answers = renew(fixture.store(), &[(old, LEASE)], Some(at(3))).await.unwrap();
    assert_eq!(answers, [Renewal::Fenced]);
    assert_eq!(fixture.settle(old, Decision::Succeed, 3).await, SettleOutcome::Fenced);
    assert_eq!(fixture.state(new.execution_id).await, "running/2");
    assert_eq!(fixture.attempts(new.execution_id).await, ["1:error", "2:open"]);
}

#[tokio::test]
async fn attempt_number_and_token_each_fence_alone() {
    let fixture = Fixture::new().await;
    let (old, new) = overtaken(&fixture).await;
    let wrong_number = AttemptFence { attempt: n(1), ..new };
    let wrong_token = AttemptFence { token: OpenToken::new(Uuid::new_v4()), ..new };
    for held in [wrong_number, wrong_token, AttemptFence { attempt: n(2), ..old }] {
        assert_eq!(
            fixture.settle(held, Decision::Succeed, 3).await,
            SettleOutcome::Fenced,
            "{held:?}"
        );
        let answers = renew(fixture.store(), &[(held, LEASE)], Some(at(3))).await.unwrap();
        assert_eq!(answers, [Renewal::Fenced], "{held:?}");
    }
    assert_eq!(fixture.state(new.execution_id).await, "running/2");
}

#[tokio::test]
async fn a_mark_finds_only_the_revision_it_was_published_for() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let mut marked = Vec::new();
    for rev in [0, 2, 1, 1] {
        let published = [(id, rev)];
        marked.push(mark_published(fixture.store(), &published, Some(at(1))).await.unwrap());
    }
    assert_eq!(marked, [0, 0, 1, 0]);
}

#[tokio::test]
async fn a_firing_is_claimed_once_by_many_planners() {
    let fixture = Fixture::new().await;
    let first = fixture.claim("cron-2026-01-01T00:00:00Z").await;
    let again = sexton_store::firing::Claim {
        id: sexton_model::id::ExecutionId::new(Uuid::now_v7()),
        job_id: fixture.job,
        execution_key: "cron-2026-01-01T00:00:00Z".into(),
        idempotency_key: "x".into(),
        scheduled_for: at(0),
        skip_reason: None,
        waits: None,
        after: std::time::Duration::ZERO,
        traceparent: None,
        params: None,
        templated: false,
        previous_scheduled_for: None,
    };
    let mut tx =
        sexton_store::firing::ClaimTransaction::begin(fixture.store(), None).await.unwrap();
    assert!(tx.insert(&mut [again], "other:2").await.unwrap().is_empty());
    tx.commit().await.unwrap();
    assert_eq!(fixture.column(first, "claimed_by").await.unwrap(), "test:1");
}
