//! What the list of jobs reads of a long history, where nearly all of it is of one job or of one instant.

use chrono::DateTime;
use sexton_model::id::JobId;
use sexton_model::state::State;
use sexton_store::jobs::count_failed_by_job;
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::NewExecution;

use super::plans::{
    Bind, HISTORY, LAST_EXECUTIONS, RECENT_STATES, RUN_TIMES, assert_reads_few, explain, nodes,
    ordinary_history, rows_passed,
};

const FAILED_BY_JOB: &str = include_str!("../../../shared/store/src/jobs/failed_by_job.sql");
/// Executions that were claimed at one instant.
const TOGETHER: i64 = 5_000;

#[tokio::test]
async fn of_executions_that_were_claimed_at_one_instant_no_more_are_read_than_are_shown() {
    let db = TestDatabase::create().await.unwrap();
    let jobs = ordinary_history(&db).await;
    // Not later than they ended.
    sqlx::query(
        "UPDATE sexton.executions SET claimed_at =
             (SELECT claimed_at FROM sexton.executions WHERE id = lpad(to_hex($1), 32, '0')::uuid)
         WHERE id > lpad(to_hex($1), 32, '0')::uuid",
    )
    .bind(HISTORY - TOGETHER)
    .execute(db.pool())
    .await
    .unwrap();
    sqlx::query(
        "INSERT INTO sexton.attempts (execution_id, number, worker_id, opened_at, finished_at, outcome)
         SELECT id, 1, gen_random_uuid(), claimed_at, claimed_at + '1s'::interval, 'succeeded'
         FROM sexton.executions",
    )
    .execute(db.pool())
    .await
    .unwrap();
    let analyze = "ANALYZE sexton.executions, sexton.attempts";
    sqlx::raw_sql(analyze).execute(db.pool()).await.unwrap();
    let bind: Bind<'_> = &|query| query.bind(jobs.clone()).bind(30_i64);
    assert_reads_few(&db, RECENT_STATES, 500.0, bind).await;
    let bind: Bind<'_> = &|query| query.bind(jobs.clone()).bind(200_i64);
    assert_reads_few(&db, RUN_TIMES, 700.0, bind).await;
    // The last one of them is the one with the highest id: these are compared, and nothing behind them.
    let bind: Bind<'_> = &|query| query.bind(jobs.clone());
    assert_reads_few(&db, LAST_EXECUTIONS, TOGETHER as f64 + 500.0, bind).await;
}

#[tokio::test]
async fn failed_executions_are_counted_up_to_a_limit_though_nearly_all_are_of_one_job() {
    let db = TestDatabase::create().await.unwrap();
    let jobs = ordinary_history(&db).await;
    // Without fingerprints, which are computed later, failures_by_time is the smaller index.
    sqlx::query(
        "UPDATE sexton.executions SET state = 'failed', outcome = 'failed', ticket_published_at = now()
         WHERE id < lpad(to_hex(12000), 32, '0')::uuid",
    )
    .execute(db.pool())
    .await
    .unwrap();
    for _ in 0..3 {
        let failed = NewExecution::new(JobId::new(jobs[1]), State::Failed, DateTime::UNIX_EPOCH);
        failed.insert(db.pool()).await.unwrap();
    }
    sqlx::query("ANALYZE sexton.failures").execute(db.pool()).await.unwrap();
    let bind: Bind<'_> = &|query| query.bind(jobs.clone()).bind(1_000_i64);
    let plan = explain(&db, FAILED_BY_JOB, true, bind).await;
    let scans = nodes(&plan, &|node| node["Relation Name"] == "failures");
    assert!(!scans.is_empty(), "{plan:#}");
    assert!(scans.iter().all(|scan| scan["Index Name"] == "failures_by_job"), "{plan:#}");
    // Rows of each loop are rounded.
    let read = rows_passed(&scans);
    assert!(read <= 1_003.0 + jobs.len() as f64, "{read} rows were read: {plan:#}");
    let counts = count_failed_by_job(db.store(), &jobs, 1_000).await.unwrap();
    assert_eq!(counts, [(jobs[0], 1_000), (jobs[1], 3)]);
}
