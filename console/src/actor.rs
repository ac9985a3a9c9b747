//! The operator who runs this process, for the audit.
//!
//! A note, not a proof: a role that may write to the database can write any name. Under `sudo` it is the
//! person who called it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, IsTerminal as _, Read as _};

use sexton_model::ticket::truncate;
use sexton_operations::actor::Actor;

/// The longest part of a name that is recorded, in bytes.
const MAX_PART_BYTES: usize = 100;

/// As much of the list of users is read, in bytes.
const MAX_USERS_BYTES: u64 = 1024 * 1024;

/// Who runs this process.
pub fn from_process() -> Actor {
    let (host, process_id) = (host_name(), std::process::id());
    Actor {
        name: format!("{}@{host}", user_name()),
        origin: Some(origin(&host, process_id)),
        is_interactive: std::io::stdin().is_terminal() || std::io::stderr().is_terminal(),
        host,
        process_id,
    }
}

/// Where the operator is: `<host>:<pid>`, the terminal and where a remote shell came from, as far as they are
/// known. `ops1:4123 pts/0 ssh 10.1.2.3`.
fn origin(host: &str, process_id: u32) -> String {
    let terminal = ["0", "2"].into_iter().find_map(|fd| {
        let link = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
        Some(link.strip_prefix("/dev").ok()?.to_str()?.to_owned())
    });
    let terminal = terminal.filter(|name| name.starts_with("pts/") || name.starts_with("tty"));
    let remote = std::env::var("SSH_CONNECTION").ok();
    let remote = remote.as_deref().and_then(|text| text.split_whitespace().next());
    let parts = [
        Some(format!("{host}:{process_id}")),
        terminal.map(|name| sanitized(&name)),
        remote.map(|from| format!("ssh {}", sanitized(from))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn user_name() -> String {
    ["SUDO_USER", "USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| {
            std::env::var(name).ok().map(|it| sanitized(&it)).filter(|it| !it.is_empty())
        })
        .unwrap_or_else(|| {
            let uid = rustix::process::getuid().as_raw().to_string();
            name_in_passwd(&uid).unwrap_or_else(|| format!("uid-{uid}"))
        })
}

/// The user's name where no variable says it, as under cron or in containers.
fn name_in_passwd(uid: &str) -> Option<String> {
    let users = BufReader::new(File::open("/etc/passwd").ok()?.take(MAX_USERS_BYTES));
    users.lines().map_while(Result::ok).find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| sanitized(name))
    })
}

fn host_name() -> String {
    let host = sanitized(&rustix::system::uname().nodename().to_string_lossy());
    if host.is_empty() { "unnamed-host".to_owned() } else { host }
}

fn sanitized(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control() && !c.is_whitespace()).collect();
    truncate(&text, MAX_PART_BYTES).to_owned()
}
