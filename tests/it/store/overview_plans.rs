//! What the overview reads of a long history.

use chrono::{DateTime, Utc};
use sexton_store::status::{DueExecutions, due_since};
use sexton_tests::database::TestDatabase;

use super::plans::{Bind, explain, nodes, ordinary_history, rows_passed};

const DUE_SINCE: &str = include_str!("../../../shared/store/src/platform/due_since.sql");
const HOUR_S: i64 = 3_600;
/// Executions that a count looks at.
const WALK: i64 = 10_000;

#[tokio::test]
async fn what_was_due_within_an_hour_is_counted_by_one_bounded_walk_back_along_the_primary_key() {
    let db = TestDatabase::create().await.unwrap();
    ordinary_history(&db).await;
    let now: Option<DateTime<Utc>> = None;
    // Each day has more executions than are looked at, one in a second.
    for seconds in [HOUR_S, 24 * HOUR_S] {
        let bind: Bind<'_> = &|query| query.bind(seconds as f64).bind(WALK).bind(now);
        let plan = explain(&db, DUE_SINCE, true, bind).await;
        let scans = nodes(&plan, &|node| node["Relation Name"] == "executions");
        assert_eq!(scans.len(), 1, "{plan:#}");
        assert_eq!(scans[0]["Index Name"], "executions_pkey", "{plan:#}");
        assert_eq!(scans[0]["Scan Direction"], "Backward", "{plan:#}");
        let read = rows_passed(&scans);
        assert!(read <= (WALK + 1) as f64, "{read} rows were read: {plan:#}");
        // The walk has the order of the numbers.
        let sorts = nodes(&plan, &|node| node["Node Type"] == "Sort");
        assert!(sorts.is_empty(), "{plan:#}");
    }
    // At an instant at which the history has just ended.
    let end: DateTime<Utc> = sqlx::query_scalar(
        "SELECT max(scheduled_for) + interval '1 microsecond' FROM sexton.executions",
    )
    .fetch_one(db.pool())
    .await
    .unwrap();
    let count = async |seconds: i64| due_since(db.store(), seconds, WALK, Some(end)).await.unwrap();
    let of = |due: i64, is_cut_short| DueExecutions { due, succeeded: due, is_cut_short };
    let counts = (count(HOUR_S).await, count(24 * HOUR_S).await);
    assert_eq!(counts, (of(HOUR_S, false), of(WALK, true)));
}
