//! Servers that are away, far, slow, or not encrypted.

use std::time::Duration;

use sexton_operations::doctor::Code;
use sexton_servers::shared;
use sexton_tests::proxy::Proxy;

use super::{DoctorFixture, codes, evidence};

/// Nobody listens there.
const NO_DATABASE: &str = "postgres://u:hunter2@127.0.0.1:1/x";
const NO_BROKER: &str = "amqp://u:hunter2@127.0.0.1:1/%2f";

#[tokio::test]
async fn doctor_finds_database_unreachable() {
    let fixture = DoctorFixture::new().await;
    fixture.is_well().await;
    let env = [("DATABASE_URL", NO_DATABASE)];
    let found = fixture.has_with(&env, Code::DatabaseUnreachable).await;
    assert!(!evidence(&found).contains("hunter2"), "{found}");
    // The broker was looked at all the same.
    let (_, answer) = fixture.run(&env, &[]).await;
    assert!(!codes(&answer).contains(&"broker_unreachable".to_owned()), "{answer}");
}

#[tokio::test]
async fn doctor_finds_broker_unreachable() {
    let fixture = DoctorFixture::new().await;
    let env = [("AMQP_URL", NO_BROKER)];
    let found = fixture.has_with(&env, Code::BrokerUnreachable).await;
    assert!(!evidence(&found).contains("hunter2"), "{found}");
    let both = [("AMQP_URL", NO_BROKER), ("DATABASE_URL", NO_DATABASE)];
    let (output, answer) = fixture.run(&both, &["--fix"]).await;
    assert_eq!(codes(&answer), ["database_unreachable", "broker_unreachable"], "{output}");
}

#[tokio::test]
async fn doctor_finds_database_read_only() {
    let fixture = DoctorFixture::new().await;
    fixture.is_well().await;
    let name: String = sqlx::query_scalar("SELECT current_database()")
        .fetch_one(fixture.platform.store().pool())
        .await
        .unwrap();
    let set = format!("ALTER DATABASE {name} SET default_transaction_read_only = on");
    fixture.sql(&set).await;
    fixture.has(Code::DatabaseReadOnly).await;
}

/// The address that stands for any is another name of this host that does not look like one.
fn elsewhere(url: &str) -> String {
    assert!(url.contains("127.0.0.1"), "the tests' server is on this host: {url}");
    url.replace("127.0.0.1", "0.0.0.0")
}

#[tokio::test]
async fn doctor_finds_database_not_encrypted() {
    let fixture = DoctorFixture::new().await;
    let url = elsewhere(fixture.platform.database_url());
    fixture.has_with(&[("DATABASE_URL", &url)], Code::DatabaseNotEncrypted).await;
}

#[tokio::test]
async fn doctor_finds_broker_not_encrypted() {
    let fixture = DoctorFixture::new().await;
    let url = elsewhere(fixture.platform.amqp_url());
    fixture.has_with(&[("AMQP_URL", &url)], Code::BrokerNotEncrypted).await;
}

#[tokio::test]
async fn doctor_finds_database_slow() {
    let fixture = DoctorFixture::new().await;
    let proxy = Proxy::before(fixture.platform.database_url()).await.unwrap();
    proxy.delay(Duration::from_millis(60));
    let url = proxy.url(fixture.platform.database_url());
    let found = fixture.has_with(&[("DATABASE_URL", &url)], Code::DatabaseSlow).await;
    assert!(evidence(&found).contains(" ms to "), "{found}");
}

#[tokio::test]
async fn doctor_finds_broker_slow() {
    let fixture = DoctorFixture::new().await;
    let proxy = Proxy::before(fixture.platform.amqp_url()).await.unwrap();
    proxy.delay(Duration::from_millis(110));
    let url = proxy.url(fixture.platform.amqp_url());
    fixture.has_with(&[("AMQP_URL", &url)], Code::BrokerSlow).await;
}

/// Only two lines of releases may have it wrong; on others there is nothing to find.
#[tokio::test]
async fn doctor_finds_broker_flag_unseen() {
    let fixture = DoctorFixture::new().await;
    let version = shared().await.unwrap().rabbit_version().to_owned();
    if version.starts_with("3.10.") || version.starts_with("3.11.") {
        let found = fixture.has(Code::BrokerFlagUnseen).await;
        assert_eq!(found["severity"], "note");
        assert!(evidence(&found).contains(&version), "{found}");
    } else {
        fixture.has_no(Code::BrokerFlagUnseen).await;
    }
}
