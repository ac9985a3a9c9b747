//! A cancel that overtakes the answer to the open of its attempt.

use std::time::Duration;

use sexton_tests::platform::Platform;

use super::{before_the_database, until};

/// On the way of each piece, in each direction; the open has to be answered within ten seconds.
const DELAY: Duration = Duration::from_secs(1);

/// The lease is an hour long: the first renewal, which would bring the cancel, is a quarter of an hour
/// away. So it must arrive by its notification, though nobody keeps the attempt yet.
#[tokio::test]
async fn a_cancel_notified_before_the_open_is_answered_is_not_missed() {
    let mut platform = Platform::new().await.unwrap();
    let task = "test $SEXTON_EXECUTION_KEY = first || sleep 3000";
    platform.catalogue(&format!("[tasks.work]\ncommand = [\"/bin/sh\", \"-c\", \"{task}\"]\n"));
    let job = "[[job]]\nname = \"a.b\"\ntask = \"work\"\nlease = \"1h\"\n";
    platform.apply(job).await.unwrap();
    let (proxy, url) = before_the_database(&platform).await;
    let _scheduler = platform.start_scheduler("s1", &[]).unwrap();
    let mut worker = platform.start_worker("w1", &[("DATABASE_URL", &url)]).unwrap();
    worker.ready().await;
    // The statements are prepared by that one, and take one round trip from then on.
    platform.sexton_json(&["jobs", "trigger", "a.b", "--key", "first"]).await;
    until(&platform, "sexton.executions WHERE state = 'succeeded'", 1).await;

    proxy.delay(DELAY);
    let answer = platform.sexton_json(&["jobs", "trigger", "a.b", "--key", "second"]).await;
    until(&platform, "sexton.executions WHERE state = 'running'", 1).await;
    // What is on its way arrives late all the same, the answer to the open among it.
    proxy.pass();
    let id = answer["id"].as_str().unwrap();
    let done = platform.sexton(&["executions", "cancel", id]).await;
    assert!(done.status.success(), "{done}");
    until(&platform, "sexton.executions WHERE state = 'cancelled' AND attempt = 1", 1).await;
}
