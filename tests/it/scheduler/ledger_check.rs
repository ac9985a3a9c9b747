//! Firings without a record are found, remembered, and forgotten once they have one.

use chrono::TimeDelta;
use sexton_model::id::ExecutionId;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_scheduler::maintenance::ledger_check::{LedgerCheck, LedgerCheckReport};
use sexton_store::backfill::{Backfill, create_batch};
use sexton_store::operator::AuditContext;
use sexton_store::readings;
use sexton_tests::factory::NewJob;
use uuid::Uuid;

use super::{Fixture, at, now};

const FIVE_MINUTES: &str = "*/5 * * * *";

/// Claims what is due up to an instant.
async fn plan(f: &Fixture, seconds: i64) {
    let (planner, _dispatcher) = f.planner();
    planner.run_once(now(seconds)).await.unwrap();
}

async fn check(f: &Fixture, seconds: i64) -> LedgerCheckReport {
    LedgerCheck::new(f.store()).run_once(now(seconds)).await.unwrap()
}

/// The jobs were made now, which is long before the instants of the test.
async fn begin(f: &Fixture) {
    let begin = "UPDATE sexton.ledger_checks SET checked_until = to_timestamp(1799999999)";
    sqlx::query(begin).execute(f.db.pool()).await.unwrap();
}

async fn known(f: &Fixture, seconds: i64) -> i64 {
    readings::read(&f.store(), now(seconds)).await.unwrap().unaccounted_firings
}

#[tokio::test]
async fn a_firing_whose_row_is_gone_is_counted_until_a_backfill() {
    let f = Fixture::without_broker().await;
    f.job(NewJob::new("a.b").cron(FIVE_MINUTES, at(0))).await;
    f.job(NewJob::new("by.hand")).await;
    begin(&f).await;
    for seconds in [1, 301, 601] {
        plan(&f, seconds).await;
    }
    let removed = f.number(
        "WITH gone AS (DELETE FROM sexton.executions WHERE scheduled_for = to_timestamp(1800000300) RETURNING 1)
         SELECT count(*) FROM gone",
    );
    assert_eq!(removed.await, 1);

    let report = check(&f, 700).await;
    assert_eq!((report.jobs, report.firings, report.unaccounted), (1, 3, 1), "{report:?}");
    assert_eq!(known(&f, 700).await, 1);
    assert_eq!(check(&f, 720).await.jobs, 0, "not twice within a minute");

    plan(&f, 901).await;
    let report = check(&f, 1_000).await;
    assert_eq!(
        (report.firings, report.unaccounted, report.recovered),
        (1, 0, 0),
        "only what is new"
    );
    assert_eq!(known(&f, 1_000).await, 1, "it is remembered");

    let request = Backfill {
        approved: None,
        job: "a.b",
        from: at(299),
        to: at(301),
        rate: None,
        allow_overlap: true,
        claimed_by: "test:1",
        dry_run: false,
    };
    let by = AuditContext { actor: "ann", reason: Some("lost") };
    let fresh = || ExecutionId::new(Uuid::now_v7());
    let batch = create_batch(&f.store(), request, None, fresh, by, now(1_010)).await.unwrap();
    assert_eq!(batch.firings.len(), 1);
    assert_eq!(check(&f, 1_020).await.recovered, 1);
    assert_eq!(known(&f, 1_020).await, 0);
}

#[tokio::test]
async fn what_is_due_or_paused_is_not_missing_and_a_long_absence_is_read_page_by_page() {
    let f = Fixture::without_broker().await;
    f.job(NewJob::new("a.b").cron("* * * * *", at(0))).await;
    begin(&f).await;
    plan(&f, 1).await;
    check(&f, 90).await;
    // No planner for two days: the cursor stands still, and nothing behind it is judged.
    let days = TimeDelta::days(2).num_seconds();
    let report = check(&f, days).await;
    assert_eq!((report.jobs, report.firings, report.unaccounted), (1, 0, 0), "{report:?}");
    plan(&f, days + 10).await;
    let mut checked = 0;
    for round in 1..=5 {
        let report = check(&f, days + 100 * round).await;
        assert_eq!(report.unaccounted, 0, "{report:?}");
        checked += report.firings;
    }
    assert!(checked >= 2_879, "{checked}: all of two days, at most a thousand at once");
}

#[tokio::test]
async fn one_scheduler_checks_at_a_time() {
    let f = Fixture::without_broker().await;
    f.job(NewJob::new("a.b").cron(FIVE_MINUTES, at(0))).await;
    begin(&f).await;
    plan(&f, 1).await;
    let mut holder = f.db.pool().begin().await.unwrap();
    sqlx::query("SELECT pg_advisory_xact_lock(1398297678, 4)").execute(&mut *holder).await.unwrap();
    assert_eq!(check(&f, 100).await, LedgerCheckReport::default());
    holder.rollback().await.unwrap();
    assert_eq!(check(&f, 100).await.jobs, 1);
}

#[tokio::test]
async fn only_jobs_with_a_schedule_are_checked() {
    let f = Fixture::without_broker().await;
    f.job(NewJob::new("a.b").cron(FIVE_MINUTES, at(0))).await;
    f.job(NewJob::new("by.hand")).await;
    let checked = "SELECT count(*) FROM sexton.ledger_checks";
    assert_eq!(f.number(checked).await, 1);
    for (change, wanted) in [
        ("schedule_kind = 'none', schedule_expression = NULL", 0),
        ("schedule_kind = 'every', schedule_expression = '5m'", 1),
        ("deleted_at = now(), deleted_name = name, name = '~x', status = 'paused', paused_at = now(),
          next_fire_at = NULL", 0),
    ] {
        let change = format!("UPDATE sexton.jobs SET {change} WHERE name = 'a.b'");
        sqlx::query(sqlx::AssertSqlSafe(change)).execute(f.db.pool()).await.unwrap();
        assert_eq!(f.number(checked).await, wanted);
    }
}

#[tokio::test]
async fn a_job_that_cannot_be_read_holds_up_no_other() {
    let f = Fixture::without_broker().await;
    f.job(NewJob::new("a.bad").cron(FIVE_MINUTES, at(0))).await;
    f.job(NewJob::new("a.good").cron(FIVE_MINUTES, at(0))).await;
    begin(&f).await;
    plan(&f, 301).await;
    let spoil =
        "UPDATE sexton.job_revisions SET definition = definition || '{\"overlap\": \"perhaps\"}'
         WHERE job_id = (SELECT id FROM sexton.jobs WHERE name = 'a.bad')";
    sqlx::query(spoil).execute(f.db.pool()).await.unwrap();
    let checked = LedgerCheck::new(f.store()).run_once(now(400)).await;
    assert!(checked.is_err(), "the round says that it could not check all: {checked:?}");
    let reached =
        "SELECT count(*) FROM sexton.ledger_checks c JOIN sexton.jobs j ON j.id = c.job_id
         WHERE j.name = 'a.good' AND c.checked_until >= to_timestamp(1800000301)";
    assert_eq!(f.number(reached).await, 1);
    let not_reached = "SELECT count(*) FROM sexton.ledger_checks
         WHERE checked_until = to_timestamp(1799999999) AND checked_at = to_timestamp(1800000400)";
    assert_eq!(f.number(not_reached).await, 1, "its firings are left for its next turn");
}

#[tokio::test]
async fn a_firing_without_a_record_is_forgotten_after_a_month() {
    let f = Fixture::without_broker().await;
    f.job(NewJob::new("a.b").cron(FIVE_MINUTES, at(0))).await;
    begin(&f).await;
    plan(&f, 1).await;
    sqlx::query("DELETE FROM sexton.executions").execute(f.db.pool()).await.unwrap();
    assert_eq!(check(&f, 100).await.unaccounted, 1);
    let days = |days: i64| TimeDelta::days(days).num_seconds();
    check(&f, days(29)).await;
    assert_eq!(known(&f, days(29)).await, 1);
    check(&f, days(31)).await;
    assert_eq!(known(&f, days(31)).await, 0);
}
