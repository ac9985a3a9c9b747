//! Every query of failed executions reads few pages, as its plan shows.

use sexton_tests::database::TestDatabase;
use sexton_tests::failed::{Size, fill, measure, table};

/// Executions; a tenth of them failed.
const EXECUTIONS: i64 = 100_000;
/// The most pages that a question may read that an ordered index answers: each of the fifty rows may be on another page, and as many again
/// that a second condition leaves out. All of `failures` are four times as many.
const MAX_PAGES: u64 = 100;

#[tokio::test]
async fn no_query_scans_all_failed_executions_or_any_succeeded_one() {
    let db = TestDatabase::create().await.unwrap();
    fill(db.store(), Size { executions: EXECUTIONS }, |_| ()).await.unwrap();
    let all_pages: i64 = sqlx::query_scalar("SELECT pg_relation_size('sexton.failures') / 8192")
        .fetch_one(db.pool())
        .await
        .unwrap();
    assert!(all_pages >= 4 * MAX_PAGES as i64, "{all_pages} pages are no test");
    let answered = measure(db.store(), 1).await.unwrap();
    let output = table(&answered);
    for one in &answered {
        assert!(!one.ways().iter().any(|way| way.contains("executions")), "{}\n{output}", one.name);
        // Words and params are looked for in a stretch of the list first, of a fixed length.
        let searches = one.name.contains("--text") || one.name.contains("--params");
        if !searches {
            assert!(one.pages() < MAX_PAGES, "{}\n{output}", one.name);
        }
        assert!(!one.ways().iter().any(|way| way == "all of failures"), "{}\n{output}", one.name);
    }
}
