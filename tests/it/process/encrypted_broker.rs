//! Programs whose broker is reached over TLS, as a broker outside a trusted network is.

use lapin::uri::AMQPUri;
use sexton_peers::TlsRelay;
use sexton_tests::platform::Platform;

use super::{by_hand, until};

/// A relay in front of the test's broker, and a URL of it with this host.
async fn relay(platform: &Platform, host: &str) -> (TlsRelay, String) {
    let clear: AMQPUri = platform.amqp_url().parse().unwrap();
    let relay = TlsRelay::start(&clear.authority.host, clear.authority.port).await;
    let user = &clear.authority.userinfo;
    let vhost = clear.vhost.replace('/', "%2f");
    let url = format!("amqps://{}:{}@{host}:{}/{vhost}", user.username, user.password, relay.port);
    (relay, url)
}

#[tokio::test]
async fn every_program_reaches_a_broker_over_tls_whose_authority_ssl_cert_file_names() {
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.work]\nnoop = true\n");
    platform.apply(&by_hand("a.b", "work", "")).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("authority.pem");
    std::fs::write(&authority, sexton_peers::authority_pem()).unwrap();
    for host in ["localhost", "127.0.0.1"] {
        let (_relay, url) = relay(&platform, host).await;
        let trusted = [("AMQP_URL", &*url), ("SSL_CERT_FILE", authority.to_str().unwrap())];
        let mut scheduler = platform.start_scheduler(&format!("s-{host}"), &trusted).unwrap();
        let mut worker = platform.start_worker(&format!("w-{host}"), &trusted).unwrap();
        scheduler.ready().await;
        worker.ready().await;
        let triggered = platform.sexton_with(&trusted, &["jobs", "trigger", "a.b"]).await;
        assert!(triggered.status.success(), "{triggered}");
        let found = platform.sexton_with(&trusted, &["--json", "doctor"]).await;
        assert!(!found.stdout.contains("broker_unreachable"), "{found}");
    }
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 2).await;
}

#[tokio::test]
async fn a_broker_with_a_certificate_of_an_unknown_authority_is_refused_with_the_remedy() {
    let platform = Platform::new().await.unwrap();
    let (_relay, url) = relay(&platform, "localhost").await;
    let refused = platform.sexton_with(&[("AMQP_URL", &url)], &["--json", "doctor"]).await;
    let advice = "add it to the system's, or name a file with its certificate in SSL_CERT_FILE";
    assert!(!refused.status.success(), "{refused}");
    for part in ["broker_unreachable", advice] {
        assert!(refused.stdout.contains(part), "{part}: {refused}");
    }
}
