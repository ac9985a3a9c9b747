//! Failed executions on a real PostgreSQL: the failure index that triggers maintain, the groups and their counts, the
//! search. `cli::failed` tests what operators see of it.

mod bench;
mod failure_index;
mod fill;
mod groups;
mod missing_fingerprints;
mod query_plans;
mod search;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_model::fingerprint::fingerprint;
use sexton_model::id::JobId;
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::NewJob;
use sqlx::PgPool;
use uuid::Uuid;

/// An instant, `seconds` after an arbitrary beginning.
fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

/// Numbers that are the same in every run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        // As PCG does it: the high bits of a linear congruence.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// A database with two jobs.
struct Yard {
    db: TestDatabase,
    jobs: [JobId; 2],
}

/// A failure to insert.
#[derive(Clone, Debug)]
struct Failure {
    job: JobId,
    at: DateTime<Utc>,
    class: &'static str,
    message: String,
    params: Value,
    worker: Option<&'static str>,
}

impl Yard {
    async fn new() -> Self {
        let db = TestDatabase::create().await.unwrap();
        let jobs = [
            NewJob::new("shop.charge").insert(db.pool()).await.unwrap(),
            NewJob::new("shop.mail").insert(db.pool()).await.unwrap(),
        ];
        Self { db, jobs }
    }

    fn pool(&self) -> &PgPool {
        self.db.pool()
    }

    fn failure(&self, seconds: i64, message: &str) -> Failure {
        Failure {
            job: self.jobs[0],
            at: at(seconds),
            class: "exit_1",
            message: message.to_owned(),
            params: json!({}),
            worker: None,
        }
    }

    async fn sql(&self, sql: &'static str, id: Uuid) {
        sqlx::query(sql).bind(id).execute(self.pool()).await.unwrap();
    }

    async fn number(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(self.pool()).await.unwrap()
    }
}

impl Failure {
    /// Claimed and failed, as its first attempt would have been settled.
    async fn insert(&self, yard: &Yard) -> Uuid {
        let id = Uuid::now_v7();
        sqlx::query(
            "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, task_type, pool,
                params, idempotency_key, claimed_by, claimed_at, relay_after, next_attempt_at)
             SELECT $1, j.id, $1::text, $3, 'pending', j.task_type, j.pool, $4, $1::text, 'test:1', $3, $3,
                $3 FROM sexton.jobs j WHERE j.id = $2",
        )
        .bind(id)
        .bind(self.job.get())
        .bind(self.at)
        .bind(&self.params)
        .execute(yard.pool())
        .await
        .unwrap();
        if let Some(worker) = self.worker {
            sqlx::query(
                "WITH w AS (INSERT INTO sexton.instances (id, kind, name, pid, version, started_at, heartbeat_at)
                            VALUES ($4, 'worker', $3, 1, 'test', $2, $2) RETURNING id)
                 INSERT INTO sexton.attempts (execution_id, number, worker_id, opened_at)
                 SELECT $1, 1, id, $2 FROM w",
            )
            .bind(id)
            .bind(self.at)
            .bind(worker)
            .bind(Uuid::new_v4())
            .execute(yard.pool())
            .await
            .unwrap();
        }
        self.fail(yard, id).await;
        id
    }

    /// Fails one that waits.
    async fn fail(&self, yard: &Yard, id: Uuid) {
        let done = sqlx::query(
            "UPDATE sexton.executions SET state = 'failed', attempt = attempt + 1, rev = rev + 1,
                next_attempt_at = NULL, finished_at = $2, outcome = 'error', error_class = $3,
                error_message = $4, fingerprint = $5
             WHERE id = $1 AND state = 'pending'",
        )
        .bind(id)
        .bind(self.at)
        .bind(self.class)
        .bind(&self.message)
        .bind(fingerprint(self.class, &self.message).to_string())
        .execute(yard.pool())
        .await
        .unwrap();
        assert_eq!(done.rows_affected(), 1);
    }
}

const REQUEUE: &str = "UPDATE sexton.executions SET state = 'pending', next_attempt_at = now(),
    finished_at = NULL WHERE id = $1 AND state = 'failed'";
const DISCARD: &str = "UPDATE sexton.executions SET state = 'discarded', finished_at = now() WHERE id = $1 AND state = 'failed'";
const RESTORE: &str = "UPDATE sexton.executions SET state = 'failed', finished_at = now() WHERE id = $1 AND state = 'discarded'";
