//! Schedulers do each item of a bulk once, whatever else runs.

use futures_util::future::join_all;
use serde_json::json;
use sexton_model::bulk::BulkKind;
use sexton_model::failures::FailureFilter;
use sexton_model::id::AttemptNumber;
use sexton_model::state::State;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_store::bulk::{self, BulkSelector, ControlError, NewBulk};
use sexton_store::operator;
use sexton_tests::factory::{NewExecution, NewJob};

use super::{BY, Fixture, at, finish, now};

fn second() -> AttemptNumber {
    AttemptNumber::new(2).unwrap()
}

#[tokio::test]
async fn many_schedulers_process_record_and_publish_each_bulk_item_once() {
    let f = Fixture::new().await;
    f.many(2_300).await;
    let id = f.requeue_all().await;
    let schedulers: Vec<_> = (0..4).map(|_| f.scheduler()).collect();
    while f.bulk(id).await.state != "done" {
        for round in join_all(schedulers.iter().map(|one| one.run_once(now(2_000)))).await {
            round.unwrap();
        }
    }
    assert_eq!(f.stands(id).await, "done 2300/2300/0");
    let right =
        "SELECT count(*) FROM sexton.executions WHERE state = 'pending' AND attempt = 2 AND rev = 2
        AND retries_used = 0 AND snoozes_used = 0 AND finished_at IS NULL
        AND ticket_published_at IS NOT NULL";
    assert_eq!(f.number(right).await, 2_300);
    let actions = format!(
        "SELECT count(DISTINCT execution_id) FROM sexton.operator_actions WHERE action = 'requeue'
         AND bulk_id = {id} AND actor = 'ann@ops1' AND reason = 'bank is back'
         AND before ->> 'state' = 'failed' AND after ->> 'state' = 'pending'"
    );
    assert_eq!(f.number(&actions).await, 2_300);
    assert_eq!(
        f.number("SELECT count(*) FROM sexton.operator_actions").await,
        2_301,
        "and the bulk itself"
    );
    assert_eq!(f.tickets().await, 2_300);
    assert_eq!(schedulers[0].run_once(now(3_000)).await.unwrap().alive, 0);
}

#[tokio::test]
async fn a_bulk_selects_only_executions_that_had_failed_when_it_was_created() {
    let f = Fixture::new().await;
    let (before, after) = (f.failed(999).await, f.failed(1_001).await);
    let id = f.requeue_all().await;
    finish(&f.scheduler(), now(2_000)).await;
    assert_eq!(f.stands(id).await, "done 1/1/0");
    assert_eq!(
        (f.state(before).await, f.state(after).await),
        ("pending/2".into(), "failed/2".into())
    );
}

#[tokio::test]
async fn a_bulk_item_reports_a_conflict_when_an_operator_was_faster() {
    let f = Fixture::new().await;
    let ids = [f.failed(1).await, f.failed(2).await, f.failed(3).await, f.failed(4).await];
    let id = f.requeue_all().await;
    let scheduler = f.scheduler();
    assert_eq!(scheduler.run_once(now(2_000)).await.unwrap().selected, 4);
    // Between the selection and the action: a discard, a later failure, and one that is gone.
    operator::discard(f.store(), ids[0], BY, now(2_001)).await.unwrap();
    f.sql("UPDATE sexton.executions SET attempt = 3 WHERE finished_at = to_timestamp(1800000002)")
        .await;
    f.sql("DELETE FROM sexton.executions WHERE finished_at = to_timestamp(1800000003)").await;
    finish(&scheduler, now(2_002)).await;
    assert_eq!(f.stands(id).await, "done 4/1/3");
    let states = [f.state(ids[0]).await, f.state(ids[1]).await, f.state(ids[3]).await];
    assert_eq!(states, ["discarded/2", "failed/3", "pending/2"]);
    let items = bulk::list_items(f.store(), id, &["refused"], 0, 10).await.unwrap();
    let notes: Vec<_> = items.into_iter().map(|item| item.note.unwrap()).collect();
    let expected = [
        "it was discarded at attempt 2",
        "it was failed at attempt 3",
        "it was removed by retention",
    ];
    assert_eq!(notes, expected);
}

#[tokio::test]
async fn a_bulk_processes_locked_rows_once_they_are_unlocked() {
    let f = Fixture::new().await;
    let (held, free) = (f.failed(1).await, f.failed(2).await);
    let id = f.requeue_all().await;
    let scheduler = f.scheduler();
    scheduler.run_once(now(2_000)).await.unwrap();
    let mut holder = f.db.pool().begin().await.unwrap();
    sqlx::query("SELECT FROM sexton.executions WHERE id = $1 FOR UPDATE")
        .bind(held.get())
        .execute(&mut *holder)
        .await
        .unwrap();
    let round = scheduler.run_once(now(2_001)).await.unwrap();
    assert_eq!((round.done, round.refused), (1, 0));
    assert_eq!(f.state(free).await, "pending/2");
    let round = scheduler.run_once(now(2_002)).await.unwrap();
    assert!(round.done == 0 && !round.next_round_in.is_zero(), "it does not spin: {round:?}");
    holder.rollback().await.unwrap();
    finish(&scheduler, now(2_003)).await;
    assert_eq!(
        (f.stands(id).await, f.state(held).await),
        ("done 2/2/0".into(), "pending/2".into())
    );
}

#[tokio::test]
async fn a_second_scheduler_skips_a_bulk_in_progress_without_waiting() {
    let f = Fixture::new().await;
    let failed = f.failed(1).await;
    let id = f.requeue_all().await;
    let scheduler = f.scheduler();
    scheduler.run_once(now(2_000)).await.unwrap();
    // As one that is in the middle of a batch: its pace and its canary are counted at the end.
    let mut holder = f.db.pool().begin().await.unwrap();
    let lock = "SELECT FROM sexton.bulks FOR NO KEY UPDATE";
    sqlx::query(lock).execute(&mut *holder).await.unwrap();
    let round = scheduler.run_once(now(2_001)).await.unwrap();
    assert_eq!((round.alive, round.done, f.state(failed).await), (1, 0, "failed/2".into()));
    holder.rollback().await.unwrap();
    finish(&scheduler, now(2_002)).await;
    assert_eq!(f.stands(id).await, "done 1/1/0");
}

#[tokio::test]
async fn a_stopped_bulk_does_nothing_until_resumed_and_a_second_stop_is_reported() {
    let f = Fixture::new().await;
    f.many(1_200).await;
    let id = f.requeue_all().await;
    let scheduler = f.scheduler();
    scheduler.run_once(now(2_000)).await.unwrap();
    assert_eq!(scheduler.run_once(now(2_000)).await.unwrap().done, 500);
    bulk::stop(f.store(), id, BY).await.unwrap();
    assert_eq!(scheduler.run_once(now(2_001)).await.unwrap().alive, 0);
    assert_eq!(f.stands(id).await, "stopped 1200/500/0");
    let again = bulk::stop(f.store(), id, BY).await.unwrap_err();
    assert!(matches!(again, ControlError::WrongState(_)), "{again}");
    assert_eq!(f.bulk(id).await.stopped_by.as_deref(), Some("ann@ops1"));
    bulk::resume(f.store(), id, BY).await.unwrap();
    finish(&scheduler, now(2_002)).await;
    assert_eq!(f.stands(id).await, "done 1200/1200/0");
    let done = bulk::resume(f.store(), id, BY).await.unwrap_err();
    assert!(matches!(done, ControlError::WrongState(_)), "{done}");
    assert!(matches!(bulk::stop(f.store(), 99, BY).await, Err(ControlError::Missing(99))));
}

#[tokio::test]
async fn a_bulk_discard_can_be_restored_as_a_whole() {
    let f = Fixture::new().await;
    f.many(700).await;
    let other = f.failed(500).await;
    let filter = json!(FailureFilter { until: Some(at(10)), ..FailureFilter::default() });
    let discard = Fixture::new_bulk(BulkKind::Discard, &filter);
    let discarded = bulk::create(f.store(), &discard, BY).await.unwrap();
    let scheduler = f.scheduler();
    finish(&scheduler, now(2_000)).await;
    assert_eq!(f.stands(discarded).await, "done 700/700/0");
    assert_eq!(
        f.number("SELECT count(*) FROM sexton.executions WHERE state = 'discarded'").await,
        700
    );
    let discards = "SELECT count(*) FROM sexton.operator_actions WHERE action = 'discard'
        AND reason = 'bank is back'";
    assert_eq!(f.number(discards).await, 700, "each says why");
    let one = f.number("SELECT count(*) FROM sexton.executions WHERE state = 'failed'").await;
    assert_eq!((one, f.state(other).await), (1, "failed/2".into()));
    let restore = NewBulk {
        selector: BulkSelector::Bulk(discarded),
        ..Fixture::new_bulk(BulkKind::Restore, &filter)
    };
    let restored = bulk::create(f.store(), &restore, BY).await.unwrap();
    finish(&scheduler, now(2_001)).await;
    assert_eq!(f.stands(restored).await, "done 700/700/0");
    let unpublished = "SELECT count(*) FROM sexton.executions WHERE state = 'failed' AND ticket_published_at IS NULL";
    assert_eq!(f.number(unpublished).await, 700, "their parked messages are unpublished");
}

#[tokio::test]
async fn a_bulk_by_ids_applies_to_the_seen_attempt_and_can_change_the_pool() {
    let f = Fixture::new().await;
    let (one, two) = (f.failed(1).await, f.failed(2).await);
    let ids = [(one, second()), (two, AttemptNumber::FIRST)];
    let filter = json!(null);
    let new_bulk = Fixture::new_bulk(BulkKind::Requeue, &filter);
    let new_bulk = NewBulk { selector: BulkSelector::Ids(&ids), pool: Some("reserve"), ..new_bulk };
    let id = bulk::create(f.store(), &new_bulk, BY).await.unwrap();
    finish(&f.scheduler(), now(2_000)).await;
    assert_eq!(f.stands(id).await, "done 2/1/1");
    let pool =
        "SELECT count(*) FROM sexton.executions WHERE pool = 'reserve' AND state = 'pending'";
    assert_eq!(f.number(pool).await, 1);
    let audited = "SELECT count(*) FROM sexton.operator_actions WHERE before ->> 'pool' = 'default'
        AND after ->> 'pool' = 'reserve'";
    assert_eq!(f.number(audited).await, 1);
}

#[tokio::test]
async fn requeued_executions_of_a_non_overlapping_job_wait_for_their_turn() {
    let f = Fixture::new().await;
    let mut job = NewJob::new("one.at.a.time");
    job.overlap = "queue";
    let job = job.insert(f.db.pool()).await.unwrap();
    for second in 1..=3 {
        f.failed_of(job, second).await;
    }
    f.requeue_all().await;
    let last = finish(&f.scheduler(), now(2_000)).await;
    assert_eq!(last.published, 0, "nothing is published before its turn: {last:?}");
    let waiters =
        "SELECT count(*) FROM sexton.executions WHERE state = 'pending' AND waits = 'turn'
        AND admitted_at IS NULL AND ticket_published_at IS NULL";
    assert_eq!(f.number(waiters).await, 3);
}

#[tokio::test]
async fn a_preview_selects_what_the_bulk_selects_and_reports_later_successes() {
    let f = Fixture::new().await;
    f.many(30).await;
    let monthly = NewJob::new("billing.run").insert(f.db.pool()).await.unwrap();
    f.sql("UPDATE sexton.jobs SET idempotency_template = 'month-12' WHERE name = 'billing.run'")
        .await;
    f.failed_of(monthly, 5).await;
    f.failed_of(monthly, 9).await;
    let later = NewExecution::new(monthly, State::Succeeded, at(7));
    later.insert(f.db.pool()).await.unwrap();
    f.sql(
        "UPDATE sexton.executions e SET idempotency_key = 'month-12' FROM sexton.jobs j
         WHERE j.id = e.job_id AND j.name = 'billing.run'",
    )
    .await;
    let preview = bulk::preview(f.store(), &FailureFilter::default(), now(1_000)).await.unwrap();
    assert_eq!((preview.count, preview.more), (32, false));
    assert_eq!(preview.jobs, [("shop.charge".to_owned(), 30), ("billing.run".to_owned(), 2)]);
    assert_eq!(preview.pools, [("default".to_owned(), 32)]);
    assert_eq!(preview.oldest.unwrap().timestamp_millis(), at(0).timestamp_millis() + 1);
    assert_eq!(preview.newest, Some(at(9)));
    assert_eq!(preview.succeeded_later, 1, "the other failed after it");
    let text = FailureFilter {
        text: Some("said NO".into()),
        job: Some(monthly),
        ..FailureFilter::default()
    };
    assert_eq!(bulk::preview(f.store(), &text, now(1_000)).await.unwrap().count, 2);
    let other = FailureFilter { text: Some("no said".into()), ..FailureFilter::default() };
    assert_eq!(bulk::preview(f.store(), &other, now(1_000)).await.unwrap().count, 0);
}

#[tokio::test]
async fn a_bulk_requeues_nothing_while_the_broker_is_unreachable() {
    let f = Fixture::new().await;
    let failed = f.failed(1).await;
    let id = f.requeue_all().await;
    let scheduler = f.scheduler();
    scheduler.run_once(now(2_000)).await.unwrap();
    f.link.close().await;
    let round = scheduler.run_once(now(2_001)).await.unwrap();
    assert_eq!((round.alive, round.done), (1, 0));
    assert_eq!(
        (f.stands(id).await, f.state(failed).await),
        ("running 1/0/0".into(), "failed/2".into())
    );
}
