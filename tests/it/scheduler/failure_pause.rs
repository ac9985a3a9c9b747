//! Jobs that pause themselves after failures, and the interplay of retention and a backfill.

use sexton_model::id::{ExecutionId, JobId};
use sexton_model::state::State;
use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_store::backfill::{Backfill, BackfillError, create_batch};
use sexton_store::jobs::resume;
use sexton_store::operator::AuditContext;
use sexton_store::retention::{RetentionPolicy, RetentionTarget};
use sexton_tests::factory::{NewExecution, NewJob};
use sexton_tests::retention::pass;
use uuid::Uuid;

use super::{Fixture, at, now};

const BY: AuditContext<'static> = AuditContext { actor: "ann", reason: Some("because") };
const PAUSED: &str =
    "SELECT count(*) FROM sexton.jobs WHERE status = 'paused' AND paused_by = 'sexton'
                      AND paused_why LIKE '3 executions in a row failed%'
                      AND next_fire_at = to_timestamp(1800000000)";

impl Fixture {
    /// A job that is due at second 0 and pauses itself after three failures.
    async fn touchy(&self) -> JobId {
        let job = self.job(NewJob::new("the.job").cron("* * * * *", at(0))).await;
        sqlx::query("UPDATE sexton.jobs SET pause_after_failures = 3")
            .execute(self.db.pool())
            .await
            .unwrap();
        job
    }

    /// Adds executions that ended in these states, one a minute, the last a minute ago.
    async fn ended(&self, job: JobId, states: &[State]) {
        for (state, ago) in states.iter().rev().zip(1..) {
            self.insert(NewExecution::new(job, *state, at(-60 * ago))).await;
        }
    }
}

#[tokio::test]
async fn a_job_whose_last_executions_failed_is_paused_instead_of_fired_by_one_of_the_replicas() {
    let f = Fixture::without_broker().await;
    let job = f.touchy().await;
    // A cancelled execution in between counts neither way.
    f.ended(
        job,
        &[State::Succeeded, State::Failed, State::Failed, State::Cancelled, State::Failed],
    )
    .await;
    let ((one, _one), (two, _two)) = (f.planner(), f.planner());
    let (one, two) = tokio::join!(one.run_once(now(0)), two.run_once(now(0)));
    assert_eq!(one.unwrap().claimed + two.unwrap().claimed, 0);
    assert_eq!(f.number(PAUSED).await, 1);
    let actions =
        "SELECT count(*) FROM sexton.operator_actions WHERE action = 'pause' AND actor = 'sexton'";
    assert_eq!(f.number(actions).await, 1);
    // Resumed, the job counts anew; the firing that was due is recorded as skipped by that pause.
    resume(f.db.store(), "the.job", BY, now(30)).await.unwrap();
    let gap = "SELECT count(*) FROM sexton.gaps WHERE reason = 'paused' AND actor = 'sexton' AND count = 1";
    assert_eq!(f.number(gap).await, 1);
    let (planner, _dispatcher) = f.planner();
    assert_eq!(planner.run_once(now(60)).await.unwrap().claimed, 1);
}

#[tokio::test]
async fn a_success_among_the_last_executions_lets_a_job_fire() {
    for states in [
        &[State::Failed, State::Failed][..],
        &[State::Failed, State::Failed, State::Succeeded, State::Failed],
        &[State::Failed, State::Failed, State::Failed, State::Succeeded],
        &[State::Failed, State::Failed, State::Discarded, State::Skipped],
    ] {
        let f = Fixture::without_broker().await;
        let job = f.touchy().await;
        f.ended(job, states).await;
        let (planner, _dispatcher) = f.planner();
        assert_eq!(planner.run_once(now(0)).await.unwrap().claimed, 1, "{states:?}");
    }
}

#[tokio::test]
async fn a_failure_pause_leaves_the_other_jobs_of_the_batch_firing() {
    let f = Fixture::without_broker().await;
    let job = f.touchy().await;
    f.ended(job, &[State::Failed, State::Failed, State::Failed]).await;
    f.job(NewJob::new("b.good").cron("* * * * *", at(0))).await;
    let (planner, _dispatcher) = f.planner();
    assert_eq!(planner.run_once(now(0)).await.unwrap().claimed, 1);
    assert_eq!(f.number(PAUSED).await, 1);
}

fn last_hour(to: i64) -> Backfill<'static> {
    Backfill {
        approved: None,
        job: "the.job",
        from: at(to - 3_600),
        to: at(to),
        rate: None,
        allow_overlap: false,
        claimed_by: "test:1",
        dry_run: false,
    }
}

fn fresh() -> ExecutionId {
    ExecutionId::new(Uuid::now_v7())
}

#[tokio::test]
async fn a_firing_whose_execution_retention_has_removed_is_not_backfilled() {
    let f = Fixture::without_broker().await;
    let job = f.job(NewJob::new("the.job").cron("0 * * * *", at(0))).await;
    sqlx::query("UPDATE sexton.job_revisions SET valid_from = to_timestamp(1800000000 - 86400)")
        .execute(f.db.pool())
        .await
        .unwrap();
    let mut ran = NewExecution::new(job, State::Succeeded, at(0));
    ran.key = Some("cron-2027-01-15T08:00:00Z".to_owned());
    f.insert(ran).await;
    let known = create_batch(f.db.store(), last_hour(0), None, fresh, BY, now(1)).await.unwrap();
    let made: Vec<bool> = known.firings.iter().map(|firing| firing.due_at.is_some()).collect();
    assert_eq!(made, [true, false], "the hour before has none, this one has");
    // A month later retention removes the execution that ran, and its key with it.
    let month = 31 * 86_400;
    let terms = RetentionPolicy { days: 30, audit_days: None };
    let pruned = pass(f.db.store(), terms, &RetentionTarget::ALL, 100, now(month)).await.unwrap();
    assert_eq!(pruned.executions, 1);
    let refused = create_batch(f.db.store(), last_hour(0), None, fresh, BY, now(month)).await;
    assert!(
        matches!(refused, Err(BackfillError::Pruned(before)) if before == at(86_400)),
        "{refused:?}"
    );
}

#[tokio::test]
async fn retention_and_a_backfill_wait_for_each_other() {
    let f = Fixture::without_broker().await;
    f.job(NewJob::new("the.job").cron("0 * * * *", at(0))).await;
    // Retention has removed executions, and has not committed yet.
    let mut retention = f.db.pool().begin().await.unwrap();
    sqlx::query("UPDATE sexton.retention SET pruned_before = $1")
        .bind(at(60))
        .execute(&mut *retention)
        .await
        .unwrap();
    let store = f.db.other_store().unwrap();
    let backfill = tokio::spawn(async move {
        create_batch(&store, last_hour(3_600), None, fresh, BY, now(3_600)).await
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
                   AND datname = current_database() AND query LIKE '-- share_retention%'";
    while f.number(waiting).await == 0 {
        assert!(!backfill.is_finished(), "it did not wait");
        tokio::task::yield_now().await;
    }
    retention.commit().await.unwrap();
    let refused = backfill.await.unwrap();
    assert!(
        matches!(refused, Err(BackfillError::Pruned(before)) if before == at(60)),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_backfill_that_may_overlap_skips_no_firing_of_the_schedule() {
    let f = Fixture::without_broker().await;
    let mut job = NewJob::new("the.job").cron("0 * * * *", at(3_600));
    job.overlap = "skip";
    f.job(job).await;
    sqlx::query("UPDATE sexton.job_revisions SET valid_from = to_timestamp(1800000000 - 86400)")
        .execute(f.db.pool())
        .await
        .unwrap();
    let refused = create_batch(f.db.store(), last_hour(0), None, fresh, BY, now(1)).await;
    assert!(
        matches!(&refused, Err(BackfillError::Overlap(policy)) if policy == "skip"),
        "{refused:?}"
    );
    let beside = Backfill { allow_overlap: true, ..last_hour(0) };
    let made = create_batch(f.db.store(), beside, None, fresh, BY, now(1)).await.unwrap();
    assert_eq!(made.firings.len(), 2);
    let (planner, _dispatcher) = f.planner();
    let report = planner.run_once(now(3_600)).await.unwrap();
    assert_eq!(
        (report.claimed, report.skipped),
        (1, 0),
        "those of the backfill are still under way"
    );
}
