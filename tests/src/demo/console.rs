//! The end of the demo at a terminal: the console, with one task that failed, for people to find and to requeue.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::oneshot;

use super::cluster::example;
use super::observer::Observer;
use super::output::{self, Tone};
use super::scenarios::sexton;

/// How long a task may take to fail for good.
const FAIL_TIME: Duration = Duration::from_secs(30);

/// Lets one more task fail, mends its cause, and waits for Enter.
pub(super) async fn stay(observer: &mut Observer<'_>) -> Result<()> {
    observer.allow(FAIL_TIME);
    // The others are paused: this one shows what is ahead.
    let nightly = example("demo/nightly.toml").canonicalize().context("find nightly.toml")?;
    observer.cluster.platform.apply_file(&nightly).await?;
    let paper = observer.cluster.platform.folder().join("paper");
    std::fs::remove_file(&paper).with_context(|| format!("remove {}", paper.display()))?;
    let text = r#"{"document": "reminders"}"#;
    sexton(observer, &["jobs", "trigger", "demo.print", "--params", text]).await?;
    let failed = |observer: &Observer<'_>| {
        observer.of("demo.print").find(|e| e.state == "failed").map(|_| ())
    };
    observer.until("one more task was parked", failed).await?;
    std::fs::write(&paper, "").with_context(|| format!("create {}", paper.display()))?;
    let address = observer.cluster.console().context("the console does not say where it is")?;
    observer.output.head("5  Your turn, in a browser on this machine.");
    let task = "One more task failed: the printer had no paper. It has paper now.\n\
                Find the task, see why it failed, requeue it, and see it succeed.";
    output::write(&format!("\n{task}\n\n  {address}\n"));
    observer.output.say("console", Tone::Operator, "stays up until you press Enter here");
    wait_for_enter().await;
    Ok(())
}

/// A thread reads, since nothing else could end while a task of the runtime reads.
async fn wait_for_enter() {
    let (pressed, waits) = oneshot::channel();
    thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        let _ = pressed.send(());
    });
    let _ = waits.await;
}
