//! An advisory lock cannot be broken: the answer says who holds it and what frees it.

use sqlx::postgres::PgConnection;

use super::{Fixture, KEY, execute, process_id};

#[tokio::test]
async fn the_key_of_an_advisory_lock_is_refused_with_what_frees_it() {
    let f = Fixture::new().await;
    let mut holder = f.connect("billing-api").await;
    execute(&mut holder, &format!("SELECT pg_advisory_lock({KEY})")).await;
    let pid = process_id(&mut holder).await;
    let break_key = ["locks", "break", "5101", "--reason", "stuck", "--yes"];
    let refused = f.sexton(&break_key).await.expect(2).text();
    let statement = format!("SELECT pg_terminate_backend({pid})");
    assert!(refused.contains("held by billing-api, "), "{refused}");
    assert!(refused.contains(&statement), "{refused}");
    assert_eq!(f.text("SELECT count(*)::text FROM sexton.operator_actions").await, "0");
    // It does what the answer says.
    f.sql(&statement).await;
    let mut other = f.connect("another").await;
    let is_free = async |session: &mut PgConnection| -> bool {
        let query = sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(KEY);
        query.fetch_one(session).await.unwrap()
    };
    let freed = async {
        while !is_free(&mut other).await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(super::DEADLINE, freed).await.expect("the session's end frees the lock");
}

#[tokio::test]
async fn the_answer_names_the_execution_that_holds_the_key() {
    let f = Fixture::new().await;
    let job = f.job("billing.cleanup", "lock_key = 5101").await;
    f.worker("w1", 7).await;
    let id = f.running(job, "w1", 1).await;
    let mut holder = f.connect("sexton worker w1 locks").await;
    execute(&mut holder, &format!("SELECT pg_advisory_lock({KEY})")).await;
    let break_key = ["locks", "break", "5101", "--reason", "stuck", "--force", "--yes"];
    let refused = f.sexton(&break_key).await.expect(2).text();
    assert!(refused.contains(&format!("sexton executions cancel {id}")), "{refused}");
}

#[tokio::test]
async fn of_a_free_key_and_a_name_that_nobody_took_the_answer_says_so() {
    let f = Fixture::new().await;
    let refused = f.sexton(&["locks", "break", "5101", "--reason", "x", "--yes"]).await.expect(2);
    assert!(refused.text().contains("nobody holds it"));
    let refused =
        f.sexton(&["locks", "break", "cleanup", "--reason", "x", "--yes"]).await.expect(3);
    let text = refused.text();
    assert!(text.contains("no lock row \"cleanup\"") && text.contains("locks --all"), "{text}");
    // A row may be called like a number.
    f.row("5101", "app1", 1, 5).await;
    f.sexton(&["locks", "break", "5101", "--reason", "x", "--yes"]).await.expect(0);
    assert!(!f.is_locked("5101").await);
}
