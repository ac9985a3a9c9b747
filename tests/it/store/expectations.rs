//! Plans that PostgreSQL's expectations do not spoil. What empties a table again and again reads it by its key, also where a vacuum has
//! found the table empty.
//!
//! PostgreSQL expects one row of such a table, however large it has become. A join would then compare each row with each.

use chrono::{DateTime, Utc};
use sexton_tests::database::TestDatabase;

use super::plans::{Bind, explain, nodes};

const AGGREGATE: &str = include_str!("../../../shared/store/src/failures/aggregate.sql");
/// Of a table of 200 pages.
const FOUND_EMPTY: &str = "
    INSERT INTO sexton.failure_changes (fingerprint, job_id, execution_id, change, failed_at)
        SELECT 'f', gen_random_uuid(), gen_random_uuid(), 1, now() FROM generate_series(1, 20000);
    UPDATE pg_class SET reltuples = 0, relpages = 200 WHERE oid = 'sexton.failure_changes'::regclass";

#[tokio::test]
async fn changes_of_counts_are_taken_by_their_ids_though_none_were_expected() {
    let db = TestDatabase::create().await.unwrap();
    sqlx::raw_sql(FOUND_EMPTY).execute(db.pool()).await.unwrap();
    let bind: Bind<'_> = &|query| query.bind(20_000_i64).bind(None::<DateTime<Utc>>).bind(8.0_f64);
    let plan = explain(&db, AGGREGATE, false, bind).await;
    let deletes = nodes(&plan, &|node| node["Operation"] == "Delete");
    assert_eq!(deletes.len(), 1, "{plan:#}");
    // What selects them, and what finds them.
    let by_key = nodes(deletes[0], &|node| node["Index Name"] == "failure_changes_pkey");
    assert_eq!(by_key.len(), 2, "{plan:#}");
    let is_join = |node: &serde_json::Value| {
        node["Node Type"]
            .as_str()
            .is_some_and(|kind| kind.contains("Join") || kind.contains("Loop"))
    };
    assert!(nodes(deletes[0], &is_join).is_empty(), "{plan:#}");
}

#[tokio::test]
async fn no_statement_is_compiled_whatever_it_is_expected_to_cost() {
    let db = TestDatabase::create().await.unwrap();
    let jit: String = sqlx::query_scalar("SELECT current_setting('jit')")
        .fetch_one(db.store().pool())
        .await
        .unwrap();
    assert_eq!(jit, "off");
}
