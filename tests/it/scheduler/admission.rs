//! Firings that wait for their job, and firings that replace what is under way.

use sexton_model::id::{ExecutionId, JobId};
use sexton_model::state::State;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_tests::factory::{NewExecution, NewJob};

use super::{Fixture, at, now};

/// A job that fires each minute, due at second 0.
async fn job(f: &Fixture, overlap: &'static str) -> JobId {
    let mut job = NewJob::new("the.job").cron("* * * * *", at(0));
    job.overlap = overlap;
    f.job(job).await
}

async fn newest(f: &Fixture) -> ExecutionId {
    let ids = f
        .ids("SELECT id FROM sexton.executions ORDER BY scheduled_for DESC, id DESC LIMIT 1")
        .await;
    ExecutionId::new(ids[0])
}

const WAITERS: &str = "SELECT count(*) FROM sexton.executions
    WHERE state = 'pending' AND waits IS NOT NULL AND admitted_at IS NULL";

#[tokio::test]
async fn a_queued_firing_is_admitted_when_the_job_is_free_and_later_ones_are_skipped() {
    let f = Fixture::new().await;
    job(&f, "queue").await;
    let first = f.execution(State::Running, -60).await;
    let (planner, mut dispatcher) = f.planner();
    let report = planner.run_once(now(0)).await.unwrap();
    assert_eq!((report.claimed, report.waiting, report.skipped), (0, 1, 0));
    // Less than without a waiter; how much less depends on how long the look takes here.
    assert!(report.sleep < std::time::Duration::from_millis(4_500), "{:?}", report.sleep);
    let waiter = newest(&f).await;
    assert_eq!(f.column(waiter, "waits").await.as_deref(), Some("queue"));
    let report = planner.run_once(now(60)).await.unwrap();
    assert_eq!((report.waiting, report.skipped, report.admitted), (0, 1, 0));
    // Neither relay nor time lets it go.
    assert_eq!(f.relay().run_once(now(4_000)).await.unwrap().taken, 0);
    assert_eq!(f.number(WAITERS).await, 1);
    end(&f, first).await;
    let report = planner.run_once(now(90)).await.unwrap();
    assert_eq!((report.admitted, report.claimed), (1, 0));
    let (sent, marked) = dispatcher.publish_next(now(90)).await.unwrap().unwrap();
    assert_eq!((sent.published.len(), marked), (1, 1));
    assert_eq!(f.tickets().await, [super::ticket_of(waiter, 1)]);
    assert_eq!(f.number(WAITERS).await, 0);
}

async fn end(f: &Fixture, id: ExecutionId) {
    sqlx::query(
        "UPDATE sexton.executions SET state = 'succeeded', finished_at = now(), worker_id = NULL,
             open_token = NULL, lease_until = NULL, next_attempt_at = NULL WHERE id = $1",
    )
    .bind(id.get())
    .execute(f.db.pool())
    .await
    .unwrap();
}

#[tokio::test]
async fn a_replacement_cancels_running_and_waiting_executions_and_keeps_the_newest() {
    let f = Fixture::without_broker().await;
    let id = job(&f, "replace").await;
    let running = f.execution(State::Running, -60).await;
    let retrying = f.insert(NewExecution::new(id, State::Retrying, at(-120))).await;
    let (planner, _dispatcher) = f.planner();
    let report = planner.run_once(now(0)).await.unwrap();
    assert_eq!((report.waiting, report.replaced, report.claimed), (1, 2, 0));
    let first = newest(&f).await;
    let by = Some(first.to_string());
    assert_eq!(f.column(running, "replaced_by").await, by);
    assert_eq!(f.column(running, "cancel_requested").await.as_deref(), Some("true"));
    assert_eq!(f.state(running).await, "running/1");
    assert_eq!(f.column(retrying, "state").await.as_deref(), Some("cancelled"));
    assert_eq!(f.column(retrying, "outcome").await.as_deref(), Some("replaced"));
    let report = planner.run_once(now(60)).await.unwrap();
    assert_eq!((report.waiting, report.replaced), (1, 1), "what runs was replaced before");
    let second = newest(&f).await;
    assert_eq!(f.column(first, "state").await.as_deref(), Some("cancelled"));
    assert_eq!(f.column(first, "replaced_by").await, Some(second.to_string()));
    assert_eq!(f.column(running, "replaced_by").await, by, "its first successor");
    assert_eq!(f.number(WAITERS).await, 1);
}

#[tokio::test]
async fn a_claim_that_replaces_is_put_off_while_somebody_has_locked_what_runs() {
    let f = Fixture::without_broker().await;
    job(&f, "replace").await;
    let other = NewJob::new("other.job").cron("* * * * *", at(0));
    f.job(other).await;
    let running = f.execution(State::Running, -60).await;
    let mut settling = f.db.pool().begin().await.unwrap();
    sqlx::query("SELECT FROM sexton.executions WHERE id = $1 FOR NO KEY UPDATE")
        .bind(running.get())
        .execute(&mut *settling)
        .await
        .unwrap();
    let (planner, _dispatcher) = f.planner();
    let report = planner.run_once(now(0)).await.unwrap();
    assert_eq!((report.claimed, report.waiting), (1, 0), "the other job alone");
    let due = "SELECT count(*) FROM sexton.jobs WHERE name = 'the.job' AND next_fire_at = to_timestamp(1800000000)";
    assert_eq!(f.number(due).await, 1, "it stays due");
    let report = planner.run_once(now(0)).await.unwrap();
    assert!(report.sleep <= std::time::Duration::from_millis(50), "{:?}", report.sleep);
    settling.rollback().await.unwrap();
    assert_eq!(planner.run_once(now(0)).await.unwrap().waiting, 1);
}

async fn waiter(f: &Fixture, job: JobId, since: i64) {
    let one = f.insert(NewExecution::new(job, State::Pending, at(since))).await;
    sqlx::query(
        "UPDATE sexton.executions SET waits = 'turn', ticket_published_at = NULL,
             relay_after = '9999-01-01', next_attempt_at = scheduled_for WHERE id = $1",
    )
    .bind(one.get())
    .execute(f.db.pool())
    .await
    .unwrap();
}

#[tokio::test]
async fn an_admission_that_the_database_refuses_stops_no_claim() {
    let f = Fixture::without_broker().await;
    let queued = job(&f, "queue").await;
    sqlx::query("UPDATE sexton.jobs SET next_fire_at = NULL").execute(f.db.pool()).await.unwrap();
    waiter(&f, queued, -600).await;
    f.job(NewJob::new("other.job").cron("* * * * *", at(0))).await;
    sqlx::raw_sql(super::REFUSE_ADMISSIONS).execute(f.db.pool()).await.unwrap();
    let claimed = "SELECT count(*) FROM sexton.executions x JOIN sexton.jobs j ON j.id = x.job_id
        WHERE j.name = 'other.job'";
    let (planner, _dispatcher) = f.planner();
    for round in 1..=2 {
        let refused = planner.run_once(now(60 * (round - 1))).await.unwrap_err();
        assert!(refused.to_string().contains("no admission"), "{refused}");
        assert_eq!(f.number(claimed).await, round);
    }
    sqlx::raw_sql("DROP TRIGGER refuse ON sexton.executions").execute(f.db.pool()).await.unwrap();
    assert_eq!(planner.run_once(now(60)).await.unwrap().admitted, 1);
}

#[tokio::test]
async fn one_of_many_planners_admits_one_waiting_execution() {
    let f = Fixture::without_broker().await;
    let id = job(&f, "queue").await;
    for second in 0..4 {
        waiter(&f, id, second - 600).await;
    }
    sqlx::query("UPDATE sexton.jobs SET next_fire_at = NULL").execute(f.db.pool()).await.unwrap();
    let planners: Vec<_> = (0..8).map(|_| f.planner()).collect();
    for left in [3_i64, 2, 1, 0] {
        let rounds = planners.iter().map(|(planner, _)| planner.run_once(now(0)));
        let admitted: usize = futures_util::future::join_all(rounds)
            .await
            .into_iter()
            .map(|report| report.unwrap().admitted)
            .sum();
        assert_eq!(admitted, 1);
        assert_eq!(f.number(WAITERS).await, left);
        let gone = f
            .ids(
                "SELECT id FROM sexton.executions WHERE admitted_at IS NOT NULL
             AND state = 'pending'",
            )
            .await;
        // The one that has waited longest.
        let oldest = f
            .ids(
                "SELECT id FROM sexton.executions WHERE state = 'pending'
             ORDER BY next_attempt_at = '2027-01-15T08:00:00Z' DESC, scheduled_for LIMIT 1",
            )
            .await;
        assert_eq!(gone, oldest);
        end(&f, ExecutionId::new(gone[0])).await;
    }
}
