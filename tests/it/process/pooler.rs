//! Programs whose connections go through a pooler that drops start-up options.

use std::time::Duration;

use sexton_servers::PgBouncer;
use sexton_tests::platform::Platform;
use sqlx::AssertSqlSafe;

const DEADLINE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn a_connection_that_did_not_get_its_settings_is_refused_by_every_program_with_the_remedy() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.work]\nnoop = true\n");
    // What the protocol's promises stand on is off unless a connection asks for it.
    let (_, name) = platform.database_url().rsplit_once('/').unwrap();
    let off = format!("ALTER DATABASE \"{name}\" SET synchronous_commit = off");
    sqlx::raw_sql(AssertSqlSafe(off)).execute(platform.store().pool()).await.unwrap();
    let pooler = PgBouncer::start(platform.database_url(), "session").await.unwrap();
    let through = [("DATABASE_URL", pooler.url())];

    let said = "synchronous_commit is off and not on, statement_timeout is 0 and not 30000, \
                idle_in_transaction_session_timeout is 0 and not 60000; a connection pooler";
    let refused = platform.sexton_with(&through, &["status"]).await;
    assert_eq!(refused.status.code(), Some(5), "{}", refused.stderr);
    assert!(refused.stderr.contains(said), "{}", refused.stderr);

    let scheduler = platform.start_scheduler("s", &through).unwrap();
    let worker = platform.start_worker("w", &through).unwrap();
    for program in [&scheduler, &worker] {
        let warned = async || program.log().contains(said).then_some(());
        platform.eventually("the program says what is wrong", DEADLINE, warned).await;
        let (ready, answer) = program.ask("/readyz").await.unwrap();
        assert!(!ready, "{answer}");
    }

    // The same pooler, once the role and the database have them by themselves.
    for setting in [
        "synchronous_commit = on",
        "statement_timeout = '30s'",
        "idle_in_transaction_session_timeout = '1min'",
    ] {
        let set = format!("ALTER DATABASE \"{name}\" SET {setting}");
        sqlx::raw_sql(AssertSqlSafe(set)).execute(platform.store().pool()).await.unwrap();
    }
    let pooler = PgBouncer::start(platform.database_url(), "session").await.unwrap();
    let taken = platform.sexton_with(&[("DATABASE_URL", pooler.url())], &["status"]).await;
    assert!(taken.status.success(), "{}", taken.stderr);
}
