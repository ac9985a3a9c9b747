//! The functions for callers are an interface: names, types, volatility and rights change only on purpose.

use sexton_store::roles::grant_roles;
use sexton_tests::database::TestDatabase;

/// Name with arguments, result, volatility, and who may execute it. A change is a new version, with a migration that
/// keeps what callers of the version before use.
const CATALOGUE: [&str; 12] = [
    "cancel(job text, INOUT key text, reason text DEFAULT NULL::text, OUT execution_id uuid, OUT cancelled boolean, \
     OUT state text) → record, volatile",
    "cancel_flow(INOUT flow_id uuid, reason text DEFAULT NULL::text, OUT cancelled integer, OUT open integer) → record, \
     volatile",
    "demand(INOUT pool text, OUT waiting bigint, OUT running bigint, OUT oldest_wait interval) → record, stable",
    "enqueue(job text, params jsonb DEFAULT '{}'::jsonb, INOUT key text DEFAULT NULL::text, run_at timestamp with time \
     zone DEFAULT NULL::timestamp with time zone, delay interval DEFAULT NULL::interval, unique_for text DEFAULT \
     'ever'::text, if_exists text DEFAULT 'keep'::text, labels jsonb DEFAULT '{}'::jsonb, OUT execution_id uuid, \
     OUT created boolean, OUT state text) → record, volatile",
    "enqueue_many(job text, items jsonb) → TABLE(ordinal integer, execution_id uuid, key text, created boolean, state \
     text), volatile",
    "execution(INOUT execution_id uuid, OUT job text, OUT key text, OUT state text, OUT attempt integer, OUT \
     scheduled_for timestamp with time zone, OUT started_at timestamp with time zone, OUT finished_at timestamp with \
     time zone, OUT outcome text, OUT result jsonb, OUT error_class text, OUT error_message text) → record, stable",
    "execution(INOUT job text, INOUT key text, OUT execution_id uuid, OUT state text, OUT attempt integer, OUT \
     scheduled_for timestamp with time zone, OUT started_at timestamp with time zone, OUT finished_at timestamp with \
     time zone, OUT outcome text, OUT result jsonb, OUT error_class text, OUT error_message text) → record, volatile",
    "flow(definition jsonb, OUT flow_id uuid, OUT created boolean, OUT members integer, OUT open integer) → record, \
     volatile",
    "functions_version() → integer, immutable",
    "guard_done(key bigint, tick timestamp with time zone, outcome text DEFAULT 'succeeded'::text, detail text DEFAULT \
     NULL::text) → boolean, volatile",
    "guard_try(key bigint, tick timestamp with time zone) → boolean, volatile",
    "guard_try_xact(key bigint, tick timestamp with time zone) → boolean, volatile",
];

#[tokio::test]
async fn a_producer_may_execute_exactly_the_functions_of_the_catalogue() {
    let db = TestDatabase::create().await.unwrap();
    // Roles are the server's.
    let prefix = format!("sx_{}", &uuid::Uuid::new_v4().simple().to_string()[..12]);
    let roles = grant_roles(db.store(), &prefix).await.unwrap();
    let producer = roles.iter().find(|role| role.ends_with("_producer")).unwrap();
    let executable: Vec<String> = sqlx::query_scalar(
        "SELECT format('%s(%s) → %s, %s', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid),
                       CASE p.provolatile WHEN 'v' THEN 'volatile' WHEN 's' THEN 'stable' ELSE 'immutable' END)
         FROM pg_proc p WHERE p.pronamespace = 'sexton'::regnamespace AND has_function_privilege($1, p.oid, 'EXECUTE')
         ORDER BY 1",
    )
    .bind(producer)
    .fetch_all(db.pool())
    .await
    .unwrap();
    assert_eq!(executable, CATALOGUE);
    let tables: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_class c WHERE relnamespace = 'sexton'::regnamespace AND relkind IN ('r', 'v')
           AND has_table_privilege($1, c.oid, 'SELECT, INSERT, UPDATE, DELETE')",
    )
    .bind(producer)
    .fetch_one(db.pool())
    .await
    .unwrap();
    assert_eq!(tables, 0, "a producer may read or write a table");
    // As one, with nothing on its search_path.
    let mut tx = db.pool().begin().await.unwrap();
    let become_producer = format!("SET LOCAL ROLE {producer}; SET LOCAL search_path = ''");
    sqlx::raw_sql(sqlx::AssertSqlSafe(become_producer)).execute(&mut *tx).await.unwrap();
    let version: i32 =
        sqlx::query_scalar("SELECT sexton.functions_version()").fetch_one(&mut *tx).await.unwrap();
    assert_eq!(version, 1);
    let error =
        sqlx::query("SELECT sexton.enqueue('no.such')").execute(&mut *tx).await.unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().as_deref(), Some("SX001"), "{error}");
    tx.rollback().await.unwrap();
    for role in roles {
        let dropping = format!(
            "REASSIGN OWNED BY {role} TO CURRENT_USER; DROP OWNED BY {role}; DROP ROLE {role}"
        );
        sqlx::raw_sql(sqlx::AssertSqlSafe(dropping)).execute(db.pool()).await.unwrap();
    }
}

#[tokio::test]
async fn functions_with_the_owners_rights_pin_their_search_path_and_nobody_else_executes_any() {
    let db = TestDatabase::create().await.unwrap();
    let unpinned: Vec<String> = sqlx::query_scalar(
        "SELECT p.proname::text FROM pg_proc p
         WHERE p.pronamespace = 'sexton'::regnamespace AND p.prosecdef
           AND NOT coalesce(p.proconfig @> '{\"search_path=pg_catalog, pg_temp\"}', false)",
    )
    .fetch_all(db.pool())
    .await
    .unwrap();
    assert_eq!(unpinned, Vec::<String>::new());
    // A role with a table of its own can make a trigger of it call a trigger's function.
    let of_all: Vec<String> = sqlx::query_scalar(
        "SELECT p.oid::regprocedure::text FROM pg_proc p, LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
         WHERE p.pronamespace = 'sexton'::regnamespace AND a.grantee = 0 AND (p.prorettype <> 'trigger'::regtype OR p.prosecdef)",
    )
    .fetch_all(db.pool())
    .await
    .unwrap();
    assert_eq!(of_all, Vec::<String>::new(), "everybody may execute these");
}
