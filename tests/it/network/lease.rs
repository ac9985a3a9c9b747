//! A worker that lives and cannot renew: its network to the database swallows everything.

use std::path::Path;

use sexton_tests::platform::Platform;

use super::{FINAL_TIMEOUT, before_the_database, until};

/// Writes its attempt's number every 50 ms, for as long as it lives.
fn catalogue(ticks: &Path) -> String {
    let script = format!(
        "[ $SEXTON_ATTEMPT = 1 ] || exit 0; while :; do echo tick >> {}; sleep 0.05; done",
        ticks.display()
    );
    format!("[tasks.work]\ncommand = [\"/bin/sh\", \"-c\", \"{script}\"]\n")
}

fn ticks(file: &Path) -> usize {
    std::fs::read_to_string(file).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn a_worker_that_cannot_renew_ends_its_task_by_itself_before_another_begins_the_next() {
    let mut platform = Platform::new().await.unwrap();
    let file = platform.folder().join("ticks");
    platform.catalogue(&catalogue(&file));
    platform.apply("[[job]]\nname = \"a.b\"\ntask = \"work\"\nlease = \"4s\"\n").await.unwrap();
    let (proxy, url) = before_the_database(&platform).await;
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = platform.start_worker("w1", &[("DATABASE_URL", &url)]).unwrap();
    worker.ready().await;
    platform.sexton(&["jobs", "trigger", "a.b"]).await;
    let ticking = async || (ticks(&file) > 0).then_some(());
    platform.eventually("the task has begun", FINAL_TIMEOUT, ticking).await;

    proxy.black_hole();
    // The rescuer ends the attempt when the lease is over, and not before. Nobody runs the next yet.
    until(&platform, "sexton.all_attempts WHERE number = 1 AND outcome = 'lost'", 1).await;
    let at_its_end = ticks(&file);
    assert!(worker.ended().is_none(), "the worker lives: it ended the task, not itself");
    let _other = platform.start_worker("w2", &[]).unwrap();
    until(&platform, "sexton.executions WHERE state = 'succeeded' AND attempt = 2", 1).await;
    assert_eq!(ticks(&file), at_its_end, "the task went on when its lease was over");

    proxy.pass();
    let killed = "a task was killed because its lease could not be renewed in time";
    let taken = "after it had been taken from this worker";
    let is_logged = async || {
        let log = worker.log();
        (log.contains(killed) || log.contains(taken)).then_some(())
    };
    platform.eventually("the worker tells of it", FINAL_TIMEOUT, is_logged).await;
    worker.ready().await;
}
