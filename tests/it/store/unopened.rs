//! What fails without an attempt: it takes the next number, so that no copy of its ticket is left that
//! could open it.

use std::time::Duration;

use sexton_model::id::ExecutionId;
use sexton_model::open::{OpenDecision, decide_unopened};
use sexton_model::retry::Decision;
use sexton_store::open::{Offer, read_unopened};
use sexton_store::operator::{AuditContext, OperatorError, cancel, requeue};
use sexton_store::parked_messages::{fail_unopened, mark_unpublished, return_ticket};
use sexton_store::relay::mark_published;
use sexton_tests::relaying::take_due;

use super::{Fixture, at, n, request, retry};

const BY: AuditContext<'_> = AuditContext { actor: "tester", reason: None };

async fn give_up(fixture: &Fixture, id: ExecutionId, number: i32, second: i64) -> bool {
    let (class, reason) = ("delivery_limit", "nobody answered for it");
    let now = Some(at(second));
    fail_unopened(fixture.store(), id, n(number), class, reason, now).await.unwrap()
}

/// One that waits for its first attempt and one that waits for its second, with these numbers.
async fn waiting(fixture: &Fixture) -> [(ExecutionId, i32); 2] {
    let (pending, retrying) = (fixture.claim("a").await, fixture.claim("b").await);
    let held = fixture.opened(retrying, 1, 0).await;
    fixture.settle(held, retry(30, 1), 1).await;
    [(pending, 1), (retrying, 2)]
}

/// Every column of a row.
async fn whole(fixture: &Fixture, id: ExecutionId) -> String {
    fixture.column(id, "executions").await.unwrap()
}

#[tokio::test]
async fn an_execution_that_fails_unopened_takes_the_next_number_and_an_unpublished_ticket() {
    let fixture = Fixture::new().await;
    for (id, number) in waiting(&fixture).await {
        let attempts = fixture.attempts(id).await;
        let rev: i32 = fixture.column(id, "rev").await.unwrap().parse().unwrap();
        assert_eq!(mark_published(fixture.store(), &[(id, rev)], Some(at(2))).await.unwrap(), 1);
        assert!(give_up(&fixture, id, number, 40).await);
        assert_eq!(fixture.state(id).await, format!("failed/{}", number + 1));
        assert_eq!(fixture.column(id, "outcome").await.as_deref(), Some("unopened"));
        assert_eq!(fixture.attempts(id).await, attempts, "no attempt was made");
        let taken = take_due(fixture.store(), 10, Some(at(40))).await.unwrap().tickets;
        let unpublished =
            taken.into_iter().find(|unpublished| unpublished.ticket.execution_id == id).unwrap();
        assert_eq!((unpublished.ticket.attempt, unpublished.rev), (n(number + 1), rev + 1));
        let parked = unpublished.parked.expect("it goes to the failed queue");
        assert_eq!((parked.failed_at, &*parked.failed_reason), (at(40), "nobody answered for it"));
        // A late mark of the earlier ticket leaves the new one unpublished.
        assert_eq!(mark_published(fixture.store(), &[(id, rev)], Some(at(41))).await.unwrap(), 0);
        assert_eq!(
            mark_published(fixture.store(), &[(id, unpublished.rev)], None).await.unwrap(),
            1
        );
    }
}

#[tokio::test]
async fn a_copy_left_over_of_a_ticket_that_failed_unopened_changes_nothing() {
    let fixture = Fixture::new().await;
    for (id, number) in waiting(&fixture).await {
        assert!(give_up(&fixture, id, number, 40).await);
        let before = whole(&fixture, id).await;
        let copy = request(id, number);
        assert!(fixture.open(copy, 41).await.is_none());
        for offers in ["work", "other"] {
            let rows =
                read_unopened(fixture.store(), &[Offer::new(offers)], &[copy], Some(at(41))).await;
            let found = rows.unwrap();
            let found = decide_unopened(copy.attempt, found.first().map(|(_, row)| row));
            assert_eq!(found, OpenDecision::Stale, "it is dropped");
        }
        assert!(!give_up(&fixture, id, number, 42).await, "it fails once");
        assert_eq!(whole(&fixture, id).await, before);
    }
}

#[tokio::test]
async fn a_ticket_is_handed_back_only_to_a_row_that_still_waits_with_its_number() {
    let fixture = Fixture::new().await;
    let wait = Duration::from_secs(30);
    for (id, number) in waiting(&fixture).await {
        let return_ticket = async |number, second| {
            return_ticket(fixture.store(), id, n(number), wait, Some(at(second))).await.unwrap()
        };
        let rev: i32 = fixture.column(id, "rev").await.unwrap().parse().unwrap();
        // A worker had the ticket in hand before its publisher has marked it.
        assert!(return_ticket(number, 2).await);
        assert_eq!(mark_published(fixture.store(), &[(id, rev)], Some(at(2))).await.unwrap(), 0);
        let rev: i32 = fixture.column(id, "rev").await.unwrap().parse().unwrap();
        assert_eq!(mark_published(fixture.store(), &[(id, rev)], Some(at(2))).await.unwrap(), 1);
        let before = whole(&fixture, id).await;
        assert!(!return_ticket(number + 1, 3).await);
        assert_eq!(whole(&fixture, id).await, before);
        assert!(return_ticket(number, 40).await);
        assert_eq!(mark_published(fixture.store(), &[(id, rev)], Some(at(41))).await.unwrap(), 0);
        let unpublished = async |second| {
            let taken = take_due(fixture.store(), 10, Some(at(second))).await.unwrap().tickets;
            taken.into_iter().find(|unpublished| unpublished.ticket.execution_id == id)
        };
        assert!(unpublished(69).await.is_none(), "not before its time");
        assert_eq!(unpublished(70).await.unwrap().ticket.attempt, n(number));
        // The copy that was handed back opens the attempt, and the relay's then opens nothing.
        let held = fixture.opened(id, number, 71).await;
        let running = whole(&fixture, id).await;
        assert!(!return_ticket(number, 72).await);
        assert!(fixture.open(request(id, number), 72).await.is_none());
        assert_eq!(whole(&fixture, id).await, running);
        fixture.settle(held, retry(30, 1), 73).await;
        assert!(!return_ticket(number, 74).await, "it has moved on");
    }
}

#[tokio::test]
async fn a_ticket_that_a_policy_dropped_before_its_mark_is_published_again_soon() {
    let fixture = Fixture::new().await;
    // The second begins when the first one's takes hide it no more.
    for (begin, (id, number)) in [0, 200].into_iter().zip(waiting(&fixture).await) {
        let dropped = async |number, second| {
            let tickets = [(id, n(number))];
            mark_unpublished(fixture.store(), &tickets, Some(at(begin + second))).await.unwrap()
        };
        let due = async |second| {
            let taken =
                take_due(fixture.store(), 10, Some(at(begin + second))).await.unwrap().tickets;
            taken.into_iter().find(|unpublished| unpublished.ticket.execution_id == id)
        };
        let before = whole(&fixture, id).await;
        assert_eq!(dropped(number + 1, 2).await, 0);
        assert_eq!(whole(&fixture, id).await, before);
        // The relay has taken and published it at 40, so nobody takes it for half a minute.
        let taken = due(40).await.unwrap();
        assert_eq!(dropped(number, 40).await, 1);
        let late = [(id, taken.rev)];
        assert_eq!(mark_published(fixture.store(), &late, Some(at(begin + 40))).await.unwrap(), 0);
        assert!(due(41).await.is_none(), "it keeps its place");
        let again = due(71).await.unwrap();
        // This one is marked before it is dropped.
        let mark = [(id, again.rev)];
        assert_eq!(mark_published(fixture.store(), &mark, Some(at(begin + 71))).await.unwrap(), 1);
        assert_eq!(dropped(number, 72).await, 1);
        assert_eq!(due(72).await.unwrap().ticket.attempt, n(number));
        fixture.opened(id, number, begin + 73).await;
        assert_eq!(dropped(number, 74).await, 0, "it has moved on");
    }
}

#[tokio::test]
async fn a_requeue_of_an_unopened_failure_opens_the_next_number() {
    let fixture = Fixture::new().await;
    for (id, number) in waiting(&fixture).await {
        let mut attempts = fixture.attempts(id).await;
        assert!(give_up(&fixture, id, number, 40).await);
        let stale = requeue(fixture.store(), id, n(number), BY, Some(at(41))).await;
        assert!(matches!(stale, Err(OperatorError::Conflict { .. })), "{stale:?}");
        requeue(fixture.store(), id, n(number + 1), BY, Some(at(41))).await.unwrap();
        assert_eq!(fixture.state(id).await, format!("pending/{}", number + 1));
        assert!(fixture.open(request(id, number), 42).await.is_none(), "a copy left over");
        let held = fixture.opened(id, number + 1, 42).await;
        fixture.settle(held, Decision::Succeed, 43).await;
        attempts.push(format!("{}:succeeded", number + 1));
        assert_eq!(fixture.attempts(id).await, attempts);
    }
}

#[tokio::test]
async fn moving_the_parked_ticket_of_an_unopened_failure_is_a_requeue() {
    let fixture = Fixture::new().await;
    let id = fixture.claim("k").await;
    assert!(give_up(&fixture, id, 1, 1).await);
    fixture.opened(id, 2, 2).await;
    assert_eq!(fixture.attempts(id).await, ["2:open"]);
    let audited: Vec<String> =
        sqlx::query_scalar("SELECT action FROM sexton.operator_actions WHERE execution_id = $1")
            .bind(id.get())
            .fetch_all(fixture.db.pool())
            .await
            .unwrap();
    assert_eq!(audited, ["hand_requeue"]);
}

#[tokio::test]
async fn only_an_execution_waiting_with_that_number_fails_unopened() {
    let fixture = Fixture::new().await;
    let (running, cancelled) = (fixture.claim("a").await, fixture.claim("b").await);
    fixture.opened(running, 1, 0).await;
    cancel(fixture.store(), cancelled, BY, Some(at(0))).await.unwrap();
    let waiting = fixture.claim("c").await;
    for (id, number) in [(running, 1), (cancelled, 1), (waiting, 2)] {
        let before = whole(&fixture, id).await;
        assert!(!give_up(&fixture, id, number, 1).await);
        assert_eq!(whole(&fixture, id).await, before);
    }
}
