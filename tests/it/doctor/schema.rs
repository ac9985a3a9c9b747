//! A schema that is not this program's.

use sexton_operations::doctor::Code;
use sexton_servers::shared;
use sexton_tests::platform::Platform;

use super::{DoctorFixture, codes, evidence};

#[tokio::test]
async fn doctor_finds_migrations_missing() {
    let servers = shared().await.unwrap();
    let (database, broker) = (&servers.database_url, &servers.amqp_url);
    let platform = Platform::unmigrated_on(database, broker, "doctor").await.unwrap();
    let fixture = DoctorFixture { platform };
    let found = fixture.has(Code::MigrationsMissing).await;
    assert!(evidence(&found).contains("0001"), "{found}");
    // The doctor reads no tables then, and reports no second finding about them.
    let (_, answer) = fixture.run(&[], &[]).await;
    assert!(!codes(&answer).contains(&"rows_unread".to_owned()), "{answer}");
    // There is nothing to record a repair in.
    let (output, answer) = fixture.run(&[], &["--fix"]).await;
    assert_eq!(answer["fixed"], serde_json::json!([]), "{output}");
}

#[tokio::test]
async fn doctor_finds_migrations_unknown() {
    let fixture = DoctorFixture::new().await;
    fixture.is_well().await;
    fixture
        .sql(
            "INSERT INTO sexton._sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (9999, 'of tomorrow', true, '', 1)",
        )
        .await;
    assert!(evidence(&fixture.has(Code::MigrationsUnknown).await).contains("9999"));
}

#[tokio::test]
async fn doctor_finds_migrations_changed() {
    let fixture = DoctorFixture::new().await;
    fixture.is_well().await;
    fixture.sql("UPDATE sexton._sqlx_migrations SET checksum = '\\x00' WHERE version = 1").await;
    assert!(evidence(&fixture.has(Code::MigrationsChanged).await).contains("0001"));
}

#[tokio::test]
async fn doctor_finds_index_invalid() {
    let fixture = DoctorFixture::new().await;
    fixture.is_well().await;
    // As an interrupted build leaves it: two rows are alike, so a unique one cannot be built to its end.
    fixture.process("worker", "w1", "ready => true").await;
    fixture.process("worker", "w1", "ready => true").await;
    let pool = fixture.platform.store().pool();
    let build = "CREATE UNIQUE INDEX CONCURRENTLY instances_name ON sexton.instances (name)";
    sqlx::raw_sql(build).execute(pool).await.unwrap_err();
    assert_eq!(evidence(&fixture.has(Code::IndexInvalid).await), "instances_name of instances");
    fixture.sql("DELETE FROM sexton.instances WHERE name = 'w1'").await;
    let migrated = fixture.platform.sexton(&["migrate"]).await;
    assert!(migrated.stderr.contains("builds it again"), "{migrated}");
    fixture.has_no(Code::IndexInvalid).await;
}
