//! Open pages follow what happens, by real programs.

use sexton_tests::platform::Platform;

use super::play::{Play, site};

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
    let site = site(&server);
    let triggered = platform.sexton_json(&["jobs", "trigger", "office.print"]).await;
    let id = triggered["id"].as_str().unwrap().to_owned();

    let arguments = [&*site, &format!("/failed/{id}"), "failed", "succeeded"];
    let Some(mut play) = Play::start("live.js", &arguments).await else { return };
    play.expect("sees failed").await;
    std::fs::write(&paper, "").unwrap();
    let requeued = platform.sexton(&["failed", "requeue", &id, "--reason", "there is paper"]).await;
    assert!(requeued.status.success(), "{requeued}");
    play.expect("sees succeeded").await;
    play.end().await;
}
