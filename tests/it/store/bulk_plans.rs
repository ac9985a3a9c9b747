//! What a page of a bulk's items reads, where bulks have a hundred thousand of them.

use serde_json::Value;
use sexton_model::bulk_item::ItemState;
use sexton_store::bulk::{ItemPage, MAX_WALKED_ITEMS, page_of_items};
use sexton_tests::database::TestDatabase;

use super::plans::{Bind, explain, nodes, ordinary_history, rows_passed};

const ITEM_PAGE: &str = include_str!("../../../shared/store/src/bulk/item_page.sql");
/// Items of each of two bulks.
const ITEMS: i64 = 100_000;
/// The one that is refused.
const REFUSED: i64 = 60_000;
/// The first that waits.
const WAITING: i64 = 99_001;
/// Rows that one statement of the set-up inserts.
const SET_UP_ROWS: usize = 10_000;
const LIMIT: i64 = 51;

/// Two bulks of the same executions. Returns their numbers.
async fn two_bulks(db: &TestDatabase) -> Vec<i64> {
    ordinary_history(db).await;
    // So that the knowledge is that of the test, at each moment.
    let by_hand = "ALTER TABLE sexton.bulk_items SET (autovacuum_enabled = false);
        ALTER TABLE sexton.operator_actions SET (autovacuum_enabled = false)";
    sqlx::raw_sql(by_hand).execute(db.pool()).await.unwrap();
    let bulks: Vec<i64> = sqlx::query_scalar(
        "INSERT INTO sexton.bulks (kind, selector, previewed_at, actor, state, selected, created_at)
         SELECT 'requeue', '{\"filter\": {}}', now(), 'ann', 'running', $1, now()
         FROM generate_series(1, 2) RETURNING id",
    )
    .bind(ITEMS)
    .fetch_all(db.pool())
    .await
    .unwrap();
    let items = "INSERT INTO sexton.bulk_items (bulk_id, ordinal, execution_id, seen, state)
        SELECT b.id, n, lpad(to_hex(n), 32, '0')::uuid, 1,
            CASE WHEN n = $3 THEN 'refused' WHEN n >= $4 THEN 'waiting' ELSE 'done' END
        FROM sexton.bulks b, generate_series($1::bigint, $2) n WHERE b.id = $5";
    let actions = "INSERT INTO sexton.operator_actions (at, actor, action, execution_id, bulk_id)
        SELECT now(), 'ann', 'requeue', execution_id, bulk_id FROM sexton.bulk_items
        WHERE bulk_id = $3 AND ordinal BETWEEN $1 AND $2 AND state = 'done'";
    for bulk in &bulks {
        for first in (1..=ITEMS).step_by(SET_UP_ROWS) {
            let last = first + SET_UP_ROWS as i64 - 1;
            let query = sqlx::query(items).bind(first).bind(last).bind(REFUSED).bind(WAITING);
            query.bind(bulk).execute(db.pool()).await.unwrap();
            let query = sqlx::query(actions).bind(first).bind(last).bind(bulk);
            query.execute(db.pool()).await.unwrap();
        }
    }
    let analyze = "ANALYZE sexton.bulks, sexton.bulk_items, sexton.operator_actions";
    sqlx::raw_sql(analyze).execute(db.pool()).await.unwrap();
    bulks
}

/// Asserts that a page looks at no more than `most` items, and at the executions and actions of its rows alone.
async fn assert_reads(
    db: &TestDatabase,
    bulk: i64,
    state: Option<ItemState>,
    after: i64,
    most: i64,
) {
    let word = state.map(ItemState::as_str);
    let bind: Bind<'_> = &|query| {
        let query = query.bind(bulk).bind(after).bind(MAX_WALKED_ITEMS);
        query.bind(word).bind(LIMIT)
    };
    let plan = explain(db, ITEM_PAGE, true, bind).await;
    let read = |table: &str| {
        let is_of_table = |node: &Value| node["Relation Name"] == table;
        rows_passed(&nodes(&plan, &is_of_table))
    };
    let items = read("bulk_items");
    assert!(items <= most as f64, "{state:?}: {items} items were read: {plan:#}");
    let executions = read("executions");
    assert!(executions <= LIMIT as f64, "{state:?}: {executions} executions: {plan:#}");
    // Both bulks have acted on them.
    let actions = read("operator_actions");
    assert!(actions <= 2.0 * LIMIT as f64, "{state:?}: {actions} actions: {plan:#}");
}

#[tokio::test]
async fn a_page_of_a_large_bulk_s_items_reads_its_rows_and_a_filter_a_bounded_number() {
    let db = TestDatabase::create().await.unwrap();
    let bulks = two_bulks(&db).await;
    let bulk = bulks[1];
    for after in [0, ITEMS / 2, ITEMS - 10] {
        assert_reads(&db, bulk, None, after, LIMIT).await;
    }
    assert_reads(&db, bulk, Some(ItemState::Done), 0, LIMIT).await;
    assert_reads(&db, bulk, Some(ItemState::Waiting), 0, LIMIT).await;
    assert_reads(&db, bulk, Some(ItemState::Unasked), 0, 0).await;
    assert_reads(&db, bulk, Some(ItemState::Refused), 0, MAX_WALKED_ITEMS).await;

    let page = async |state, after| {
        let page = page_of_items(db.store(), bulk, state, after, LIMIT).await.unwrap();
        let ItemPage { items, walked_to } = page;
        (items.iter().map(|item| item.ordinal).collect::<Vec<_>>(), walked_to)
    };
    // The refused one is behind what the first page looks at.
    let refused = Some(ItemState::Refused);
    assert_eq!(page(refused, 0).await, (vec![], Some(MAX_WALKED_ITEMS)));
    assert_eq!(page(refused, MAX_WALKED_ITEMS).await, (vec![REFUSED], None));
    let waiting: Vec<i64> = (WAITING..WAITING + LIMIT).collect();
    assert_eq!(page(Some(ItemState::Waiting), 0).await, (waiting, None));
    assert_eq!(page(Some(ItemState::Unasked), 0).await, (vec![], None));
    assert_eq!(page(None, ITEMS - 1).await, (vec![ITEMS], None));
    let item = page_of_items(db.store(), bulk, None, 0, 1).await.unwrap().items.remove(0);
    assert_eq!(item.job_name.as_deref(), Some("job.0"));
    assert_eq!(item.execution_state.as_deref(), Some("succeeded"));
    assert!(item.acted_at.is_some());
}
