//! The console in a real browser.

mod away;
mod base_path;
mod following;
mod hostile;
mod live;
mod play;
mod stories;

use std::process::Stdio;

use tokio::process::Command;

/// Set where a browser must be had, so that no test passes without one.
const REQUIRED: &str = "BROWSER_REQUIRED";

/// Runs a story of `clients/browser`, and returns what it printed; `None`: no browser can be had here.
pub(crate) async fn story(name: &str, arguments: &[&str]) -> Option<String> {
    story_with(name, arguments, &[]).await
}

/// As [`story`], with variables of the environment.
async fn story_with(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Option<String> {
    let script = format!("{}/clients/browser/run.sh", env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("sh");
    command.arg(script).arg(name).args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    command.envs(variables.iter().copied());
    let output = command.output().await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.code() == Some(77) && std::env::var_os(REQUIRED).is_none() {
        sexton_tests::untested::report_untested(&format!("the console in a browser: {printed}"));
        return None;
    }
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed.contains("seen to the end"), "{printed}");
    Some(printed)
}
