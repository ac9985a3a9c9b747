//! Without a collector nothing is sent, and a collector that is not there holds up nothing.

use tokio::net::TcpListener;

use super::*;
use crate::process::{FINAL_TIMEOUT, by_hand, until};

const SEEN: &str =
    "[tasks.work]\ncommand = [\"/bin/sh\", \"-c\", \"echo [$TRACEPARENT] > seen\"]\n";

#[tokio::test]
async fn nothing_connects_and_nothing_is_kept_unless_a_collector_is_set() {
    let collector = Collector::start().await;
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue(SEEN);
    platform
        .apply("[[job]]\nname = \"a.plain\"\ntask = \"work\"\nevery = \"1s\"\nmax_runs = 1\n")
        .await
        .unwrap();
    // The libraries would follow the second variable if anything started them.
    let url = collector.url();
    let env =
        [("OTEL_EXPORTER_OTLP_ENDPOINT", ""), ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url.as_str())];
    let mut programs =
        [platform.start_scheduler("s1", &env).unwrap(), platform.start_worker("w1", &env).unwrap()];
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND traceparent IS NULL", 1)
        .await;
    for program in &mut programs {
        program.terminate();
        assert!(program.exit(FINAL_TIMEOUT).await.success());
    }
    assert!(collector.spans().is_empty());
    assert!(!collector.was_connected());
    let seen = std::fs::read_to_string(platform.folder().join("seen")).unwrap();
    assert_eq!(seen.trim(), "[]");
}

#[tokio::test]
async fn a_collector_that_is_not_there_holds_up_neither_jobs_nor_the_end_of_the_programs() {
    let began = std::time::Instant::now();
    // One refuses; the other takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_url = format!("http://{}", silent.local_addr().unwrap());
    let mut platform = Platform::new().await.unwrap();
    platform.catalogue("[tasks.work]\ncommand = [\"/bin/true\"]\n");
    platform.apply(&by_hand("a.plain", "work", "")).await.unwrap();
    let refusing = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")];
    let hanging = [("OTEL_EXPORTER_OTLP_ENDPOINT", silent_url.as_str())];
    let mut scheduler = platform.start_scheduler("s1", &refusing).unwrap();
    let mut worker = platform.start_worker("w1", &hanging).unwrap();
    scheduler.ready().await;
    worker.ready().await;
    for wanted in 1..=20 {
        platform.sexton_json(&["jobs", "trigger", "a.plain"]).await;
        until(&platform, "sexton.executions WHERE state = 'succeeded'", wanted).await;
    }
    let lost = async || scheduler.log().contains("spans are lost").then_some(());
    platform.eventually("the scheduler says that spans are lost", FINAL_TIMEOUT, lost).await;
    for program in [&mut scheduler, &mut worker] {
        let ends = std::time::Instant::now();
        program.terminate();
        assert!(program.exit(FINAL_TIMEOUT).await.success());
        assert!(ends.elapsed().as_secs() < 20, "{} took {:?}", program.name(), ends.elapsed());
    }
    // Once a minute, and the last ones at the end of the process are among the next line that did not come.
    let minutes = began.elapsed().as_secs() / 60;
    let lines = scheduler.log().matches("spans are lost").count() as u64;
    assert!((1..=1 + minutes).contains(&lines), "{lines} lines in {minutes} whole minutes");
}
