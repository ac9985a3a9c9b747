//! The planner: each firing once, whatever happens around it.

use std::sync::Arc;
use std::time::Duration;

use sexton_model::state::State;
use sexton_scheduler::background_loop::BackgroundLoop;
use sexton_scheduler::planner::Planner;
use sexton_store::StoreError;
use sexton_tests::factory::NewJob;
use sqlx::AssertSqlSafe;
use tokio::sync::Barrier;

use super::{Fixture, PATIENCE, at, now};

/// `count` jobs that fire every minute, due at second 0.
async fn due_jobs(f: &Fixture, count: u32) {
    let insert = format!(
        "INSERT INTO sexton.jobs (id, name, schedule_kind, schedule_expression, task_type, params, pool,
             overlap, misfire_policy, misfire_window_ms, misfire_limit, timeout_ms, next_fire_at,
             created_at, updated_at)
         SELECT gen_random_uuid(), 'job' || n, 'cron', '* * * * *', 'work', '{{}}', 'default',
             'allow', 'fire_once', 86400000, 100, 60000, to_timestamp(1800000000), now(), now()
         FROM generate_series(1, {count}) n"
    );
    sqlx::query(AssertSqlSafe(insert)).execute(f.db.pool()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_planners_at_once_claim_each_firing_once() {
    let f = Fixture::without_broker().await;
    due_jobs(&f, 3_000).await;
    let barrier = Arc::new(Barrier::new(2));
    let run = async |name: &str| {
        let (dispatch, _dispatcher) =
            sexton_scheduler::publish::dispatch::dispatch(Arc::clone(&f.outbox));
        let planner = Planner::new(f.db.other_store().unwrap(), dispatch, name);
        barrier.wait().await;
        planner.run_once(now(0)).await.unwrap().claimed
    };
    let (one, two) = tokio::join!(run("one:1"), run("two:2"));
    assert_eq!(one + two, 3_000, "{one} and {two}");
    assert_eq!(f.number("SELECT count(*) FROM sexton.executions").await, 3_000);
    let keys =
        "SELECT count(*) FROM sexton.executions WHERE execution_key = 'cron-2027-01-15T08:00:00Z'";
    assert_eq!(f.number(keys).await, 3_000);
    let left = "SELECT count(*) FROM sexton.jobs WHERE next_fire_at <> to_timestamp(1800000060)";
    assert_eq!(f.number(left).await, 0, "every cursor moved on by one firing");
}

#[tokio::test]
async fn a_planner_whose_cursor_was_set_back_claims_nothing_twice() {
    let f = Fixture::new().await;
    due_jobs(&f, 3).await;
    let (planner, mut dispatcher) = f.planner();
    assert_eq!(planner.run_once(now(0)).await.unwrap().claimed, 3);
    dispatcher.publish_next(now(0)).await.unwrap().unwrap();
    sqlx::query("UPDATE sexton.jobs SET next_fire_at = to_timestamp(1800000000)")
        .execute(f.db.pool())
        .await
        .unwrap();
    let again = planner.run_once(now(0)).await.unwrap();
    assert_eq!((again.claimed, again.known), (0, 3));
    assert!(dispatcher.publish_next(now(0)).await.is_none());
    assert_eq!(f.tickets().await.len(), 3);
}

#[tokio::test]
async fn the_claimer_publishes_and_marks_its_tickets_without_the_relay() {
    let f = Fixture::new().await;
    due_jobs(&f, 3).await;
    let (planner, mut dispatcher) = f.planner();
    let report = planner.run_once(now(0)).await.unwrap();
    assert_eq!((report.claimed, report.left_to_relay), (3, 0));
    let (sent, marked) = dispatcher.publish_next(now(0)).await.unwrap().unwrap();
    assert_eq!((sent.published.len(), marked), (3, 3));
    assert_eq!(f.tickets().await.len(), 3);
    assert_eq!(f.relay().run_once(now(60)).await.unwrap().taken, 0);
}

#[tokio::test]
async fn a_crash_between_claim_and_publish_leaves_a_ticket_that_the_relay_publishes_once() {
    let f = Fixture::new().await;
    due_jobs(&f, 1).await;
    let (planner, dispatcher) = f.planner();
    drop(dispatcher);
    let report = planner.run_once(now(0)).await.unwrap();
    assert_eq!((report.claimed, report.left_to_relay), (1, 1));
    assert_eq!(f.relay().run_once(now(4)).await.unwrap().taken, 0, "its claimer has a head start");
    assert_eq!(f.relay().run_once(now(5)).await.unwrap().marked, 1);
    assert_eq!(f.relay().run_once(now(60)).await.unwrap().taken, 0);
    assert_eq!(f.tickets().await.len(), 1);
}

#[tokio::test]
async fn a_crash_between_publish_and_mark_publishes_the_same_ticket_again() {
    let f = Fixture::new().await;
    due_jobs(&f, 1).await;
    let (planner, mut dispatcher) = f.planner();
    planner.run_once(now(0)).await.unwrap();
    dispatcher.publish_next(now(0)).await.unwrap().unwrap();
    sqlx::query("UPDATE sexton.executions SET ticket_published_at = NULL")
        .execute(f.db.pool())
        .await
        .unwrap();
    f.relay().run_once(now(5)).await.unwrap();
    let tickets = f.tickets().await;
    assert_eq!(tickets.len(), 2);
    assert_eq!(tickets[0], tickets[1], "two copies of one ticket open one attempt");
}

#[tokio::test]
async fn claiming_continues_without_a_broker_and_the_rows_keep_their_unpublished_tickets() {
    let f = Fixture::without_broker().await;
    due_jobs(&f, 20).await;
    let (planner, _dispatcher) = f.planner();
    let report = planner.run_once(now(0)).await.unwrap();
    assert_eq!((report.claimed, report.left_to_relay), (20, 20));
    assert!(f.relay().run_once(now(60)).await.is_err(), "the relay does not even try");
    assert_eq!(
        f.number("SELECT count(*) FROM sexton.executions WHERE relay_after > now()").await,
        20
    );
    let back = Fixture::new().await;
    let publisher = sexton_broker::Publisher::start(&back.link, 1);
    let outbox =
        sexton_scheduler::publish::outbox::Outbox::new(f.store(), back.link.clone(), publisher);
    let relay = sexton_scheduler::publish::relay::Relay::new(f.store(), Arc::new(outbox));
    let relay = relay.confirm_wait(PATIENCE).mark_delay(Duration::ZERO);
    assert_eq!(relay.run_once(now(61)).await.unwrap().marked, 20);
    assert_eq!(back.tickets().await.len(), 20);
}

#[tokio::test]
async fn a_firing_during_an_execution_is_skipped_with_the_reason_under_overlap_skip() {
    let f = Fixture::without_broker().await;
    let mut job = NewJob::new("the.job").cron("* * * * *", at(0));
    job.overlap = "skip";
    f.job(job).await;
    f.execution(State::Running, -60).await;
    let (planner, _dispatcher) = f.planner();
    let report = planner.run_once(now(0)).await.unwrap();
    assert_eq!((report.claimed, report.skipped), (0, 1));
    let skipped = "SELECT count(*) FROM sexton.executions WHERE state = 'skipped' AND skip_reason = 'overlap'";
    assert_eq!(f.number(skipped).await, 1);
}

#[tokio::test]
async fn firings_missed_in_an_absence_become_one_execution_and_a_gap() {
    let f = Fixture::without_broker().await;
    f.job(NewJob::new("the.job").cron("* * * * *", at(0))).await;
    let (planner, _dispatcher) = f.planner();
    // An hour later: 61 firings, the last of them on time.
    let report = planner.run_once(now(3_600)).await.unwrap();
    assert_eq!((report.claimed, report.missed), (2, 59));
    assert_eq!(
        f.number("SELECT count::bigint FROM sexton.gaps WHERE reason = 'coalesced'").await,
        59
    );
    assert_eq!(planner.run_once(now(3_600)).await.unwrap().claimed, 0);
}

#[tokio::test]
async fn unplannable_jobs_stop_no_other_job_and_stay_unchanged() {
    let f = Fixture::without_broker().await;
    // Applied first, they come first in every batch.
    f.job(NewJob::new("a.noCron").cron("often", at(0))).await;
    let mut bad_pool = NewJob::new("a.noPool").cron("* * * * *", at(0));
    bad_pool.pool = "Not A Pool".to_owned();
    f.job(bad_pool).await;
    f.job(NewJob::new("b.good").cron("* * * * *", at(0))).await;
    sqlx::query("UPDATE sexton.jobs SET params = '{\"x\": 1e999}' WHERE name = 'a.noPool'")
        .execute(f.db.pool())
        .await
        .unwrap();
    let (planner, _dispatcher) = f.planner();
    let report = planner.run_once(now(0)).await.unwrap();
    assert_eq!((report.claimed, report.quarantined), (1, 2));
    let again = planner.run_once(now(0)).await.unwrap();
    assert_eq!(again.quarantined, 0, "set aside, they are not looked at in each round");
    assert!(again.sleep > Duration::from_millis(100), "nor do they keep it awake");
    let untouched = "SELECT count(*) FROM sexton.jobs WHERE name LIKE 'a.%' AND status = 'active'
                     AND next_fire_at = to_timestamp(1800000000) AND revision = 1";
    assert_eq!(f.number(untouched).await, 2);

    sqlx::query("UPDATE sexton.jobs SET schedule_expression = '* * * * *' WHERE name = 'a.noCron'")
        .execute(f.db.pool())
        .await
        .unwrap();
    planner.release_quarantine();
    assert_eq!(planner.run_once(now(0)).await.unwrap().claimed, 1, "corrected, it fires");
}

#[tokio::test]
async fn a_job_whose_row_the_database_refuses_to_claim_is_found_and_set_aside() {
    let f = Fixture::without_broker().await;
    due_jobs(&f, 5).await;
    // A rule of somebody else's that one job's rows break.
    sqlx::query(
        "ALTER TABLE sexton.executions ADD CONSTRAINT no_third CHECK (idempotency_key NOT LIKE 'job3:%')",
    )
    .execute(f.db.pool())
    .await
    .unwrap();
    let (planner, _dispatcher) = f.planner();
    let report = planner.run_once(now(0)).await.unwrap();
    assert_eq!((report.claimed, report.quarantined), (4, 1));
    assert_eq!(
        f.number("SELECT count(*) FROM sexton.jobs WHERE next_fire_at <= to_timestamp(1800000000)")
            .await,
        1
    );
}

#[tokio::test]
async fn the_planner_sleeps_until_the_next_firing_by_the_database_clock() {
    let f = Fixture::without_broker().await;
    f.job(NewJob::new("the.job").cron("* * * * *", at(2))).await;
    let (planner, _dispatcher) = f.planner();
    let sleep = planner.run_once(now(0)).await.unwrap().sleep;
    assert!(sleep.as_millis() <= 2_000 && sleep.as_millis() > 1_000, "{sleep:?}");
}

#[tokio::test]
async fn a_job_that_falls_due_during_a_round_is_claimed_at_once() {
    let f = Fixture::without_broker().await;
    due_jobs(&f, 2).await;
    for statement in [
        // Once a year besides, so that no minute that begins meanwhile adds a firing.
        "UPDATE sexton.jobs SET schedule_expression = '0 0 1 1 *', next_fire_at = now() + CASE name
             WHEN 'job1' THEN interval '0' ELSE interval '1 second' END",
        // The round outlasts the second job's waiting.
        "CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS
             'BEGIN PERFORM pg_sleep(1.5); RETURN NULL; END'",
        "CREATE TRIGGER dawdle AFTER INSERT ON sexton.executions EXECUTE FUNCTION dawdle()",
    ] {
        sqlx::query(statement).execute(f.db.pool()).await.unwrap();
    }
    let (planner, _dispatcher) = f.planner();
    let first = planner.run_once(None).await.unwrap();
    assert_eq!((first.claimed, first.sleep), (1, Duration::ZERO));
    assert_eq!(planner.run_once(None).await.unwrap().claimed, 1);
}

#[tokio::test]
async fn jobs_locked_by_another_planner_do_not_make_the_planner_spin() {
    let f = Fixture::without_broker().await;
    due_jobs(&f, 1).await;
    let mut other = f.db.pool().begin().await.unwrap();
    sqlx::query("SELECT FROM sexton.jobs FOR UPDATE").execute(&mut *other).await.unwrap();
    let (planner, _dispatcher) = f.planner();
    let report = planner.run_once(now(0)).await.unwrap();
    assert_eq!((report.claimed, report.sleep), (0, Duration::from_millis(50)));
}

#[tokio::test]
async fn a_missing_schema_is_an_outage_with_a_remedy() {
    let f = Fixture::without_broker().await;
    sqlx::query("DROP TABLE sexton.jobs CASCADE").execute(f.db.pool()).await.unwrap();
    let (planner, _dispatcher) = f.planner();
    let error = planner.run_once(now(0)).await.unwrap_err();
    let sexton_scheduler::background_loop::LoopError::Store(error) = error else {
        panic!("{error}")
    };
    assert!(matches!(error, StoreError::Schema(_)));
    assert!(error.to_string().contains("sexton migrate"), "{error}");
}

/// The whole batch takes twelve seconds here, and an answer is waited for for ten.
#[tokio::test]
async fn a_batch_too_large_for_a_slow_database_is_claimed_in_smaller_batches() {
    let f = Fixture::without_broker().await;
    due_jobs(&f, 120).await;
    let slow = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
                    'BEGIN PERFORM pg_sleep(0.1); RETURN NEW; END';
                CREATE TRIGGER slow BEFORE INSERT ON sexton.executions
                    FOR EACH ROW EXECUTE FUNCTION slow()";
    sqlx::raw_sql(slow).execute(f.db.pool()).await.unwrap();
    let (planner, _dispatcher) = f.planner();
    let error = planner.run_once(now(0)).await.expect_err("all at once");
    assert!(error.to_string().contains("no answer within 10 s"), "{error}");
    let in_the_end = async {
        while f.number("SELECT count(*) FROM sexton.executions").await < 120 {
            // The first rounds find the jobs locked until the batch is given up.
            let _ = planner.run_once(now(0)).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(3), in_the_end).await.expect("all in the end");
}
