//! Open pages follow what happens, by real programs.

use std::process::Stdio;
use std::time::Duration;

use sexton_tests::platform::Platform;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

/// For everything in a browser; a test that needs it has failed.
const PATIENCE: Duration = Duration::from_mins(2);

#[tokio::test]
async fn an_open_page_sees_a_failed_task_requeued_and_succeed() {
    let mut platform = Platform::new().await.unwrap();
    let paper = platform.folder().join("paper");
    let script = format!("test -e {} || {{ echo no paper >&2; exit 1; }}", paper.display());
    platform.catalogue(&format!("[tasks.print]\ncommand = [\"sh\", \"-c\", \"{script}\"]\n"));
    platform
        .apply("[[job]]\nname = \"office.print\"\ntask = \"print\"\nretry = { max_retries = 0 }\n")
        .await
        .unwrap();
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let _worker = platform.start_worker("w1", &[]).unwrap();
    let mut server = platform.start_server("console", &[("SERVE_LOCAL_ROLE", "viewer")]).unwrap();
    server.ready().await;
    let site = server
        .log()
        .split("the console is at ")
        .nth(1)
        .unwrap()
        .split("/,")
        .next()
        .unwrap()
        .to_owned();
    let triggered = platform.sexton_json(&["jobs", "trigger", "office.print"]).await;
    let id = triggered["id"].as_str().unwrap().to_owned();

    let script = format!("{}/clients/browser/run.sh", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("sh");
    command.args([&script, "live.js", &site, &format!("/failed/{id}"), "failed", "succeeded"]);
    let mut story =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(story.stdout.take().unwrap()).lines();
    let mut next =
        async || timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap_or_default();
    let first = next().await;
    if first.starts_with("missing:") && std::env::var_os(super::REQUIRED).is_none() {
        sexton_tests::untested::report_untested(&format!("the console in a browser: {first}"));
        return;
    }
    assert_eq!(first, "sees failed");
    std::fs::write(&paper, "").unwrap();
    let requeued = platform.sexton(&["failed", "requeue", &id, "--reason", "there is paper"]).await;
    assert!(requeued.status.success(), "{requeued}");
    assert_eq!(next().await, "sees succeeded");
    assert!(timeout(PATIENCE, story.wait()).await.unwrap().unwrap().success());
}
