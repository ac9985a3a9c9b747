//! How a run ends, and what is left of one that did not.

use chrono::TimeDelta;
use sexton_tests::database::TestDatabase;

use super::{Fixture, KEY, guard_done, guard_try, is_free};

#[tokio::test]
async fn one_session_gets_the_tick_and_no_other_does_before_or_after_its_end() {
    let f = Fixture::new().await;
    let (mut a, mut b) = (f.connect().await, f.connect().await);
    let tick = f.minute().await;
    assert!(guard_try(&mut a, KEY, tick).await.unwrap());
    assert!(!guard_try(&mut b, KEY, tick).await.unwrap(), "it runs");
    assert!(!is_free(&mut b, KEY).await);
    assert!(guard_done(&mut a, KEY, tick, "succeeded").await.unwrap());
    assert!(is_free(&mut b, KEY).await);
    // The clock of this instance is late: the job was done within milliseconds, and the lock is free.
    assert!(!guard_try(&mut b, KEY, tick).await.unwrap(), "it ran");
    assert!(is_free(&mut a, KEY).await, "who does not get the tick holds no lock");
    assert!(guard_try(&mut b, KEY, tick + TimeDelta::minutes(1)).await.unwrap());
    let ended = "SELECT count(*) FROM sexton.guard_ticks WHERE outcome = 'succeeded' AND finished_at >= began_at
                 AND began_by <> ''";
    assert_eq!(f.count(ended).await, 1);
}

/// A process has one session, and PostgreSQL gives a session the lock that it has a second time.
#[tokio::test]
async fn a_session_does_not_overlap_itself() {
    let f = Fixture::new().await;
    let mut a = f.connect().await;
    let tick = f.minute().await;
    let next = tick + TimeDelta::minutes(1);
    assert!(guard_try(&mut a, KEY, tick).await.unwrap());
    assert!(!guard_try(&mut a, KEY, next).await.unwrap(), "the run before goes on");
    assert!(guard_try(&mut a, KEY + 1, next).await.unwrap(), "another job of the process");
    assert!(guard_done(&mut a, KEY, tick, "succeeded").await.unwrap());
    let mut b = f.connect().await;
    assert!(is_free(&mut b, KEY).await, "one unlock was enough");
    assert!(!is_free(&mut b, KEY + 1).await);
}

/// The lock of the next tick is not released by a second end of the last one.
#[tokio::test]
async fn a_tick_ends_once() {
    let f = Fixture::new().await;
    let mut a = f.connect().await;
    let tick = f.minute().await;
    let next = tick + TimeDelta::minutes(1);
    assert!(guard_try(&mut a, KEY, tick).await.unwrap());
    assert!(guard_done(&mut a, KEY, tick, "failed").await.unwrap());
    assert!(guard_try(&mut a, KEY, next).await.unwrap());
    assert!(!guard_done(&mut a, KEY, tick, "succeeded").await.unwrap());
    let mut b = f.connect().await;
    assert!(!is_free(&mut b, KEY).await);
    let outcomes = "SELECT count(*) FROM sexton.guard_ticks WHERE outcome = 'failed'";
    assert_eq!(f.count(outcomes).await, 1, "the first end counts");
}

#[tokio::test]
async fn a_session_that_dies_frees_the_lock_and_its_tick_stays_taken() {
    let f = Fixture::new().await;
    let (mut a, mut b) = (f.connect().await, f.connect().await);
    let tick = f.minute().await;
    let next = tick + TimeDelta::minutes(1);
    assert!(guard_try(&mut a, KEY, tick).await.unwrap());
    let pid: i32 = sqlx::query_scalar("SELECT backend FROM sexton.guard_ticks")
        .fetch_one(&mut b)
        .await
        .unwrap();
    sqlx::query("SELECT pg_terminate_backend($1, 5000)").bind(pid).execute(&mut b).await.unwrap();
    assert!(!guard_try(&mut b, KEY, tick).await.unwrap(), "nobody knows how far it came");
    assert!(guard_try(&mut b, KEY, next).await.unwrap());
    // The instance is back, on another session, and says how its run ended: that is recorded, and the answer says that the lock was lost.
    let mut c = f.connect().await;
    assert!(!guard_done(&mut c, KEY, tick, "succeeded").await.unwrap());
    assert!(!is_free(&mut c, KEY).await, "the lock of the other one stays");
    let recorded = "SELECT count(*) FROM sexton.guard_ticks WHERE outcome = 'succeeded'";
    assert_eq!(f.count(recorded).await, 1);
}

/// As behind a pooler that gives a session to several clients in turn.
#[tokio::test]
async fn in_a_transaction_lock_and_tick_end_with_it() {
    let f = Fixture::new().await;
    let (mut a, mut b) = (f.connect().await, f.connect().await);
    let tick = f.minute().await;
    let attempt = async |session: &mut sqlx::PgConnection| -> bool {
        sqlx::query_scalar("SELECT sexton.guard_try_xact($1, $2)")
            .bind(KEY)
            .bind(tick)
            .fetch_one(session)
            .await
            .unwrap()
    };
    let run = async |statement: &'static str, session: &mut sqlx::PgConnection| {
        sqlx::query(statement).execute(session).await.unwrap();
    };
    run("BEGIN", &mut a).await;
    assert!(attempt(&mut a).await);
    assert!(!attempt(&mut b).await, "it runs");
    assert!(!guard_try(&mut b, KEY, tick).await.unwrap(), "for the other function as well");
    run("ROLLBACK", &mut a).await;
    run("BEGIN", &mut b).await;
    assert!(attempt(&mut b).await, "what was rolled back did not happen");
    run("COMMIT", &mut b).await;
    run("BEGIN", &mut a).await;
    assert!(!attempt(&mut a).await, "it ran");
    assert!(
        is_free(&mut b, KEY).await,
        "a late instance holds nothing, however long its transaction lasts"
    );
    run("ROLLBACK", &mut a).await;
    let ended = "SELECT count(*) FROM sexton.guard_ticks WHERE outcome = 'succeeded'";
    assert_eq!(f.count(ended).await, 1, "committed, so the work is done");
}

/// As in a program that does not commit by itself: the job's error rolls back what guard_try has written.
#[tokio::test]
async fn after_a_rollback_the_end_is_refused_and_the_lock_is_released() {
    let f = Fixture::new().await;
    let (mut a, mut b) = (f.connect().await, f.connect().await);
    let tick = f.minute().await;
    let mut tx = sqlx::Connection::begin(&mut a).await.unwrap();
    assert!(guard_try(&mut tx, KEY, tick).await.unwrap());
    tx.rollback().await.unwrap();
    assert!(!is_free(&mut b, KEY).await, "a session's lock outlives its transaction");
    let error = guard_done(&mut a, KEY, tick, "failed").await.unwrap_err();
    assert_eq!(super::code(&error), "SX010");
    assert!(is_free(&mut b, KEY).await, "a connection of a pool would keep it for ever");
    assert!(guard_try(&mut b, KEY, tick).await.unwrap(), "nobody has run it");
}

/// As with a pool that exchanges the connection between the two calls.
#[tokio::test]
async fn an_end_on_another_connection_is_recorded_and_the_right_one_can_still_release_the_lock() {
    let f = Fixture::new().await;
    let (mut a, mut b) = (f.connect().await, f.connect().await);
    let tick = f.minute().await;
    assert!(guard_try(&mut a, KEY, tick).await.unwrap());
    assert!(!guard_done(&mut b, KEY, tick, "succeeded").await.unwrap());
    assert!(!is_free(&mut b, KEY).await);
    assert!(!guard_done(&mut a, KEY, tick, "succeeded").await.unwrap(), "it had an end already");
    assert!(is_free(&mut b, KEY).await);
}

/// The grants, and nothing else: a producer reads no table.
#[tokio::test]
async fn a_role_that_may_only_execute_the_functions_guards_its_job() {
    let f = Fixture::new().await;
    let role = format!("sx_guard_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    let sql = |statement: String| sqlx::raw_sql(sqlx::AssertSqlSafe(statement));
    let db: &TestDatabase = &f.db;
    sql(format!(
        "CREATE ROLE {role}; GRANT USAGE ON SCHEMA sexton TO {role};
         GRANT EXECUTE ON FUNCTION sexton.guard_try(bigint, timestamptz),
             sexton.guard_done(bigint, timestamptz, text, text) TO {role}"
    ))
    .execute(db.pool())
    .await
    .unwrap();
    let tick = f.minute().await;
    let mut a = f.connect().await;
    sql(format!("SET ROLE {role}; SET search_path = ''")).execute(&mut a).await.unwrap();
    assert!(guard_try(&mut a, KEY, tick).await.unwrap());
    assert!(guard_done(&mut a, KEY, tick, "succeeded").await.unwrap());
    sqlx::query("SELECT * FROM sexton.guard_ticks").execute(&mut a).await.unwrap_err();
    drop(a);
    sql(format!("DROP OWNED BY {role}; DROP ROLE {role}")).execute(db.pool()).await.unwrap();
}
