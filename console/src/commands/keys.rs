//! `sexton keys`: keys of advisory locks.

mod check;
mod derive;
mod list;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use sexton_model::lock_key::assignment::{RangeChange, RangeRequest};
use sexton_model::lock_key::ranges_file::MAX_FILE_BYTES;
use sexton_operations::lock_keys;

use crate::failure::Failure;
use crate::input_files::read_text_up_to;
use crate::session::Session;

/// Keys of advisory locks.
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// List the ranges of keys that services have, and how many of them jobs use
    List(list::List),
    /// Assign a range of keys to a service, or change its range
    Assign(Assign),
    /// Remove the range of a service that is gone, whose keys no job has
    Remove(Remove),
    /// Find jobs without a key of their service's range, and differences between platforms
    Check(check::Check),
    /// Import ranges from a CSV or JSON file, all of them or none
    Import(Import),
    /// Compute the key that another system's formula gives a name
    Derive(derive::Derive),
}

/// The range to assign.
#[derive(Debug, Args)]
pub struct Assign {
    /// The service: what its jobs' names have before the first dot
    service: String,
    /// First key; default: the next free number, or the present start
    #[arg(long, value_name = "KEY", allow_negative_numbers = true)]
    start: Option<i64>,
    /// Number of keys; default: 50, or the present number
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    keys: Option<u32>,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

/// The range to remove.
#[derive(Debug, Args)]
pub struct Remove {
    /// The service
    service: String,
    /// Show what would be removed, and remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

/// The file to import.
#[derive(Debug, Args)]
pub struct Import {
    /// File with the columns service, start and keys (50 where it says none), as `list --format csv` and `json` write it;
    /// `-` is standard input
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
pub async fn run(command: &KeysCommand, session: &Session) -> Result<(), Failure> {
    match command {
        KeysCommand::List(arguments) => list::run(arguments, session).await,
        KeysCommand::Assign(arguments) => assign(arguments, session).await,
        KeysCommand::Remove(arguments) => remove(arguments, session).await,
        KeysCommand::Check(arguments) => check::run(arguments, session).await,
        KeysCommand::Import(arguments) => import(arguments, session).await,
        KeysCommand::Derive(arguments) => derive::run(arguments, session).await,
    }
}

async fn assign(arguments: &Assign, session: &Session) -> Result<(), Failure> {
    let request = RangeRequest {
        service: arguments.service.clone(),
        first: arguments.start,
        keys: arguments.keys,
    };
    let store = session.store().await?;
    let reason = arguments.reason.as_deref();
    let change = lock_keys::assign(&store, &request, &session.actor, reason).await?;
    if session.out.is_json() {
        return session.out.document(&document(&change));
    }
    session.out.print(line_of(&change))
}

async fn remove(arguments: &Remove, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let (dry_run, reason) = (arguments.dry_run, arguments.reason.as_deref());
    let range =
        lock_keys::remove(&store, &arguments.service, dry_run, &session.actor, reason).await?;
    if session.out.is_json() {
        let document = json!({"dry_run": dry_run, "before": range, "after": null});
        return session.out.document(&document);
    }
    session.out.print(format!("- {range}"))?;
    if dry_run {
        session.out.print("Nothing was removed.")?;
    }
    Ok(())
}

async fn import(arguments: &Import, session: &Session) -> Result<(), Failure> {
    let name = arguments.file.display().to_string();
    // A byte more than a file may have, so that the parser refuses it.
    let text = read_text_up_to(&arguments.file, MAX_FILE_BYTES as u64 + 1)
        .map_err(|error| Failure::Failed(format!("{name} cannot be read: {error}")))?;
    let store = session.store().await?;
    let (dry_run, reason) = (arguments.dry_run, arguments.reason.as_deref());
    let all = lock_keys::import(&store, &name, &text, dry_run, &session.actor, reason).await?;
    let changes: Vec<&RangeChange> = all.iter().filter(|change| change.is_change()).collect();
    let unchanged = all.len() - changes.len();
    let added = changes.iter().filter(|change| change.before.is_none()).count();
    if session.out.is_json() {
        return session.out.document(&json!({
            "dry_run": dry_run,
            "changes": changes.iter().map(|change| document(change)).collect::<Value>(),
            "unchanged": unchanged,
        }));
    }
    for change in &changes {
        session.out.print(line_of(change))?;
    }
    let counts = format!("{added} new, {} changed, {unchanged} unchanged.", changes.len() - added);
    session.out.print(if dry_run {
        format!("Nothing was written; it would be: {counts}")
    } else {
        counts
    })
}

fn document(change: &RangeChange) -> Value {
    json!({"before": change.before, "after": change.after})
}

fn line_of(change: &RangeChange) -> String {
    match &change.before {
        None => format!("+ {}", change.after),
        Some(before) => {
            format!("~ {}, before {} to {}", change.after, before.first(), before.last())
        }
    }
}
