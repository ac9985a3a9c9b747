//! Stale work: a firing that comes too late to be begun is skipped by the open, and nothing else is.

use chrono::{DateTime, Utc};
use sexton_model::id::{ExecutionId, OpenToken};
use sexton_model::job::{RetryOverrides, Schedule};
use sexton_model::key;
use sexton_model::open::{OpenDecision, STALE_REASON, decide_unopened};
use sexton_model::state::{Cause, State, next};
use sexton_store::open::{Offer, OpenOutcome, OpenRequest, open, read_unopened};
use uuid::Uuid;

use super::{Fixture, LEASE, at, fail, n, request, retry};

/// The job wants its firings to be begun within ten seconds.
async fn fixture() -> Fixture {
    let fixture = Fixture::new().await;
    sqlx::query("UPDATE sexton.jobs SET stale_after_ms = 10000")
        .execute(fixture.db.pool())
        .await
        .unwrap();
    fixture
}

/// Claims the firing of second 0 under this schedule.
async fn fire(fixture: &Fixture, schedule: &Schedule) -> ExecutionId {
    fixture.claim(&key::of_firing(schedule, at(0)).unwrap()).await
}

fn hourly() -> Schedule {
    Schedule::Cron { expression: "0 * * * *".into() }
}

async fn open_batch(fixture: &Fixture, requests: &[OpenRequest], second: i64) -> OpenOutcome {
    let offers = [Offer::new("work")];
    let now = Some(at(second));
    open(fixture.store(), fixture.worker, "w:1", &offers, requests, LEASE, now).await.unwrap()
}

#[tokio::test]
async fn a_firing_that_is_opened_too_late_is_skipped_and_one_on_the_last_instant_runs() {
    let fixture = fixture().await;
    let every = Schedule::every(std::time::Duration::from_mins(1));
    let once = Schedule::At { at: at(0).into() };
    for (schedule, second) in [(hourly(), 11), (every, 3_600), (once, 11)] {
        let id = fire(&fixture, &schedule).await;
        let opened = open_batch(&fixture, &[request(id, 1)], second).await;
        assert_eq!((opened.opened, opened.skipped), (vec![], vec![id]));
        assert_eq!(fixture.state(id).await, "skipped/1");
        assert_eq!(next(State::Pending, Cause::Skip), Some(State::Skipped));
        assert_eq!(fixture.column(id, "skip_reason").await.as_deref(), Some(STALE_REASON));
        assert_eq!(fixture.attempts(id).await, [""; 0]);
        assert_eq!(fixture.column(id, "started_at").await, None);
        let finished: DateTime<Utc> =
            sqlx::query_scalar("SELECT finished_at FROM sexton.executions WHERE id = $1")
                .bind(id.get())
                .fetch_one(fixture.db.pool())
                .await
                .unwrap();
        assert_eq!(finished, at(second));
    }
    sqlx::query("DELETE FROM sexton.executions").execute(fixture.db.pool()).await.unwrap();
    let id = fire(&fixture, &hourly()).await;
    assert_eq!(open_batch(&fixture, &[request(id, 1)], 10).await.opened.len(), 1);
}

#[tokio::test]
async fn a_skipped_execution_is_never_opened_by_its_ticket() {
    let fixture = fixture().await;
    let id = fire(&fixture, &hourly()).await;
    // The first answer is lost, and the worker asks the same again; then another one does.
    let first = request(id, 1);
    assert_eq!(open_batch(&fixture, &[first], 11).await.skipped, [id]);
    let other = OpenRequest { token: OpenToken::new(Uuid::new_v4()), ..first };
    for request in [first, other] {
        assert_eq!(open_batch(&fixture, &[request], 12).await, OpenOutcome::default());
        let offers = [Offer::new("work")];
        let rows = read_unopened(fixture.store(), &offers, &[request], Some(at(12))).await.unwrap();
        let decision = decide_unopened(request.attempt, rows.first().map(|(_, row)| row));
        assert_eq!(decision, OpenDecision::Stale, "the ticket is dropped");
    }
    assert_eq!(fixture.state(id).await, "skipped/1");
}

#[tokio::test]
async fn one_of_many_workers_skips_a_stale_ticket() {
    let fixture = fixture().await;
    let id = fire(&fixture, &hourly()).await;
    let all = (0..8).map(|_| request(id, 1)).collect::<Vec<_>>();
    let asking = all.iter().map(|one| open_batch(&fixture, std::slice::from_ref(one), 11));
    let answers = futures_util::future::join_all(asking).await;
    assert_eq!(answers.iter().map(|answer| answer.skipped.len()).sum::<usize>(), 1);
    assert!(answers.iter().all(|answer| answer.opened.is_empty()));
}

#[tokio::test]
async fn one_stale_ticket_of_a_batch_does_not_hinder_the_others() {
    let fixture = fixture().await;
    let stale = fire(&fixture, &hourly()).await;
    let manual = fixture.claim("manual-1").await;
    let answered = open_batch(&fixture, &[request(stale, 1), request(manual, 1)], 60).await;
    assert_eq!(answered.skipped, [stale]);
    let opened: Vec<_> = answered.opened.iter().map(|opened| opened.execution_id).collect();
    assert_eq!(opened, [manual]);
}

#[tokio::test]
async fn triggers_tasks_of_others_and_what_was_begun_before_never_come_too_late() {
    let fixture = fixture().await;
    // A trigger, and a caller's own key that looks like a firing's.
    let own_key = fixture.claim("cron-of-my-own").await;
    sqlx::query("UPDATE sexton.executions SET own_key = true")
        .execute(fixture.db.pool())
        .await
        .unwrap();
    for id in [fixture.claim("manual-2").await, fixture.claim("foreign-2").await, own_key] {
        assert_eq!(open_batch(&fixture, &[request(id, 1)], 3_600).await.opened.len(), 1);
    }
    // A retry, and what an operator requeued.
    let id = fire(&fixture, &hourly()).await;
    let held = fixture.opened(id, 1, 5).await;
    fixture.settle(held, retry(1, 1), 6).await;
    let held = fixture.opened(id, 2, 60).await;
    fixture.settle(held, fail(), 61).await;
    let by = sexton_store::operator::AuditContext { actor: "me", reason: None };
    sexton_store::operator::requeue(fixture.store(), id, n(3), by, Some(at(70))).await.unwrap();
    fixture.opened(id, 3, 7_200).await;
}

#[tokio::test]
async fn without_stale_after_no_firing_is_too_old() {
    let fixture = Fixture::new().await;
    let id = fire(&fixture, &hourly()).await;
    let opened = open_batch(&fixture, &[request(id, 1)], 30 * 86_400).await.opened.pop().unwrap();
    assert_eq!(opened.retry, RetryOverrides { max_crashes: Some(3), ..RetryOverrides::default() });
}
