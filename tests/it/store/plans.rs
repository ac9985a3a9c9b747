//! What people ask of a long history reads few rows of it, whatever else is in the table.
//!
//! Asserted is the plan that PostgreSQL chose and the rows it passed by, not a time.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::id::JobId;
use sexton_model::state::State;
use sexton_store::executions::{self, ExecutionPosition, MAX_WALKED_EXECUTIONS as WALK, list};
use sexton_store::failures::aggregate;
use sexton_store::parked_messages::{FailedCounts, count_failed};
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::NewExecution;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Postgres, Row as _};
use uuid::Uuid;

const COUNT_FAILED: &str = include_str!("../../../shared/store/src/parked_messages/counts.sql");
pub(super) const LAST_EXECUTIONS: &str =
    include_str!("../../../shared/store/src/jobs/last_executions.sql");
const LOOK_FOR_WAITERS: &str = include_str!("../../../shared/store/src/tickets/waiters/look.sql");
const READ_RUNNING: &str = include_str!("../../../shared/store/src/attempts/running/page.sql");
pub(super) const RECENT_STATES: &str =
    include_str!("../../../shared/store/src/jobs/recent_states.sql");
pub(super) const RUN_TIMES: &str = include_str!("../../../shared/store/src/jobs/run_times.sql");
const INDEX: &str = "executions_of_job";
/// Rows of the history, all of one job.
pub(super) const HISTORY: i64 = 200_000;
/// Rows that one statement of a set-up inserts, so that a busy machine does not need its time limit.
const SET_UP_ROWS: usize = 10_000;

/// 201 jobs; the first has all the history, the others never ran. Returns their ids.
pub(super) async fn ordinary_history(db: &TestDatabase) -> Vec<Uuid> {
    let jobs: Vec<Uuid> = sqlx::query_scalar(
        "INSERT INTO sexton.jobs (id, name, schedule_kind, task_type, params, pool, overlap,
            misfire_policy, misfire_window_ms, misfire_limit, timeout_ms, created_at, updated_at)
         SELECT gen_random_uuid(), 'job.' || n, 'none', 'work', '{}', 'default', 'allow', 'skip', 0,
            1, 60000, now(), now()
         FROM generate_series(0, 200) n RETURNING id",
    )
    .fetch_all(db.pool())
    .await
    .unwrap();
    // Ids ascend with the time of the claim, as version 7 has it.
    let history = format!(
        "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool,
            params, idempotency_key, claimed_by, claimed_at, relay_after, finished_at)
         SELECT lpad(to_hex(n), 32, '0')::uuid, $1, n::text, at, 'succeeded', 'work', 'default',
            '{{}}', n::text, 'test:1', at, at, at
         FROM generate_series($2, $3) n, LATERAL (SELECT now() - (({HISTORY} - n) || 's')::interval AS at) t"
    );
    insert(db, &history, jobs[0], HISTORY).await;
    sqlx::query("ANALYZE sexton.executions, sexton.jobs").execute(db.pool()).await.unwrap();
    jobs
}

/// Inserts `rows` rows of a job with a statement that takes the first and the last number.
pub(super) async fn insert(db: &TestDatabase, statement: &str, job: Uuid, rows: i64) {
    for first in (1..=rows).step_by(SET_UP_ROWS) {
        let query = sqlx::query(AssertSqlSafe(statement.to_owned())).bind(job).bind(first);
        query.bind(first + SET_UP_ROWS as i64 - 1).execute(db.pool()).await.unwrap();
    }
}

pub(super) type Bind<'q> =
    &'q dyn Fn(Query<'q, Postgres, PgArguments>) -> Query<'q, Postgres, PgArguments>;

/// The plan of `sql`; run as well, with `analyze`.
pub(super) async fn explain(db: &TestDatabase, sql: &str, analyze: bool, bind: Bind<'_>) -> Value {
    let run = if analyze { "ANALYZE, TIMING OFF, " } else { "" };
    let query = sqlx::query(AssertSqlSafe(format!("EXPLAIN ({run}FORMAT JSON) {sql}")));
    let row = bind(query).fetch_one(db.pool()).await.unwrap();
    row.get::<Value, _>(0)[0]["Plan"].clone()
}

/// Every node of a plan that `is_scan` accepts.
pub(super) fn nodes<'a>(plan: &'a Value, is_scan: &dyn Fn(&Value) -> bool) -> Vec<&'a Value> {
    let inner = plan["Plans"].as_array().into_iter().flatten();
    let mut found: Vec<&Value> = inner.flat_map(|inner| nodes(inner, is_scan)).collect();
    if is_scan(plan) {
        found.push(plan);
    }
    found
}

/// Every node of a plan that reads `executions`.
fn scans(plan: &Value) -> Vec<&Value> {
    nodes(plan, &|node| node["Relation Name"] == "executions" || node["Index Name"] == INDEX)
}

/// Asserts that `executions` is read along the job's index, and at most `most` of its rows.
pub(super) async fn assert_reads_few(db: &TestDatabase, sql: &str, most: f64, bind: Bind<'_>) {
    // Not run before it is known to be quick: the wrong plan takes half a minute.
    let plan = explain(db, sql, false, bind).await;
    assert!(scans(&plan).iter().any(|scan| scan["Index Name"] == INDEX), "{plan:#}");
    let plan = explain(db, sql, true, bind).await;
    let read = rows_read(&plan);
    assert!(read <= most, "{read} rows were read: {plan:#}");
}

/// The rows of `executions` that a plan passed by when it was run.
fn rows_read(plan: &Value) -> f64 {
    rows_passed(&scans(plan))
}

/// The rows that these nodes passed by when they were run.
pub(super) fn rows_passed(scans: &[&Value]) -> f64 {
    let number = |scan: &Value, field: &str| scan[field].as_f64().unwrap_or(0.0);
    let passed = |scan: &Value| {
        let each = number(scan, "Actual Rows") + number(scan, "Rows Removed by Filter");
        each * number(scan, "Actual Loops")
    };
    scans.iter().copied().map(passed).sum()
}

#[tokio::test]
async fn the_last_executions_of_jobs_that_never_ran_are_not_searched_in_the_history_of_others() {
    let db = TestDatabase::create().await.unwrap();
    let jobs = ordinary_history(&db).await;
    // Each job: what the index finds, and a row that ends its group.
    assert_reads_few(&db, LAST_EXECUTIONS, 500.0, &|query| query.bind(jobs.clone())).await;
}

#[tokio::test]
async fn the_states_of_the_last_executions_of_jobs_are_read_from_no_more_than_these() {
    let db = TestDatabase::create().await.unwrap();
    let jobs = ordinary_history(&db).await;
    let bind: Bind<'_> = &|query| query.bind(jobs.clone()).bind(30_i64);
    assert_reads_few(&db, RECENT_STATES, 500.0, bind).await;
    let newest = "UPDATE sexton.executions SET state = 'cancelled' WHERE execution_key = $1";
    sqlx::query(newest).bind(HISTORY.to_string()).execute(db.pool()).await.unwrap();
    let states = sexton_store::jobs::list_recent_states(db.store(), &jobs, 3).await.unwrap();
    let words = ["succeeded", "succeeded", "cancelled"].map(str::to_owned);
    assert_eq!(states, [(jobs[0], words.to_vec())], "the others never ran");
}

#[tokio::test]
async fn attempt_durations_are_read_from_a_job_s_last_executions_only() {
    let db = TestDatabase::create().await.unwrap();
    let jobs = ordinary_history(&db).await;
    sqlx::query(
        "INSERT INTO sexton.attempts (execution_id, number, worker_id, opened_at, finished_at, outcome)
         SELECT id, 1, gen_random_uuid(), claimed_at, claimed_at + '1s'::interval, 'succeeded'
         FROM sexton.executions",
    )
    .execute(db.pool())
    .await
    .unwrap();
    sqlx::query("ANALYZE sexton.attempts").execute(db.pool()).await.unwrap();
    let bind: Bind<'_> = &|query| query.bind(jobs.clone()).bind(200_i64);
    assert_reads_few(&db, RUN_TIMES, 700.0, bind).await;
    let plan = explain(&db, RUN_TIMES, false, bind).await.to_string();
    assert!(plan.contains("attempts_pkey") && !plan.contains("Seq Scan"), "{plan}");
    let of_one = "SELECT a.worker_id FROM sexton.all_attempts a WHERE a.execution_id = $1
                  ORDER BY a.number DESC LIMIT 1";
    let bind: Bind<'_> = &|query| query.bind(jobs[0]);
    let plan = explain(&db, of_one, false, bind).await.to_string();
    assert!(plan.contains("attempts_pkey") && !plan.contains("Seq Scan"), "{plan}");
    let times = sexton_store::jobs::list_run_times(db.store(), &jobs).await.unwrap();
    assert_eq!(times.len(), 1, "the others never ran");
    assert_eq!((times[0].0, times[0].1.runs, times[0].1.p95.as_secs()), (jobs[0], 200, 1));
}

/// The executed plans of a page of fifty.
async fn list_plans(
    db: &TestDatabase,
    filter: &ExecutionFilter,
    after: Option<ExecutionPosition>,
) -> Vec<Value> {
    let plans = executions::explain(db.store(), filter, after, 50).await.unwrap();
    plans.into_iter().map(|plan| plan[0]["Plan"].clone()).collect()
}

#[tokio::test]
async fn a_page_of_executions_reads_a_page_by_the_index_of_its_order() {
    let db = TestDatabase::create().await.unwrap();
    let jobs = ordinary_history(&db).await;
    let middle = Uuid::from_u128(HISTORY as u128 / 2);
    let claimed_at = sqlx::query_scalar("SELECT claimed_at FROM sexton.executions WHERE id = $1")
        .bind(middle)
        .fetch_one(db.pool())
        .await
        .unwrap();
    let middle = ExecutionPosition { claimed_at, id: middle };
    let all = ExecutionFilter::default();
    for (filter, after, index) in [
        (of(jobs[0]), None, INDEX),
        (of(jobs[0]), Some(middle), INDEX),
        (of(jobs[7]), None, INDEX),
        (all.clone(), None, "executions_pkey"),
        (all, Some(middle), "executions_pkey"),
    ] {
        for plan in list_plans(&db, &filter, after).await {
            assert!(plan.to_string().contains(index), "{plan:#}");
            assert!(rows_read(&plan) <= 200.0, "{plan:#}");
        }
    }
    let page = list(db.store(), &of(jobs[0]), Some(middle), 3, WALK).await.unwrap();
    let ids: Vec<u128> = page.executions.iter().map(|row| row.id.as_u128()).collect();
    assert_eq!(ids, [1, 2, 3].map(|n| middle.id.as_u128() - n));
}

/// A condition without an index is compared along the walk, which has an end; the next page continues it.
#[tokio::test]
async fn a_page_of_a_filter_without_an_index_looks_at_a_bounded_number_of_executions() {
    let db = TestDatabase::create().await.unwrap();
    ordinary_history(&db).await;
    let filter = ExecutionFilter { pool: Some("nowhere".to_owned()), ..ExecutionFilter::default() };
    for plan in list_plans(&db, &filter, None).await {
        assert!(rows_read(&plan) <= 20_000.0, "{plan:#}");
    }
    sqlx::query(
        "UPDATE sexton.executions SET pool = 'nowhere' WHERE id = lpad(to_hex(1), 32, '0')::uuid",
    )
    .execute(db.pool())
    .await
    .unwrap();
    // One row more than a page looks at.
    sqlx::query(
        "INSERT INTO sexton.executions SELECT (jsonb_populate_record(e, jsonb_build_object(
             'id', lpad(to_hex($1), 32, '0')::uuid, 'execution_key', 'last'))).*
         FROM sexton.executions e WHERE e.id = lpad(to_hex(2), 32, '0')::uuid",
    )
    .bind(HISTORY + 1)
    .execute(db.pool())
    .await
    .unwrap();
    assert_eq!(HISTORY, WALK);
    let page = list(db.store(), &filter, None, 50, WALK).await.unwrap();
    assert!(page.executions.is_empty() && page.is_cut_short, "{page:?}");
    let page = list(db.store(), &filter, page.next, 50, WALK).await.unwrap();
    assert_eq!(page.executions.len(), 1);
    assert_eq!((page.next, page.is_cut_short), (None, false));
}

/// A few that wait or have failed are not looked for among all that ever ran.
#[tokio::test]
async fn executions_under_way_and_failed_ones_are_listed_by_their_own_indexes() {
    let db = TestDatabase::create().await.unwrap();
    let jobs = ordinary_history(&db).await;
    for (state, count) in [(State::Pending, 3), (State::Running, 2), (State::Failed, 2)] {
        for _ in 0..count {
            let at = DateTime::UNIX_EPOCH;
            NewExecution::new(JobId::new(jobs[1]), state, at).insert(db.pool()).await.unwrap();
        }
    }
    sqlx::query("ANALYZE sexton.executions").execute(db.pool()).await.unwrap();
    for (states, count) in [
        (vec![State::Pending, State::Running], 5),
        (vec![State::Running], 2),
        (vec![State::Failed], 2),
    ] {
        let filter = ExecutionFilter { states, ..ExecutionFilter::default() };
        for plan in list_plans(&db, &filter, None).await {
            assert!(rows_read(&plan) <= 20.0, "{plan:#}");
        }
        let page = list(db.store(), &filter, None, 4, WALK).await.unwrap();
        assert_eq!(page.executions.len(), count.min(4));
        assert_eq!(page.next.is_some(), count > 4);
        let rest = list(db.store(), &filter, page.next, 4, WALK).await.unwrap();
        assert_eq!(rest.executions.len(), if count > 4 { 1 } else { count });
    }
}

/// A planner asks this at each tick, four times a second while somebody waits.
#[tokio::test]
async fn a_query_for_waiting_executions_does_not_read_the_history() {
    let db = TestDatabase::create().await.unwrap();
    let jobs = ordinary_history(&db).await;
    for (waiters, later) in [(0_i64, 0_i64), (40, 0), (0, 100_000)] {
        // Of a job that runs one at a time, enqueued for later.
        let waiting = "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool, params,
                idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at, waits)
             SELECT gen_random_uuid(), $1, 'later-' || n, now() + n * interval '1 h', 'pending', 'work', 'default', '{}',
                'w', 'test:1', now(), '9999-01-01', now() + n * interval '1 h', 'turn' FROM generate_series($2, $3) n";
        insert(&db, waiting, jobs[0], later).await;
        sqlx::query(
            "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool,
                params, idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at, waits)
             SELECT gen_random_uuid(), job, 'w', now(), 'pending', 'work', 'default', '{}', 'w', 'test:1',
                now(), '9999-01-01', now(), 'queue' FROM unnest($1::uuid[]) job LIMIT $2",
        )
        .bind(jobs.clone())
        .bind(waiters)
        .execute(db.pool())
        .await
        .unwrap();
        // With what PostgreSQL knew of the table before, and with what it knows then.
        for analyze in ["SELECT 1", "ANALYZE sexton.executions"] {
            sqlx::raw_sql(analyze).execute(db.pool()).await.unwrap();
            let plan = explain(&db, LOOK_FOR_WAITERS, true, &|query| {
                query.bind(500_i64).bind(None::<chrono::DateTime<chrono::Utc>>)
            })
            .await;
            for scan in scans(&plan) {
                let index = scan["Index Name"].as_str().unwrap_or("none");
                let heap = scan["Node Type"] == "Bitmap Heap Scan";
                let is_small = ["executions_waiters", "executions_active"].contains(&index);
                assert!(heap || is_small, "{analyze}, {waiters}, {later}: {plan:#}");
                let read = scan["Actual Rows"].as_f64().unwrap_or(f64::MAX);
                assert!(read <= 40_i64.min(waiters + later) as f64, "{analyze}, {read}: {plan:#}");
            }
        }
    }
}

pub(super) fn of(job: Uuid) -> ExecutionFilter {
    ExecutionFilter { job: Some(JobId::new(job)), ..ExecutionFilter::default() }
}

#[tokio::test]
async fn open_attempts_are_read_by_their_own_index_and_their_leases_by_key() {
    let db = TestDatabase::create().await.unwrap();
    ordinary_history(&db).await;
    sqlx::query(
        "INSERT INTO sexton.attempts (execution_id, number, worker_id, opened_at, finished_at, outcome)
         SELECT id, 1, gen_random_uuid(), claimed_at, claimed_at + '1s'::interval, 'succeeded'
         FROM sexton.executions",
    )
    .execute(db.pool())
    .await
    .unwrap();
    let now: Option<DateTime<Utc>> = None;
    let bind: Bind<'_> = &|query| query.bind(Uuid::nil()).bind(5_000_i64).bind(now);
    // Whatever is known of the tables: nothing new, then how it is, then that many run.
    for prepare in [
        "SELECT 1",
        "ANALYZE sexton.executions, sexton.attempts",
        "UPDATE sexton.executions SET state = 'running', finished_at = NULL, worker_id = gen_random_uuid(),
             open_token = gen_random_uuid(), lease_until = now()
         WHERE id IN (SELECT id FROM sexton.executions ORDER BY id DESC LIMIT 20000)",
        "ANALYZE sexton.executions, sexton.attempts",
    ] {
        sqlx::raw_sql(prepare).execute(db.pool()).await.unwrap();
        let plan = explain(&db, READ_RUNNING, false, bind).await;
        assert_eq!(scans(&plan)[0]["Index Name"], "executions_running", "{plan:#}");
        let text = plan.to_string();
        assert!(text.contains("attempts_pkey") && !text.contains("Seq Scan"), "{plan:#}");
    }
    let began = std::time::Instant::now();
    let page =
        sexton_store::running_attempts::list_page(db.store(), None, 5_000, None).await.unwrap();
    println!("MEASURED {} open attempts of {HISTORY} read in {:?}", page.len(), began.elapsed());
    assert_eq!(page.len(), 5_000);
    assert!(page.is_sorted_by_key(|one| one.execution_id));
}

#[tokio::test]
async fn failed_executions_are_counted_without_reading_them_and_as_many_as_there_are() {
    let db = TestDatabase::create().await.unwrap();
    ordinary_history(&db).await;
    // Failed in two groups, some not in one yet, some not published, some discarded, others not failed any more.
    for sql in [
        "UPDATE sexton.executions SET state = 'failed', outcome = 'failed', ticket_published_at = now(),
             fingerprint = CASE WHEN id < lpad(to_hex(10000), 32, '0')::uuid THEN '0000000000000001'
                                ELSE '0000000000000002' END
         WHERE id < lpad(to_hex(12000), 32, '0')::uuid",
        "UPDATE sexton.executions SET ticket_published_at = NULL WHERE state = 'failed'
             AND id < lpad(to_hex(50), 32, '0')::uuid",
        "UPDATE sexton.executions SET state = 'discarded' WHERE state = 'failed'
             AND id >= lpad(to_hex(11900), 32, '0')::uuid",
        "UPDATE sexton.executions SET fingerprint = NULL WHERE state = 'failed'
             AND id >= lpad(to_hex(11890), 32, '0')::uuid",
        "ANALYZE sexton.executions, sexton.failures, sexton.failure_changes",
    ] {
        sqlx::raw_sql(sql).execute(db.pool()).await.unwrap();
    }
    let expected = FailedCounts { failed: 11_899, published: 11_899 - 49 };
    assert_eq!(count_failed(db.store()).await.unwrap(), expected, "before they are added up");
    while aggregate(db.store(), 100_000, None).await.unwrap().changes > 0 {}
    assert_eq!(count_failed(db.store()).await.unwrap(), expected);
    sqlx::raw_sql(
        "ANALYZE sexton.executions, sexton.failures, sexton.failure_changes, sexton.failure_counts",
    )
    .execute(db.pool())
    .await
    .unwrap();
    let plan = explain(&db, COUNT_FAILED, true, &|query| query).await;
    let read = rows_read(&plan);
    assert!(read <= 200.0, "{read} rows were read: {plan:#}");
    // A count of the executions themselves reads all of them, which shows that this is seen.
    let naive = "SELECT count(*) FROM sexton.executions WHERE state = 'failed'";
    let plan = explain(&db, naive, true, &|query| query).await;
    assert!(rows_read(&plan) >= expected.failed as f64, "{plan:#}");
}
