//! The console: in a real browser, and what its pages and forms answer.

mod away;
mod base_path;
pub(crate) mod fixture;
mod following;
mod heat;
mod hostile;
mod live;
mod office;
mod people;
mod play;
mod proxies;
pub(crate) mod roles;
mod settings;
mod slow_phone;
mod stories;
mod work;

use std::process::Stdio;

pub(crate) use sexton_tests::routes;
use tokio::process::Command;

/// Set where a browser, and what else comes from npm, PyPI and Debian, must be had, so that no test passes without.
pub(crate) const REQUIRED: &str = "BROWSER_REQUIRED";

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
