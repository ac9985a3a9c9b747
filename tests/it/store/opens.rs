//! Open: a ticket becomes at most one attempt.

use std::sync::Arc;
use std::time::Duration;

use sexton_model::id::ExecutionId;
use sexton_model::open::{OpenDecision, UNOFFERED_TIMEOUT, decide_unopened};
use sexton_store::open::{Offer, OpenOutcome, OpenRequest, Opened, open, read_unopened, recover};
use sexton_tests::relaying::take_due;
use tokio::sync::Barrier;
use uuid::Uuid;

use super::{Fixture, LEASE, at, fail, n, request, retry};

async fn ask(fixture: &Fixture, request: OpenRequest, second: i64) -> OpenDecision {
    ask_offering(fixture, request, second, "work").await
}

async fn ask_offering(
    fixture: &Fixture,
    request: OpenRequest,
    second: i64,
    offers: &str,
) -> OpenDecision {
    let rows = read_unopened(fixture.store(), &[Offer::new(offers)], &[request], Some(at(second)))
        .await
        .unwrap();
    decide_unopened(request.attempt, rows.first().map(|(_, row)| row))
}

#[tokio::test]
async fn a_ticket_delivered_to_many_workers_at_once_is_opened_by_one() {
    let fixture = Arc::new(Fixture::new().await);
    for round in 0..20 {
        let id = fixture.claim(&format!("k{round}")).await;
        let barrier = Arc::new(Barrier::new(4));
        let tries: Vec<_> = (0..4)
            .map(|_| {
                let (fixture, barrier) = (Arc::clone(&fixture), Arc::clone(&barrier));
                tokio::spawn(async move {
                    let request = request(id, 1);
                    barrier.wait().await;
                    fixture.open(request, 1).await.map(|opened| opened.token == request.token)
                })
            })
            .collect();
        let mut winners = 0;
        for one in tries {
            if let Some(mine) = one.await.unwrap() {
                assert!(mine, "the winner is recognised by its own token");
                winners += 1;
            }
        }
        assert_eq!(winners, 1);
        assert_eq!(fixture.attempts(id).await, ["1:open"]);
    }
}

#[tokio::test]
async fn one_request_of_a_batch_does_not_hinder_the_others() {
    let fixture = Fixture::new().await;
    let (first, second) = (fixture.claim("a").await, fixture.claim("b").await);
    let requests =
        [request(first, 1), request(ExecutionId::new(Uuid::now_v7()), 1), request(second, 2)];
    let offers = [Offer::new("work")];
    let now = Some(at(1));
    let opened =
        open(fixture.store(), fixture.worker, "w:1", &offers, &requests, LEASE, now).await.unwrap();
    let opened = opened.opened;
    assert_eq!(opened.len(), 1);
    assert_eq!(opened[0].execution_id, first);
    assert_eq!(fixture.state(second).await, "pending/1");
}

#[tokio::test]
async fn an_open_whose_answer_was_lost_is_found_by_its_token() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let mine = request(id, 1);
    let opened = fixture.open(mine, 1).await.unwrap();
    assert_eq!(ask(&fixture, mine, 2).await, OpenDecision::Run);
    // The open has overwritten when the ticket was due.
    let found = recover(fixture.store(), &[mine], LEASE).await.unwrap();
    assert_eq!(found, [Opened { due_at: None, ..opened }]);
    let stranger = request(id, 1);
    assert_eq!(ask(&fixture, stranger, 2).await, OpenDecision::AlreadyOpened);
    assert!(recover(fixture.store(), &[stranger], LEASE).await.unwrap().is_empty());
}

#[tokio::test]
async fn each_row_of_the_table_of_unopened_tickets_is_seen() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    assert_eq!(ask(&fixture, request(id, 1), 19).await, OpenDecision::AlreadyOpened);
    assert_eq!(ask(&fixture, request(id, 1), 21).await, OpenDecision::AlreadyOpened);
    assert_eq!(ask(&fixture, request(id, 2), 1).await, OpenDecision::Future);

    fixture.settle(held, retry(30, 1), 10).await;
    assert_eq!(fixture.state(id).await, "retrying/2");
    assert_eq!(ask(&fixture, request(id, 1), 11).await, OpenDecision::Stale);
    assert!(fixture.open(request(id, 2), 39).await.is_none(), "it is not due");
    let rest = OpenDecision::Wait(Duration::from_secs(1));
    assert_eq!(ask(&fixture, request(id, 2), 39).await, rest);
    assert_eq!(ask(&fixture, request(id, 2), 40).await, OpenDecision::Retry);

    let held = fixture.opened(id, 2, 40).await;
    fixture.settle(held, sexton_model::retry::Decision::Succeed, 41).await;
    assert_eq!(ask(&fixture, request(id, 2), 42).await, OpenDecision::Stale);
    let nobody = request(ExecutionId::new(Uuid::now_v7()), 1);
    assert_eq!(ask(&fixture, nobody, 42).await, OpenDecision::UnknownExecution);
}

#[tokio::test]
async fn a_worker_opens_only_the_task_types_it_offers() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let (request, offers) = (request(id, 1), [Offer::new("other")]);
    let now = Some(at(1));
    let opened = open(fixture.store(), fixture.worker, "w:1", &offers, &[request], LEASE, now)
        .await
        .unwrap();
    assert_eq!(opened, OpenOutcome::default());
    let wait = OpenDecision::Wait(Duration::from_secs(30));
    assert_eq!(ask_offering(&fixture, request, 1, "other").await, wait);
    let hour = UNOFFERED_TIMEOUT.as_secs().cast_signed();
    assert_eq!(ask_offering(&fixture, request, hour, "other").await, OpenDecision::Unoffered);
    assert!(fixture.open(request, hour).await.is_some(), "who offers it may open it still");
}

#[tokio::test]
async fn a_parked_ticket_that_was_moved_by_hand_is_a_requeue() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    let held = fixture.opened(id, 1, 0).await;
    fixture.settle(held, fail(), 1).await;
    assert_eq!(fixture.state(id).await, "failed/2");

    let opened = fixture.open(request(id, 2), 2).await.expect("the parked ticket opens");
    assert_eq!(opened.used, sexton_model::retry::Usage::default(), "the budgets start anew");
    assert_eq!(opened.attempt, n(2), "the numbers go on");
    // Moved twice, it runs once.
    assert!(fixture.open(request(id, 2), 2).await.is_none());
    let audited: Vec<String> = sqlx::query_scalar(
        "SELECT actor || ' ' || action FROM sexton.operator_actions WHERE execution_id = $1",
    )
    .bind(id.get())
    .fetch_all(fixture.db.pool())
    .await
    .unwrap();
    assert_eq!(audited, ["w:1 hand_requeue"]);
}

#[tokio::test]
async fn an_open_marks_its_ticket_as_published() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    assert_eq!(fixture.column(id, "ticket_published_at").await, None);
    fixture.opened(id, 1, 0).await;
    let unpublished = take_due(fixture.store(), 10, Some(at(3600))).await.unwrap();
    assert!(unpublished.tickets.is_empty(), "a running row has no unpublished ticket");
    assert!(fixture.column(id, "ticket_published_at").await.is_some());
}
