//! Every query of failed executions reads few pages, as its plan shows.

use sexton_tests::database::TestDatabase;
use sexton_tests::failed::{Size, fill, measure, table};

/// Executions; a tenth of them failed.
const EXECUTIONS: i64 = 100_000;
/// Of the pages of `failures`, the part that a question may read that an ordered index answers.
const PART: u64 = 8;

#[tokio::test]
async fn no_query_scans_all_failed_executions_or_any_succeeded_one() {
    let db = TestDatabase::create().await.unwrap();
    fill(db.store(), Size { executions: EXECUTIONS }, |_| ()).await.unwrap();
    let pages: i64 = sqlx::query_scalar("SELECT pg_relation_size('sexton.failures') / 8192")
        .fetch_one(db.pool())
        .await
        .unwrap();
    let answered = measure(db.store(), 1).await.unwrap();
    let output = table(&answered);
    for one in &answered {
        assert!(!one.ways().iter().any(|way| way.contains("executions")), "{}\n{output}", one.name);
        // Words and params are looked for in a stretch of the list first, of a fixed length.
        let searches = one.name.contains("--text") || one.name.contains("--params");
        if !searches {
            assert!(one.pages() * PART < pages as u64, "{} of {pages} pages\n{output}", one.name);
        }
        assert!(!one.ways().iter().any(|way| way == "all of failures"), "{}\n{output}", one.name);
    }
}
