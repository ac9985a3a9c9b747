//! The pruner: what goes, what stays, and when.

mod audit;
mod cursors;
mod heartbeats;
mod jobs;

use chrono::{Days, TimeDelta};
use serde_json::json;
use sexton_model::id::ExecutionId;
use sexton_model::state::State;
use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_scheduler::maintenance::pruner::{PruneCounts, Pruner, PrunerReport};
use sexton_store::exclusive_lock::{ExclusiveLock, ExclusiveTask};
use sexton_store::retention::RetentionPolicy;
use sexton_tests::factory::NewExecution;
use tokio_util::sync::CancellationToken;

use super::{Fixture, at};

const RETENTION: RetentionPolicy = RetentionPolicy { days: 30, audit_days: Some(400) };

fn pruner(f: &Fixture) -> Pruner {
    Pruner::new(f.store(), RETENTION, CancellationToken::new())
}

/// One round, so many days after the beginning, by a process that has just started.
async fn prune(f: &Fixture, days: u64) -> PrunerReport {
    pruner(f).run_once(Some(at(0) + Days::new(days))).await.unwrap()
}

/// The same, where a pass is due.
async fn pruned(f: &Fixture, days: u64) -> PruneCounts {
    let PrunerReport::Pass(pruned) = prune(f, days).await else { panic!("a pass was due") };
    pruned
}

fn is_quiet(prunes: PrunerReport) -> bool {
    matches!(prunes, PrunerReport::NotDue(_))
}

async fn remaining(f: &Fixture, id: ExecutionId) -> bool {
    let row = sqlx::query("SELECT FROM sexton.executions WHERE id = $1").bind(id.get());
    row.fetch_optional(f.db.pool()).await.unwrap().is_some()
}

#[tokio::test]
async fn retention_removes_finished_executions_and_never_failed_ones() {
    let f = Fixture::without_broker().await;
    let mut ids = Vec::new();
    for state in State::ALL {
        ids.push((state, f.execution(state, 0).await));
    }
    assert_eq!(pruned(&f, 30).await.deleted, 0, "they are not older than 30 days");
    let pruned = pruned(&f, 31).await;
    assert_eq!((pruned.deleted, pruned.stripped, pruned.complete), (4, 0, true));
    for (state, id) in ids {
        let gone = state.is_final() || state == State::Discarded;
        assert_eq!(remaining(&f, id).await, !gone, "{state:?}");
    }
}

#[tokio::test]
async fn an_own_key_still_deduplicates_after_its_row_was_stripped() {
    let f = Fixture::without_broker().await;
    let job = f.any_job().await;
    let mut execution = NewExecution::new(job, State::Succeeded, at(0));
    execution.own_key = true;
    execution.key = Some("customer-4891".to_owned());
    execution.params = json!({"customer": 4891});
    let id = f.insert(execution).await;
    sqlx::query(
        "INSERT INTO sexton.attempts (execution_id, number, worker_id, opened_at)
         VALUES ($1, 1, gen_random_uuid(), now())",
    )
    .bind(id.get())
    .execute(f.db.pool())
    .await
    .unwrap();
    sqlx::query("UPDATE sexton.executions SET result = '{\"sent\": true}'")
        .execute(f.db.pool())
        .await
        .unwrap();
    let PrunerReport::Pass(pruned) = prune(&f, 31).await else { panic!("a pass was due") };
    assert_eq!((pruned.deleted, pruned.stripped), (0, 1));
    assert_eq!(f.column(id, "result").await, None);
    assert_eq!(f.column(id, "params").await.as_deref(), Some("{}"));
    assert_eq!(f.column(id, "execution_key").await.as_deref(), Some("customer-4891"));
    assert_eq!(f.number("SELECT count(*) FROM sexton.all_attempts").await, 0);
    assert_eq!(self::pruned(&f, 32).await.stripped, 0, "stripped once");
    assert_eq!(self::pruned(&f, 401).await.deleted, 1, "after 400 days the key goes too");
}

#[tokio::test]
async fn retention_removes_more_rows_than_one_batch() {
    let f = Fixture::without_broker().await;
    let job = f.any_job().await;
    // Ids of version 7 of the instant, as the claim draws them.
    sqlx::query(
        "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool,
             params, idempotency_key, claimed_by, claimed_at, relay_after, finished_at)
         SELECT (substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-7' || substr(md5(n::text), 1, 3)
                 || '-8' || substr(md5(n::text), 4, 3) || '-' || substr(md5(n::text), 7, 12))::uuid,
             $1, n::text, $2, 'succeeded', 'work', 'default', '{}', n::text, 'test:1', $2, $2, $2
         FROM generate_series(1, 2500) n, lpad(to_hex(1800000000000), 12, '0') h",
    )
    .bind(job.get())
    .bind(at(0))
    .execute(f.db.pool())
    .await
    .unwrap();
    for follows in [
        "INSERT INTO sexton.attempts (execution_id, number, worker_id, opened_at)
         SELECT e.id, n, gen_random_uuid(), now() FROM sexton.executions e, generate_series(1, 2) n",
        "INSERT INTO sexton.attempt_output (execution_id, number, first_line, lines, bytes_before, bytes, from_at,
                                     to_at, content)
         SELECT execution_id, number, 1, 1, 0, 3, now(), now(), 'a' FROM sexton.all_attempts LIMIT 100",
    ] {
        sqlx::query(follows).execute(f.db.pool()).await.unwrap();
    }
    let PrunerReport::Pass(pruned) = prune(&f, 31).await else { panic!("a pass was due") };
    assert_eq!((pruned.deleted, pruned.complete), (2_500, true));
    assert_eq!(f.number("SELECT count(*) FROM sexton.all_attempts").await, 0);
    assert_eq!(f.number("SELECT count(*) FROM sexton.attempt_output").await, 0);
}

#[tokio::test]
async fn only_one_replica_prunes_at_a_time() {
    let f = Fixture::without_broker().await;
    let id = f.execution(State::Succeeded, 0).await;
    let other = f.db.other_store().unwrap();
    let lock = ExclusiveLock::try_acquire(&other, ExclusiveTask::Retention, None).await.unwrap();
    let lock = lock.expect("nobody else has it");
    let pruner = pruner(&f);
    let later = Some(at(0) + Days::new(31));
    assert_eq!(pruner.run_once(later).await.unwrap(), PrunerReport::LockedElsewhere);
    assert!(remaining(&f, id).await);
    // The other dies in the middle: this one makes it.
    lock.release().await.unwrap();
    assert!(matches!(pruner.run_once(later).await.unwrap(), PrunerReport::Pass(_)));
    assert!(is_quiet(pruner.run_once(later).await.unwrap()));
}

#[tokio::test]
async fn the_pruner_runs_once_at_three_in_the_morning() {
    let f = Fixture::without_broker().await;
    f.execution(State::Succeeded, 0).await;
    let pruner = pruner(&f);
    // The beginning is at 8:00; 19 hours later it is 3:00.
    let three = at(0) + Days::new(30) + TimeDelta::hours(19);
    let first = pruner.run_once(Some(three - Days::new(1))).await.unwrap();
    assert_eq!(first, PrunerReport::Pass(PruneCounts { complete: true, ..PruneCounts::default() }));
    let before = pruner.run_once(Some(three - TimeDelta::seconds(1))).await.unwrap();
    assert_eq!(before, PrunerReport::NotDue(three));
    assert!(is_quiet(prune(&f, 30).await), "nor by another process, started meanwhile");
    let made = pruner.run_once(Some(three)).await.unwrap();
    let expected = PruneCounts { deleted: 1, complete: true, ..PruneCounts::default() };
    assert_eq!(made, PrunerReport::Pass(expected));
    let again = pruner.run_once(Some(three)).await.unwrap();
    assert_eq!(again, PrunerReport::NotDue(three + Days::new(1)));
}

#[tokio::test]
async fn a_failed_prune_is_repeated_after_a_minute() {
    let f = Fixture::without_broker().await;
    let id = f.execution(State::Succeeded, 0).await;
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                      'BEGIN RAISE EXCEPTION ''not now''; END'";
    sqlx::query(refuse).execute(f.db.pool()).await.unwrap();
    sqlx::query(
        "CREATE TRIGGER refuse BEFORE DELETE ON sexton.executions EXECUTE FUNCTION refuse()",
    )
    .execute(f.db.pool())
    .await
    .unwrap();
    let pruner = pruner(&f);
    let time = at(0) + Days::new(31);
    assert!(pruner.run_once(Some(time)).await.is_err());
    sqlx::query("DROP TRIGGER refuse ON sexton.executions").execute(f.db.pool()).await.unwrap();
    let minute = time + TimeDelta::minutes(1);
    assert_eq!(pruner.run_once(Some(time)).await.unwrap(), PrunerReport::NotDue(minute));
    assert!(matches!(pruner.run_once(Some(minute)).await.unwrap(), PrunerReport::Pass(_)));
    assert!(!remaining(&f, id).await);
}

#[tokio::test]
async fn retention_removes_old_gaps_alone() {
    let f = Fixture::without_broker().await;
    let job = f.any_job().await;
    sqlx::query(
        "INSERT INTO sexton.gaps (job_id, first_firing, last_firing, count, reason, recorded_at)
         VALUES ($1, $2, $2, 1, 'coalesced', $2)",
    )
    .bind(job.get())
    .bind(at(0))
    .execute(f.db.pool())
    .await
    .unwrap();
    let PrunerReport::Pass(pruned) = prune(&f, 31).await else { panic!("a pass was due") };
    assert_eq!(pruned.other, 1);
    assert!(is_quiet(prune(&f, 31).await));
}

/// Bulks in these states that ended at the beginning (or have not), with so many items each.
async fn bulks(f: &Fixture, states: &[(&str, bool)], items: i64) {
    for (state, ended) in states {
        sqlx::query(
            "WITH b AS (
                INSERT INTO sexton.bulks (kind, selector, previewed_at, actor, state, selected, created_at, ended_at)
                VALUES ('discard', '{}', $1, 'ann', $2, $4, $1, CASE WHEN $3 THEN $1 END) RETURNING id)
             INSERT INTO sexton.bulk_items (bulk_id, ordinal, execution_id, seen, state)
             SELECT b.id, n, gen_random_uuid(), 1, 'done' FROM b, generate_series(1, $4) n",
        )
        .bind(at(0))
        .bind(*state)
        .bind(*ended)
        .bind(items)
        .execute(f.db.pool())
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn retention_removes_ended_bulks_with_their_items_and_no_others() {
    let f = Fixture::without_broker().await;
    let ended = [("done", true), ("stopped", true)];
    let open = [("preparing", false), ("running", false), ("paused", false)];
    bulks(&f, &ended, 1_300).await;
    bulks(&f, &open, 10).await;
    sqlx::query(
        "INSERT INTO sexton.operator_actions (at, actor, action, bulk_id) VALUES ($1, 'ann', 'bulk', 1)",
    )
    .bind(at(0))
    .execute(f.db.pool())
    .await
    .unwrap();
    assert_eq!(pruned(&f, 30).await.other, 0, "they are not older than 30 days");
    let pruned = pruned(&f, 31).await;
    assert_eq!((pruned.other, pruned.complete), (2_602, true));
    assert_eq!(f.number("SELECT count(*) FROM sexton.bulk_items").await, 30);
    assert_eq!(f.number("SELECT count(*) FROM sexton.bulks WHERE ended_at IS NULL").await, 3);
    assert_eq!(f.number("SELECT count(*) FROM sexton.bulks").await, 3);
    assert_eq!(
        f.number("SELECT count(*) FROM sexton.operator_actions").await,
        1,
        "the audit stays"
    );
    assert_eq!(self::pruned(&f, 32).await.other, 0);
}

#[tokio::test]
async fn a_prune_stopped_among_bulks_reports_itself_incomplete() {
    let f = Fixture::without_broker().await;
    // So many batches that they outlast the stop by far.
    bulks(&f, &[("stopped", true)], 60_000).await;
    let stop = CancellationToken::new();
    let stopped = Pruner::new(f.store(), RETENTION, stop.clone());
    let passing = stopped.run_once(Some(at(0) + Days::new(31)));
    let stopping = async {
        // What has lost a part of its items is not resumed any more.
        while f.number("SELECT count(*) FROM sexton.bulks WHERE state = 'done'").await == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        stop.cancel();
    };
    let both = async { tokio::join!(passing, stopping) };
    let (passed, ()) = tokio::time::timeout(std::time::Duration::from_mins(1), both).await.unwrap();
    let PrunerReport::Pass(pruned) = passed.unwrap() else { panic!("a pass was due") };
    assert!(!pruned.complete && (1..60_000).contains(&pruned.other), "{pruned:?}");
    // The next pruner goes on with the rest.
    let PrunerReport::Pass(pruned) = prune(&f, 31).await else { panic!("a pass was due") };
    assert!(pruned.complete);
    assert_eq!(f.number("SELECT count(*) FROM sexton.bulks").await, 0);
}
