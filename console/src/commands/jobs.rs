//! `sexton jobs`: definitions.

mod apply;
mod backfill;
mod catch_up;
mod control;
mod delete;
mod explain;
mod import;
mod list_and_show;
mod next;
mod preview;
mod trigger_many;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sexton_model::rate::Rate;
use sexton_model::zone::Zone;
use sexton_store::ledger::MAX_FIRINGS;

use crate::failure::Failure;
use crate::session::Session;

/// Manage job definitions.
#[derive(Debug, Subcommand)]
pub enum JobsCommand {
    /// Create and update jobs from files, all of them or none
    Apply(Apply),
    /// List jobs by name, with their next firing and last execution
    List(List),
    /// Show a job with its next firings, last executions and operators' actions
    Show(JobReference),
    /// Show the next firings of jobs
    Next(next::Next),
    /// Show how clock changes affect the firings of jobs
    Preview(preview::Preview),
    /// Convert the entries of another scheduler into a jobs file
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Run a job now
    Trigger(Trigger),
    /// Stop a job's firings; executions under way continue
    Pause(Pause),
    /// Let a paused job fire again; record the firings it missed, without running them
    Resume(Resume),
    /// What became of a firing, or of all of a range: ran, skipped, paused, not yet … and why
    Explain(Explain),
    /// Run firings of the past that have no execution, by the schedule's own keys: none runs twice
    Backfill(Backfill),
    /// Delete a job; keep its executions
    Delete(Delete),
    /// What becomes of late firings: shown, or decided where catch-up is held
    CatchUp(CatchUp),
}

/// The files to apply, and options.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Debug, Args)]
pub struct Apply {
    /// Jobs files; `-` is standard input
    #[arg(short, long = "file", required = true, num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Pause active jobs that are not in the files
    #[arg(long)]
    prune: bool,
    /// Pause without confirmation
    #[arg(long)]
    yes: bool,
    /// Refuse jobs whose params do not match the schemas of the active workers; otherwise only warn
    #[arg(long)]
    strict: bool,
}

/// Which jobs to list.
#[derive(Debug, Args)]
pub struct List {
    /// Only names that hold this, in any case
    name: Option<String>,
    /// Only active or only paused ones
    #[arg(long)]
    status: Option<Status>,
    /// At most so many
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(i64).range(1..=20_000))]
    limit: i64,
    /// Only names after this one: where the page before ended
    #[arg(long, value_name = "NAME")]
    after: Option<String>,
    /// Those that were deleted instead, the last ones first
    #[arg(long, conflicts_with_all = ["status", "after"])]
    deleted: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Status {
    Active,
    Paused,
}

/// Which firings to explain.
#[derive(Debug, Args)]
pub struct Explain {
    /// The job's name; of jobs that were deleted the last one of that name
    name: String,
    /// The firing at this instant: 2025-12-01T08:00:00Z, or 2025-12-01T08:00 by the zone's clocks
    #[arg(long, value_name = "WHEN", required_unless_present = "from", conflicts_with_all = ["from", "to"])]
    at: Option<String>,
    /// Firings at or after this; also 2025-12-01 (midnight in the zone) or, so long ago, 36h
    #[arg(long, value_name = "WHEN")]
    from: Option<String>,
    /// Firings at or before this; default: now
    #[arg(long, value_name = "WHEN", requires = "from")]
    to: Option<String>,
    /// The zone in which times without an offset are meant and shown; default: the job's
    #[arg(long, visible_alias = "zone", value_parser = parse_zone)]
    tz: Option<Zone>,
    /// At most so many firings of a range, 1 to 1,000
    #[arg(long, default_value_t = 100, value_parser = parse_limit)]
    limit: usize,
}

/// What to backfill.
#[derive(Debug, Args)]
pub struct Backfill {
    /// The job's name
    name: String,
    /// Firings at or after this: 2025-12-01T08:00:00Z, 2025-12-01T08:00 or 2025-12-01 by the zone's
    /// clocks, or 36h, so long ago
    #[arg(long, value_name = "WHEN")]
    from: String,
    /// Firings at or before this, not after the present; default: now
    #[arg(long, value_name = "WHEN")]
    to: Option<String>,
    /// The zone in which times without an offset are meant; default: the job's
    #[arg(long, visible_alias = "zone", value_parser = parse_zone)]
    tz: Option<Zone>,
    /// How many become due in a second, a minute, an hour or a day, as in 10/m; default: all at once
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// `allow`: they run beside each other and beside others, whatever the job's overlap policy
    #[arg(long)]
    overlap: Option<OverlapOverride>,
    /// Only show what would run
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Why, for the audit
    #[arg(long)]
    reason: Option<String>,
}

/// What may stand in for a job's overlap policy.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum OverlapOverride {
    /// Beside others.
    Allow,
}

/// The job to delete, and options.
#[derive(Debug, Args)]
pub struct Delete {
    /// The job's name
    name: String,
    /// Reason, for the audit
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
    /// Cancel its executions, also those that run
    #[arg(long)]
    cancel: bool,
    /// Show what is under way, and delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Delete without confirmation
    #[arg(long)]
    yes: bool,
}

/// A job.
#[derive(Debug, Args)]
pub struct JobReference {
    /// The job's name
    name: String,
}

/// The job to run, and options.
#[derive(Debug, Args)]
pub struct Trigger {
    /// The job's name
    name: String,
    /// Execution key; a key runs once, and again returns the execution that has it
    #[arg(long)]
    key: Option<String>,
    /// JSON object whose fields override the job's params
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// Trigger an execution for each line of FILE, such as {"key": "march-17", "params": {"customer": 4891}};
    /// `-` is standard input. A repetition triggers only the missing ones
    #[arg(long, value_name = "FILE", conflicts_with_all = ["key", "params"])]
    each: Option<PathBuf>,
    /// Reason, for the audit
    #[arg(long)]
    reason: Option<String>,
}

/// The job to pause, and the reason.
#[derive(Debug, Args)]
pub struct Pause {
    /// The job's name
    name: String,
    /// Reason, shown with the paused job and in the audit
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    reason: String,
}

/// The job to resume, and the reason.
#[derive(Debug, Args)]
pub struct Resume {
    /// The job's name
    name: String,
    /// Reason, for the audit
    #[arg(long)]
    reason: Option<String>,
}

/// Which late firings, and what to do with them.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[command(group = clap::ArgGroup::new("deed").required(true).args(["dry_run", "release", "discard"]))]
pub struct CatchUp {
    /// Only of these jobs; the hold itself ends only without names
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only show what the planner would claim now, and what a release would make of what is held
    #[arg(long)]
    dry_run: bool,
    /// Let the jobs' misfire policies judge what is held, as of when it was set aside
    #[arg(long)]
    release: bool,
    /// Give up what is held: it becomes gaps with the reason `held`
    #[arg(long)]
    discard: bool,
    /// Do not ask before
    #[arg(long)]
    yes: bool,
    /// Why, for the audit
    #[arg(long)]
    reason: Option<String>,
}

/// Runs the command.
///
/// # Errors
///
/// [`Failure`].
pub async fn run(command: JobsCommand, session: &Session) -> Result<(), Failure> {
    match command {
        JobsCommand::Apply(apply) => apply::run(&apply, session).await,
        JobsCommand::List(list) => list_and_show::list(list, session).await,
        JobsCommand::Show(reference) => list_and_show::show(&reference.name, session).await,
        JobsCommand::Next(next) => next::run(&next, session).await,
        JobsCommand::Preview(preview) => preview::run(&preview, session).await,
        JobsCommand::Import(import) => import::run(&import, session),
        JobsCommand::Trigger(trigger) => match &trigger.each {
            Some(file) => trigger_many::trigger_many(&trigger, file, session).await,
            None => control::trigger(&trigger, session).await,
        },
        JobsCommand::Pause(pause) => control::pause(&pause, session).await,
        JobsCommand::CatchUp(arguments) => catch_up::run(&arguments, session).await,
        JobsCommand::Resume(resume) => control::resume(&resume, session).await,
        JobsCommand::Explain(arguments) => explain::run(&arguments, session).await,
        JobsCommand::Backfill(arguments) => backfill::run(&arguments, session).await,
        JobsCommand::Delete(arguments) => delete::run(&arguments, session).await,
    }
}

fn parse_zone(name: &str) -> Result<Zone, String> {
    Zone::parse(name).map_err(|error| error.to_string())
}

fn parse_limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(limit @ 1..=MAX_FIRINGS) => Ok(limit),
        _ => Err(format!("write a number from 1 to {MAX_FIRINGS}")),
    }
}
