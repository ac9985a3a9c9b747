//! The caller's transaction decides: whether there is an execution, and when a scheduler learns of it.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use sexton_client::{Client, Enqueue, Error};
use sexton_servers::{PgBouncer, PostgresOptions, PostgresServer};
use sexton_store::notifications::{Listener, Notification};
use sexton_tests::database::TestDatabase;
use sexton_tests::factory::NewJob;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgListener};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use super::{Fixture, JOB, charge};

const PATIENCE: Duration = Duration::from_mins(1);

/// The next notification is this one: a marker that was sent after everything else.
async fn next_is(listener: &mut Listener, wanted: Notification) {
    let heard = timeout(PATIENCE, listener.next()).await.unwrap().unwrap();
    assert_eq!(heard, Some(wanted));
}

async fn mark(connection: &mut PgConnection) {
    sqlx::query("SELECT pg_notify('sexton', 'bulk')").execute(connection).await.unwrap();
}

#[tokio::test]
async fn schedulers_are_notified_at_the_commit_and_not_before_and_not_after_a_rollback() {
    let f = Fixture::new().await;
    let client = Client::new();
    let mut listener = Listener::connect(f.db.store()).await.unwrap();
    let mut other = f.connect().await;
    let mut caller = f.connect().await;
    let mut tx = caller.begin().await.unwrap();
    client.enqueue(&mut tx, &charge().key("a")).await.unwrap();
    assert_eq!(f.count().await, 0, "nobody else sees it");
    mark(&mut other).await;
    next_is(&mut listener, Notification::Bulk).await;
    tx.rollback().await.unwrap();
    mark(&mut other).await;
    next_is(&mut listener, Notification::Bulk).await;
    let mut tx = caller.begin().await.unwrap();
    assert!(client.enqueue(&mut tx, &charge().key("a")).await.unwrap().created);
    tx.commit().await.unwrap();
    next_is(&mut listener, Notification::TicketsUnpublished).await;
    // What is due later is found when it is due, and a duplicate is nothing new.
    let later = charge().key("b").delay(Duration::from_mins(1));
    client.enqueue(&mut caller, &later).await.unwrap();
    assert!(!client.enqueue(&mut caller, &charge().key("a")).await.unwrap().created);
    sqlx::query("SET sexton.notify = off").execute(&mut caller).await.unwrap();
    client.enqueue(&mut caller, &charge().key("c")).await.unwrap();
    mark(&mut other).await;
    next_is(&mut listener, Notification::Bulk).await;
    assert_eq!(f.count().await, 3);
}

#[tokio::test]
async fn a_job_that_runs_one_at_a_time_wakes_the_planner_which_admits() {
    let f = Fixture::new().await;
    f.run("UPDATE sexton.jobs SET overlap = 'queue'").await;
    let mut listener = Listener::connect(f.db.store()).await.unwrap();
    let id = f.enqueue(&charge()).await.unwrap().execution_id;
    next_is(&mut listener, Notification::Waiters).await;
    let row = f.row(id).await;
    assert_eq!((&row["waits"], &row["admitted_at"]), (&json!("turn"), &json!(null)));
    assert!(row["relay_after"].as_str().unwrap().starts_with("9999"), "{row}");
}

#[tokio::test]
async fn a_savepoint_takes_back_what_came_after_it() {
    let f = Fixture::new().await;
    let client = Client::new();
    let mut tx = f.pool().begin().await.unwrap();
    assert!(client.enqueue(&mut tx, &charge().key("kept")).await.unwrap().created);
    let mut inner = tx.begin().await.unwrap();
    assert!(client.enqueue(&mut inner, &charge().key("undone")).await.unwrap().created);
    inner.rollback().await.unwrap();
    // After a refusal the transaction goes on from the savepoint.
    let mut inner = tx.begin().await.unwrap();
    let refused = client.enqueue(&mut inner, &Enqueue::new("no.such")).await;
    assert!(matches!(refused, Err(Error::UnknownJob(_))));
    inner.rollback().await.unwrap();
    let again = client.enqueue(&mut tx, &charge().key("kept")).await.unwrap();
    assert!(!again.created, "a duplicate within the transaction");
    assert!(client.enqueue(&mut tx, &charge().key("undone")).await.unwrap().created);
    tx.commit().await.unwrap();
    assert_eq!(f.count().await, 2);
}

#[tokio::test]
async fn callers_at_other_isolation_levels_enqueue_and_learn_when_to_repeat_their_transaction() {
    for level in ["REPEATABLE READ", "SERIALIZABLE"] {
        let f = Fixture::new().await;
        let client = Client::new();
        let mut caller = f.connect().await;
        let mut tx = caller.begin().await.unwrap();
        let set = format!("SET TRANSACTION ISOLATION LEVEL {level}");
        sqlx::raw_sql(AssertSqlSafe(set)).execute(&mut *tx).await.unwrap();
        // Its snapshot is older than what others do now: the planner moves the job's cursor, another caller takes a key.
        sqlx::query("SELECT 1 FROM pg_class LIMIT 1").execute(&mut *tx).await.unwrap();
        f.run("UPDATE sexton.jobs SET next_fire_at = now(), planned_until = now()").await;
        let taken = f.enqueue(&charge().key("taken")).await.unwrap();
        assert!(client.enqueue(&mut tx, &charge().key("new")).await.unwrap().created, "{level}");
        let mut inner = tx.begin().await.unwrap();
        let error = client.enqueue(&mut inner, &charge().key("taken")).await.unwrap_err();
        let Error::Database(error) = error else { panic!("{level}: {error}") };
        assert_eq!(error.as_database_error().unwrap().code().as_deref(), Some("40001"), "{level}");
        inner.rollback().await.unwrap();
        tx.commit().await.unwrap();
        // Repeated, as after any such error, it sees the other's.
        let again = client.enqueue(&mut caller, &charge().key("taken")).await.unwrap();
        assert_eq!((again.created, again.execution_id), (false, taken.execution_id));
        assert_eq!(f.count().await, 2);
    }
}

#[tokio::test]
async fn a_prepared_transaction_enqueues_when_it_is_committed_if_it_does_not_notify() {
    let options = PostgresOptions { max_prepared_transactions: 5, ..PostgresOptions::default() };
    let server = PostgresServer::start_private(options).await.unwrap();
    let f = Fixture { db: TestDatabase::create_on(server.url()).await.unwrap() };
    NewJob::new(JOB).insert(f.pool()).await.unwrap();
    let mut caller = f.connect().await;
    let run = async |caller: &mut PgConnection, statement: &'static str| {
        sqlx::raw_sql(statement).execute(caller).await
    };
    run(&mut caller, "BEGIN").await.unwrap();
    Client::new().enqueue(&mut caller, &charge().key("a")).await.unwrap();
    let error = run(&mut caller, "PREPARE TRANSACTION 'one'").await.unwrap_err();
    assert!(error.to_string().contains("NOTIFY"), "{error}");
    run(&mut caller, "ROLLBACK").await.unwrap();
    run(&mut caller, "BEGIN; SET LOCAL sexton.notify = off").await.unwrap();
    Client::new().enqueue(&mut caller, &charge().key("a")).await.unwrap();
    run(&mut caller, "PREPARE TRANSACTION 'two'").await.unwrap();
    assert_eq!(f.count().await, 0);
    run(&mut caller, "COMMIT PREPARED 'two'").await.unwrap();
    assert_eq!(f.count().await, 1);
    drop(f);
    server.end().await.unwrap();
}

#[tokio::test]
async fn a_caller_behind_a_pooler_that_gives_a_session_for_a_transaction_enqueues() {
    let f = Fixture::new().await;
    let pooler = PgBouncer::start(f.db.url(), "transaction").await.unwrap();
    let options: PgConnectOptions = pooler.url().parse().unwrap();
    let mut caller = options.statement_cache_capacity(0).connect().await.unwrap();
    for commits in [false, true] {
        let mut tx = caller.begin().await.unwrap();
        let answer = Client::new().enqueue(&mut tx, &charge().key("a")).await.unwrap();
        assert!(answer.created);
        let many =
            Client::new().enqueue_many(&mut tx, &[charge().key("a"), charge()]).await.unwrap();
        assert_eq!((many[0].created, many[1].created), (false, true));
        if commits { tx.commit().await } else { tx.rollback().await }.unwrap();
    }
    assert_eq!(f.count().await, 2);
    caller.close().await.unwrap();
}

/// A listener of another program than ours, to see the payload as it is.
#[tokio::test]
async fn one_transaction_notifies_once_however_much_it_enqueues() {
    let f = Fixture::new().await;
    let mut listener = PgListener::connect(f.db.url()).await.unwrap();
    listener.listen("sexton").await.unwrap();
    let mut tx = f.pool().begin().await.unwrap();
    for n in 0..50 {
        Client::new().enqueue(&mut tx, &charge().key(format!("k-{n}"))).await.unwrap();
    }
    tx.commit().await.unwrap();
    mark(&mut f.connect().await).await;
    let mut heard = Vec::new();
    while heard.last().is_none_or(|last| last != "bulk") {
        let next = timeout(PATIENCE, listener.recv()).await.unwrap().unwrap();
        heard.push(next.payload().to_owned());
    }
    assert_eq!(heard, ["unpublished", "bulk"]);
}

/// A program of its own, which is killed: `psql`, as PostgreSQL's own packages bring it.
#[tokio::test]
async fn a_caller_that_is_killed_leaves_nothing_before_its_commit_and_the_execution_after_it() {
    let f = Fixture::new().await;
    for (key, commits) in [("before", false), ("after", true)] {
        let mut caller = Command::new("psql")
            .args(["-X", "-q", "-A", "-t", f.db.url()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (end, mark) = if commits { ("COMMIT;", "done") } else { ("", "open") };
        let text = format!(
            "BEGIN; CREATE TABLE IF NOT EXISTS orders (key text); INSERT INTO orders VALUES ('{key}');
             SELECT created FROM sexton.enqueue('{JOB}', key => '{key}'); {end}
             SELECT '{mark}';\n"
        );
        caller.stdin.as_mut().unwrap().write_all(text.as_bytes()).await.unwrap();
        let mut lines = BufReader::new(caller.stdout.take().unwrap()).lines();
        let reached = async { while lines.next_line().await.unwrap().unwrap() != mark {} };
        timeout(PATIENCE, reached).await.unwrap();
        caller.kill().await.unwrap();
        // The server ends the session, and with it the transaction, when it notices.
        let gone = async {
            let others = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND application_name = 'psql'";
            while sqlx::query_scalar::<_, i64>(others).fetch_one(f.pool()).await.unwrap() > 0 {}
        };
        timeout(PATIENCE, gone).await.unwrap();
        assert_eq!(f.count().await, i64::from(commits), "{key}");
        let orders = "SELECT count(*) FROM pg_class WHERE relname = 'orders'";
        let orders: i64 = sqlx::query_scalar(orders).fetch_one(f.pool()).await.unwrap();
        assert_eq!(orders, i64::from(commits), "the caller's own rows share its fate");
    }
}
