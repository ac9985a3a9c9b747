//! Installs a server's package on Debian and Ubuntu, without starting its service.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

const SCRIPT: &str = include_str!("install-debian.sh");

/// Downloads included; RabbitMQ brings Erlang along, about 40 MB.
const DEADLINE: Duration = Duration::from_mins(15);

/// How many of the last characters of apt's output an error repeats.
const REASON_CHARS: usize = 600;

/// Installs `package`, as root or with a sudo that needs no password. The error tells a person why that failed.
pub(super) async fn package(package: &str) -> Result<(), String> {
    if !Path::new("/etc/debian_version").exists() {
        return Err("this is neither Debian nor Ubuntu".into());
    }
    let mut command = if rustix::process::geteuid().is_root() {
        Command::new("/bin/sh")
    } else if sudo_asks_nothing().await {
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "/bin/sh"]);
        sudo
    } else {
        return Err("this user is not root and sudo would ask for a password".into());
    };
    log(package);
    command.args(["-c", SCRIPT, "install-debian", package]).stdin(Stdio::null());
    let output = tokio::time::timeout(DEADLINE, command.output())
        .await
        .map_err(|_| format!("apt-get took more than {} s", DEADLINE.as_secs()))?
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    let words = words.trim();
    let start = words.char_indices().rev().nth(REASON_CHARS).map_or(0, |(index, _)| index);
    Err(format!("apt-get failed: {}", &words[start..]))
}

async fn sudo_asks_nothing() -> bool {
    let mut sudo = Command::new("sudo");
    sudo.args(["-n", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    sudo.status().await.is_ok_and(|status| status.success())
}

/// The only step that changes the machine, which takes a minute: it is announced first.
fn log(package: &str) {
    eprintln!("servers: installing the package {package} with apt-get; its service is not started");
}
