//! The rows among which benchmarks measure.

use sexton_tests::database::TestDatabase;
use sexton_tests::failed::{PlatformRows, Size, fill, fill_platform_rows};

/// What a table has besides its rows.
const DEFINITIONS: &str = "
    WITH filled (id) AS (VALUES ('sexton.executions'::regclass), ('sexton.failures'::regclass))
    SELECT pg_get_indexdef(i.indexrelid) || ' ' || i.indisvalid::text AS definition
    FROM filled f JOIN pg_index i ON i.indrelid = f.id
    UNION ALL
    SELECT c.conname::text || ' ' || pg_get_constraintdef(c.oid) || ' ' || c.convalidated::text
    FROM filled f JOIN pg_constraint c ON c.conrelid = f.id
    UNION ALL
    SELECT t.tgname::text || ' ' || t.tgenabled::text
    FROM filled f JOIN pg_trigger t ON t.tgrelid = f.id WHERE NOT t.tgisinternal
    ORDER BY definition";
const SIZE: Size = Size { executions: 3_000 };

#[tokio::test]
async fn a_fill_leaves_the_indexes_constraints_and_triggers_of_its_tables() {
    let db = TestDatabase::create().await.unwrap();
    let definitions = async || -> Vec<String> {
        sqlx::query_scalar(DEFINITIONS).fetch_all(db.pool()).await.unwrap()
    };
    let before = definitions().await;
    fill(db.store(), SIZE, |_| ()).await.unwrap();
    assert_eq!(definitions().await, before);
    let without_worker = "SELECT count(*) FROM sexton.failures WHERE worker IS NULL";
    let count: i64 = sqlx::query_scalar(without_worker).fetch_one(db.pool()).await.unwrap();
    assert_eq!(count, 0);
}

#[tokio::test]
async fn the_rows_of_a_platform_are_as_many_as_given() {
    let db = TestDatabase::create().await.unwrap();
    fill(db.store(), SIZE, |_| ()).await.unwrap();
    let rows = PlatformRows {
        actions: 120,
        incidents: 60,
        bulks: 5,
        flows: 10,
        checks: 3,
        lock_rows: 4,
        workers: 2,
        unknown_messages: 6,
        approvals: 110,
        firings: 96,
    };
    fill_platform_rows(db.store(), rows).await.unwrap();
    for (query, expected) in [
        ("SELECT count(*) FROM sexton.audit_seals", 120),
        ("SELECT count(*) FROM sexton.audit_unsealed", 0),
        ("SELECT count(*) FROM sexton.incidents WHERE state = 'resolved'", 10),
        ("SELECT count(*) FROM sexton.notifications", 60),
        ("SELECT count(*) FROM sexton.bulk_items", 100),
        ("SELECT count(*) FROM sexton.flows WHERE members = 4", 10),
        ("SELECT count(*) FROM sexton.flow_edges", 30),
        ("SELECT count(*) FROM sexton.executions WHERE flow_id IS NOT NULL", 40),
        ("SELECT count(*) FROM sexton.flows WHERE ended_at IS NULL", 4),
        ("SELECT count(*) FROM sexton.pings", 300),
        ("SELECT count(*) FROM sexton.lock_rows", 4),
        ("SELECT count(*) FROM sexton.executions WHERE state = 'running'", 16),
        ("SELECT count(*) FROM sexton.unknown_messages", 6),
        ("SELECT count(*) FROM sexton.approval_requests WHERE state = 'waiting'", 100),
        ("SELECT count(*) FROM sexton.attempt_output", 96),
    ] {
        let count: i64 = sqlx::query_scalar(query).fetch_one(db.pool()).await.unwrap();
        assert_eq!(count, expected, "{query}");
    }
}
