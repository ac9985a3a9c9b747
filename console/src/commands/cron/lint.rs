//! `sexton cron lint`: likely mistakes in schedules.

mod sources;

use std::fmt;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::{Value, json};
use sexton_model::cron::{DayRule, Dst};
use sexton_model::lint::{DEFAULT_SAME_MINUTE_JOBS, Finding, Severity, of_expression};
use sexton_model::zone::Zone;
use sexton_service::clock;

use super::{parse_days, parse_dst, parse_instant, parse_zone};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::lines;

/// Maximum number of findings shown; the answer counts the others.
const MAX_LISTED_FINDINGS: usize = 1_000;

/// The schedules to examine, and options.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["expression", "files", "database"]))]
pub struct Lint {
    /// Five fields, or six with seconds first, in quotes: "0 8 * * MON-FRI"
    expression: Option<String>,
    /// Jobs files (ending in .toml) and crontabs; `-` is a crontab on standard input
    #[arg(short, long = "file", num_args = 1.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The crontabs have a user column, as /etc/crontab has
    #[arg(long, requires = "files")]
    system: bool,
    /// Examine all active jobs of the database, and the durations of their attempts
    #[arg(long)]
    database: bool,
    /// Time zone of the expression, or of a crontab without CRON_TZ
    #[arg(long, visible_alias = "zone", default_value = "UTC", value_parser = parse_zone)]
    tz: Zone,
    /// Rule for fixed times of the expression at clock changes: vixie, skip or wall
    #[arg(long, default_value = "vixie", value_parser = parse_dst)]
    dst: Dst,
    /// Whether both day fields of the expression must select a day, or either: both or either
    #[arg(long, value_parser = parse_days)]
    days: Option<DayRule>,
    /// Job from whose name H in the expression is computed
    #[arg(long, visible_alias = "salt", value_name = "NAME")]
    job: Option<String>,
    /// Report minutes with at least this number of jobs, 2 or more
    #[arg(long, value_name = "JOBS", default_value_t = DEFAULT_SAME_MINUTE_JOBS as u32,
          value_parser = clap::value_parser!(u32).range(2..=20_000))]
    same_minute: u32,
    /// Lowest severity to report: note, warning or error
    #[arg(long, default_value = "warning", value_parser = parse_severity)]
    severity: Severity,
    /// Judge as of this instant (RFC 3339); now by default
    #[arg(long, value_parser = parse_instant)]
    from: Option<DateTime<Utc>>,
}

/// A finding and where it is.
struct LocatedFinding {
    file: Option<String>,
    /// Counted from 1.
    line: Option<usize>,
    job: Option<String>,
    finding: Finding,
}

impl fmt::Display for LocatedFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, _) => {}
        }
        if let Some(job) = &self.job {
            write!(f, "job {job:?}: ")?;
        }
        let Finding { code, severity, message, instead } = &self.finding;
        let (severity, code) = (severity.as_str(), code.as_str());
        write!(f, "{severity} {code}: {message}\n    write {instead}")
    }
}

impl LocatedFinding {
    fn document(&self) -> Value {
        json!({
            "file": self.file,
            "line": self.line,
            "job": self.job,
            "code": self.finding.code,
            "severity": self.finding.severity,
            "message": self.finding.message,
            "instead": self.finding.instead,
        })
    }
}

pub(super) async fn run(arguments: &Lint, session: &Session) -> Result<(), Failure> {
    let (now, schedule_count, mut found) = find_findings(arguments, session).await?;
    found.retain(|located| located.finding.severity >= arguments.severity);
    found.sort_by(|a, b| {
        (&a.file, a.line, &a.job, a.finding.code).cmp(&(&b.file, b.line, &b.job, b.finding.code))
    });
    let count = found.len();
    if session.out.is_json() {
        session.out.document(&json!({
            "from": now,
            "looked_at": schedule_count,
            "count": count,
            "findings": found.iter().take(MAX_LISTED_FINDINGS).map(LocatedFinding::document).collect::<Vec<_>>(),
        }))?;
    } else {
        for located in found.iter().take(MAX_LISTED_FINDINGS) {
            session.out.print(lines(&located.to_string()))?;
        }
        if count > MAX_LISTED_FINDINGS {
            session.out.print(format!("… and {} more", count - MAX_LISTED_FINDINGS))?;
        }
    }
    match count {
        0 if session.out.is_json() => Ok(()),
        0 => session.out.print(format!("Nothing found in {schedule_count} schedules.")),
        1 => Err(findings_failure("1 finding")),
        _ => Err(findings_failure(&format!("{count} findings"))),
    }
}

fn findings_failure(message: &str) -> Failure {
    Failure::Reported { exit: Exit::Findings, message: message.to_owned() }
}

async fn find_findings(
    arguments: &Lint,
    session: &Session,
) -> Result<(DateTime<Utc>, usize, Vec<LocatedFinding>), Failure> {
    if arguments.database {
        return sources::lint_database(arguments, session).await;
    }
    let now = arguments.from.unwrap_or_else(clock::now);
    if let Some(text) = &arguments.expression {
        let name = arguments.job.as_deref().unwrap_or_default();
        let Lint { tz, dst, days, .. } = *arguments;
        let found = of_expression(text, name, tz, dst, days, now);
        let located = found.into_iter().map(|finding| LocatedFinding {
            file: None,
            line: None,
            job: arguments.job.clone(),
            finding,
        });
        return Ok((now, 1, located.collect()));
    }
    let (schedule_count, found) = sources::lint_files(arguments, now)?;
    Ok((now, schedule_count, found))
}

fn parse_severity(word: &str) -> Result<Severity, String> {
    Severity::parse(word).ok_or_else(|| "write one of note, warning, error".to_owned())
}
