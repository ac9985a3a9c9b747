//! A queue longer than a batch is seen whole, and nothing of it is remembered in memory.

use chrono::{DateTime, Utc};
use sexton_store::parked_messages::{
    ScanPosition, UnpublishedScan, begin_pass, mark_unseen_unpublished, record_kept,
};

use super::*;

/// Small, so that a few messages are many batches.
const BATCH: usize = 3;

async fn pass_in_batches(f: &Fixture) -> Tally {
    pass_of(&sweep(f).with_batch(BATCH)).await
}

/// Puts copies of these tickets into the failed queue, as a tool would.
async fn put_all(f: &Fixture, ids: &[ExecutionId]) {
    for id in ids {
        put(f, Some(&id.to_string()), Some(1), "a copy").await;
    }
}

async fn purge(f: &Fixture) {
    let failed = f.namespace.failed();
    f.raw.channel.queue_purge((*failed).into(), QueuePurgeOptions::default()).await.unwrap();
}

async fn parked_ids<const N: usize>(f: &Fixture) -> [ExecutionId; N] {
    let mut ids = Vec::new();
    for _ in 0..N {
        ids.push(parked(f).await);
    }
    ids.try_into().unwrap()
}

#[tokio::test]
async fn missing_messages_among_many_batches_are_republished() {
    let f = Fixture::new().await;
    let ids: [_; 11] = parked_ids(&f).await;
    purge(&f).await;
    put_all(&f, &ids[..5]).await;
    put_all(&f, &ids[8..]).await;
    let tally = pass_in_batches(&f).await;
    assert_eq!(tally, Tally { kept: 8, marked_unpublished: 3, complete: true, ..Tally::default() });
    for id in &ids[5..8] {
        assert_eq!(f.state(*id).await, "failed/1, unpublished");
    }
    assert_eq!(f.relay().run_once(now(101)).await.unwrap().marked, 3);
    let mut left = parked_messages(&f).await;
    left.sort();
    let mut expected: Vec<_> = ids.iter().map(|id| ticket_of(*id, 1)).collect();
    expected.sort();
    assert_eq!(left, expected);
    let remembered = f.number("SELECT count(*) FROM sexton.sweep_kept").await;
    assert_eq!(remembered, 0, "a pass leaves nothing behind");
}

#[tokio::test]
async fn copies_are_removed_within_a_batch_and_across_batches() {
    let f = Fixture::new().await;
    let [a, b, c] = parked_ids(&f).await;
    purge(&f).await;
    // Batches: a a b, b a c, c b.
    put_all(&f, &[a, a, b, b, a, c, c, b]).await;
    let tally = pass_in_batches(&f).await;
    assert_eq!(tally, Tally { kept: 3, removed: 5, complete: true, ..Tally::default() });
    assert_eq!(parked_messages(&f).await, [a, b, c].map(|id| ticket_of(id, 1)));
}

/// More rows than are looked at together when the pass is over.
#[tokio::test]
async fn every_missing_message_of_many_rows_is_republished() {
    let f = Fixture::new().await;
    let job = f.any_job().await;
    sqlx::query(
        "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, attempt, task_type,
            pool, params, idempotency_key, claimed_by, claimed_at, relay_after, started_at,
            finished_at, outcome, error_class, retries_used, ticket_published_at)
         SELECT gen_random_uuid(), j.id, n::text, to_timestamp(1800000000), 'failed', 1, j.task_type,
            j.pool, '{}', n::text, 'test:1', to_timestamp(1800000000), to_timestamp(1800000000),
            to_timestamp(1800000000), to_timestamp(1800000000 + n / 100), 'error', 'exit_1', 0,
            to_timestamp(1800000090)
         FROM sexton.jobs j, generate_series(1, 12000) n WHERE j.id = $1",
    )
    .bind(job.get())
    .execute(f.db.pool())
    .await
    .unwrap();
    let there =
        f.ids("SELECT id FROM sexton.executions ORDER BY finished_at DESC, id LIMIT 20").await;
    let there: Vec<_> = there.into_iter().map(ExecutionId::new).collect();
    put_all(&f, &there).await;
    let tally = pass_in_batches(&f).await;
    let (kept, marked_unpublished) = (20, 11_980);
    assert_eq!(tally, Tally { kept, marked_unpublished, complete: true, ..Tally::default() });
    let published = "SELECT count(*) FROM sexton.executions WHERE ticket_published_at IS NOT NULL";
    assert_eq!(f.number(published).await, 20);
}

/// What it did not come to may be there.
#[tokio::test]
async fn a_sweep_stopped_between_batches_republishes_nothing_until_the_next_sweep() {
    let f = Fixture::new().await;
    let ids: [_; 7] = parked_ids(&f).await;
    purge(&f).await;
    put_all(&f, &ids[1..]).await;
    put_all(&f, &ids[1..]).await;
    let (link, publisher) = (f.link.clone(), f.publisher.clone());
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let first = Sweep::new(f.store(), link, publisher, Arc::default(), stop);
    let first = first.with_batch(BATCH);
    // In its second batch it waits for the transaction that writes the same row.
    let other = f.db.other_store().unwrap();
    let mut same = other.pool().begin().await.unwrap();
    sqlx::query("INSERT INTO sexton.sweep_kept VALUES (to_timestamp(1800000100), $1)")
        .bind(ids[4].get())
        .execute(&mut *same)
        .await
        .unwrap();
    let stopping = async {
        waits_for_a_lock(&f, "sweep_keeps").await;
        stopping.cancel();
        same.rollback().await.unwrap();
    };
    let (tally, ()) = tokio::join!(pass_of(&first), stopping);
    assert_eq!(tally, Tally { kept: 6, ..Tally::default() });
    assert_eq!(f.state(ids[0]).await, "failed/1");
    let tally = pass_in_batches(&f).await;
    assert_eq!((tally.kept, tally.marked_unpublished, tally.complete), (6, 1, true));
    assert_eq!(f.ready(&f.namespace.failed()).await, 6);
}

async fn lock(f: &Fixture, seconds: i64) -> ExclusiveLock {
    let lock = ExclusiveLock::try_acquire(&f.store(), ExclusiveTask::Sweep, now(seconds)).await;
    lock.unwrap().expect("nobody else has it")
}

async fn mark_lost_tickets(f: &Fixture, pass: &ExclusiveLock) -> Option<u64> {
    lost_since(f, pass.acquired_at()).await
}

async fn lost_since(f: &Fixture, began: DateTime<Utc>) -> Option<u64> {
    let store = f.store();
    let owing = mark_unseen_unpublished(&store, began, false, ScanPosition::START, 100, now(500));
    owing.await.unwrap().map(|UnpublishedScan { unpublished, .. }| unpublished)
}

/// As when the server crashed: an unlogged table is empty then.
#[tokio::test]
async fn a_sweep_that_lost_its_state_reports_no_message_missing() {
    let f = Fixture::new().await;
    let [a, _] = parked_ids(&f).await;
    let pass = lock(&f, 100).await;
    begin_pass(&f.store(), pass.acquired_at()).await.unwrap();
    record_kept(&f.store(), pass.acquired_at(), &[a]).await.unwrap();
    sqlx::query("TRUNCATE sexton.sweep_kept").execute(f.db.pool()).await.unwrap();
    assert_eq!(mark_lost_tickets(&f, &pass).await, Some(0));
    begin_pass(&f.store(), pass.acquired_at()).await.unwrap();
    record_kept(&f.store(), pass.acquired_at(), &[a]).await.unwrap();
    assert_eq!(mark_lost_tickets(&f, &pass).await, Some(1));
}

/// A process that was frozen for longer than its lock lives wakes up while another makes a pass.
#[tokio::test]
async fn a_frozen_sweep_neither_hides_messages_from_the_next_nor_republishes_any() {
    let f = Fixture::new().await;
    let [a, b] = parked_ids(&f).await;
    let frozen = lock(&f, 100).await;
    begin_pass(&f.store(), frozen.acquired_at()).await.unwrap();
    record_kept(&f.store(), frozen.acquired_at(), &[a]).await.unwrap();
    let frozen_began = frozen.acquired_at();
    frozen.release().await.unwrap();
    let mut next = lock(&f, 200).await;
    begin_pass(&f.store(), next.acquired_at()).await.unwrap();
    record_kept(&f.store(), frozen_began, &[b]).await.unwrap();
    let rows = sexton_store::parked_messages::read_rows(&mut next, &[a, b]).await.unwrap();
    assert!(rows.len() == 2 && rows.values().all(|row| !row.kept), "{rows:?}");
    assert_eq!(lost_since(&f, frozen_began).await, Some(0));
    record_kept(&f.store(), next.acquired_at(), &[a]).await.unwrap();
    assert_eq!(mark_lost_tickets(&f, &next).await, Some(1));
}
