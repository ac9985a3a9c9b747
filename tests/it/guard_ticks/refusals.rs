//! What is refused, and that nothing is held or taken then.

use chrono::TimeDelta;

use super::{Fixture, KEY, code, guard_done, guard_try, is_free};

#[tokio::test]
async fn a_tick_that_no_right_clock_names_is_refused_with_what_to_do() {
    let f = Fixture::new().await;
    let (mut a, mut b) = (f.connect().await, f.connect().await);
    let tick = f.minute().await;
    for (wrong, words) in [
        (TimeDelta::hours(1), "more than 5 minutes ahead of the database's clock"),
        (TimeDelta::hours(-25), "more than a day behind the database's clock"),
    ] {
        let error = guard_try(&mut a, KEY, tick + wrong).await.unwrap_err();
        assert_eq!(code(&error), "SX030", "{error}");
        assert!(error.to_string().contains(words), "{error}");
        assert!(is_free(&mut b, KEY).await);
    }
    for absent in ["NULL, now()", "1, NULL", "1, 'infinity'", "1, '-infinity'"] {
        for function in ["guard_try", "guard_try_xact"] {
            let statement = format!("SELECT sexton.{function}({absent})");
            let call = sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&mut a);
            let error = call.await.unwrap_err();
            assert_eq!(code(&error), "SX010", "{error}");
        }
    }
    assert_eq!(f.count("SELECT count(*) FROM sexton.guard_ticks").await, 0);
}

#[tokio::test]
async fn an_end_without_a_beginning_or_with_another_word_is_refused_and_the_lock_stays() {
    let f = Fixture::new().await;
    let (mut a, mut b) = (f.connect().await, f.connect().await);
    let tick = f.minute().await;
    let error = guard_done(&mut a, KEY, tick, "succeeded").await.unwrap_err();
    assert!(error.to_string().contains("nobody has taken the tick"), "{error}");
    assert!(guard_try(&mut a, KEY, tick).await.unwrap());
    let error = guard_done(&mut a, KEY, tick, "done").await.unwrap_err();
    assert!(error.to_string().contains("none of succeeded, failed, cancelled"), "{error}");
    assert!(!is_free(&mut b, KEY).await);
    // A detail of any length is cut, and its end recorded.
    let long = "ü".repeat(100_000);
    let done: bool = sqlx::query_scalar("SELECT sexton.guard_done($1, $2, 'failed', $3)")
        .bind(KEY)
        .bind(tick)
        .bind(&long)
        .fetch_one(&mut a)
        .await
        .unwrap();
    assert!(done);
    assert_eq!(f.count("SELECT length(detail)::bigint FROM sexton.guard_ticks").await, 500);
}

/// A session's lock outlives the statement that fails: a `guard_try` that fails must let it go.
#[tokio::test]
async fn a_call_that_fails_behind_the_lock_holds_nothing() {
    let f = Fixture::new().await;
    let (mut a, mut b) = (f.connect().await, f.connect().await);
    let tick = f.minute().await;
    // The insert fails: the transaction only reads.
    sqlx::query("BEGIN READ ONLY").execute(&mut a).await.unwrap();
    let error = guard_try(&mut a, KEY, tick).await.unwrap_err();
    assert_eq!(code(&error), "25006", "{error}");
    assert!(is_free(&mut b, KEY).await);
    sqlx::query("ROLLBACK").execute(&mut a).await.unwrap();
    // The insert waits for a transaction that has taken the tick, and is cancelled.
    sqlx::query("BEGIN").execute(&mut b).await.unwrap();
    sqlx::query(
        "INSERT INTO sexton.guard_ticks (key, tick, began_at, began_by, backend) VALUES ($1, $2, now(), 'b', 1)",
    )
    .bind(KEY)
    .bind(tick)
    .execute(&mut b)
    .await
    .unwrap();
    sqlx::query("SET statement_timeout = 300").execute(&mut a).await.unwrap();
    let error = guard_try(&mut a, KEY, tick).await.unwrap_err();
    assert_eq!(code(&error), "57014", "{error}");
    sqlx::query("ROLLBACK").execute(&mut b).await.unwrap();
    assert!(is_free(&mut b, KEY).await);
    sqlx::query("SET statement_timeout = 0").execute(&mut a).await.unwrap();
    assert!(guard_try(&mut a, KEY, tick).await.unwrap());
}
