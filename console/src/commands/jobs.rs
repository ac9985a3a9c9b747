//! `sexton jobs`: definitions.

mod apply;
mod backfill;
mod catch_up;
mod control;
mod delete;
mod explain;
mod import;
mod lint;
mod list_and_show;
mod next;
mod policy;
mod preview;
mod trigger_many;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use sexton_model::rate::Rate;
use sexton_model::zone::Zone;

use crate::failure::Failure;
use crate::options::{AT_HELP, PageOptions, SINCE_HELP, UNTIL_HELP};
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
    /// Show what holds for a job, in words, and what is missing: guarantee, lock, missed runs, key, failure
    Policy(JobReference),
    /// Find likely mistakes in jobs, of files or of the database
    Lint(lint::Lint),
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
    /// Explain firings, one or a range: ran, skipped, paused, not yet, …, and why
    Explain(Explain),
    /// Run past firings that have no execution; none runs twice
    Backfill(Backfill),
    /// Delete a job; keep its executions
    Delete(Delete),
    /// Show late firings, or decide about held ones
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
    /// Refuse what is otherwise only a warning: params that do not match the schemas of the active workers, and two
    /// restricting day fields without days
    #[arg(long)]
    strict: bool,
}

/// Which jobs to list.
#[derive(Debug, Args)]
pub struct List {
    /// Only jobs whose name contains this text, in any case
    name: Option<String>,
    /// Only active or only paused jobs
    #[arg(long)]
    status: Option<Status>,
    /// Only jobs with this label; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    label: Vec<String>,
    #[command(flatten)]
    page: PageOptions,
    /// List deleted jobs instead, the latest deletion first
    #[arg(long, conflicts_with = "status")]
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
    /// Name of the job, even a deleted one
    name: String,
    #[arg(
        long,
        value_name = "INSTANT",
        help = AT_HELP,
        required_unless_present = "since",
        conflicts_with_all = ["since", "until", "cursor"]
    )]
    at: Option<String>,
    #[arg(long, value_name = "INSTANT", help = SINCE_HELP)]
    since: Option<String>,
    #[arg(long, value_name = "INSTANT", help = UNTIL_HELP, requires = "since")]
    until: Option<String>,
    /// Zone of times without an offset, and of the output; default: that of the job
    #[arg(long, visible_alias = "zone", value_parser = parse_zone)]
    tz: Option<Zone>,
    #[command(flatten)]
    page: PageOptions,
}

/// What to backfill.
#[derive(Debug, Args)]
pub struct Backfill {
    /// Name of the job
    name: String,
    #[arg(long, value_name = "INSTANT", help = SINCE_HELP)]
    since: String,
    #[arg(long, value_name = "INSTANT", help = UNTIL_HELP)]
    until: Option<String>,
    /// Zone of times without an offset; default: that of the job
    #[arg(long, visible_alias = "zone", value_parser = parse_zone)]
    tz: Option<Zone>,
    /// Maximum rate at which they become due, such as 10/m; default: all at once
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    /// Override the job's overlap policy: `allow` lets them run beside each other and beside others
    #[arg(long)]
    overlap: Option<OverlapOverride>,
    /// Show what would run, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Reason, recorded in the audit log
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
#[command(group = clap::ArgGroup::new("action").required(true).args(["dry_run", "release", "discard"]))]
pub struct CatchUp {
    /// Only firings of these jobs; the hold itself ends only without names
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Show what schedulers would claim now, and what a release would run, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Release held firings: the jobs' misfire policies decide, as of when the firings were held
    #[arg(long)]
    release: bool,
    /// Give up held firings: they become gaps with the reason `held`
    #[arg(long)]
    discard: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Reason, recorded in the audit log
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
        JobsCommand::Policy(reference) => policy::run(&reference.name, session).await,
        JobsCommand::Lint(arguments) => lint::run(&arguments, session).await,
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
