//! However much is kept, what can go goes; and nothing waits for anything else.

use std::time::Duration;

use chrono::{Days, TimeDelta};
use sexton_model::state::State;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_scheduler::maintenance::pruner::{PruneCounts, Pruner, PrunerReport};
use sexton_store::{Store, StoreOptions};
use sexton_tests::factory::NewExecution;
use tokio_util::sync::CancellationToken;

use super::{RETENTION, prune, pruned, pruner};
use crate::scheduler::{Fixture, at};

/// Rows that are kept for each of two reasons.
const KEPT_ROWS: i64 = 20_000;
/// Rows behind them that are to go.
const OLD: i64 = 100;

/// So many executions that ended so many seconds after the beginning, each at an instant of its own.
async fn ended(f: &Fixture, state: &'static str, own_key: bool, count: i64, seconds: i64) {
    let job = f.ids("SELECT id FROM sexton.jobs").await.first().copied();
    let job = if let Some(job) = job { job } else { f.any_job().await.get() };
    sqlx::query(
        "INSERT INTO sexton.executions (id, job_id, execution_key, own_key, scheduled_for, state, task_type, pool,
             params, idempotency_key, claimed_by, claimed_at, relay_after, finished_at, outcome)
         SELECT gen_random_uuid(), $1, $2 || '-' || $3::boolean || '-' || n, $3::boolean, t, $2, 'work', 'default', '{}', 'k', 'test:1', t, t, t, 'x'
         FROM generate_series(1, $4) n, LATERAL (SELECT $5::timestamptz + n * interval '1 ms' AS t) t",
    )
    .bind(job)
    .bind(state)
    .bind(own_key)
    .bind(count)
    .bind(at(seconds))
    .execute(f.db.pool())
    .await
    .unwrap();
}

/// How many rows of `executions` were read by anybody so far, of those whose sessions have ended.
async fn read_rows(f: &Fixture) -> i64 {
    f.number(
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE schemaname = 'sexton' AND relname = 'executions'",
    )
    .await
}

/// A pass by a process of its own, whose sessions have ended: so the server has counted what it read.
async fn pass(f: &Fixture, days: u64) -> (PruneCounts, i64) {
    let before = read_rows(f).await;
    let mut options = StoreOptions::new(f.db.url(), "sexton pruning process");
    options.pool_size = 1;
    let store = Store::open(&options).unwrap();
    let pruner = Pruner::new(store.clone(), RETENTION, CancellationToken::new());
    let done = pruner.run_once(Some(at(0) + Days::new(days))).await.unwrap();
    let PrunerReport::Pass(done) = done else { panic!("a pass was due") };
    store.close().await;
    let there = "SELECT count(*) FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = 'sexton pruning process'";
    let deadline = tokio::time::Instant::now() + Duration::from_mins(1);
    while f.number(there).await > 0 {
        assert!(tokio::time::Instant::now() < deadline, "its sessions have not ended");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    (done, read_rows(f).await - before)
}

/// Failed rows, and those of keys whose time is not over, lie before what can go. They are read once at the most, and
/// the pool of one connection shows that a pass keeps none of it for itself.
#[tokio::test]
async fn retention_does_not_reread_kept_rows_every_night() {
    let f = Fixture::without_broker().await;
    ended(&f, "failed", false, KEPT_ROWS, 0).await;
    ended(&f, "succeeded", true, KEPT_ROWS, 100).await;
    ended(&f, "cancelled", false, OLD, 200).await;
    // The second night's: a day younger.
    ended(&f, "succeeded", false, OLD, 86_400).await;
    sqlx::query("ANALYZE sexton.executions").execute(f.db.pool()).await.unwrap();
    let (first, read) = pass(&f, 31).await;
    assert_eq!((first.deleted, first.complete), (OLD as u64, true));
    // The keys', once; what goes is read to be chosen, and to be removed.
    assert!(read < KEPT_ROWS + 10 * OLD, "{read} rows were read");
    let (second, read) = pass(&f, 32).await;
    assert_eq!((second.deleted, second.complete), (OLD as u64, true));
    assert!(read < 10 * OLD, "{read} rows were read for {OLD}, with {KEPT_ROWS} kept before them");
    assert_eq!(f.number("SELECT count(*) FROM sexton.executions").await, 2 * KEPT_ROWS);
}

#[tokio::test]
async fn retention_removes_late_discards_and_resolutions_in_time() {
    let f = Fixture::without_broker().await;
    ended(&f, "failed", false, 2, 0).await;
    ended(&f, "succeeded", false, 10, 60).await;
    assert_eq!(pruned(&f, 31).await.deleted, 10);
    sqlx::query("UPDATE sexton.executions SET state = 'succeeded', finished_at = $1")
        .bind(at(0) + Days::new(40))
        .execute(f.db.pool())
        .await
        .unwrap();
    assert_eq!(pruned(&f, 60).await.deleted, 0);
    assert_eq!(pruned(&f, 71).await.deleted, 2);
}

/// Twenty batches of executions, and one of each of the others: they do not wait for them.
#[tokio::test]
async fn a_large_table_delays_no_other_table_in_retention() {
    let f = Fixture::without_broker().await;
    ended(&f, "succeeded", false, 20_000, 0).await;
    for statement in [
        "INSERT INTO sexton.gaps (job_id, first_firing, last_firing, count, reason, recorded_at)
         SELECT id, $1, $1, 1, 'coalesced', $1 FROM sexton.jobs",
        "INSERT INTO sexton.instances (id, kind, name, pid, version, started_at, heartbeat_at)
         VALUES (gen_random_uuid(), 'worker', 'old', 1, '0', $1, $1)",
        "INSERT INTO sexton.holds (reason, last_seen, noticed_at, noticed_by, released_at, released_by, released_as)
         VALUES ('forward', $1, $1, 's1:1', $1, 'ann', 'released')",
        "INSERT INTO sexton.bulks (kind, selector, previewed_at, actor, state, created_at, ended_at)
         VALUES ('discard', '{}', $1, 'ann', 'done', $1, $1)",
    ] {
        sqlx::query(statement).bind(at(0)).execute(f.db.pool()).await.unwrap();
    }
    let stop = CancellationToken::new();
    let stopped = Pruner::new(f.store(), RETENTION, stop.clone());
    let passing = stopped.run_once(Some(at(0) + Days::new(31)));
    let others =
        "SELECT (SELECT count(*) FROM sexton.gaps) + (SELECT count(*) FROM sexton.instances)
                       + (SELECT count(*) FROM sexton.holds) + (SELECT count(*) FROM sexton.bulks)";
    let stopping = async {
        while f.number(others).await > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
    };
    let both = async { tokio::join!(passing, stopping) };
    let (passed, ()) = tokio::time::timeout(Duration::from_mins(2), both).await.unwrap();
    let PrunerReport::Pass(done) = passed.unwrap() else { panic!("a pass was due") };
    assert!(!done.complete && done.other == 4, "{done:?}");
    assert!(f.number("SELECT count(*) FROM sexton.executions").await > 10_000);
}

#[tokio::test]
async fn an_unremovable_row_is_retried_and_delays_no_other_table() {
    let f = Fixture::without_broker().await;
    ended(&f, "succeeded", false, 10, 0).await;
    sqlx::raw_sql(
        "INSERT INTO sexton.instances (id, kind, name, pid, version, started_at, heartbeat_at)
         VALUES (gen_random_uuid(), 'worker', 'old', 1, '0', '2020-01-01', '2020-01-01');
         CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''not now''; END';
         CREATE TRIGGER refuse BEFORE DELETE ON sexton.executions EXECUTE FUNCTION refuse()",
    )
    .execute(f.db.pool())
    .await
    .unwrap();
    let (pruner, time) = (pruner(&f), at(0) + Days::new(31));
    assert!(pruner.run_once(Some(time)).await.is_err());
    assert_eq!(f.number("SELECT count(*) FROM sexton.instances").await, 0);
    assert_eq!(f.number("SELECT count(*) FROM sexton.executions").await, 10);
    sqlx::raw_sql("DROP TRIGGER refuse ON sexton.executions").execute(f.db.pool()).await.unwrap();
    let again = pruner.run_once(Some(time + TimeDelta::minutes(1))).await.unwrap();
    let expected = PruneCounts { deleted: 10, complete: true, ..PruneCounts::default() };
    assert_eq!(again, PrunerReport::Pass(expected), "and only what is left");
}

#[tokio::test]
async fn retention_skips_locked_rows_until_the_next_night() {
    let f = Fixture::without_broker().await;
    let job = f.any_job().await;
    let mut ids = Vec::new();
    for (second, own_key) in [(1, true), (2, true), (3, true), (4, false), (5, false)] {
        let mut one = NewExecution::new(job, State::Succeeded, at(second));
        one.own_key = own_key;
        one.params = serde_json::json!({"customer": second});
        ids.push(f.insert(one).await.get());
    }
    let mut other = f.db.pool().begin().await.unwrap();
    sqlx::query("SELECT FROM sexton.executions WHERE id = ANY ($1) FOR UPDATE")
        .bind(vec![ids[1], ids[3]])
        .execute(&mut *other)
        .await
        .unwrap();
    let first = pruned(&f, 31).await;
    assert_eq!((first.deleted, first.stripped), (1, 2));
    other.rollback().await.unwrap();
    let second = pruned(&f, 32).await;
    assert_eq!((second.deleted, second.stripped), (1, 1));
    assert_eq!(pruned(&f, 33).await.stripped, 0);
}

/// A clock that was a year ahead has had its pass; put back, nights go on as ever.
#[tokio::test]
async fn retention_survives_a_clock_that_is_set_back() {
    let f = Fixture::without_broker().await;
    ended(&f, "succeeded", true, 1, 0).await;
    pruned(&f, 365).await;
    sqlx::query("UPDATE sexton.retention SET stripped_at = $1")
        .bind(at(0) + Days::new(335))
        .execute(f.db.pool())
        .await
        .unwrap();
    ended(&f, "cancelled", false, 1, 60).await;
    sqlx::raw_sql("UPDATE sexton.executions SET params = '{\"a\": 1}'")
        .execute(f.db.pool())
        .await
        .unwrap();
    let done = pruned(&f, 31).await;
    assert_eq!((done.deleted, done.stripped), (1, 1));
}

#[tokio::test]
async fn a_shorter_retention_counts_at_once_and_a_longer_one_from_the_next_night_on() {
    let f = Fixture::without_broker().await;
    ended(&f, "succeeded", false, 1, 0).await;
    let time = Some(at(0) + Days::new(20));
    assert_eq!(pruned(&f, 20).await.deleted, 0);
    let shorter = sexton_store::retention::RetentionPolicy { days: 10, audit_days: Some(400) };
    let shorter = Pruner::new(f.store(), shorter, CancellationToken::new());
    let PrunerReport::Pass(done) = shorter.run_once(time).await.unwrap() else {
        panic!("it is due")
    };
    assert_eq!(done.deleted, 1);
    assert!(matches!(prune(&f, 20).await, PrunerReport::NotDue(_)));
}
