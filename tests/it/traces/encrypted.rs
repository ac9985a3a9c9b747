//! Spans over TLS.

use sexton_peers::{TlsRelay, authority_pem};

use super::*;
use crate::process::{FINAL_TIMEOUT, by_hand};

#[tokio::test]
async fn spans_reach_a_collector_over_tls_whose_authority_is_trusted_and_no_other() {
    let mut collector = Collector::start().await;
    let relay = TlsRelay::start("127.0.0.1", collector.port()).await;
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.work]\ncommand = [\"/bin/true\"]\n");
    platform.apply(&by_hand("a.traced", "work", "")).await.unwrap();
    let authority = platform.folder().join("authority.pem");
    std::fs::write(&authority, authority_pem()).unwrap();
    let url = format!("https://localhost:{}", relay.port);
    let distrusting = ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str());
    let trusting = [distrusting, ("SSL_CERT_FILE", authority.to_str().unwrap())];
    let mut scheduler = platform.start_scheduler("s1", &[distrusting]).unwrap();
    let mut worker = platform.start_worker("w1", &trusting).unwrap();
    scheduler.ready().await;
    worker.ready().await;
    platform.sexton_json(&["jobs", "trigger", "a.traced"]).await;
    let attempt = |one: &Received| one.name.starts_with("process ");
    let found = collector.wait_for("the attempt", 1, attempt).await;
    assert_eq!(found[0].attribute("sexton.outcome"), "succeeded");
    let lost = async || scheduler.log().contains("spans are lost").then_some(());
    platform.eventually("the scheduler says that spans are lost", FINAL_TIMEOUT, lost).await;
    assert!(collector.spans().iter().all(|one| one.service == "sexton-worker"));
}
