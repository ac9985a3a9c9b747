//! One type for producer and worker, and the helpers for the tests of both.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use sexton_client::testing::{self, EnqueuedList, MAX_EXECUTIONS, ReadError};
use sexton_client::{Client, Enqueue, Error, IfExists, Job as _, State, UniqueFor};
use sexton_model::id::JobId;
use sexton_model::state;
use sexton_servers::{PostgresOptions, PostgresServer};
use sexton_store::roles::{DEFAULT_PREFIX, grant_roles};
use sexton_tests::charge::{Charge, charge, place_order};
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::{NewExecution, NewJob};
use sexton_tests::platform::Platform;
use sexton_worker::testing::{Outcome, run_enqueued};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::Fixture;
use crate::process::{FINAL_TIMEOUT, by_hand};

const ORDERS: &str =
    "CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY, cents bigint NOT NULL)";

/// A database with the orders, the job of their charges, and another job.
async fn shop() -> Fixture {
    let db = TestDatabase::create().await.unwrap();
    let params = json!({"currency": "EUR"});
    let task_type = Charge::TASK.to_owned();
    let job = NewJob { params, task_type, ..NewJob::new(Charge::NAME) };
    job.insert(db.pool()).await.unwrap();
    NewJob::new("mail.remind").insert(db.pool()).await.unwrap();
    let shop = Fixture { db };
    shop.run(ORDERS).await;
    shop
}

fn of_order(order: i64) -> Enqueue {
    Enqueue::job(&Charge { order, cents: 100 }).unwrap()
}

async fn charges(shop: &Fixture) -> Result<EnqueuedList<Charge>, ReadError> {
    testing::enqueued(&mut shop.pool().acquire().await.unwrap()).await
}

/// The message of an assertion that fails.
fn panic_of(assertion: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(assertion)).unwrap_err();
    *payload.downcast::<String>().unwrap()
}

#[tokio::test]
async fn an_order_is_charged_when_its_grace_is_over() {
    let shop = shop().await;
    let mut tx = shop.pool().begin().await.unwrap();
    let order = place_order(&mut tx, 4_900, Duration::from_mins(10)).await.unwrap();

    let charges = testing::enqueued::<Charge>(&mut tx).await.unwrap();
    let placed = charges.require_one(|it| it.params.order == order);
    assert_eq!((placed.params.cents, &*placed.key), (4_900, "order-1"));

    let end = placed.scheduled_for;
    assert!(charges.due_at(end - TimeDelta::seconds(1)).is_empty(), "{charges}");
    let ran = charges.run_due_at(end, async |it| run_enqueued(&it, charge).await).await;
    assert_eq!(ran[0].outcome, Outcome::Succeeded);
    assert_eq!(ran[0].result, Some(json!({"order": order, "key": "billing.charge:order-1"})));
    // The transaction is dropped, so nothing of this stays.
}

#[tokio::test]
async fn the_list_has_what_callers_enqueued_and_their_connection_sees() {
    let shop = shop().await;
    let mut tx = shop.pool().begin().await.unwrap();
    let client = Client::new();
    let keyed = of_order(1).key("order-1").label("team", "billing");
    let open = of_order(2).key("cart").unique_for(UniqueFor::Open);
    let answers = client.enqueue_many(&mut tx, &[of_order(3), keyed, open]).await.unwrap();
    let seen = testing::enqueued::<Charge>(&mut tx).await.unwrap();
    // In the order of the calls, with the answers' ids and keys.
    let of_answers: Vec<_> = answers.iter().map(|it| (it.execution_id, &*it.key)).collect();
    let of_list: Vec<_> = seen.iter().map(|it| (it.execution_id, &*it.key)).collect();
    assert_eq!(of_list, of_answers);
    assert_eq!(seen.iter().map(|it| it.params.order).collect::<Vec<_>>(), [3, 1, 2]);
    let one = seen.require_one(|it| it.key == "order-1");
    assert_eq!(one.raw_params, json!({"order": 1, "cents": 100, "currency": "EUR"}));
    assert_eq!(one.labels["team"], "billing");
    assert_eq!((&*one.state, one.attempt, &*one.task_type), ("pending", 1, "charge"));
    assert!(seen.require_one(|it| it.key == "cart").execution_key.starts_with("enqueued-"));
    assert!(charges(&shop).await.unwrap().is_empty(), "nobody else sees it");
    tx.commit().await.unwrap();
    // A firing was not enqueued.
    let job = "SELECT id FROM sexton.jobs WHERE name = 'billing.charge'";
    let job: Uuid = sqlx::query_scalar(job).fetch_one(shop.pool()).await.unwrap();
    let firing = NewExecution::new(JobId::new(job), state::State::Pending, DateTime::UNIX_EPOCH);
    let firing = NewExecution { key: Some("cron-1970-01-01T00:00:00Z".to_owned()), ..firing };
    firing.insert(shop.pool()).await.unwrap();
    assert_eq!(charges(&shop).await.unwrap().len(), 3);
}

#[tokio::test]
async fn an_assertion_that_fails_lists_what_is_there() {
    let shop = shop().await;
    shop.enqueue(&Enqueue::new("mail.remind")).await.unwrap();
    let nothing = charges(&shop).await.unwrap();
    let message = panic_of(|| drop(nothing.require_one(|_| true).clone()));
    assert_eq!(
        message,
        "executions that match: 0, expected: 1; nothing of billing.charge is enqueued\nof other jobs: 1 of mail.remind"
    );
    nothing.require_none(|_| true);
    let long = of_order(7).params(&json!({"order": 7, "cents": 1, "note": "x".repeat(1_000)}));
    shop.enqueue(&long.unwrap().key("order-7")).await.unwrap();
    let listed = charges(&shop).await.unwrap();
    let message = panic_of(|| listed.require_none(|it| it.params.order == 7));
    let expected = "executions that match: 1, expected: 0; 1 execution of billing.charge is enqueued:\n  \
                    \"order-7\", pending, scheduled for 2";
    assert!(message.starts_with(expected) && message.contains("\"note\":\"xxx"), "{message}");
    assert!(message.len() < 600 && message.contains('…'), "params are shortened: {message}");
    for order in 8..40 {
        shop.enqueue(&of_order(order)).await.unwrap();
    }
    let listed = charges(&shop).await.unwrap();
    let message = panic_of(|| drop(listed.require_one(|it| it.params.order > 30).clone()));
    assert!(
        message.starts_with("executions that match: 9, expected: 1; 33 executions"),
        "{message}"
    );
    assert!(message.contains("\n  and 13 more\n"), "{message}");
    assert_eq!(listed.require_one(|it| it.params.order == 30).params.cents, 100);
}

#[tokio::test]
async fn what_is_due_at_an_instant_follows_the_times_of_the_rows() {
    let shop = shop().await;
    let at = |hour: u32| -> DateTime<Utc> {
        // In the future, so that the database keeps them.
        let tomorrow = sexton_service::clock::now().date_naive() + TimeDelta::days(1);
        tomorrow.and_hms_opt(hour, 0, 0).unwrap().and_utc()
    };
    for (order, hour) in [(1, 9), (2, 8), (3, 8)] {
        shop.enqueue(&of_order(order).key(format!("order-{order}")).run_at(at(hour)))
            .await
            .unwrap();
    }
    shop.enqueue(&of_order(4)).await.unwrap();
    let orders = async |instant| -> Vec<i64> {
        let list = charges(&shop).await.unwrap();
        list.due_at(instant).iter().map(|it| it.params.order).collect()
    };
    assert_eq!(orders(at(7)).await, [4]);
    assert_eq!(orders(at(8)).await, [4, 2, 3]);
    assert_eq!(orders(at(9)).await, [4, 2, 3, 1]);
    // What runs now is what is due by the database's clock, and what has ended is due no more.
    let ran = charges(&shop).await.unwrap().run_now(async |it| it.params.order).await;
    assert_eq!(ran, [4]);
    let postponed = of_order(2).key("order-2").run_at(at(10)).if_exists(IfExists::Postpone);
    shop.enqueue(&postponed).await.unwrap();
    let mut connection = shop.connect().await;
    Client::new().cancel(&mut connection, Charge::NAME, "order-3", None).await.unwrap();
    assert_eq!(orders(at(9)).await, [4, 1]);
    assert_eq!(orders(at(10)).await, [4, 1, 2]);
}

#[tokio::test]
async fn a_run_hands_the_typed_params_to_the_test_s_own_code_and_writes_nothing() {
    let shop = shop().await;
    let before = shop.enqueue(&of_order(1)).await.unwrap().execution_id;
    shop.enqueue(&of_order(2)).await.unwrap();
    let row = shop.row(before).await;
    let mut total = 0;
    let ended = charges(&shop)
        .await
        .unwrap()
        .run_now(async |it| {
            total += it.params.cents;
            if it.params.order == 1 { Err("the bank is closed") } else { Ok(it.params.order) }
        })
        .await;
    assert_eq!((ended, total), (vec![Err("the bank is closed"), Ok(2)], 200));
    assert_eq!(shop.row(before).await, row);
    // The worker's own code runs an attempt of it: what it refuses for good is an outcome here as well.
    let dear = Enqueue::job(&Charge { order: 3, cents: 2_000_000 }).unwrap();
    shop.enqueue(&dear.key("order-3")).await.unwrap();
    let ran = charges(&shop).await.unwrap();
    let ran = run_enqueued(ran.require_one(|it| it.key == "order-3"), charge).await;
    assert!(matches!(ran.outcome, Outcome::Permanent { .. }), "{ran:?}");
}

#[tokio::test]
async fn a_job_whose_task_is_another_than_its_type_names_is_found_out() {
    let shop = shop().await;
    shop.run("UPDATE sexton.jobs SET task_type = 'report'").await;
    shop.enqueue(&of_order(1)).await.unwrap();
    let list = charges(&shop).await.unwrap();
    let message = panic_of(|| drop(run_enqueued(&list[0], charge)));
    let expected =
        "the job \"billing.charge\" has the task \"report\", and this handler is for \"charge\"";
    assert!(message.starts_with(expected), "{message}");
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_that_says_why() {
    let shop = shop().await;
    let mut connection = shop.connect().await;
    let unknown = testing::enqueued_of::<Value>(&mut connection, "billing.chrage").await;
    assert!(unknown.unwrap_err().to_string().starts_with("there is no job \"billing.chrage\""));
    let wrong = Enqueue::new(Charge::NAME).key("k").params(&json!({"order": 1})).unwrap();
    shop.enqueue(&wrong).await.unwrap();
    let refused = charges(&shop).await.unwrap_err().to_string();
    let expected = "the params of billing.charge \"k\" do not fit the type: missing field `cents`";
    assert!(refused.starts_with(expected), "{refused}");
    // Without the type they can be looked at.
    let list = testing::enqueued_of::<Value>(&mut connection, Charge::NAME).await.unwrap();
    assert_eq!(list[0].params, json!({"order": 1, "currency": "EUR"}));
    let more = vec![of_order(1); MAX_EXECUTIONS];
    Client::new().enqueue_many(&mut connection, &more).await.unwrap();
    let refused = charges(&shop).await.unwrap_err();
    assert!(matches!(refused, ReadError::TooMany(_)), "{refused}");
}

/// Roles belong to a server, so this test has one of its own.
#[tokio::test]
async fn a_producer_s_role_reads_no_table_and_a_test_s_log_in_may_have_both() {
    let server = PostgresServer::start_private(PostgresOptions::default()).await.unwrap();
    let shop = Fixture { db: TestDatabase::create_on(server.url()).await.unwrap() };
    NewJob::new(Charge::NAME).insert(shop.pool()).await.unwrap();
    grant_roles(shop.db.store(), DEFAULT_PREFIX).await.unwrap();
    shop.run("CREATE ROLE app_test IN ROLE sexton_producer, sexton_viewer").await;
    for (role, may_read) in [("sexton_producer", false), ("app_test", true)] {
        let mut tx = shop.pool().begin().await.unwrap();
        let set = AssertSqlSafe(format!("SET LOCAL ROLE {role}"));
        sqlx::raw_sql(set).execute(&mut *tx).await.unwrap();
        Client::new().enqueue(&mut tx, &of_order(1)).await.unwrap();
        let read = testing::enqueued::<Charge>(&mut tx).await;
        match read {
            Ok(list) => assert!(may_read && list.len() == 1, "{role}: {list}"),
            Err(error) => {
                assert!(!may_read && matches!(error, ReadError::Forbidden(_)), "{role}: {error}");
                assert!(error.to_string().contains("GRANT sexton_viewer"), "{error}");
            }
        }
    }
    drop(shop);
    server.end().await.unwrap();
}

#[tokio::test]
async fn one_type_goes_from_the_producer_s_call_to_the_handler_of_a_worker() {
    let platform = Platform::new().await.unwrap();
    platform.apply(&by_hand(Charge::NAME, Charge::TASK, "")).await.unwrap();
    let pool = platform.store().pool();
    sqlx::raw_sql(ORDERS).execute(pool).await.unwrap();
    let _scheduler = platform.start_scheduler("s", &[]).unwrap();
    let mut worker = platform.start_handlers("w", &[]).unwrap();
    worker.ready().await;
    let mut tx = pool.begin().await.unwrap();
    let order = place_order(&mut tx, 4_900, Duration::ZERO).await.unwrap();
    tx.commit().await.unwrap();
    let client = Client::new();
    let mut connection = pool.acquire().await.unwrap();
    let key = format!("order-{order}");
    let placed = client.execution_by_key(&mut connection, Charge::NAME, &key).await.unwrap();
    let id = placed.unwrap().execution_id;
    let ended = client.wait_for(&mut connection, id, FINAL_TIMEOUT).await.unwrap();
    assert_eq!(ended.state(), State::Succeeded, "{ended:?}");
    assert_eq!(ended.result, Some(json!({"order": order, "key": format!("billing.charge:{key}")})));
    // The worker has published the schema of the type, and the database checks every caller by it.
    let mut tx = pool.begin().await.unwrap();
    let refused = place_order(&mut tx, 0, Duration::ZERO).await.unwrap_err();
    assert!(matches!(&refused, Error::InvalidParams(it) if it.sqlstate == "SX012"), "{refused}");
    assert!(refused.to_string().contains("/cents"), "{refused}");
}
