//! The services of `examples/` in other languages: real processes, real requests, a real PostgreSQL.
//!
//! Method: each service runs unchanged. The test makes its commit fail, takes its key before it, pauses its job, and kills it
//! while it enqueues; then it counts orders and executions.

use std::time::Duration;

use serde_json::{Value, json};
use sexton_client::Client;
use sexton_tests::example_service::{Answer, ExampleService, ORDERS_TABLE, Start, post};
use sexton_tests::factory::NewJob;
use sexton_tests::platform::Platform;
use sqlx::PgPool;
use uuid::Uuid;

use super::{JOB, charge};

const PATIENCE: Duration = Duration::from_mins(1);
/// What an order costs whose commit fails.
const REFUSED_CENTS: i64 = 13;

/// A service that runs, and its database.
struct Shop {
    service: Box<ExampleService>,
    platform: Platform,
}

impl Shop {
    /// `None` where the language's tools are missing.
    async fn open(language: &str) -> Option<Self> {
        let platform = Platform::new().await.unwrap();
        let pool = platform.store().pool();
        NewJob::new(JOB).insert(pool).await.unwrap();
        sqlx::raw_sql(ORDERS_TABLE).execute(pool).await.unwrap();
        match ExampleService::start(&platform, language).await.unwrap() {
            Start::Running(service) => Some(Self { service, platform }),
            Start::Missing(what) => {
                sexton_tests::untested::report_untested(&format!(
                    "the service in {language}: {what}"
                ));
                None
            }
        }
    }

    fn pool(&self) -> &PgPool {
        self.platform.store().pool()
    }

    async fn run(&self, statements: &'static str) {
        sqlx::raw_sql(statements).execute(self.pool()).await.unwrap();
    }

    /// Posts an order, which must be answered with this status.
    async fn order(&self, cents: i64, status: u16) -> Value {
        let answer = self.service.post("/orders", &json!({"cents": cents})).await.unwrap();
        let Answer { status: found, body } = answer;
        assert_eq!(found, status, "{body}\n{}", self.service.log());
        body
    }

    /// How many orders and executions there are.
    async fn counts(&self) -> (i64, i64) {
        let counting =
            "SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM sexton.executions)";
        sqlx::query_as(counting).fetch_one(self.pool()).await.unwrap()
    }

    /// The key of the next order.
    async fn next_key(&self) -> String {
        let next = "SELECT 'order-' || last_value + is_called::int FROM orders_id_seq";
        sqlx::query_scalar(next).fetch_one(self.pool()).await.unwrap()
    }

    async fn a_commit_leaves_an_order_and_its_execution(&self) {
        let answer = self.order(4200, 201).await;
        // One of the languages writes the number as text.
        let order: i64 = answer["order"].to_string().trim_matches('"').parse().unwrap();
        let (cents, key, params): (i32, String, Value) = sqlx::query_as(
            "SELECT cents, execution_key, params FROM orders, sexton.executions e WHERE orders.id = $1 AND e.id = $2",
        )
        .bind(order)
        .bind(id(&answer))
        .fetch_one(self.pool())
        .await
        .unwrap();
        assert_eq!((cents, key), (4200, format!("order-{order}")));
        assert_eq!(params, json!({"order": order, "cents": 4200}));
        assert_eq!(self.counts().await, (1, 1));
    }

    async fn a_commit_that_fails_leaves_neither(&self) {
        let before = self.counts().await;
        self.run(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN RAISE EXCEPTION 'refused at the commit'; END $$;
             CREATE CONSTRAINT TRIGGER refused AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
                 FOR EACH ROW WHEN (NEW.cents = 13) EXECUTE FUNCTION refuse()",
        )
        .await;
        self.order(REFUSED_CENTS, 500).await;
        assert_eq!(self.counts().await, before);
        // The service goes on, with the next connection or the same.
        self.order(1, 201).await;
        assert_eq!(self.counts().await, (before.0 + 1, before.1 + 1));
    }

    async fn a_key_that_is_taken_makes_no_second_execution(&self) {
        let key = self.next_key().await;
        let mut connection = self.pool().acquire().await.unwrap();
        let first = Client::new().enqueue(&mut connection, &charge().key(key)).await.unwrap();
        let before = self.counts().await;
        let answer = self.order(300, 201).await;
        assert_eq!(id(&answer), first.execution_id);
        assert_eq!(self.counts().await, (before.0 + 1, before.1));
    }

    async fn a_paused_job_is_answered_with_503(&self) {
        let before = self.counts().await;
        self.run("UPDATE sexton.jobs SET status = 'paused', paused_at = now(), paused_by = 'a'")
            .await;
        self.order(400, 503).await;
        assert_eq!(self.counts().await, before);
        self.run("UPDATE sexton.jobs SET status = 'active', paused_at = NULL, paused_by = NULL")
            .await;
        self.order(400, 201).await;
        assert_eq!(self.counts().await, (before.0 + 1, before.1 + 1));
    }

    async fn a_kill_before_the_commit_leaves_nothing(&mut self) {
        let before = self.counts().await;
        // Its call waits for the end of this transaction, which has the key. It has written the order by then.
        let mut holder = self.pool().begin().await.unwrap();
        let key = self.next_key().await;
        Client::new().enqueue(&mut holder, &charge().key(key)).await.unwrap();
        let address = self.service.address().to_owned();
        let request =
            tokio::spawn(async move { post(&address, "/orders", &json!({"cents": 500})).await });
        let waits = async || {
            let pid = sqlx::query_scalar(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
            );
            pid.fetch_optional(self.pool()).await.unwrap()
        };
        let pid: i32 = self.platform.eventually("the service enqueues", PATIENCE, waits).await;
        self.service.kill().await.unwrap();
        assert!(request.await.unwrap().is_err(), "a service that is dead does not answer");
        // Its session goes on, enqueues for nobody, and ends.
        holder.rollback().await.unwrap();
        let ended = async || {
            let there = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1";
            let there: i64 =
                sqlx::query_scalar(there).bind(pid).fetch_one(self.pool()).await.unwrap();
            (there == 0).then_some(())
        };
        self.platform.eventually("the session of the service ends", PATIENCE, ended).await;
        assert_eq!(self.counts().await, before);
    }
}

fn id(answer: &Value) -> Uuid {
    answer["execution"].as_str().unwrap().parse().unwrap()
}

async fn an_order_and_its_execution_are_one(language: &str) {
    let Some(mut shop) = Shop::open(language).await else { return };
    shop.a_commit_leaves_an_order_and_its_execution().await;
    shop.a_commit_that_fails_leaves_neither().await;
    shop.a_key_that_is_taken_makes_no_second_execution().await;
    shop.a_paused_job_is_answered_with_503().await;
    shop.a_kill_before_the_commit_leaves_nothing().await;
}

#[tokio::test]
async fn an_order_and_its_execution_are_one_to_the_service_in_python() {
    an_order_and_its_execution_are_one("python").await;
}

#[tokio::test]
async fn an_order_and_its_execution_are_one_to_the_service_in_typescript() {
    an_order_and_its_execution_are_one("typescript").await;
}

#[tokio::test]
async fn an_order_and_its_execution_are_one_to_the_service_in_java() {
    an_order_and_its_execution_are_one("java").await;
}
