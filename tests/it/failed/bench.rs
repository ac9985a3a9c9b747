//! `make bench-failed`, on a small scale.

use sexton_tests::database::TestDatabase;
use sexton_tests::failed::{Size, fill, measure, table};

#[tokio::test]
async fn the_benchmark_of_failed_executions_runs_every_query() {
    let db = TestDatabase::create().await.unwrap();
    let size = Size { executions: 3_000 };
    fill(db.store(), size, |_| ()).await.unwrap();
    let failed: i64 = sqlx::query_scalar("SELECT count(*) FROM sexton.failures")
        .fetch_one(db.pool())
        .await
        .unwrap();
    assert_eq!(failed, size.failed());
    let answered = measure(db.store(), 2).await.unwrap();
    let rows = |name: &str| answered.iter().find(|one| one.name == name).unwrap().rows;
    for (name, expected) in [
        ("list, newest first", 50),
        ("--job, rare", 1),
        ("--text, rare", 1),
        ("--text, nowhere", 0),
        ("--params, common", 50),
        ("--params, nowhere", 0),
        ("show", 1),
    ] {
        assert_eq!(rows(name), expected, "{name}\n{}", table(&answered));
    }
    assert!(answered.iter().all(|one| one.times.len() == 2));
}
