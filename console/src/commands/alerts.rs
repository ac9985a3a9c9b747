//! `sexton alerts`: channels and routes as a file, and notifications.

mod notifications;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sexton_model::alerts_file::MAX_FILE_BYTES;
use sexton_operations::alerts;
use sexton_store::alerts::config::AlertsChange;

use crate::failure::Failure;
use crate::input_files::read_text_up_to;
use crate::session::Session;

/// Channels, routes and notifications.
#[derive(Debug, Subcommand)]
pub enum AlertsCommand {
    /// Make channels and routes those of a file
    Apply(Apply),
    /// Print the channels and routes that are applied, as a file
    Show,
    /// List notifications, the newest first
    Notifications(notifications::Notifications),
    /// Try parked notifications again
    Requeue(notifications::Requeue),
}

/// The file to apply.
#[derive(Debug, Args)]
pub struct Apply {
    /// File with all channels and routes, in TOML; `-` is standard input
    #[arg(short, long)]
    file: PathBuf,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: &AlertsCommand, session: &Session) -> Result<(), Failure> {
    match command {
        AlertsCommand::Apply(arguments) => apply(arguments, session).await,
        AlertsCommand::Show => show(session).await,
        AlertsCommand::Notifications(arguments) => notifications::list(arguments, session).await,
        AlertsCommand::Requeue(arguments) => notifications::requeue(arguments, session).await,
    }
}

async fn apply(arguments: &Apply, session: &Session) -> Result<(), Failure> {
    let name = arguments.file.display().to_string();
    // A byte more than a file may have, so that the parser refuses it.
    let text = read_text_up_to(&arguments.file, MAX_FILE_BYTES as u64 + 1)
        .map_err(|error| Failure::Failed(format!("{name} cannot be read: {error}")))?;
    let file = alerts::read_file(&name, &text)?;
    let store = session.store().await?;
    let (dry_run, reason) = (arguments.dry_run, arguments.reason.as_deref());
    let applied = alerts::apply(&store, &file, dry_run, &session.actor, reason).await?;
    if session.out.is_json() {
        return session.out.document(&applied);
    }
    let change = &applied.change;
    for (sign, names) in [("+", &change.added), ("~", &change.changed), ("-", &change.removed)] {
        for name in names {
            session.out.print(format!("{sign} channel {name}"))?;
        }
    }
    session.out.print(summary(change, dry_run))
}

fn summary(change: &AlertsChange, dry_run: bool) -> String {
    let AlertsChange { added, changed, removed, unchanged, routes, routes_before, .. } = change;
    let routes = match (change.routes_changed, routes_before == routes) {
        (false, _) => format!("{routes} routes unchanged"),
        (true, true) => format!("{routes} routes changed"),
        (true, false) => format!("{routes} routes, before {routes_before}"),
    };
    let dropped = match change.dropped {
        0 => String::new(),
        dropped => format!("; {dropped} notifications to removed channels dropped"),
    };
    let counts = format!(
        "channels: {} new, {} changed, {} removed, {unchanged} unchanged; {routes}{dropped}.",
        added.len(),
        changed.len(),
        removed.len()
    );
    if dry_run { format!("Nothing was written; it would be: {counts}") } else { counts }
}

async fn show(session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let shown = alerts::show(&store).await?;
    if session.out.is_json() {
        return session.out.document(&shown);
    }
    session.out.print(shown.text.trim_end())
}
