//! Waiters and replacements, by the rows: from the commit of the claim that replaces an execution there
//! the database records no success of it and commits no effect of it; and no ticket opens a waiter.

use sexton_model::id::{ExecutionId, JobId};
use sexton_model::open::{OpenDecision, decide_unopened};
use sexton_model::plan::overlap::{UnderWay, WaitReason};
use sexton_model::retry::Decision;
use sexton_model::state::State;
use sexton_store::firing::{Claim, ClaimTransaction, Replaced};
use sexton_store::lease::AttemptFence;
use sexton_store::lost_attempts::{self, LossGrounds};
use sexton_store::open::{Offer, read_unopened};
use sexton_store::operator::{AuditContext, requeue};
use sexton_store::settle::SettleOutcome;
use sexton_store::task::{TaskDatabase, TaskLimits};
use sexton_store::trigger::{Trigger, trigger};
use sexton_store::{StoreOptions, waiters};
use sexton_tests::relaying::take_due;
use uuid::Uuid;

use super::{Fixture, at, fail, n, request, settlement};

const BY: AuditContext<'static> = AuditContext { actor: "me", reason: None };

impl Fixture {
    /// The job has this policy, and a firing that is due.
    async fn due(&self, overlap: &str) {
        sqlx::query(
            "UPDATE sexton.jobs SET overlap = $1, schedule_kind = 'every', schedule_expression = '1m',
                 next_fire_at = $2",
        )
        .bind(overlap)
        .bind(at(60))
        .execute(self.db.pool())
        .await
        .unwrap();
    }

    /// Claims a firing in the place of what is under way, waiting for it.
    async fn replaced(&self) -> (ExecutionId, Replaced) {
        let id = ExecutionId::new(Uuid::now_v7());
        let claim = Claim {
            id,
            job_id: self.job,
            execution_key: format!("every-{id}"),
            idempotency_key: id.to_string(),
            scheduled_for: at(60),
            skip_reason: None,
            waits: Some(WaitReason::Replace),
            after: std::time::Duration::ZERO,
            traceparent: None,
            params: None,
            templated: false,
            previous_scheduled_for: None,
        };
        let mut tx = ClaimTransaction::begin(self.store(), Some(at(60))).await.unwrap();
        let due = tx.due_jobs(10, &[]).await.unwrap();
        assert_eq!((due.jobs.len(), due.deferred.len()), (1, 0));
        tx.insert(&mut [claim], "test:1").await.unwrap();
        let replaced = tx.replace(&[(self.job, id)]).await.unwrap();
        tx.commit().await.unwrap();
        (id, replaced)
    }

    /// What a planner sees, and whom it puts off.
    async fn seen(&self) -> (Vec<UnderWay>, Vec<JobId>) {
        let mut tx = ClaimTransaction::begin(self.store(), Some(at(60))).await.unwrap();
        let due = tx.due_jobs(10, &[]).await.unwrap();
        tx.rollback().await.unwrap();
        (due.jobs.iter().map(|job| job.under_way).collect(), due.deferred)
    }

    fn tasks(&self) -> TaskDatabase {
        TaskDatabase::open(&StoreOptions::new(self.db.url(), "tasks"), self.store()).unwrap()
    }

    async fn number(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(self.db.pool()).await.unwrap()
    }
}

const EFFECTS: &str = "SELECT count(*) FROM effects";

async fn running(fixture: &Fixture, key: &str) -> (ExecutionId, AttemptFence) {
    let id = fixture.claim(key).await;
    (id, fixture.opened(id, 1, 1).await)
}

#[tokio::test]
async fn a_replaced_execution_is_cancelled_however_its_attempt_ends() {
    let fixture = Fixture::new().await;
    fixture.due("replace").await;
    for (key, verdict, attempt) in
        [("well", Decision::Succeed, "1:replaced"), ("badly", fail(), "1:error")]
    {
        let (id, held) = running(&fixture, key).await;
        let (by, replaced) = fixture.replaced().await;
        assert_eq!(replaced.running, 1);
        let settled = fixture.settle(held, verdict, 61).await;
        assert_eq!(
            settled,
            SettleOutcome::Done { state: State::Cancelled, unpublished: None },
            "{key}"
        );
        assert_eq!(fixture.state(id).await, "cancelled/1");
        assert_eq!(fixture.attempts(id).await, [attempt]);
        assert_eq!(fixture.column(id, "result").await, None);
        assert_eq!(fixture.column(id, "replaced_by").await, Some(by.to_string()));
    }
}

#[tokio::test]
async fn a_replaced_and_lost_execution_is_not_retried() {
    let fixture = Fixture::new().await;
    fixture.due("replace").await;
    let (id, _) = running(&fixture, "k").await;
    fixture.replaced().await;
    let later = Some(at(1_000));
    let seen = super::leases::seen(&fixture).await;
    let grounds = LossGrounds::Unrenewed(&seen);
    let lost = lost_attempts::find(fixture.store(), &grounds, 10).await.unwrap();
    let lost: Vec<_> = lost.into_iter().map(|one| (one, super::retry(1, 0))).collect();
    lost_attempts::settle(fixture.store(), &grounds, &lost, later).await.unwrap();
    assert_eq!(fixture.state(id).await, "cancelled/1");
    assert_eq!(fixture.attempts(id).await, ["1:lost"]);
}

#[tokio::test]
async fn replacing_a_replaced_execution_again_is_no_sign_of_life() {
    let fixture = Fixture::new().await;
    fixture.due("replace").await;
    running(&fixture, "k").await;
    assert_eq!(fixture.replaced().await.1.running, 1);
    let before = super::leases::seen(&fixture).await;
    for _ in 0..3 {
        assert_eq!(fixture.replaced().await.1.running, 0);
    }
    // The rescuer, which has watched it from the first replacement on, ends it when the lease is over.
    assert_eq!(super::leases::seen(&fixture).await, before);
    let grounds = LossGrounds::Unrenewed(&before);
    assert_eq!(lost_attempts::find(fixture.store(), &grounds, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_previous_version_cannot_record_the_success_of_a_replaced_execution() {
    let fixture = Fixture::new().await;
    fixture.due("replace").await;
    let (id, _) = running(&fixture, "k").await;
    fixture.replaced().await;
    for state in ["succeeded", "failed"] {
        let settle =
            "UPDATE sexton.executions SET state = $2, finished_at = now(), worker_id = NULL,
             open_token = NULL, lease_until = NULL WHERE id = $1";
        let done = sqlx::query(settle).bind(id.get()).bind(state).execute(fixture.db.pool()).await;
        let error = done.unwrap_err().to_string();
        assert!(error.contains("executions_replaced"), "{error}");
    }
}

#[tokio::test]
async fn effects_in_the_transaction_of_a_success_are_rolled_back_if_the_execution_was_replaced() {
    let fixture = Fixture::new().await;
    fixture.due("replace").await;
    sqlx::query("CREATE TABLE effects (key text)").execute(fixture.db.pool()).await.unwrap();
    let tasks = fixture.tasks();
    let (id, held) = running(&fixture, "k").await;
    let mut task = tasks.begin(TaskLimits::default()).await.unwrap();
    sqlx::query("INSERT INTO effects VALUES ('k')").execute(&mut *task).await.unwrap();
    fixture.replaced().await;
    task.seal().await.unwrap();
    let success = settlement(held, Decision::Succeed);
    assert_eq!(task.settle(&success).await.unwrap(), SettleOutcome::Replaced);
    // Even if it were committed now, it has written nothing of a success.
    assert_eq!(fixture.state(id).await, "running/1");
    task.rollback().await;
    assert_eq!(fixture.number(EFFECTS).await, 0);
    let settled = fixture.settle(held, fail(), 62).await;
    assert_eq!(settled, SettleOutcome::Done { state: State::Cancelled, unpublished: None });
}

#[tokio::test]
async fn an_uncommitted_success_defers_the_replacement() {
    let fixture = Fixture::new().await;
    fixture.due("replace").await;
    sqlx::query("CREATE TABLE effects (key text)").execute(fixture.db.pool()).await.unwrap();
    let tasks = fixture.tasks();
    let (id, held) = running(&fixture, "k").await;
    let mut task = tasks.begin(TaskLimits::default()).await.unwrap();
    sqlx::query("INSERT INTO effects VALUES ('k')").execute(&mut *task).await.unwrap();
    task.seal().await.unwrap();
    let success = settlement(held, Decision::Succeed);
    assert!(matches!(task.settle(&success).await.unwrap(), SettleOutcome::Done { .. }));
    assert_eq!(fixture.seen().await, (vec![], vec![fixture.job]), "not planned, and not marked");
    task.commit().await.unwrap();
    assert_eq!(fixture.seen().await, (vec![UnderWay::default()], vec![]));
    assert_eq!(
        (fixture.state(id).await.as_str(), fixture.number(EFFECTS).await),
        ("succeeded/1", 1)
    );
}

#[tokio::test]
async fn a_policy_without_replacement_is_not_deferred() {
    let fixture = Fixture::new().await;
    for policy in ["allow", "skip", "queue"] {
        fixture.due(policy).await;
        let id = fixture.claim(policy).await;
        let other = fixture.locked(id).await;
        let (jobs, deferred) = fixture.seen().await;
        assert_eq!((jobs.len(), deferred.len()), (1, 0), "{policy}");
        other.rollback().await.unwrap();
    }
}

#[tokio::test]
async fn a_requeued_execution_waits_for_its_turn_and_a_copy_of_its_ticket_opens_nothing() {
    let fixture = Fixture::new().await;
    let (id, held) = running(&fixture, "k").await;
    fixture.settle(held, fail(), 2).await;
    fixture.due("queue").await;
    let (other, _) = {
        let other = fixture.claim("other").await;
        (other, fixture.opened(other, 1, 3).await)
    };
    requeue(fixture.store(), id, n(2), BY, Some(at(3))).await.unwrap();
    assert_eq!(fixture.column(id, "waits").await.as_deref(), Some("turn"));
    let copy = request(id, 2);
    assert!(fixture.open(copy, 4).await.is_none());
    let offers = [Offer::new("work")];
    let rows = read_unopened(fixture.store(), &offers, &[copy], Some(at(4))).await.unwrap();
    assert_eq!(decide_unopened(n(2), Some(&rows[0].1)), OpenDecision::Stale, "it is dropped");
    assert!(take_due(fixture.store(), 10, Some(at(9_000))).await.unwrap().tickets.is_empty());
    let waiting = waiters::find_waiting(fixture.store(), 10, Some(at(4))).await.unwrap();
    assert_eq!((waiting.jobs, waiting.free.len()), (1, 0), "{other} runs");
    // Also asked again under the lock: the look may be old.
    let early = waiters::admit(fixture.store(), &[fixture.job], Some(at(5))).await.unwrap();
    assert_eq!(early.admitted(), 0);
    // Dropped, it would be undone some time later, and hold the job until then.
    assert!(early.commit().await.unwrap().is_empty());
    sqlx::query(
        "UPDATE sexton.executions SET replaced_by = NULL, state = 'cancelled', finished_at = now(),
             worker_id = NULL, open_token = NULL, lease_until = NULL WHERE id = $1",
    )
    .bind(other.get())
    .execute(fixture.db.pool())
    .await
    .unwrap();
    let waiting = waiters::find_waiting(fixture.store(), 10, Some(at(6))).await.unwrap();
    assert_eq!(waiting.free, [fixture.job]);
    let admission = waiters::admit(fixture.store(), &waiting.free, Some(at(6))).await.unwrap();
    let tickets = admission.commit().await.unwrap();
    assert_eq!((tickets.len(), tickets[0].ticket.attempt), (1, n(2)));
    assert!(fixture.open(copy, 7).await.is_some(), "now it is its own ticket again");
}

#[tokio::test]
async fn a_trigger_waits_only_where_executions_run_one_at_a_time_and_one_is_under_way() {
    let fixture = Fixture::new().await;
    for (policy, waits) in [("allow", [false; 2]), ("skip", [false; 2]), ("queue", [false, true])] {
        sqlx::query("DELETE FROM sexton.executions").execute(fixture.db.pool()).await.unwrap();
        fixture.due(policy).await;
        for (key, waits) in ["one", "two"].into_iter().zip(waits) {
            let request = Trigger {
                job: "the.job",
                key: Some(key),
                params: serde_json::Map::new(),
                id: ExecutionId::new(Uuid::now_v7()),
                claimed_by: "test:1",
            };
            let done = trigger(fixture.store(), request, Some(BY), Some(at(1))).await.unwrap();
            assert_eq!((done.created, done.waits), (true, waits), "{policy} {key}");
        }
    }
    // And a firing does not replace a trigger that has not begun.
    fixture.due("replace").await;
    let (_, replaced) = fixture.replaced().await;
    assert_eq!((replaced.running, replaced.cancelled), (0, 1), "the first one, which was let go");
    assert_eq!(
        fixture
            .number(
                "SELECT count(*) FROM sexton.executions WHERE waits = 'turn'
         AND state = 'pending' AND replaced_by IS NULL"
            )
            .await,
        1
    );
}

#[tokio::test]
async fn a_waiting_execution_is_admitted_once_its_job_allows_overlap() {
    let fixture = Fixture::new().await;
    fixture.due("replace").await;
    let (id, _) = running(&fixture, "k").await;
    fixture.replaced().await;
    assert!(
        waiters::find_waiting(fixture.store(), 10, Some(at(62))).await.unwrap().free.is_empty()
    );
    fixture.due("skip").await;
    assert!(
        waiters::find_waiting(fixture.store(), 10, Some(at(62))).await.unwrap().free.is_empty()
    );
    fixture.due("allow").await;
    let free = waiters::find_waiting(fixture.store(), 10, Some(at(62))).await.unwrap().free;
    assert_eq!(free, [fixture.job]);
    let admission = waiters::admit(fixture.store(), &free, Some(at(62))).await.unwrap();
    assert_eq!(admission.commit().await.unwrap().len(), 1);
    assert_eq!(fixture.state(id).await, "running/1");
}
