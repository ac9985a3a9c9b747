//! The rows' side of the protocol: each fence, each race, on a real PostgreSQL with the instant given.

mod abandoned;
mod activity_plans;
mod attempt_rows;
mod audit_plans;
mod bulk_plans;
mod dedicated_connection;
mod exclusive;
mod expectations;
mod fences;
mod heartbeats;
mod incident_reports;
mod late_ends;
mod leases;
mod lists;
mod lost_answers;
mod migrating;
mod opens;
mod output;
mod overlaps;
mod overview_plans;
mod plain_success;
mod plans;
mod relaying;
mod schema;
mod settles;
mod stale;
mod unopened;

use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_model::id::{AttemptNumber, ExecutionId, JobId, OpenToken, ProcessId};
use sexton_model::retry::{Decision, Usage};
use sexton_store::Store;
use sexton_store::firing::{Claim, ClaimTransaction};
use sexton_store::lease::AttemptFence;
use sexton_store::open::{Offer, OpenRequest, Opened, open};
use sexton_store::settle::{SettleOutcome, Settlement, settle};
use sexton_tests::database::TestDatabase;
use sqlx::{Postgres, Row as _, Transaction};
use uuid::Uuid;

pub(crate) const LEASE: Duration = Duration::from_secs(20);

/// An instant, `seconds` after an arbitrary beginning.
pub(crate) fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

pub(crate) fn n(number: i32) -> AttemptNumber {
    AttemptNumber::new(number).unwrap()
}

/// A database with one job, `the.job` of type `work`, and a worker.
pub(crate) struct Fixture {
    pub(crate) db: TestDatabase,
    pub(crate) job: JobId,
    pub(crate) worker: ProcessId,
}

impl Fixture {
    pub(crate) async fn new() -> Self {
        let db = TestDatabase::create().await.unwrap();
        let job = JobId::new(Uuid::now_v7());
        sqlx::query(
            "INSERT INTO sexton.jobs (id, name, schedule_kind, task_type, params, pool, overlap,
                misfire_policy, misfire_window_ms, misfire_limit, timeout_ms, created_at, updated_at)
             VALUES ($1, 'the.job', 'none', 'work', '{\"a\": 1}', 'default', 'allow', 'skip', 0, 1,
                60000, now(), now())",
        )
        .bind(job.get())
        .execute(db.pool())
        .await
        .unwrap();
        Self { db, job, worker: ProcessId::new(Uuid::now_v7()) }
    }

    pub(crate) fn store(&self) -> &Store {
        self.db.store()
    }

    /// Claims an execution at second 0.
    pub(crate) async fn claim(&self, key: &str) -> ExecutionId {
        let id = ExecutionId::new(Uuid::now_v7());
        let claim = Claim {
            id,
            job_id: self.job,
            execution_key: key.into(),
            idempotency_key: format!("the.job:{key}"),
            scheduled_for: at(0),
            skip_reason: None,
            waits: None,
            after: Duration::ZERO,
            traceparent: None,
            params: None,
            templated: false,
            previous_scheduled_for: None,
        };
        let mut tx = ClaimTransaction::begin(self.store(), Some(at(0))).await.unwrap();
        assert_eq!(tx.insert(&mut [claim], "test:1").await.unwrap(), [id]);
        tx.commit().await.unwrap();
        id
    }

    pub(crate) async fn open(&self, request: OpenRequest, second: i64) -> Option<Opened> {
        let offers = [Offer::new("work")];
        let now = Some(at(second));
        let opened = open(self.store(), self.worker, "w:1", &offers, &[request], LEASE, now).await;
        opened.unwrap().opened.pop()
    }

    /// Records the worker's name.
    pub(crate) async fn introduce(&self, name: &str) {
        sqlx::query(
            "INSERT INTO sexton.instances (id, kind, name, pid, version, started_at, heartbeat_at)
             VALUES ($1, 'worker', $2, 1, '0', now(), now())",
        )
        .bind(self.worker.get())
        .bind(name)
        .execute(self.db.pool())
        .await
        .unwrap();
    }

    /// Opens attempt `number`; panics if it does not open.
    pub(crate) async fn opened(&self, id: ExecutionId, number: i32, second: i64) -> AttemptFence {
        let request = request(id, number);
        self.open(request, second).await.expect("the ticket should open");
        AttemptFence { execution_id: id, attempt: request.attempt, token: request.token }
    }

    pub(crate) async fn settle(
        &self,
        held: AttemptFence,
        verdict: Decision,
        second: i64,
    ) -> SettleOutcome {
        let settlement = settlement(held, verdict);
        settle(self.store(), &[settlement], Some(at(second))).await.unwrap().pop().unwrap()
    }

    /// Locks the row until the returned transaction ends.
    pub(crate) async fn locked(&self, id: ExecutionId) -> Transaction<'static, Postgres> {
        let mut other = self.db.pool().begin().await.unwrap();
        sqlx::query("SELECT FROM sexton.executions WHERE id = $1 FOR NO KEY UPDATE")
            .bind(id.get())
            .execute(&mut *other)
            .await
            .unwrap();
        other
    }

    /// A column of an execution as text.
    pub(crate) async fn column(&self, id: ExecutionId, column: &str) -> Option<String> {
        let statement = format!("SELECT {column}::text FROM sexton.executions WHERE id = $1");
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(id.get())
            .fetch_one(self.db.pool())
            .await
            .unwrap()
            .get(0)
    }

    /// `state/attempt` of an execution.
    pub(crate) async fn state(&self, id: ExecutionId) -> String {
        let state = self.column(id, "state").await.unwrap();
        format!("{state}/{}", self.column(id, "attempt").await.unwrap())
    }

    /// `number:outcome` of its attempts, in order.
    pub(crate) async fn attempts(&self, id: ExecutionId) -> Vec<String> {
        sqlx::query_scalar(
            "SELECT number || ':' || coalesce(outcome, 'open') FROM sexton.all_attempts
             WHERE execution_id = $1 ORDER BY number",
        )
        .bind(id.get())
        .fetch_all(self.db.pool())
        .await
        .unwrap()
    }
}

/// A request to open a ticket, with a new token.
pub(crate) fn request(id: ExecutionId, number: i32) -> OpenRequest {
    let token = OpenToken::new(Uuid::new_v4());
    OpenRequest { execution_id: id, attempt: n(number), token }
}

pub(crate) fn settlement(held: AttemptFence, verdict: Decision) -> Settlement {
    let good = verdict == Decision::Succeed;
    Settlement {
        fence: held,
        verdict,
        outcome: if good { "succeeded" } else { "error" },
        error: (!good).then(|| ("exit_1".to_owned(), "it said no".to_owned())),
        exit_code: Some(i32::from(!good)),
        signal: None,
        output: None,
        result: None,
    }
}

pub(crate) fn retry(after_s: u64, retries: u32) -> Decision {
    let used = Usage { retries, ..Usage::default() };
    Decision::Retry { after: Duration::from_secs(after_s), used }
}

pub(crate) fn fail() -> Decision {
    Decision::Fail { used: Usage { retries: 3, ..Usage::default() } }
}
