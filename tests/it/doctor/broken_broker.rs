//! Queues that are missing or different, and a user who may not do what it must.

use lapin::options::{ExchangeDeleteOptions, QueueDeclareOptions, QueueDeleteOptions};
use lapin::types::{AMQPValue, FieldTable};
use sexton_broker::PoolName;
use sexton_broker::names::{exchange, main_queue, retry_queue};
use sexton_operations::doctor::Code;
use sexton_servers::shared;
use sexton_tests::platform::Platform;
use sexton_tests::virtual_host::VirtualHost;

use super::{DoctorFixture, codes, evidence};

#[tokio::test]
async fn doctor_finds_topology_missing() {
    let fixture = DoctorFixture::new().await;
    fixture.is_well().await;
    let namespace = fixture.platform.namespace().clone();
    let gone = retry_queue(&namespace, &PoolName::default_pool(), 5_000);
    let (channel, _connection) = fixture.channel().await;
    channel.queue_delete((*gone).into(), QueueDeleteOptions::default()).await.unwrap();
    let dlx = exchange(&namespace);
    channel.exchange_delete((*dlx).into(), ExchangeDeleteOptions::default()).await.unwrap();
    let found = fixture.has(Code::TopologyMissing).await;
    let evidence_text = evidence(&found);
    assert!(evidence_text.starts_with("2 do not exist"), "{evidence_text}");
    assert!(
        evidence_text.contains(&format!("queue {gone}")) && evidence_text.contains(&dlx),
        "{evidence_text}"
    );
    // Looking makes nothing.
    fixture.has(Code::TopologyMissing).await;
}

#[tokio::test]
async fn doctor_finds_topology_mismatch() {
    let platform = Platform::new().await.unwrap();
    let main = main_queue(platform.namespace(), &PoolName::default_pool());
    let fixture = DoctorFixture { platform };
    fixture.process("scheduler", "s1", "ready => true").await;
    let (channel, _connection) = fixture.channel().await;
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongInt(7));
    let options = QueueDeclareOptions::durable();
    channel.queue_declare((*main).into(), options, arguments).await.unwrap();
    let found = fixture.has(Code::TopologyMismatch).await;
    assert!(evidence(&found).contains(&format!("queue {main}")), "{found}");
    // A declare of what is missing would stop at it.
    let missing = fixture.has(Code::TopologyMissing).await;
    assert_eq!(missing["fix"], false, "{missing}");
}

#[tokio::test]
async fn doctor_finds_broker_permissions() {
    let host = VirtualHost::create().await.unwrap();
    let database = shared().await.unwrap().database_url.clone();
    let platform = Platform::on(&database, host.url()).await.unwrap();
    let fixture = DoctorFixture::of(platform).await;
    fixture.is_well().await;
    let url = |user: &str| {
        let (_, place) = fixture.platform.amqp_url().rsplit_once('@').unwrap();
        format!("amqp://{user}:a-password@{place}")
    };
    for (user, rights, refused) in [
        ("all", [".*", ".*", ".*"], vec![]),
        ("none", ["^$", "^$", "^$"], vec!["configure", "write", "read"]),
        ("reads", ["^$", "^$", ".*"], vec!["configure", "write"]),
        ("sends", [".*", "^amq\\.default$", "^$"], vec!["read"]),
    ] {
        host.add_user(user, "a-password").await.unwrap();
        host.permit(user, rights).await.unwrap();
        let (output, answer) = fixture.run(&[("AMQP_URL", &url(user))], &[]).await;
        let findings = answer["findings"].as_array().unwrap();
        let lines: Vec<&str> = findings
            .iter()
            .filter(|one| one["code"] == Code::BrokerPermissions.as_str())
            .map(|one| one["evidence"].as_str().unwrap())
            .collect();
        let expected: Vec<String> =
            refused.iter().map(|right| format!("user {user} has no {right} permission")).collect();
        assert_eq!(lines.len(), expected.len(), "{output}");
        for (lines, expected) in lines.iter().zip(&expected) {
            assert!(lines.starts_with(expected.as_str()), "{lines}");
        }
        assert!(!codes(&answer).contains(&"broker_unreachable".to_owned()), "{output}");
    }
}
