//! Migrations of a database that is large and in use: nothing has a time limit but what others wait for, data
//! change in batches, and an index whose build was interrupted is built again.

use std::time::Duration;

use sexton_store::schema::{MigrationSession, invalid_indexes};
use sexton_store::{Store, StoreError, StoreOptions};
use sexton_tests::database::TestDatabase;
use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Connection as _};

const DEADLINE: Duration = Duration::from_secs(30);

/// An empty database.
async fn empty() -> TestDatabase {
    let server = &sexton_servers::shared().await.unwrap().database_url;
    let name = format!(
        "sexton_test_{}_{}",
        sexton_service::clock::now().timestamp(),
        uuid::Uuid::new_v4().simple()
    );
    TestDatabase::create_empty_on(server, &name[..40]).await.unwrap()
}

/// Migrations 1, 2, … of these texts.
fn of(texts: &[&str]) -> Migrator {
    let one = |(number, text): (usize, &&str)| {
        let alone = text.starts_with("-- no-transaction");
        let text = AssertSqlSafe((*text).to_owned()).into_sql_str();
        Migration::new(number as i64 + 1, "test".into(), MigrationType::ReversibleUp, text, alone)
    };
    Migrator::with_migrations(texts.iter().enumerate().map(one).collect())
}

async fn migrate(store: &Store, migrator: &Migrator) -> Result<usize, StoreError> {
    MigrationSession::begin(store).await?.run_migrator(migrator, &|_| {}).await
}

async fn scalar(pool: &PgPool, question: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(question.to_owned())).fetch_one(pool).await.unwrap()
}

/// Waits until the question's answer is 1.
async fn until(pool: &PgPool, question: &str) {
    let asking = async {
        while scalar(pool, question).await != 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(DEADLINE, asking).await.unwrap_or_else(|_| panic!("never: {question}"));
}

#[tokio::test]
async fn a_migration_may_take_longer_than_any_statement_of_the_programs() {
    let db = empty().await;
    let short = StoreOptions {
        statement_timeout: Duration::from_millis(100),
        ..StoreOptions::new(db.url(), "test")
    };
    let store = Store::open(&short).unwrap();
    let long = of(&["CREATE TABLE sexton.t (a int); SELECT pg_sleep(0.5)"]);
    assert_eq!(migrate(&store, &long).await.unwrap(), 1);
    assert_eq!(migrate(&store, &long).await.unwrap(), 0);
    let limited = sqlx::query("SELECT pg_sleep(0.5)").execute(store.pool()).await.unwrap_err();
    assert!(limited.to_string().contains("statement timeout"), "{limited}");
}

/// The hole: `IF NOT EXISTS` takes the index of an interrupted build for done, and no question ever uses it.
#[tokio::test]
async fn an_index_whose_build_was_interrupted_is_valid_after_the_next_run() {
    let db = empty().await;
    let store = db.other_store().unwrap();
    let tables =
        "CREATE TABLE sexton.t (a int); INSERT INTO sexton.t SELECT generate_series(1, 1000);";
    let index = "-- no-transaction\nCREATE INDEX CONCURRENTLY IF NOT EXISTS t_a ON sexton.t (a)";
    assert_eq!(migrate(&store, &of(&[tables])).await.unwrap(), 1);
    // A build waits for transactions that may still read the rows from before.
    let mut reader = PgConnection::connect(db.url()).await.unwrap();
    sqlx::raw_sql("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM sexton.t LIMIT 1")
        .execute(&mut reader)
        .await
        .unwrap();
    let migrating = MigrationSession::begin(&store).await.unwrap();
    let session = migrating.session();
    let both = of(&[tables, index]);
    let building = tokio::spawn(async move { migrating.run_migrator(&both, &|_| {}).await });
    until(
        db.pool(),
        "SELECT count(*) FROM pg_stat_progress_create_index WHERE phase LIKE 'waiting for old%'",
    )
    .await;
    session.end().await;
    building.await.unwrap().unwrap_err();
    let invalid = "SELECT count(*) FROM pg_index WHERE NOT indisvalid";
    until(db.pool(), invalid).await;
    reader.close().await.unwrap();
    assert_eq!(migrate(&store, &of(&[tables, index])).await.unwrap(), 1);
    assert_eq!(scalar(db.pool(), invalid).await, 0);
    assert_eq!(
        scalar(
            db.pool(),
            "SELECT count(*) FROM pg_index WHERE indexrelid = 'sexton.t_a'::regclass"
        )
        .await,
        1
    );
}

/// While one waits for the lock in a statement, it has a snapshot, for which the build of the other waits.
#[tokio::test]
async fn processes_that_migrate_at_once_do_not_wait_for_each_other_over_an_index() {
    let db = empty().await;
    let many: Vec<String> = (0..8)
        .map(|n| {
            format!(
                "-- no-transaction\nCREATE INDEX CONCURRENTLY IF NOT EXISTS t_{n} ON sexton.t (a)"
            )
        })
        .collect();
    let texts: Vec<&str> = std::iter::once("CREATE TABLE sexton.t (a int)")
        .chain(many.iter().map(String::as_str))
        .collect();
    let run = async || migrate(&db.other_store().unwrap(), &of(&texts)).await.unwrap();
    let (a, b, c) = tokio::join!(run(), run(), run());
    assert_eq!(a + b + c, 9);
}

#[tokio::test]
async fn a_data_migration_runs_in_batches_and_resumes_after_an_interruption() {
    let db = empty().await;
    let store = db.other_store().unwrap();
    let texts = [
        "CREATE TABLE sexton.t (a int PRIMARY KEY, b int); INSERT INTO sexton.t SELECT generate_series(1, 5000);",
        "-- batches\nUPDATE sexton.t SET b = coalesce(b, 0) + 1 WHERE a IN
            (SELECT a FROM sexton.t WHERE b IS NULL ORDER BY a LIMIT 1000)",
    ];
    migrate(&store, &of(&texts[..1])).await.unwrap();
    // The fourth batch comes upon a row that somebody has.
    let mut holder = PgConnection::connect(db.url()).await.unwrap();
    sqlx::raw_sql("BEGIN; UPDATE sexton.t SET b = b WHERE a = 3500")
        .execute(&mut holder)
        .await
        .unwrap();
    let migrating = MigrationSession::begin(&store).await.unwrap();
    let session = migrating.session();
    let both = of(&texts);
    let changing = tokio::spawn(async move { migrating.run_migrator(&both, &|_| {}).await });
    until(db.pool(), "SELECT (count(*) = 3000)::int::bigint FROM sexton.t WHERE b = 1").await;
    session.end().await;
    changing.await.unwrap().unwrap_err();
    assert_eq!(scalar(db.pool(), "SELECT count(*) FROM sexton.t WHERE b = 1").await, 3_000);
    assert_eq!(scalar(db.pool(), "SELECT max(version) FROM sexton._sqlx_migrations").await, 1);
    holder.close().await.unwrap();
    assert_eq!(migrate(&store, &of(&texts)).await.unwrap(), 1);
    assert_eq!(scalar(db.pool(), "SELECT count(*) FROM sexton.t WHERE b = 1").await, 5_000);
}

#[tokio::test]
async fn a_migration_waits_for_a_busy_table_without_blocking_others() {
    let db = empty().await;
    let store = db.other_store().unwrap();
    let texts = ["CREATE TABLE sexton.t (a int)", "ALTER TABLE sexton.t ADD COLUMN b int"];
    migrate(&store, &of(&texts[..1])).await.unwrap();
    let mut reader = PgConnection::connect(db.url()).await.unwrap();
    sqlx::raw_sql("BEGIN; SELECT FROM sexton.t").execute(&mut reader).await.unwrap();
    let tried = std::sync::Arc::new(tokio::sync::Notify::new());
    let migrating = MigrationSession::begin(&store).await.unwrap();
    let (both, notified) = (of(&texts), std::sync::Arc::clone(&tried));
    let changing = tokio::spawn(async move {
        let log = |text: &str| {
            assert!(text.contains("in use"), "{text}");
            notified.notify_one();
        };
        migrating.run_migrator(&both, &log).await
    });
    tokio::time::timeout(DEADLINE, tried.notified()).await.unwrap();
    reader.close().await.unwrap();
    assert_eq!(changing.await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn a_migration_leaves_foreign_indexes_alone() {
    let db = TestDatabase::create().await.unwrap();
    sqlx::raw_sql("CREATE TABLE theirs (a int); INSERT INTO theirs VALUES (1), (1)")
        .execute(db.pool())
        .await
        .unwrap();
    let twice = "CREATE UNIQUE INDEX CONCURRENTLY theirs_a ON theirs (a)";
    sqlx::raw_sql(twice).execute(db.pool()).await.unwrap_err();
    let invalid = "SELECT count(*) FROM pg_index WHERE NOT indisvalid";
    assert_eq!(scalar(db.pool(), invalid).await, 1);
    assert_eq!(invalid_indexes(db.store()).await.unwrap(), []);
    db.store().migrate().await.unwrap();
    assert_eq!(scalar(db.pool(), invalid).await, 1);
}
