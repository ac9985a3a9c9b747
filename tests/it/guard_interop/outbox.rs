//! The program of `examples/locks` with an outbox: lock, events and executions end together.

use futures_util::future::join_all;
use sexton_client::{Client, Enqueue};
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::NewJob;
use tokio::process::{Child, Command};

use super::eventually;
use super::fleet::{SCHEMA, program};

const ORDERS: i64 = 200;
const INSTANCES: usize = 6;

struct Shop {
    db: TestDatabase,
}

impl Shop {
    async fn open() -> Self {
        let db = TestDatabase::create().await.unwrap();
        NewJob::new("billing.charge").insert(db.pool()).await.unwrap();
        sqlx::raw_sql(SCHEMA).execute(db.pool()).await.unwrap();
        let orders = "INSERT INTO orders (cents) SELECT 100 * n FROM generate_series(1, $1) n";
        sqlx::query(orders).bind(ORDERS).execute(db.pool()).await.unwrap();
        Self { db }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(program("locks-outbox"));
        command.env("DATABASE_URL", self.db.url()).kill_on_drop(true);
        command
    }

    /// Runs the program to its end, and returns what it wrote.
    async fn run(&self) -> String {
        let done = self.command().output().await.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
    }

    /// How many orders were taken, how many events there are, and how many executions.
    async fn counts(&self) -> (i64, i64, i64) {
        let counts = "SELECT (SELECT count(*) FROM orders WHERE taken_at IS NOT NULL),
             (SELECT count(*) FROM outbox), (SELECT count(*) FROM sexton.executions)";
        sqlx::query_as(counts).fetch_one(self.db.pool()).await.unwrap()
    }
}

#[tokio::test]
async fn of_several_instances_one_takes_the_orders() {
    let shop = Shop::open().await;
    let outputs = join_all((0..INSTANCES).map(|_| shop.run())).await;
    let all = format!("took {ORDERS} orders");
    assert_eq!(outputs.iter().filter(|output| **output == all).count(), 1, "{outputs:?}");
    for output in outputs {
        // One that began when the first had ended finds nothing to do.
        let is_known =
            [&all, "took 0 orders", "another instance takes the orders"].contains(&&*output);
        assert!(is_known, "{output}");
    }
    assert_eq!(shop.counts().await, (ORDERS, ORDERS, ORDERS));
}

#[tokio::test]
async fn an_instance_that_dies_before_its_commit_leaves_neither_events_nor_executions_nor_the_lock()
{
    let shop = Shop::open().await;
    // Its call to enqueue waits for the end of this transaction, which has a key. It has written all events by then.
    let mut holder = shop.db.pool().begin().await.unwrap();
    let taken = Enqueue::new("billing.charge").key("order-7");
    Client::new().enqueue(&mut holder, &taken).await.unwrap();
    let mut first: Child = shop.command().spawn().unwrap();
    let waits = async || {
        let pid = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        sqlx::query_scalar::<_, i32>(pid).fetch_optional(shop.db.pool()).await.unwrap()
    };
    let pid = eventually("it waits for the key", waits).await;
    assert_eq!(shop.run().await, "another instance takes the orders");
    first.kill().await.unwrap();
    // Its session notices that when its statement is over.
    holder.rollback().await.unwrap();
    let ended = async || {
        let there = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1";
        let there: i64 =
            sqlx::query_scalar(there).bind(pid).fetch_one(shop.db.pool()).await.unwrap();
        (there == 0).then_some(())
    };
    eventually("its session has ended", ended).await;
    assert_eq!(shop.counts().await, (0, 0, 0));
    assert_eq!(shop.run().await, format!("took {ORDERS} orders"));
    assert_eq!(shop.counts().await, (ORDERS, ORDERS, ORDERS));
}
