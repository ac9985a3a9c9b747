//! `sexton checks`: jobs that run elsewhere and report by pings, and the keys of their pings.

mod show;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use sexton_model::checks_file::MAX_FILE_BYTES;
use sexton_operations::checks::{self, CheckAction, DEFAULT_KEY_CHECKS, MAX_KEY_CHECKS};
use sexton_store::checks::define::ChecksChange;

use crate::failure::Failure;
use crate::input_files::read_text_up_to;
use crate::session::Session;
use crate::show::{Cell, Table};

/// Checks of foreign jobs.
#[derive(Debug, Subcommand)]
pub enum ChecksCommand {
    /// List checks by name
    List(show::List),
    /// Show a check, the addresses of its pings, and the newest pings
    Show(show::Show),
    /// Add the checks of a file, and change those that there are already
    Apply(Apply),
    /// Expect nothing of a check until it is resumed
    Pause(One),
    /// Expect pings again, from now on
    Resume(One),
    /// Delete a check with its pings
    Delete(One),
    /// List the keys with which jobs ping checks by name
    Keys,
    /// Create a key, and print it this once
    CreateKey(CreateKey),
    /// Delete a key; its checks stay
    DeleteKey(One),
}

/// The file to apply.
#[derive(Debug, Args)]
pub struct Apply {
    /// File with checks, in TOML; `-` is standard input
    #[arg(short, long)]
    file: PathBuf,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

/// What an action is done to.
#[derive(Debug, Args)]
pub struct One {
    /// Its name
    name: String,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

/// The key to create.
#[derive(Debug, Args)]
pub struct CreateKey {
    /// Its name, for people
    name: String,
    /// The most checks that pings with this key may create; 0: none
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_KEY_CHECKS,
        value_parser = clap::value_parser!(u32).range(0..=i64::from(MAX_KEY_CHECKS)))]
    max_checks: u32,
    /// Reason, recorded in the audit log
    #[arg(long)]
    reason: Option<String>,
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: &ChecksCommand, session: &Session) -> Result<(), Failure> {
    match command {
        ChecksCommand::List(arguments) => show::list(arguments, session).await,
        ChecksCommand::Show(arguments) => show::show(arguments, session).await,
        ChecksCommand::Apply(arguments) => apply(arguments, session).await,
        ChecksCommand::Pause(one) => act(one, CheckAction::Pause, "paused", session).await,
        ChecksCommand::Resume(one) => act(one, CheckAction::Resume, "resumed", session).await,
        ChecksCommand::Delete(one) => act(one, CheckAction::Delete, "deleted", session).await,
        ChecksCommand::Keys => keys(session).await,
        ChecksCommand::CreateKey(arguments) => create_key(arguments, session).await,
        ChecksCommand::DeleteKey(one) => delete_key(one, session).await,
    }
}

async fn apply(arguments: &Apply, session: &Session) -> Result<(), Failure> {
    let name = arguments.file.display().to_string();
    // A byte more than a file may have, so that the parser refuses it.
    let text = read_text_up_to(&arguments.file, MAX_FILE_BYTES as u64 + 1)
        .map_err(|error| Failure::Failed(format!("{name} cannot be read: {error}")))?;
    let specs = checks::read_file(&name, &text)?;
    let store = session.store().await?;
    let (dry_run, reason) = (arguments.dry_run, arguments.reason.as_deref());
    let applied = checks::apply(&store, &specs, dry_run, &session.actor, reason).await?;
    if session.out.is_json() {
        return session.out.document(&applied);
    }
    let change = &applied.change;
    for (sign, names) in [("+", &change.added), ("~", &change.changed)] {
        for name in names {
            session.out.print(format!("{sign} check {name}"))?;
        }
    }
    let ChecksChange { added, changed, unchanged } = change;
    let counts =
        format!("checks: {} new, {} changed, {unchanged} unchanged.", added.len(), changed.len());
    session.out.print(if dry_run {
        format!("Nothing was written; it would be: {counts}")
    } else {
        counts
    })
}

async fn act(one: &One, action: CheckAction, done: &str, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    checks::act(&store, &one.name, action, &session.actor, one.reason.as_deref()).await?;
    answer(&one.name, done, session, "check")
}

fn answer(name: &str, done: &str, session: &Session, what: &str) -> Result<(), Failure> {
    if session.out.is_json() {
        return session.out.document(&json!({"name": name, "done": done}));
    }
    session.out.print(format!("{what} {name} is {done}."))
}

async fn keys(session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let keys = checks::keys(&store).await?;
    if session.out.is_json() {
        return session.out.document(&json!({"items": keys}));
    }
    if keys.is_empty() {
        return session
            .out
            .print("There are no keys. `sexton checks create-key NAME` creates one.");
    }
    let mut table = Table::new(&["NAME", "CHECKS", "AT MOST", "CREATED BY"]).unclipped(0);
    for key in &keys {
        table.row(vec![
            Cell::new(&key.name),
            Cell::number(key.checks),
            Cell::number(i64::from(key.max_checks)),
            Cell::new(&key.created_by),
        ]);
    }
    session.out.table(table)
}

async fn create_key(arguments: &CreateKey, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let CreateKey { name, max_checks, reason } = arguments;
    let by = (&session.actor, reason.as_deref());
    let key = checks::create_key(&store, name, *max_checks, by.0, by.1).await?;
    if session.out.is_json() {
        return session.out.document(&json!({"name": name, "key": key}));
    }
    let use_it =
        "Jobs ping /ping/<key>/<name>; ?create=1 creates the check. The key is shown this once:";
    session.out.print(format!("{use_it}\n\n{key}"))
}

async fn delete_key(one: &One, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    checks::delete_key(&store, &one.name, &session.actor, one.reason.as_deref()).await?;
    answer(&one.name, "deleted", session, "ping key")
}
