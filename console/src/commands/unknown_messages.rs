//! `sexton unknown`: messages of the failed queue that belong to no execution, as the last sweep saw them.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use sexton_operations::paging::Page;
use sexton_operations::short_ids;
use sexton_operations::unknown_messages::{
    self, Content, ListedMessage, content, describe_overflow, details, export_document, find,
    find_ids, is_truncated, state, without_secrets,
};
use sexton_store::unknown_messages::{PendingAction, UnknownMessage, UnknownMessageError};

use crate::confirm::confirm;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::options::{PageOptions, render_next};
use crate::session::Session;
use crate::show::{Cell, Facts, Table, ago, hex_dump, instant, lines};

/// Digits of an id in a message.
const SHORT_ID: usize = 12;

/// Inspect and remove unknown messages in the failed queue.
#[derive(Debug, Subcommand)]
pub enum UnknownCommand {
    /// List unknown messages, oldest first, as the last sweep saw them
    List(List),
    /// Show an unknown message with its properties and body
    Show(Show),
    /// Write an unknown message to a file, and its properties beside it
    Export(Export),
    /// Remove unknown messages at the next sweep; `restore` takes it back
    Discard(Discard),
    /// Take discards back; the next sweep publishes removed messages again
    Restore(Restore),
}

/// Which messages to list.
#[derive(Debug, Args)]
pub struct List {
    /// Also messages that have left the queue, until retention removes them
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    page: PageOptions,
}

/// Which message to show, and how much of it.
#[derive(Debug, Args)]
pub struct Show {
    /// Id, or a unique beginning of it
    id: String,
    /// Maximum number of bytes of the body
    #[arg(long, default_value_t = 4_096, value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    bytes: u32,
    /// Show secrets: values in a JSON body under names such as password or token
    #[arg(long)]
    unmasked: bool,
}

/// Which message to write, and where.
#[derive(Debug, Args)]
pub struct Export {
    /// Id, or a unique beginning of it
    id: String,
    /// New file for the body; the properties go to the same name with `.json`
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Also write a body of which only the first part is kept
    #[arg(long)]
    cut: bool,
}

/// Which messages to discard.
#[derive(Debug, Args)]
pub struct Discard {
    /// Ids, or unique beginnings of them
    #[arg(required = true, num_args = 1..=1_000, value_name = "ID")]
    ids: Vec<String>,
    /// Reason, for the audit
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
    /// Also discard messages of which only the first part is kept, and which no restore can publish again
    #[arg(long)]
    allow_truncated: bool,
    /// Discard without confirmation
    #[arg(long)]
    yes: bool,
}

/// Which discards to take back.
#[derive(Debug, Args)]
pub struct Restore {
    /// Ids, or unique beginnings of them
    #[arg(required = true, num_args = 1..=1_000, value_name = "ID")]
    ids: Vec<String>,
    /// Reason, for the audit
    #[arg(long)]
    reason: Option<String>,
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: UnknownCommand, session: &Session) -> Result<(), Failure> {
    match command {
        UnknownCommand::List(arguments) => list(&arguments, session).await,
        UnknownCommand::Show(arguments) => show(&arguments, session).await,
        UnknownCommand::Export(arguments) => write_files(&arguments, session).await,
        UnknownCommand::Discard(arguments) => discard(&arguments, session).await,
        UnknownCommand::Restore(arguments) => restore(&arguments, session).await,
    }
}

async fn list(arguments: &List, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let PageOptions { limit, cursor } = &arguments.page;
    let page = unknown_messages::list(&store, arguments.all, cursor.as_deref(), *limit).await?;
    let overflow = unknown_messages::overflow(&store).await?;
    if let Some(overflow) = &overflow {
        eprintln!("sexton: {}", describe_overflow(overflow));
    }
    if session.out.is_json() {
        return session.out.document(&page.map(ListedMessage::new));
    }
    let Page { items: found, next_cursor } = page;
    if found.is_empty() && overflow.is_some() {
        return session.out.print("No unknown messages are recorded.");
    }
    if found.is_empty() {
        return session
            .out
            .print("No unknown messages: each message of the failed queue has its row.");
    }
    let now = session.now(&store).await?;
    let headings = ["ID", "KIND", "BYTES", "COPIES", "FIRST SEEN", "STATE", "REASON"];
    let ids = found.iter().map(|message| message.id.clone());
    let ids = short_ids::of_unknown_messages(&store, ids).await?;
    let mut table = Table::new(&headings).unclipped(0);
    for message in &found {
        table.row(vec![
            Cell::new(ids.get(&message.id)),
            Cell::new(&message.kind),
            Cell::number(message.body_bytes),
            Cell::number(message.copies.into()),
            Cell::new(ago(message.first_seen, now)),
            Cell::new(state(message)),
            Cell::new(&message.reason),
        ]);
    }
    session.out.table(table)?;
    render_next(next_cursor.as_ref(), session)
}

async fn show(arguments: &Show, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let most = arguments.bytes as usize;
    if session.out.is_json() {
        let details = details(&store, &arguments.id, most, !arguments.unmasked).await?;
        return session.out.document(&details);
    }
    let message = find(&store, &arguments.id).await?;
    let stored = content(&store, &message.id).await?;
    let masked = if arguments.unmasked { None } else { without_secrets(&stored.body) };
    let whole = masked.as_ref().map_or(&stored.body[..], |text| text.as_bytes());
    let shown = &whole[..whole.len().min(most)];
    let now = session.now(&store).await?;
    let mut facts = Facts::default();
    facts.add("id", &message.id);
    facts.add("state", state(&message));
    facts.add("kind", format!("{}: {}", message.kind, message.reason));
    let whole = if is_truncated(&message) {
        format!("{}, of which the first {} are kept", message.body_bytes, message.kept_bytes)
    } else {
        message.body_bytes.to_string()
    };
    facts.add("bytes", whole);
    facts.add("copies", message.copies.to_string());
    let seen = format!("{}, last {}", ago(message.first_seen, now), ago(message.last_seen, now));
    facts.add("first seen", seen);
    if let (Some(at), Some(by), Some(why)) =
        (message.discard_at, &message.discard_by, &message.discard_reason)
    {
        facts.add("discarded", format!("{} by {by}: {why}", instant(at)));
    }
    facts.add("properties", stored.properties.to_string());
    session.out.facts(facts)?;
    session.out.print(format!("\n{}\n", lines(&String::from_utf8_lossy(shown))))?;
    if masked.is_some() {
        return session.out.print(
            "Something in it looks like a secret and is masked, so its bytes are not shown: --unmasked \
             shows all of it as it is, and `sexton unknown export` writes it, byte for byte.",
        );
    }
    session.out.print(hex_dump(&stored.body, most).trim_end())
}

async fn write_files(arguments: &Export, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let (message, stored) = unknown_messages::export(&store, &arguments.id, arguments.cut).await?;
    let beside = export(&message, &stored, &arguments.to)?;
    let (body, beside) = (arguments.to.display().to_string(), beside.display().to_string());
    if session.out.is_json() {
        return session.out.document(&json!({
            "id": message.id, "body": body, "properties": beside, "bytes": stored.body.len(),
        }));
    }
    let text = format!("{} bytes are in {body}, their properties in {beside}.", stored.body.len());
    session.out.print(lines(&text))
}

/// Writes the body, byte for byte, to `path`, and what else is known to `<path>.json`. Neither may
/// exist. Returns the second path.
///
/// A crash in between leaves the first file without the second; the command again says that it exists.
///
/// # Errors
///
/// [`Failure::Failed`] with the path and the reason.
fn export(message: &UnknownMessage, content: &Content, path: &Path) -> Result<PathBuf, Failure> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".json");
    let beside = PathBuf::from(beside);
    if beside.exists() {
        return Err(write_failure(&beside, &"it exists already"));
    }
    write_new(path, &content.body)?;
    let document = export_document(message, content);
    write_new(&beside, format!("{document:#}\n").as_bytes())?;
    Ok(beside)
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|error| write_failure(path, &error))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(|error| write_failure(path, &error))
}

fn write_failure(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::Failed(format!("{} cannot be written: {why}; nothing is lost", path.display()))
}

async fn discard(arguments: &Discard, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let ids = find_ids(&store, &arguments.ids).await?;
    let noun = if ids.len() == 1 { "message" } else { "messages" };
    confirm(&format!("{} {noun} will be removed from the failed queue", ids.len()), arguments.yes)?;
    let by = (&session.actor, arguments.reason.as_str());
    let mut results = Vec::with_capacity(ids.len());
    for id in ids {
        let done = unknown_messages::discard(&store, &id, arguments.allow_truncated, by).await;
        results.push((id, done));
    }
    render_results(session, &results)
}

async fn restore(arguments: &Restore, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let ids = find_ids(&store, &arguments.ids).await?;
    let by = (&session.actor, arguments.reason.as_deref());
    let mut results = Vec::with_capacity(ids.len());
    for id in ids {
        let done = unknown_messages::restore(&store, &id, by).await;
        results.push((id, done));
    }
    render_results(session, &results)
}

const fn describe_mark(marked: PendingAction) -> &'static str {
    match marked {
        PendingAction::Discard => "is discarded; the next sweep removes it",
        PendingAction::Keep => "stays in the failed queue",
        PendingAction::Restore => "is restored; the next sweep publishes it",
    }
}

/// Prints the outcome of each; the array of `--json` has them all, whatever the status.
fn render_results(
    session: &Session,
    results: &[(String, Result<PendingAction, UnknownMessageError>)],
) -> Result<(), Failure> {
    let mut failed = Vec::new();
    let mut all = Vec::new();
    for (id, result) in results {
        match result {
            Ok(marked) => {
                if !session.out.is_json() {
                    let id = &id[..id.len().min(SHORT_ID)];
                    session.out.print(format!("{id} {}.", describe_mark(*marked)))?;
                }
                all.push(json!({"id": id, "done": true, "error": null}));
            }
            Err(error) => {
                failed.push(error);
                all.push(json!({"id": id, "done": false, "error": error.to_string()}));
            }
        }
    }
    if session.out.is_json() {
        session.out.document(&all)?;
    }
    let exits = failed.iter().map(|error| match error {
        UnknownMessageError::Missing(_) => Exit::NotFound,
        UnknownMessageError::Store(error) if error.is_transient() => Exit::Unreachable,
        UnknownMessageError::Store(_) => Exit::Failed,
        _ => Exit::NothingDone,
    });
    let Some(exit) = exits.max() else { return Ok(()) };
    let message = failed.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    Err(Failure::Reported { exit, message })
}
