//! Programs whose connections go through PgBouncer, as it hands out a session for a client or for a transaction.

use std::time::Duration;

use sexton_servers::PgBouncer;
use sexton_tests::platform::Platform;
use sqlx::AssertSqlSafe;

use super::{by_hand, count, until};

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

    let reason = "synchronous_commit is off and not on, statement_timeout is 0 and not 30000, \
                  idle_in_transaction_session_timeout is 0 and not 60000; a connection pooler";
    assert_refused(&platform, "1", &through, &[reason]).await;

    // The same pooler, once the database has them by itself.
    settings_of_the_database(&platform).await;
    let pooler = PgBouncer::start(platform.database_url(), "session").await.unwrap();
    let taken = platform.sexton_with(&[("DATABASE_URL", pooler.url())], &["status"]).await;
    assert!(taken.status.success(), "{}", taken.stderr);
}

/// Asserts that every program refuses the connection with all of `parts`, and that a scheduler and a worker are not
/// ready. `suffix` ends the names of their instances.
async fn assert_refused(
    platform: &Platform,
    suffix: &str,
    environment: &[(&str, &str)],
    parts: &[&str],
) {
    let refused = platform.sexton_with(environment, &["status"]).await;
    assert_eq!(refused.status.code(), Some(5), "{}", refused.stderr);
    for part in parts {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    let scheduler = platform.start_scheduler(&format!("s{suffix}"), environment).unwrap();
    let worker = platform.start_worker(&format!("w{suffix}"), environment).unwrap();
    for program in [&scheduler, &worker] {
        let warned = async || parts.iter().all(|part| program.log().contains(part)).then_some(());
        platform.eventually("the program says what is wrong", DEADLINE, warned).await;
        let (ready, answer) = program.ask("/readyz").await.unwrap();
        assert!(!ready, "{answer}");
    }
}

/// Gives the database what a pooler drops from each connection.
async fn settings_of_the_database(platform: &Platform) {
    let (_, name) = platform.database_url().rsplit_once('/').unwrap();
    for setting in [
        "synchronous_commit = on",
        "default_transaction_isolation = 'read committed'",
        "statement_timeout = '30s'",
        "idle_in_transaction_session_timeout = '1min'",
    ] {
        let set = format!("ALTER DATABASE \"{name}\" SET {setting}");
        sqlx::raw_sql(AssertSqlSafe(set)).execute(platform.store().pool()).await.unwrap();
    }
}

#[tokio::test]
async fn behind_a_pooler_that_gives_a_session_to_one_client_the_platform_works() {
    for direct in [false, true] {
        let mut platform = Platform::new().await.unwrap();
        platform.catalogue("[tasks.work]\nnoop = true\n[tasks.sql]\nsql = \"select 1\"\n");
        settings_of_the_database(&platform).await;
        let pooler = PgBouncer::start(platform.database_url(), "session").await.unwrap();
        let mut through = vec![("DATABASE_URL", pooler.url())];
        if direct {
            through.push(("DATABASE_DIRECT_URL", platform.database_url()));
        }
        let migrated = platform.sexton_with(&through, &["migrate"]).await;
        assert!(migrated.status.success(), "{migrated}");
        for (job, task) in [("a.b", "work"), ("a.c", "sql")] {
            platform.apply(&by_hand(job, task, "")).await.unwrap();
        }
        let mut scheduler = platform.start_scheduler("s", &through).unwrap();
        let mut worker = platform.start_worker("w", &through).unwrap();
        scheduler.ready().await;
        worker.ready().await;
        for job in ["a.b", "a.c"] {
            let triggered = platform.sexton_with(&through, &["jobs", "trigger", job]).await;
            assert!(triggered.status.success(), "{triggered}");
        }
        until(&platform, "sexton.executions WHERE state = 'succeeded'", 2).await;
        let found = platform.sexton_with(&through, &["--json", "doctor"]).await;
        assert!(!found.stdout.contains("database_deaf"), "{found}");
        // Both listen: by the pooler, with which these sessions end, or past it.
        let listen =
            "pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'";
        until(&platform, listen, 2).await;
        let url = pooler.url().to_owned();
        drop(pooler);
        let gone = async || {
            let status = platform.sexton_with(&[("DATABASE_URL", &*url)], &["status"]).await;
            (!status.status.success()).then_some(())
        };
        platform.eventually("the pooler is gone", DEADLINE, gone).await;
        if direct {
            assert_eq!(count(&platform, listen).await, 2);
        } else {
            until(&platform, listen, 0).await;
        }
    }
}

#[tokio::test]
async fn behind_a_pooler_that_gives_a_session_to_a_transaction_every_program_refuses_with_the_remedy()
 {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.work]\nnoop = true\n");
    settings_of_the_database(&platform).await;
    let pooler = PgBouncer::start(platform.database_url(), "transaction").await.unwrap();
    let direct = ("DATABASE_DIRECT_URL", platform.database_url());
    for through in
        [vec![("DATABASE_URL", pooler.url())], vec![("DATABASE_URL", pooler.url()), direct]]
    {
        let parts = [
            "hands out sessions by the transaction",
            "pool_mode = session",
            "let DATABASE_URL name PostgreSQL itself",
        ];
        assert_refused(&platform, &through.len().to_string(), &through, &parts).await;
    }
    // Migrations have a way of their own.
    let migrated = platform.sexton_with(&[("DATABASE_URL", pooler.url())], &["migrate"]).await;
    assert_eq!(migrated.status.code(), Some(5), "{migrated}");
    let migrated =
        platform.sexton_with(&[("DATABASE_URL", pooler.url()), direct], &["migrate"]).await;
    assert!(migrated.status.success(), "{migrated}");
}

#[tokio::test]
async fn a_pooler_that_refuses_start_up_options_is_told_from_a_server_that_does_not_answer() {
    let platform = Platform::new().await.unwrap();
    let pooler = PgBouncer::start_strict(platform.database_url(), "session").await.unwrap();
    let refused = platform.sexton_with(&[("DATABASE_URL", pooler.url())], &["status"]).await;
    assert_eq!(refused.status.code(), Some(5), "{}", refused.stderr);
    for part in ["refuses start-up options", "ignore_startup_parameters", "PostgreSQL itself"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
}

#[tokio::test]
async fn a_direct_way_to_another_database_is_refused() {
    let (platform, other) = (Platform::new().await.unwrap(), Platform::new().await.unwrap());
    let env = [("DATABASE_DIRECT_URL", other.database_url())];
    let refused = platform.sexton_with(&env, &["status"]).await;
    assert_eq!(refused.status.code(), Some(5), "{}", refused.stderr);
    assert!(refused.stderr.contains("lead to different databases"), "{}", refused.stderr);
    let env = [("DATABASE_DIRECT_URL", platform.database_url())];
    let taken = platform.sexton_with(&env, &["status"]).await;
    assert!(taken.status.success(), "{}", taken.stderr);
}
