//! `sexton cron lint`: likely mistakes in schedules.

mod sources;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::Args;
use sexton_model::cron::{DayRule, Dst};
use sexton_model::lint::{DEFAULT_SAME_MINUTE_JOBS, Severity};
use sexton_model::zone::Zone;
use sexton_operations::cron::{self, TriedExpression};
use sexton_operations::jobs::lint::{LintReport, MAX_SAME_MINUTE_JOBS, MIN_SAME_MINUTE_JOBS};
use sexton_service::clock;

use super::{parse_days, parse_dst, parse_instant, parse_zone};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::lines;

/// Numbers of jobs in one minute that may be a finding.
const SAME_MINUTE_JOBS: RangeInclusive<i64> =
    MIN_SAME_MINUTE_JOBS as i64..=MAX_SAME_MINUTE_JOBS as i64;

/// The schedules to examine, and options.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["expression", "files", "database"]))]
pub struct Lint {
    /// Five fields, or six with seconds first, in quotes: "0 8 * * MON-FRI"
    expression: Option<String>,
    #[command(flatten)]
    sources: Sources,
    /// Rule for fixed times of the expression at clock changes: vixie, skip or wall
    #[arg(long, default_value = "vixie", value_parser = parse_dst)]
    dst: Dst,
    /// Whether both day fields of the expression must select a day, or either: both or either
    #[arg(long, value_parser = parse_days)]
    days: Option<DayRule>,
    /// Job from whose name H in the expression is computed
    #[arg(long, visible_alias = "salt", value_name = "NAME")]
    job: Option<String>,
}

/// Where the jobs are, and which findings are reported.
#[derive(Debug, Args)]
pub(crate) struct Sources {
    /// Jobs files (ending in .toml) and crontabs; `-` is a crontab on standard input
    #[arg(short, long = "file", num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The crontabs have a user column, as /etc/crontab has
    #[arg(long, requires = "files")]
    system: bool,
    /// Examine all active jobs of the database, and the durations of their attempts
    #[arg(long)]
    database: bool,
    /// Time zone of an expression, or of a crontab without CRON_TZ
    #[arg(long, visible_alias = "zone", default_value = "UTC", value_parser = parse_zone)]
    tz: Zone,
    /// Report minutes with at least this number of jobs, 2 or more
    #[arg(long, value_name = "JOBS", default_value_t = DEFAULT_SAME_MINUTE_JOBS as u32,
          value_parser = clap::value_parser!(u32).range(SAME_MINUTE_JOBS))]
    same_minute: u32,
    /// Lowest severity to report: note, warning or error
    #[arg(long, default_value = "warning", value_parser = parse_severity)]
    severity: Severity,
    /// Judge as of this instant (RFC 3339); now by default
    #[arg(long, value_parser = parse_instant)]
    from: Option<DateTime<Utc>>,
}

/// Whether policies are examined, and by which routes.
#[derive(Debug, Default, Args)]
pub(crate) struct Policies {
    /// Report jobs of severity high without a deadline or a destination
    #[arg(long)]
    policy: bool,
    /// Alerts file whose routes count, instead of those that are applied to the database
    #[arg(long, value_name = "FILE", requires = "policy")]
    alerts: Option<PathBuf>,
}

pub(super) async fn run(arguments: &Lint, session: &Session) -> Result<(), Failure> {
    let Lint { sources, dst, days, job, .. } = arguments;
    let Some(text) = &arguments.expression else {
        return examine(sources, &Policies::default(), session).await;
    };
    let now = sources.from.unwrap_or_else(clock::now);
    let tried =
        TriedExpression { text, zone: sources.tz, dst: *dst, days: *days, job: job.as_deref() };
    render(&cron::lint(tried, now, sources.severity), session)
}

/// Examines the jobs of files or of the database.
///
/// # Errors
///
/// [`Failure::Reported`] for findings.
pub(crate) async fn examine(
    sources: &Sources,
    policies: &Policies,
    session: &Session,
) -> Result<(), Failure> {
    let mut linter = sources::examine(sources, policies, session).await?;
    linter.examine_together(sources.same_minute as usize);
    render(&linter.finish(sources.severity), session)
}

fn render(report: &LintReport, session: &Session) -> Result<(), Failure> {
    let LintReport { looked_at, count, findings, .. } = report;
    if session.out.is_json() {
        session.out.document(report)?;
    } else {
        for located in findings {
            session.out.print(lines(&located.to_string()))?;
        }
        if *count > findings.len() {
            session.out.print(format!("… and {} more", count - findings.len()))?;
        }
    }
    match count {
        0 if session.out.is_json() => Ok(()),
        0 => session.out.print(format!("Nothing found in {looked_at} schedules.")),
        1 => Err(findings_failure("1 finding")),
        _ => Err(findings_failure(&format!("{count} findings"))),
    }
}

fn findings_failure(message: &str) -> Failure {
    Failure::Reported { exit: Exit::Findings, message: message.to_owned() }
}

fn parse_severity(word: &str) -> Result<Severity, String> {
    Severity::parse(word).ok_or_else(|| "write one of note, warning, error".to_owned())
}
