//! The platform in the database of an application whose tables bear the same names.
//!
//! Method: the application's tables hold rows, and refuse every write but those of the application. The real programs then
//! migrate, fire, fail, requeue and remove. Afterwards the application's rows are what they were, the platform's are in
//! `sexton`, and `public` holds what it held.

use std::collections::BTreeMap;

use sexton_tests::platform::Platform;
use sqlx::AssertSqlSafe;

use super::{by_hand, count, until};

/// An application of gardeners. Its `executions` and `attempts` refuse every write from now on; its `jobs` takes the
/// application's inserts, which here are a task's.
const APPLICATION: &str = "
    CREATE TABLE jobs (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, title text NOT NULL);
    INSERT INTO jobs (title) SELECT 'gardener ' || n FROM generate_series(1, 20) n;
    CREATE TABLE executions (id int PRIMARY KEY, court text NOT NULL);
    INSERT INTO executions SELECT n, 'of court ' || n FROM generate_series(1, 30) n;
    CREATE TABLE attempts (id int PRIMARY KEY, summit text NOT NULL);
    INSERT INTO attempts SELECT n, 'summit ' || n FROM generate_series(1, 40) n;
    CREATE TABLE operator_actions (id int PRIMARY KEY);
    CREATE TABLE _sqlx_migrations (version bigint PRIMARY KEY, description text NOT NULL,
        installed_on timestamptz NOT NULL DEFAULT now(), success boolean NOT NULL, checksum bytea NOT NULL,
        execution_time bigint NOT NULL);
    INSERT INTO _sqlx_migrations SELECT n, 'theirs', now(), true, '\\x01', 1 FROM generate_series(1, 200) n;
    CREATE TYPE bulks AS ENUM ('tulips', 'crocuses');
    CREATE FUNCTION index_failure() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'a write to % of the application', TG_TABLE_NAME; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE OR DELETE OR TRUNCATE ON jobs EXECUTE FUNCTION index_failure();
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON executions EXECUTE FUNCTION index_failure();
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON attempts EXECUTE FUNCTION index_failure();
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON operator_actions
        EXECUTE FUNCTION index_failure();
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON _sqlx_migrations
        EXECUTE FUNCTION index_failure()";

const CATALOGUE: &str = r#"
[tasks.fine]
command = ["/bin/sh", "-c", "echo done"]

[tasks.charge]
command = ["/bin/sh", "-c", "test -e bank"]
retry = { max_retries = 0 }

[tasks.hire]
sql = "insert into jobs (title) values ('hired by a task')"
"#;

/// Every name and every row of `public`, table by table.
async fn application(platform: &Platform) -> BTreeMap<String, String> {
    let pool = platform.store().pool();
    let names = "SELECT coalesce(string_agg(name, ', ' ORDER BY name), '') FROM (
            SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
            UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
            UNION ALL SELECT typname FROM pg_type WHERE typnamespace = 'public'::regnamespace) n (name)";
    let names: String = sqlx::query_scalar(names).fetch_one(pool).await.unwrap();
    let mut found = BTreeMap::from([("names".to_owned(), names)]);
    for table in ["jobs", "executions", "attempts", "operator_actions", "_sqlx_migrations"] {
        let rows = format!(
            "SELECT coalesce(string_agg(t::text, E'\\n' ORDER BY t::text), '') FROM public.{table} t
             WHERE t::text NOT LIKE '%hired by a task%'"
        );
        let rows: String = sqlx::query_scalar(AssertSqlSafe(rows)).fetch_one(pool).await.unwrap();
        found.insert(table.to_owned(), rows);
    }
    found
}

#[tokio::test]
async fn the_platform_works_beside_an_application_s_tables_of_the_same_names_and_leaves_them_alone()
{
    let servers = sexton_servers::shared().await.unwrap();
    let (database, broker) = (&servers.database_url, &servers.amqp_url);
    let mut platform = Platform::unmigrated_on(database, broker, "beside").await.unwrap();
    sqlx::raw_sql(APPLICATION).execute(platform.store().pool()).await.unwrap();
    let before = application(&platform).await;
    for applied in [" migrations were applied", "up to date"] {
        let migrated = platform.sexton(&["migrate"]).await;
        assert!(migrated.status.success() && migrated.stdout.contains(applied), "{migrated}");
    }
    platform.catalogue(CATALOGUE);
    let mut scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = platform.start_worker("w1", &[]).unwrap();
    scheduler.ready().await;
    worker.ready().await;
    let fires = "[[job]]\nname = \"a.fires\"\ntask = \"fine\"\nevery = \"1s\"\n";
    platform.apply(fires).await.unwrap();
    platform.apply(&by_hand("a.charge", "charge", "")).await.unwrap();
    platform.apply(&by_hand("a.hires", "hire", "")).await.unwrap();
    // Firings, failures and their requeue, and a statement that reads `jobs` as the application does.
    platform.sexton(&["jobs", "trigger", "a.charge"]).await;
    platform.sexton(&["jobs", "trigger", "a.hires"]).await;
    until(&platform, "sexton.executions WHERE state = 'failed'", 1).await;
    until(&platform, "public.jobs WHERE title = 'hired by a task'", 1).await;
    std::fs::write(platform.folder().join("bank"), "").unwrap();
    let requeue = ["failed", "requeue", "--all", "--yes", "--reason", "the bank is back"];
    let requeued = platform.sexton(&requeue).await;
    assert!(requeued.status.success(), "{requeued}");
    until(&platform, "sexton.executions WHERE state = 'failed'", 0).await;
    for looks in [&["status"][..], &["jobs", "list"], &["executions", "list"]] {
        let looked = platform.sexton(looks).await;
        assert!(looked.status.success(), "{looked}");
    }
    assert!(count(&platform, "sexton.executions WHERE state = 'succeeded'").await >= 3);
    assert_eq!(count(&platform, "sexton.operator_actions WHERE action = 'bulk'").await, 1);
    assert_eq!(count(&platform, "public.jobs").await, 21);
    assert_eq!(application(&platform).await, before);
    let logs = platform.logs();
    assert!(!logs.contains("of the application"), "{logs}");
}
