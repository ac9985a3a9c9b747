//! The demo: the platform at work before one's eyes, within a minute.
//!
//! # Purpose
//!
//! Somebody who has never seen Sexton runs `make demo` and sees a cron job fire, run, fail, be
//! retried, be parked, be looked at and put back; then a scheduler and a worker are killed and
//! nothing is lost.
//!
//! # Guarantees
//!
//! - Real programs on a real PostgreSQL and RabbitMQ, in a database and a namespace of their own;
//!   what an operator does is done by the command `sexton`.
//! - Each line about an execution is read from rows and carries its id.
//! - It ends by itself, and with success only if all was observed that was to be. Otherwise it names
//!   what is missing and shows the ends of the programs' logs.
//! - Whatever it started is stopped again, also on Ctrl-C.
//!
//! `up` and `down` leave the same platform running, and end it; see [`up`].

mod acts;
mod asked;
mod changes;
mod ledger;
mod rows;
mod stage;
mod state;
mod story;
mod teller;
pub mod up;
mod voice;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use sexton_servers::{Needed, Servers, provide};
use tokio::time::Instant;

use asked::Asked;
use stage::{Stage, example};
use story::Story;
use voice::{Tone, Voice};

/// How long a demo may take.
pub const LIMIT: Duration = Duration::from_secs(110);

/// What of [`LIMIT`] is left to the story at least, however long the servers took to start: on a bare
/// machine they are installed first.
const STORY_LIMIT: Duration = Duration::from_secs(80);

/// How to run it.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Without workers it must fail: that shows that its lines are no foregone conclusion.
    pub has_workers: bool,
    /// How long it may take.
    pub limit: Duration,
}

/// Runs the demo. Success: all of it was observed; 1: not all of it; 128 + n: signal n ended it.
///
/// # Errors
///
/// There are no servers, or something failed that is not part of the play.
pub async fn run(options: Options) -> Result<ExitCode> {
    let mut asked = Asked::listen()?;
    let voice = Voice::new();
    voice::write("Sexton at work: two schedulers, two workers, PostgreSQL and RabbitMQ.");
    voice::write("Each line with an execution's id tells what its rows in PostgreSQL say.\n");
    voice.say("servers", Tone::Plain, "finding or starting PostgreSQL and RabbitMQ …");
    let servers = tokio::select! {
        servers = provide(Needed::Both) => servers?,
        // What was started so far is dropped here, and its guards stop it.
        code = asked.exit_code() => return Ok(code),
    };
    voice.say("servers", Tone::Plain, &servers.description());
    let outcome = tokio::select! {
        outcome = perform(&servers, &voice, options) => outcome.map(|is_complete| {
            if is_complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }),
        code = asked.exit_code() => {
            voice.say("stopped", Tone::Plain, "as asked: everything that was started is gone");
            Ok(code)
        }
    };
    servers.shutdown().await?;
    outcome
}

/// Sets the stage and plays; whether all was observed.
async fn perform(servers: &Servers, voice: &Voice, options: Options) -> Result<bool> {
    let left = options.limit.saturating_sub(voice.elapsed());
    let deadline = Instant::now() + left.max(STORY_LIMIT.min(options.limit));
    let mut stage = Stage::build(servers, "demo").await?;
    voice.say("migrated", Tone::Plain, "a database of its own, by `sexton migrate`");
    let tasks = example("demo/tasks.toml");
    stage.start(options.has_workers.then_some(tasks.as_path())).await?;
    let names: Vec<_> =
        stage.programs().map(|p| format!("{} (process {})", p.name(), p.pid())).collect();
    voice.say("started", Tone::Plain, &names.join(", "));

    let mut story = Story::begin(&mut stage, voice, deadline).await?;
    let end = acts::play(&mut story).await;
    let is_complete = summarise(&mut story, end).await?;
    if !is_complete {
        voice.head("The ends of the programs' logs");
        voice::write(&stage.platform.log_tails());
    }
    Ok(is_complete)
}

/// Prints the summary; whether nothing is missing and nothing is wrong.
async fn summarise(story: &mut Story<'_>, end: Result<()>) -> Result<bool> {
    let balance = acts::balance(story).await?;
    let (voice, ledger) = (story.voice, &story.ledger);
    voice.head("Summary");
    voice::write(&ledger.table(voice.has_color()));
    voice::write(&balance.table(voice.has_color()));
    let mut faults = Vec::new();
    if let Err(error) = end {
        faults.push(format!("{error:#}"));
    }
    let missing = ledger.missing();
    if !missing.is_empty() {
        faults.push(format!("not observed: {}", missing.join(", ")));
    }
    faults.extend(balance.faults());
    if faults.is_empty() {
        voice::write("");
        voice.say("complete", Tone::Good, "all of it was observed, and nothing was lost");
        return Ok(true);
    }
    voice::write("");
    for fault in faults {
        voice.say("FAILED", Tone::Bad, &fault);
    }
    Ok(false)
}
