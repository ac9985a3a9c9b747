//! Requeue, discard and restore: bulks, and the audit of what operators did.
//!
//! Method: failed rows, a bulk that somebody asks for, rounds of the scheduler's loop at instants of the
//! test's choice, then a look at rows, queue and audit.

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

mod audit;
mod blocked_bulks;
mod bulk_cancel;
mod bulk_rate;
mod bulk_selection;
mod bulks;
mod canary;
mod chain;
mod grants;
mod questions;
mod roles;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sexton_broker::publish::DEFAULT_LANES;
use sexton_broker::{Link, Publisher};
use sexton_model::bulk::BulkKind;
use sexton_model::failures::FailureFilter;
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::state::State;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_scheduler::bulks::{Bulks, BulksReport};
use sexton_scheduler::publish::outbox::Outbox;
use sexton_store::bulk::{self, Bulk, BulkSelector, NewBulk};
use sexton_store::operator::AuditContext;
use sexton_store::{Now, Store};
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::{NewExecution, NewJob};
use sexton_tests::namespace::TestNamespace;

const BY: AuditContext<'static> = AuditContext { actor: "ann@ops1", reason: Some("bank is back") };

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "the loops take the instant as an option")]
fn now(seconds: i64) -> Now {
    Some(at(seconds))
}

struct Fixture {
    namespace: TestNamespace,
    link: Link,
    db: TestDatabase,
    job: JobId,
}

impl Fixture {
    async fn new() -> Self {
        let namespace = TestNamespace::new();
        let link = namespace.link().await;
        let db = TestDatabase::create().await.unwrap();
        let job = NewJob::new("shop.charge").insert(db.pool()).await.unwrap();
        Self { namespace, link, db, job }
    }

    fn store(&self) -> &Store {
        self.db.store()
    }

    /// A scheduler's loop, on connections of its own.
    fn scheduler(&self) -> Bulks {
        let store = self.db.other_store().unwrap();
        let publisher = Publisher::start(&self.link, DEFAULT_LANES);
        let outbox = Outbox::new(store.clone(), self.link.clone(), publisher);
        Bulks::new(store, Arc::new(outbox))
    }

    /// One that failed at this second, at its second attempt number.
    async fn failed(&self, second: i64) -> ExecutionId {
        self.failed_of(self.job, second).await
    }

    async fn failed_of(&self, job: JobId, second: i64) -> ExecutionId {
        let execution = NewExecution::new(job, State::Failed, at(second)).published().attempt(2);
        execution.insert(self.db.pool()).await.unwrap()
    }

    /// Many, one a second.
    async fn many(&self, count: i64) {
        sqlx::query(
            "INSERT INTO sexton.executions (id, job_id, execution_key, scheduled_for, state, attempt, task_type,
                pool, params, idempotency_key, claimed_by, claimed_at, ticket_published_at, relay_after,
                finished_at, outcome, error_class, error_message, snoozes_used, retries_used)
             SELECT lpad(to_hex(n), 32, '0')::uuid, $1, n::text, at, 'failed', 2, 'work', 'default', '{}',
                n::text, 'test:1', at, at, at, at, 'error', 'exit_1', 'it said no', 3, 4
             FROM generate_series(1, $2) n, LATERAL (SELECT $3 + n * interval '1 millisecond' AS at) t",
        )
        .bind(self.job.get())
        .bind(count)
        .bind(at(0))
        .execute(self.db.pool())
        .await
        .unwrap();
    }

    fn new_bulk(kind: BulkKind, filter: &Value) -> NewBulk<'_> {
        let selector = BulkSelector::Filter(filter);
        let previewed_at = at(1_000);
        NewBulk { kind, selector, previewed_at, rate: None, canary: None, pool: None, verify: None }
    }

    /// A requeue of everything that had failed by second 1,000.
    async fn requeue_all(&self) -> i64 {
        let filter = json!(FailureFilter::default());
        bulk::create(self.store(), &Self::new_bulk(BulkKind::Requeue, &filter), BY).await.unwrap()
    }

    /// The same with so many first.
    async fn with_canary(&self, size: u32) -> i64 {
        let filter = json!(FailureFilter::default());
        let new_bulk = NewBulk { canary: Some(size), ..Self::new_bulk(BulkKind::Requeue, &filter) };
        bulk::create(self.store(), &new_bulk, BY).await.unwrap()
    }

    async fn bulk(&self, id: i64) -> Bulk {
        bulk::find(self.store(), id).await.unwrap().unwrap()
    }

    /// `state selected/done/refused`.
    async fn stands(&self, id: i64) -> String {
        let bulk = self.bulk(id).await;
        format!("{} {}/{}/{}", bulk.state, bulk.selected, bulk.done, bulk.refused)
    }

    async fn number(&self, query: &str) -> i64 {
        sqlx::query_scalar(sqlx::AssertSqlSafe(query.to_owned()))
            .fetch_one(self.db.pool())
            .await
            .unwrap()
    }

    async fn text(&self, query: &'static str) -> String {
        sqlx::query_scalar(query).fetch_one(self.db.pool()).await.unwrap()
    }

    async fn sql(&self, statement: &'static str) -> u64 {
        sqlx::query(statement).execute(self.db.pool()).await.unwrap().rows_affected()
    }

    async fn state(&self, id: ExecutionId) -> String {
        sqlx::query_scalar("SELECT state || '/' || attempt FROM sexton.executions WHERE id = $1")
            .bind(id.get())
            .fetch_one(self.db.pool())
            .await
            .unwrap()
    }

    /// How many tickets the main queue has.
    async fn tickets(&self) -> u32 {
        self.link.depth(&self.namespace.main()).await.unwrap().ready
    }
}

/// Rounds until nothing is alive.
async fn finish(scheduler: &Bulks, instant: Now) -> BulksReport {
    let mut last = scheduler.run_once(instant).await.unwrap();
    for _ in 0..1_000 {
        let round = scheduler.run_once(instant).await.unwrap();
        if round.alive == 0 {
            return last;
        }
        last = round;
    }
    panic!("the bulk has no end: {last:?}");
}
