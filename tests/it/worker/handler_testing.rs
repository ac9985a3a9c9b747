//! `sexton_worker::testing` with a database: a handler's transaction, looked at before its commit.

use serde_json::{Value, json};
use sexton_tests::database::TestDatabase;
use sexton_worker::testing::{self, Outcome};
use sexton_worker::{Completion, Ctx, HandlerError, sqlx};

async fn count(ctx: Ctx, params: Value) -> Result<Completion<i64>, HandlerError> {
    let mut tx = ctx.begin().await?;
    let add = "INSERT INTO counted SELECT FROM generate_series(1, $1)";
    let added = sqlx::query(add).bind(params["n"].as_i64()).execute(&mut *tx).await?;
    if params["commits"] == true {
        sqlx::raw_sql("COMMIT").execute(&mut *tx).await?;
    }
    Ok(ctx.complete_in(tx).with(added.rows_affected() as i64))
}

#[tokio::test]
async fn a_handler_test_with_a_database_shows_its_effects_and_rolls_them_back() {
    let database = TestDatabase::create().await.unwrap();
    let pool = database.store().pool();
    sqlx::raw_sql("CREATE TABLE counted ()").execute(pool).await.unwrap();
    let there = "SELECT count(*) FROM counted";
    let mut ran = testing::run(count).params(json!({"n": 3})).database(database.url()).await;
    assert_eq!((&ran.outcome, &ran.result), (&Outcome::Succeeded, &Some(json!(3))));
    let seen: i64 = sqlx::query_scalar(there).fetch_one(ran.transaction().unwrap()).await.unwrap();
    assert_eq!(seen, 3);
    drop(ran);
    let left: i64 = sqlx::query_scalar(there).fetch_one(pool).await.unwrap();
    assert_eq!(left, 0);
    let params = json!({"n": 3, "commits": true});
    let ran = testing::run(count).params(params).database(database.url()).await;
    let found_out = "invalid_transaction_termination";
    assert!(matches!(ran.outcome, Outcome::Permanent { class, .. } if class == found_out));
}

#[tokio::test]
async fn a_handler_test_has_one_connection_and_warns_of_a_missing_completion() {
    async fn begins(ctx: Ctx, many: u32) -> Result<(), HandlerError> {
        let mut begun = Vec::new();
        for _ in 0..many {
            begun.push(ctx.begin().await?);
        }
        Ok(())
    }
    let database = TestDatabase::create().await.unwrap();
    let trial = |many: u32| testing::run(begins).params(json!(many)).database(database.url());
    let ran = trial(0).await;
    assert_eq!((ran.outcome, ran.lines), (Outcome::Succeeded, vec![]));
    let ran = trial(1).await;
    assert_eq!(ran.outcome, Outcome::Succeeded);
    assert!(ran.lines.concat().contains("without `ctx.complete_in(tx)`"), "{:?}", ran.lines);
    let ran = trial(2).await;
    let lost = "connection_failure";
    assert!(matches!(&ran.outcome, Outcome::Failed { class, .. } if class == lost), "{ran:?}");
}
