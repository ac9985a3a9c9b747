//! Tables that cannot hold lock rows, and other bad input: the error names everything, and no work begins.

use std::time::Duration;

use sexton_guard::{CREATE_SHEDLOCK, LockError, LockRow, Run};
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Executor as _};

use super::Fixture;

const AT_MOST: Duration = Duration::from_mins(1);

/// Runs work that must not begin, and returns why it did not.
async fn refused(lock: &LockRow, pool: &PgPool) -> LockError {
    let work = async |_| -> () { panic!("the work begins") };
    lock.try_run(pool, work).await.unwrap_err()
}

#[tokio::test]
async fn a_table_of_another_shape_is_refused_column_by_column() {
    let f = Fixture::new().await;
    let lock = LockRow::new("a", AT_MOST).unwrap();
    let error = refused(&lock, f.pool()).await.to_string();
    assert!(error.contains("it is not in this database"), "{error}");
    assert!(error.contains("CREATE TABLE shedlock ( name varchar(64) PRIMARY KEY"), "{error}");
    f.run(
        "CREATE TABLE shedlock (name varchar(20), lock_until timestamptz NOT NULL, locked_at date,
                                team text NOT NULL, note text NOT NULL DEFAULT '')",
    )
    .await;
    let LockError::Table(found) = refused(&lock, f.pool()).await else { panic!("of the table") };
    assert_eq!(found.table, "shedlock");
    assert_eq!(
        found.problems,
        [
            "column name is character varying(20) and must be varchar(64)",
            "column lock_until is timestamp with time zone and must be timestamp without time zone",
            "column locked_at is date and must be timestamp without time zone",
            "column locked_by is missing and must be varchar(255)",
            "column team is not null and has no default, and no lock sets it",
            "column name is neither primary key nor unique by itself",
        ]
    );
    f.run("DROP TABLE shedlock; CREATE VIEW shedlock AS SELECT 1 AS name").await;
    let error = refused(&lock, f.pool()).await.to_string();
    assert!(error.contains("it is no table"), "{error}");
    // The same value works when the table is right, and finds a change of it.
    f.run("DROP VIEW shedlock").await;
    f.run(CREATE_SHEDLOCK).await;
    assert_eq!(lock.try_run(f.pool(), async |_| 1).await.unwrap(), Run::Done(1));
    f.run("ALTER TABLE shedlock DROP COLUMN locked_by").await;
    let error = refused(&lock, f.pool()).await.to_string();
    assert!(error.contains("column locked_by is missing"), "{error}");
}

#[tokio::test]
async fn a_table_of_any_name_and_schema_and_its_usual_variants_are_accepted() {
    let f = Fixture::new().await;
    f.run(
        "CREATE SCHEMA locks;
         CREATE TABLE locks.\"Rows\" (name text, lock_until timestamp(3) NOT NULL, locked_at timestamp(3) NOT NULL,
             locked_by text NOT NULL, note text, id bigserial NOT NULL);
         CREATE UNIQUE INDEX ON locks.\"Rows\" (name)",
    )
    .await;
    let lock = LockRow::new("a", AT_MOST).unwrap().table("locks.Rows").unwrap();
    assert_eq!(lock.try_run(f.pool(), async |_| 1).await.unwrap(), Run::Done(1));
}

#[tokio::test]
async fn a_privilege_that_is_missing_or_lost_is_named_and_the_work_does_not_begin() {
    let f = Fixture::new().await;
    f.run(CREATE_SHEDLOCK).await;
    let role = format!("sx_guard_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    let admin = async |statement: String| {
        f.pool().execute(sqlx::raw_sql(AssertSqlSafe(statement))).await.unwrap();
    };
    admin(format!("CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT SELECT ON shedlock TO {role}"))
        .await;
    let (_, server) = f.db.url().rsplit_once('@').unwrap();
    let pool = PgPool::connect(&format!("postgres://{role}:x@{server}")).await.unwrap();
    let lock = LockRow::new("a", AT_MOST).unwrap();
    let error = refused(&lock, &pool).await.to_string();
    assert!(error.contains("this role lacks INSERT, UPDATE on it"), "{error}");
    admin(format!("GRANT INSERT, UPDATE ON shedlock TO {role}")).await;
    assert_eq!(lock.try_run(&pool, async |_| 1).await.unwrap(), Run::Done(1));
    admin(format!("REVOKE UPDATE ON shedlock FROM {role}")).await;
    let error = refused(&lock, &pool).await.to_string();
    assert!(error.contains("this role lacks UPDATE on it"), "{error}");
    pool.close().await;
    admin(format!("DROP OWNED BY {role}; DROP ROLE {role}")).await;
}

#[tokio::test]
async fn names_and_times_that_make_no_sense_are_refused_before_the_database_is_called() {
    let seconds = Duration::from_secs;
    for (name, at_most, at_least, words) in [
        ("", seconds(60), seconds(0), "must have 1 to 64"),
        (&*"x".repeat(10_000), seconds(60), seconds(0), "has 10000 characters"),
        ("a", seconds(0), seconds(0), "at_most is 0ns and must be between 1 s and 400 days"),
        ("a", Duration::MAX, seconds(0), "between 1 s and 400 days"),
        ("a", seconds(60), seconds(61), "at_least is 61s and must not be longer than at_most"),
    ] {
        let lock = LockRow::new(name, at_most).and_then(|lock| lock.at_least(at_least));
        let error = lock.unwrap_err().to_string();
        assert!(error.contains(words) && error.len() < 400, "{error}");
    }
    let table = LockRow::new("a", AT_MOST).unwrap().table("a; DROP TABLE b");
    assert!(matches!(table.unwrap_err(), LockError::Invalid(_)));
}
