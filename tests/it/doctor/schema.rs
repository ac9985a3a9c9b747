//! A schema that is not this program's.

use sexton_console::doctor::Code;
use sexton_servers::shared;
use sexton_tests::platform::Platform;

use super::{Patient, codes, evidence};

#[tokio::test]
async fn doctor_finds_migrations_missing() {
    let servers = shared().await.unwrap();
    let (database, broker) = (&servers.database_url, &servers.amqp_url);
    let platform = Platform::unmigrated_on(database, broker, "doctor").await.unwrap();
    let patient = Patient { platform };
    let found = patient.has(Code::MigrationsMissing).await;
    assert!(evidence(&found).contains("0001"), "{found}");
    // What the tables would say is not asked, and not told a second time.
    let (_, answer) = patient.run(&[], &[]).await;
    assert!(!codes(&answer).contains(&"rows_unread".to_owned()), "{answer}");
    // There is nothing to record a repair in.
    let (output, answer) = patient.run(&[], &["--fix"]).await;
    assert_eq!(answer["fixed"], serde_json::json!([]), "{output}");
}

#[tokio::test]
async fn doctor_finds_migrations_unknown() {
    let patient = Patient::new().await;
    patient.is_well().await;
    patient
        .sql(
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
             VALUES (9999, 'of tomorrow', true, '', 1)",
        )
        .await;
    assert!(evidence(&patient.has(Code::MigrationsUnknown).await).contains("9999"));
}

#[tokio::test]
async fn doctor_finds_migrations_changed() {
    let patient = Patient::new().await;
    patient.is_well().await;
    patient.sql("UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 3").await;
    assert!(evidence(&patient.has(Code::MigrationsChanged).await).contains("0003"));
}

#[tokio::test]
async fn doctor_finds_index_invalid() {
    let patient = Patient::new().await;
    patient.is_well().await;
    // As an interrupted build leaves it: two rows are alike, so a unique one cannot be built to its end.
    patient.process("worker", "w1", "ready => true").await;
    patient.process("worker", "w1", "ready => true").await;
    let pool = patient.platform.store().pool();
    let build = "CREATE UNIQUE INDEX CONCURRENTLY instances_name ON instances (name)";
    sqlx::raw_sql(build).execute(pool).await.unwrap_err();
    assert_eq!(evidence(&patient.has(Code::IndexInvalid).await), "instances_name of instances");
    patient.sql("DELETE FROM instances WHERE name = 'w1'").await;
    let migrated = patient.platform.sexton(&["migrate"]).await;
    assert!(migrated.stderr.contains("builds it again"), "{migrated}");
    patient.has_no(Code::IndexInvalid).await;
}
