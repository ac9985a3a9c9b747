//! The scheduler's loops, each stepped by itself on a real PostgreSQL and a real RabbitMQ with the
//! instant given.
//!
//! Method: a row in the state that the step is about, one `run_once` at a chosen instant, then a
//! look at rows and queues. A crash between two effects is the first effect without the second.

#![expect(clippy::unwrap_used, reason = "a helper that panics is a test that fails")]

mod absences;
mod admission;
mod catch_up_hold;
mod claim_lead;
mod claiming;
mod day_rules;
mod dispatching;
mod failure_pause;
mod incidents;
mod job_monitors;
mod ledger;
mod ledger_check;
mod platform_monitors;
mod pruning;
mod reconciling;
mod refused_tickets;
mod relaying;
mod reopened_groups;
mod rescuing;
mod schedule_kinds;
mod startup;
mod sweeping;
mod templates;
mod time_zones;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use lapin::options::BasicGetOptions;
use lapin::types::AMQPValue;
use sexton_broker::publish::DEFAULT_LANES;
use sexton_broker::{Endpoint, Link, LinkSettings, PoolName, Publisher, Timeouts};
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::state::State;
use sexton_scheduler::background_loop::BackgroundLoop as _;
use sexton_scheduler::planner::Planner;
use sexton_scheduler::publish::dispatch::{Dispatcher, dispatch};
use sexton_scheduler::publish::outbox::Outbox;
use sexton_scheduler::publish::relay::Relay;
use sexton_store::{Now, Store};
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::{NewExecution, NewJob};
use sexton_tests::namespace::{Raw, TestNamespace};
use sqlx::Row as _;

/// For confirms of a broker that has other tests to serve: a round of a relay ends with its sends.
const PATIENCE: Duration = Duration::from_mins(1);

/// An instant, `seconds` after an arbitrary beginning: a full minute.
fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000 + seconds, 0).unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "the loops take the instant as an option")]
fn now(seconds: i64) -> Now {
    Some(at(seconds))
}

/// A platform of a test's own, without any loop running.
struct Fixture {
    link: Link,
    publisher: Publisher,
    outbox: Arc<Outbox>,
    raw: Raw,
    namespace: TestNamespace,
    db: TestDatabase,
}

impl Fixture {
    async fn new() -> Self {
        let namespace = TestNamespace::new();
        let link = namespace.link().await;
        Self::with(namespace, link).await
    }

    /// The scheduler's link finds no broker.
    async fn without_broker() -> Self {
        let namespace = TestNamespace::new();
        let link = link_without_broker(&namespace);
        Self::with(namespace, link).await
    }

    async fn with(namespace: TestNamespace, link: Link) -> Self {
        let db = TestDatabase::create().await.unwrap();
        let publisher = Publisher::start(&link, DEFAULT_LANES);
        let outbox = Outbox::new(db.store().clone(), link.clone(), publisher.clone());
        let raw = namespace.raw().await;
        Self { link, publisher, outbox: Arc::new(outbox), raw, namespace, db }
    }

    fn store(&self) -> Store {
        self.db.store().clone()
    }

    /// A planner and the other end of its queue; without the latter nothing that it hands over is
    /// ever published, as if the process had died.
    fn planner(&self) -> (Planner, Dispatcher) {
        let (dispatch, dispatcher) = dispatch(Arc::clone(&self.outbox));
        (Planner::new(self.store(), dispatch, "test:1"), dispatcher)
    }

    fn relay(&self) -> Relay {
        let relay = Relay::new(self.store(), Arc::clone(&self.outbox)).confirm_wait(PATIENCE);
        relay.mark_delay(Duration::ZERO)
    }

    async fn job(&self, job: NewJob) -> JobId {
        job.insert(self.db.pool()).await.unwrap()
    }

    async fn any_job(&self) -> JobId {
        self.job(NewJob::new("the.job")).await
    }

    async fn insert(&self, execution: NewExecution) -> ExecutionId {
        execution.insert(self.db.pool()).await.unwrap()
    }

    async fn execution(&self, state: State, seconds: i64) -> ExecutionId {
        let job = match self.ids("SELECT id FROM sexton.jobs WHERE name = 'the.job'").await.first()
        {
            Some(id) => JobId::new(*id),
            None => self.any_job().await,
        };
        self.insert(NewExecution::new(job, state, at(seconds))).await
    }

    async fn ids(&self, query: &'static str) -> Vec<uuid::Uuid> {
        sqlx::query_scalar(query).fetch_all(self.db.pool()).await.unwrap()
    }

    /// A count, or another number.
    async fn number(&self, query: &'static str) -> i64 {
        sqlx::query_scalar(query).fetch_one(self.db.pool()).await.unwrap()
    }

    /// A column of an execution as text.
    async fn column(&self, id: ExecutionId, column: &str) -> Option<String> {
        let statement = format!("SELECT {column}::text FROM sexton.executions WHERE id = $1");
        sqlx::query(sqlx::AssertSqlSafe(statement))
            .bind(id.get())
            .fetch_one(self.db.pool())
            .await
            .unwrap()
            .get(0)
    }

    /// `state/attempt`, with `, unpublished` while its ticket is.
    async fn state(&self, id: ExecutionId) -> String {
        let text = "state || '/' || attempt || CASE WHEN ticket_published_at IS NULL
                    AND state IN ('pending', 'retrying', 'failed') THEN ', unpublished' ELSE '' END";
        self.column(id, &format!("({text})")).await.unwrap()
    }

    async fn ready(&self, queue: &str) -> u32 {
        self.link.depth(queue).await.unwrap().ready
    }

    /// Takes everything out of a queue: the message id and the attempt of each, in order.
    async fn take_all(&self, queue: &str) -> Vec<(String, i64)> {
        let mut taken = Vec::new();
        let options = BasicGetOptions { no_ack: true };
        while let Some(message) = self.raw.channel.basic_get(queue.into(), options).await.unwrap() {
            let properties = &message.delivery.properties;
            let id = properties.message_id().as_ref().map_or("none".into(), ToString::to_string);
            let headers = properties.headers().as_ref();
            let header = headers.and_then(|headers| headers.inner().get("sexton-attempt"));
            let attempt = match header {
                Some(AMQPValue::LongLongInt(number)) => *number,
                _ => 0,
            };
            taken.push((id, attempt));
        }
        taken
    }

    /// The tickets in the main queue of the pool `default`, which is empty then.
    async fn tickets(&self) -> Vec<(String, i64)> {
        self.take_all(&self.namespace.main()).await
    }
}

/// No waiter is let go any more.
pub(crate) const REFUSE_ADMISSIONS: &str =
    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
     'BEGIN RAISE EXCEPTION ''no admission today''; END';
     CREATE TRIGGER refuse BEFORE UPDATE OF admitted_at ON sexton.executions
         FOR EACH ROW EXECUTE FUNCTION refuse()";

pub(crate) fn link_without_broker(namespace: &TestNamespace) -> Link {
    Link::start(LinkSettings {
        endpoint: Endpoint::parse("amqp://guest:guest@127.0.0.1:1/%2f").unwrap(),
        name: "test".to_owned(),
        namespace: namespace.namespace().clone(),
        pools: vec![PoolName::default_pool()],
        timeouts: Timeouts::default(),
    })
}

/// A planner's round now, without a broker.
pub(crate) async fn one_round(store: &Store) {
    let namespace = TestNamespace::new();
    let link = link_without_broker(&namespace);
    let publisher = Publisher::start(&link, DEFAULT_LANES);
    let outbox = Outbox::new(store.clone(), link, publisher);
    let (dispatch, _dispatcher) = dispatch(Arc::new(outbox));
    Planner::new(store.clone(), dispatch, "test:1").run_once(None).await.unwrap();
}

fn ticket_of(id: ExecutionId, attempt: i64) -> (String, i64) {
    (id.to_string(), attempt)
}
