//! `sexton channels`: the state of channels, and tests of them.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::json;
use sexton_operations::channels::{self, TestOutcome};
use sexton_outbound::channel::send::Sender;
use sexton_outbound::secret::SecretSource;
use sexton_tls::TlsClient;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, ago};

/// Channels for notifications.
#[derive(Debug, Subcommand)]
pub enum ChannelsCommand {
    /// List the channels: whether they accept, and what waits
    List,
    /// Send a test to a channel
    Test(Test),
}

/// The channel to test.
#[derive(Debug, Args)]
pub struct Test {
    /// Its name
    name: String,
    /// Let a scheduler send it, which has the channel's secrets; the default where this process lacks them
    #[arg(long)]
    via_scheduler: bool,
    /// How long to wait for a scheduler, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    wait: u64,
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: &ChannelsCommand, session: &Session) -> Result<(), Failure> {
    match command {
        ChannelsCommand::List => list(session).await,
        ChannelsCommand::Test(arguments) => test(arguments, session).await,
    }
}

async fn list(session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let all = channels::list(&store).await?;
    if session.out.is_json() {
        return session.out.document(&json!({"channels": all}));
    }
    if all.is_empty() {
        return session
            .out
            .print("There are no channels; `sexton alerts apply -f alerts.toml` adds some.");
    }
    let now = session.now(&store).await?;
    let headings = ["NAME", "KIND", "STATE", "WAITING", "OLDEST", "PARKED", "SENT", "LAST ERROR"];
    let mut table = Table::new(&headings).unclipped(0);
    for one in &all {
        let state = match one.failing_since {
            Some(since) => Cell::toned(format!("failing since {}", ago(since, now)), Tone::Bad),
            None if one.last_sent_at.is_some() => Cell::toned("works", Tone::Good),
            None => Cell::toned("unused", Tone::Faint),
        };
        let at = |at: Option<chrono::DateTime<chrono::Utc>>| {
            at.map_or_else(Cell::none, |at| Cell::new(ago(at, now)))
        };
        table.row(vec![
            Cell::new(&one.name),
            Cell::new(&one.kind),
            state,
            Cell::number(one.pending),
            at(one.oldest),
            Cell::number(one.parked),
            at(one.last_sent_at),
            one.last_error.as_ref().map_or_else(Cell::none, Cell::new),
        ]);
    }
    session.out.table(table)
}

async fn test(arguments: &Test, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let channel = channels::find(&store, &arguments.name).await?;
    let sender = Sender::new(SecretSource::new(std::env::vars_os()), TlsClient::default());
    let missing = if arguments.via_scheduler {
        Vec::new()
    } else {
        channels::missing_here(&sender, &channel).await
    };
    for one in &missing {
        session.out.note(&format!("{one} here, so a scheduler sends the test"));
    }
    let is_scheduled = arguments.via_scheduler || !missing.is_empty();
    let outcome = if is_scheduled {
        let patience = Duration::from_secs(arguments.wait);
        channels::test_by_scheduler(&store, &channel.name, patience, &session.actor).await?
    } else {
        channels::test_here(&store, &sender, &channel, &session.actor).await?
    };
    let (error, exit) = match outcome {
        TestOutcome::Accepted => (None, Exit::Done),
        TestOutcome::NotAccepted(error) => (Some(error), Exit::Failed),
        TestOutcome::Untried => {
            let wait = arguments.wait;
            (Some(format!("no scheduler has tried it within {wait} s")), Exit::Failed)
        }
    };
    if session.out.is_json() {
        session.out.document(&json!({
            "channel": channel.name,
            "via_scheduler": is_scheduled,
            "accepted": error.is_none(),
            "error": error,
        }))?;
    } else if error.is_none() {
        session.out.print(format!("{} accepted a test.", channel.name))?;
    }
    match error {
        None => Ok(()),
        Some(error) => {
            let message = format!("{} did not accept a test: {error}", channel.name);
            Err(Failure::Reported { exit, message })
        }
    }
}
