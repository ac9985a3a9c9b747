//! Jobs whose executions run one at a time, and what is enqueued to them: no two are under way together, whatever the
//! clocks say, and whichever is postponed, released or deleted meanwhile.

use std::time::Duration;

use chrono::TimeDelta;
use sexton_client::{Client, IfExists};
use sexton_model::id::ExecutionId;
use sexton_service::clock;
use sexton_store::firing::ClaimTransaction;
use sexton_store::jobs::{Delete, DeleteError, delete};
use sexton_store::operator::AuditContext;
use sexton_store::trigger::{Trigger, trigger};
use sexton_store::{Now, relay, waiters};
use tokio::time::timeout;
use uuid::Uuid;

use super::{Fixture, JOB, charge};

/// For a loaded machine.
const PATIENCE: Duration = Duration::from_mins(1);
const BY: AuditContext<'_> = AuditContext { actor: "t", reason: None };

impl Fixture {
    async fn policy(&self, policy: &'static str) {
        let set = sqlx::query("UPDATE sexton.jobs SET overlap = $1").bind(policy);
        set.execute(self.pool()).await.unwrap();
    }

    /// Admits what can be admitted, as a planner does, and returns how many that were.
    async fn admit(&self, now: Now) -> usize {
        let waiting = waiters::find_waiting(self.db.store(), 10, now).await.unwrap();
        let admission = waiters::admit(self.db.store(), &waiting.free, now).await.unwrap();
        let admitted = admission.admitted();
        admission.commit().await.unwrap();
        admitted
    }

    /// Takes what is due, as a relay does.
    async fn relay(&self, now: Now) -> Vec<Uuid> {
        let found = relay::find_destinations(self.db.store(), None, 10, now).await.unwrap();
        let quotas: Vec<_> = found.due.into_iter().map(|destination| (destination, 10)).collect();
        let batch = relay::take_batch(self.db.store(), &quotas, now).await.unwrap();
        batch.tickets.iter().map(|one| one.ticket.execution_id.get()).collect()
    }

    async fn trigger(&self, key: &str) -> bool {
        let request = Trigger {
            job: JOB,
            key: Some(key),
            params: serde_json::Map::new(),
            id: ExecutionId::new(Uuid::now_v7()),
            claimed_by: "test:1",
        };
        trigger(self.db.store(), request, Some(BY), None).await.unwrap().waits
    }
}

#[tokio::test]
async fn a_trigger_waits_for_one_that_began_later_by_the_clock() {
    let f = Fixture::new().await;
    f.policy("queue").await;
    assert!(!f.trigger("first").await);
    // As of a transaction that began after this one, and had the job's lock before it.
    f.run("UPDATE sexton.executions SET scheduled_for = now() + interval '1 s', next_attempt_at = now() + interval '1 s'").await;
    assert!(f.trigger("second").await, "the first is under way");
    assert_eq!(f.admit(None).await, 0);
}

#[tokio::test]
async fn a_postponed_execution_waits_for_its_turn_again() {
    let f = Fixture::new().await;
    f.policy("queue").await;
    let first = f.enqueue(&charge().key("first")).await.unwrap().execution_id;
    assert_eq!(f.admit(None).await, 1);
    f.run("UPDATE sexton.executions SET ticket_published_at = now()").await;
    let later = charge().key("first").if_exists(IfExists::Postpone).delay(Duration::from_hours(1));
    f.enqueue(&later).await.unwrap();
    f.enqueue(&charge().key("second")).await.unwrap();
    assert_eq!(f.admit(None).await, 1, "the first is not under way any more");
    let in_two_hours = Some(clock::now() + TimeDelta::hours(2));
    assert_eq!(f.admit(in_two_hours).await, 0, "the second is");
    assert!(!f.relay(in_two_hours).await.contains(&first));
    f.run("UPDATE sexton.executions SET state = 'cancelled', next_attempt_at = NULL, finished_at = now()
           WHERE execution_key = 'second'").await;
    assert_eq!(f.admit(in_two_hours).await, 1);
}

#[tokio::test]
async fn what_was_enqueued_for_later_keeps_the_policy_that_its_job_has_when_it_is_due() {
    let f = Fixture::new().await;
    let later = |key: &str| charge().key(key).delay(Duration::from_hours(1));
    let in_two_hours = Some(clock::now() + TimeDelta::hours(2));
    f.enqueue(&later("a")).await.unwrap();
    f.enqueue(&later("b")).await.unwrap();
    // It allowed overlap when they were enqueued.
    f.policy("queue").await;
    assert_eq!(f.relay(in_two_hours).await, Vec::<Uuid>::new(), "a planner admits them");
    assert_eq!(f.admit(in_two_hours).await, 1);
    assert_eq!(f.admit(in_two_hours).await, 0);
    assert_eq!(f.relay(in_two_hours).await.len(), 0, "the planner publishes the first itself");
    f.enqueue(&later("c")).await.unwrap();
    f.policy("allow").await;
    assert_eq!(f.admit(in_two_hours).await, 1);
    assert_eq!(f.admit(in_two_hours).await, 1);
    assert_eq!(f.admit(in_two_hours).await, 0);
}

#[tokio::test]
async fn a_deletion_waits_for_callers_and_counts_what_they_enqueued() {
    let f = Fixture::new().await;
    let mut tx = f.pool().begin().await.unwrap();
    Client::new().enqueue(&mut tx, &charge()).await.unwrap();
    let request = || Delete { name: JOB, cancel: false, dry_run: false, revision: None };
    let store = f.db.other_store().unwrap();
    let deleting = tokio::spawn(async move { delete(&store, request(), BY, None).await.map(drop) });
    let waits = "SELECT EXISTS (SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock')";
    let waiting =
        async { while !sqlx::query_scalar::<_, bool>(waits).fetch_one(f.pool()).await.unwrap() {} };
    timeout(PATIENCE, waiting).await.unwrap();
    tx.commit().await.unwrap();
    let refused = deleting.await.unwrap().unwrap_err();
    assert!(matches!(refused, DeleteError::UnderWay { .. }), "{refused}");
    let mut tx = f.pool().begin().await.unwrap();
    Client::new().enqueue(&mut tx, &charge()).await.unwrap();
    let refused = delete(f.db.store(), request(), BY, None).await.map(drop).unwrap_err();
    assert!(matches!(refused, DeleteError::Locked(_)), "{refused}");
    drop(tx);
    let job: Uuid =
        sqlx::query_scalar("SELECT id FROM sexton.jobs").fetch_one(f.pool()).await.unwrap();
    let all = Delete { cancel: true, ..request() };
    assert_eq!(delete(f.db.store(), all, BY, None).await.unwrap().id, job);
}

#[tokio::test]
async fn a_caller_s_open_transaction_holds_up_no_admission_of_other_executions() {
    let f = Fixture::new().await;
    f.policy("queue").await;
    let held = f.enqueue(&charge().key("held")).await.unwrap().execution_id;
    let free = f.enqueue(&charge().key("free")).await.unwrap().execution_id;
    let mut tx = f.pool().begin().await.unwrap();
    let later = charge().key("held").if_exists(IfExists::Postpone).delay(Duration::from_hours(1));
    Client::new().enqueue(&mut tx, &later).await.unwrap();
    assert_eq!(timeout(PATIENCE, f.admit(None)).await.unwrap(), 1);
    assert!(f.row(free).await["admitted_at"].is_string(), "the next in turn");
    tx.commit().await.unwrap();
    assert!(f.row(held).await["admitted_at"].is_null());
}

#[tokio::test]
async fn a_job_that_skips_counts_what_waits_since_it_ran_one_at_a_time() {
    let f = Fixture::new().await;
    f.policy("queue").await;
    f.enqueue(&charge()).await.unwrap();
    f.enqueue(&charge().delay(Duration::from_hours(1))).await.unwrap();
    f.policy("skip").await;
    f.run("UPDATE sexton.jobs SET schedule_kind = 'every', schedule_expression = '1h', next_fire_at = now(),
               planned_until = now() - interval '1 h'").await;
    let busy = async || {
        let mut claim = ClaimTransaction::begin(f.db.store(), None).await.unwrap();
        claim.read_clock(None, "test:1").await.unwrap();
        claim.due_jobs(10, &[]).await.unwrap().jobs[0].under_way.any()
    };
    assert!(busy().await, "one waits that is due");
    assert_eq!(f.admit(None).await, 1);
    f.run("UPDATE sexton.executions SET state = 'cancelled', next_attempt_at = NULL, finished_at = now()
           WHERE admitted_at IS NOT NULL").await;
    assert!(!busy().await, "the other one is enqueued for later");
}
