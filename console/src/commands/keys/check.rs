//! `sexton keys check`: of one platform, or of several that must agree.

use clap::Args;
use sexton_operations::lock_keys::{self, KeyFindings};
use sexton_service::settings::{ServerKind, ServerUrl, process_environment};
use sexton_store::Store;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::lines;

/// With which platforms to compare.
#[derive(Debug, Args)]
pub struct Check {
    /// Databases of platforms that must have the same ranges and keys: URLs, or names of environment variables that hold one
    #[arg(long, value_name = "DATABASE_URL", num_args = 1..)]
    against: Vec<String>,
}

pub(super) async fn run(arguments: &Check, session: &Session) -> Result<(), Failure> {
    let others = parse(&arguments.against)?;
    let settings = session.settings()?;
    let store = session.store().await?;
    let mut opened: Vec<(String, Store)> = Vec::new();
    for (name, url) in others {
        let connected = session.connector(&settings).open_other(&url).await;
        let other = connected.map_err(|error| match Failure::from(error) {
            Failure::Unreachable(text) => Failure::Unreachable(format!("{name}: {text}")),
            Failure::Schema(text) => Failure::Schema(format!("{name}: {text}")),
            other => other,
        })?;
        opened.push((name, other));
    }
    let found = KeyFindings::new(lock_keys::check(&store, &opened).await?);
    let count = found.count;
    if session.out.is_json() {
        session.out.document(&found)?;
    } else {
        for finding in &found.findings {
            let against = finding.against.as_ref().map(|name| format!(" ({name})"));
            let text = format!("{finding}{}", against.unwrap_or_default());
            session.out.print(lines(&text))?;
        }
        let more = count - found.findings.len();
        if more > 0 {
            session.out.print(format!("… and {more} more"))?;
        }
    }
    match count {
        0 if session.out.is_json() => Ok(()),
        0 => session.out.print("Nothing found."),
        1 => Err(findings_failure("1 finding")),
        _ => Err(findings_failure(&format!("{count} findings"))),
    }
}

fn findings_failure(message: &str) -> Failure {
    Failure::Reported { exit: Exit::Findings, message: message.to_owned() }
}

/// A name without the password for each, and the URL. A URL on the command line is seen by everybody on the host, so a variable
/// may hold it.
fn parse(against: &[String]) -> Result<Vec<(String, ServerUrl)>, Failure> {
    let read = |text: &String| {
        let is_name = !text.contains(':');
        let url = if is_name { variable(text)? } else { text.clone() };
        let url = ServerUrl::parse(ServerKind::Postgres, &url)
            // Nothing of the text: it may be a password.
            .map_err(|error| Failure::Usage(format!("--against: {error}")))?;
        let name = if is_name { text.clone() } else { url.to_string() };
        Ok((name, url))
    };
    against.iter().map(read).collect()
}

fn variable(name: &str) -> Result<String, Failure> {
    let found = process_environment().find(|(variable, _)| variable == name);
    found.map(|(_, value)| value).filter(|value| !value.is_empty()).ok_or_else(|| {
        let text =
            format!("--against: no variable {name:?} is set, and a URL begins with postgres://");
        Failure::Usage(text)
    })
}
