//! What pages read of an audit that is full of what a program has enqueued.

use serde_json::Value;
use sexton_store::operator::list_by_job;
use sexton_tests::database::TestDatabase;
use uuid::Uuid;

use super::plans::{Bind, explain, insert, nodes, rows_passed};

const ACTIONS_OF_JOB: &str = include_str!("../../../shared/store/src/operator/actions_of_job.sql");
const CHANGES: &str = include_str!("../../../shared/store/src/changes.sql");
/// Entries of enqueues.
const ENQUEUES: i64 = 200_000;
/// Entries of what people did to executions of the job.
const REQUEUES: i64 = 20_000;
/// With what PostgreSQL knew of the table before, and with what it knows then.
const KNOWLEDGE: [&str; 2] = ["SELECT 1", "ANALYZE sexton.operator_actions"];

/// An audit of one job, which somebody paused and resumed before a program enqueued its executions: one by one, and with each tenth
/// request many. Returns the job.
async fn long_audit(db: &TestDatabase) -> Uuid {
    // So that the knowledge is that of the test, at each moment.
    let by_hand = "ALTER TABLE sexton.operator_actions SET (autovacuum_enabled = false)";
    sqlx::raw_sql(by_hand).execute(db.pool()).await.unwrap();
    let job = Uuid::now_v7();
    let person = "INSERT INTO sexton.operator_actions (at, actor, action, job_id)
         SELECT now(), 'ann', words.action, $1
         FROM unnest(ARRAY['pause', 'resume']) AS words (action)";
    sqlx::query(person).bind(job).execute(db.pool()).await.unwrap();
    let program = "INSERT INTO sexton.operator_actions
            (at, actor, action, job_id, execution_id, after)
         SELECT now(), 'token shop', 'enqueue', $1,
            CASE WHEN n % 10 > 0 THEN gen_random_uuid() END, '{}'
         FROM generate_series($2, $3) n";
    insert(db, program, job, ENQUEUES).await;
    job
}

/// Every node of a plan that reads the audit.
fn scans(plan: &Value) -> Vec<&Value> {
    nodes(plan, &|node| node["Relation Name"] == "operator_actions")
}

/// Lets PostgreSQL count again, and asserts that it finds the two actions of a person on the job at once.
async fn assert_reads_two_actions(db: &TestDatabase, job: Uuid, known: &'static str) {
    sqlx::raw_sql(known).execute(db.pool()).await.unwrap();
    let bind: Bind<'_> = &|query| query.bind(job).bind(5_i64);
    let plan = explain(db, ACTIONS_OF_JOB, true, bind).await;
    assert!(plan.to_string().contains("operator_actions_of_job"), "{known}: {plan:#}");
    let read = rows_passed(&scans(&plan));
    assert!(read <= 2.0, "{known}: {read} rows were read: {plan:#}");
}

#[tokio::test]
async fn what_people_did_to_a_job_is_not_looked_for_among_what_was_enqueued() {
    let db = TestDatabase::create().await.unwrap();
    let job = long_audit(&db).await;
    for known in KNOWLEDGE {
        assert_reads_two_actions(&db, job, known).await;
    }
    // As PostgreSQL counted it, nearly nothing was done by people; now much is, to executions.
    let requeues = "INSERT INTO sexton.operator_actions (at, actor, action, job_id, execution_id)
         SELECT now(), 'ann', 'requeue', $1, gen_random_uuid() FROM generate_series($2, $3) n";
    insert(&db, requeues, job, REQUEUES).await;
    for known in KNOWLEDGE {
        assert_reads_two_actions(&db, job, known).await;
    }
    let actions = list_by_job(db.store(), job, 5).await.unwrap();
    let words: Vec<&str> = actions.iter().map(|action| action.action.as_str()).collect();
    assert_eq!(words, ["resume", "pause"]);
}

#[tokio::test]
async fn what_open_pages_follow_is_not_looked_for_among_what_was_enqueued() {
    let db = TestDatabase::create().await.unwrap();
    long_audit(&db).await;
    for known in KNOWLEDGE {
        sqlx::raw_sql(known).execute(db.pool()).await.unwrap();
        let plan = explain(&db, CHANGES, true, &|query| query).await;
        assert!(plan.to_string().contains("operator_actions_decisions"), "{known}: {plan:#}");
        // The newest fifty of all, and the two of a person.
        let read = rows_passed(&scans(&plan));
        assert!(read <= 52.0, "{known}: {read} rows were read: {plan:#}");
    }
}
