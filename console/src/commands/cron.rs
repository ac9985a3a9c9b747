//! `sexton cron`: an expression's next firings, and likely mistakes in schedules. Only `lint --database` needs a server.

mod anomalies;
pub(super) mod lint;
pub mod stream;

use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use sexton_model::cron::{DayRule, Dst, depends_on_name, restricts_days_twice};
use sexton_model::zone::Zone;
use sexton_operations::cron::{
    CronFirings, DEFAULT_FIRINGS, MAX_FIRINGS, TriedExpression, next as next_firings,
};
use sexton_operations::instants;
use sexton_service::clock;

use anomalies::render_anomalies;
use sexton_model::lint::lint_horizon;

use crate::failure::Failure;
use crate::session::Session;
use crate::show::ago;

pub(super) use anomalies::wall;

/// Try cron expressions.
#[derive(Debug, Subcommand)]
pub enum CronCommand {
    /// Show the next firings of an expression
    Next(Next),
    /// Find likely mistakes in schedules: of an expression, of files or of the database
    Lint(lint::Lint),
}

/// The expression, and options.
#[derive(Debug, Args)]
pub struct Next {
    /// Five fields, or six with seconds first, in quotes: "0 8 * * MON-FRI"
    #[arg(required_unless_present = "stdin", conflicts_with = "stdin")]
    expression: Option<String>,
    /// IANA time zone of the expression
    #[arg(long, visible_alias = "zone", default_value = "UTC", value_parser = parse_zone)]
    tz: Zone,
    /// Rule for fixed times at clock changes: vixie, skip or wall
    #[arg(long, default_value = "vixie", value_parser = parse_dst)]
    dst: Dst,
    /// Whether both day fields must select a day, or either: both or either
    #[arg(long, value_parser = parse_days)]
    days: Option<DayRule>,
    /// Job from whose name H is computed
    #[arg(long, visible_alias = "salt", value_name = "NAME")]
    job: Option<String>,
    /// Only firings after this instant (RFC 3339); now by default
    #[arg(long, value_parser = parse_instant)]
    from: Option<DateTime<Utc>>,
    /// Number of firings
    #[arg(long, default_value_t = DEFAULT_FIRINGS, value_parser = parse_count)]
    count: usize,
    /// Also show the clock changes within two years that affect its firings
    #[arg(long, conflicts_with = "stdin")]
    anomalies: bool,
    /// Answer each line {"id","dialect","expr","tz","dst","days","job","from","count"} of standard input
    #[arg(long)]
    stdin: bool,
}

/// Answers.
///
/// # Errors
///
/// [`Failure::Failed`] for an expression that cannot be read, and [`Failure::Reported`] for findings.
pub async fn run(command: &CronCommand, session: &Session) -> Result<(), Failure> {
    let next = match command {
        CronCommand::Next(next) => next,
        CronCommand::Lint(arguments) => return lint::run(arguments, session).await,
    };
    match &next.expression {
        Some(expression) => show(expression, next, session),
        None => stream::answer(std::io::stdin().lock(), std::io::stdout().lock(), clock::now),
    }
}

fn show(text: &str, next: &Next, session: &Session) -> Result<(), Failure> {
    let now = clock::now();
    let from = next.from.unwrap_or(now);
    let tried = TriedExpression {
        text,
        zone: next.tz,
        dst: next.dst,
        days: next.days,
        job: next.job.as_deref(),
    };
    let found = next_firings(tried, from, next.count, next.anomalies)
        .map_err(|error| Failure::Failed(error.to_string()))?;
    if session.out.is_json() {
        return session.out.document(&CronFirings::new(tried, from, found));
    }
    if found.firings.is_empty() {
        return session.out.print("It never fires: nothing matches within 100 years.");
    }
    for at in found.firings {
        let wall = next.tz.at(at);
        let shown = match next.tz {
            Zone::UTC => wall.format("%a").to_string(),
            _ => wall.format("%a %F %T %:z").to_string(),
        };
        session.out.print(format!("{}  {shown}  {}", instant(at), ago(at, now)))?;
    }
    if let Some(anomalies) = found.anomalies {
        render_anomalies(&anomalies, next.tz, lint_horizon(from), session)?;
    }
    if next.days.is_none() && restricts_days_twice(text) {
        let rule = found.day_rule.as_str();
        session.out.print(format!(
            "Both day fields restrict the days. As in cron, this is --days {rule}."
        ))?;
    }
    if next.job.is_none() && depends_on_name(text) {
        session
            .out
            .print("H depends on the job's name: say --job NAME to see that job's numbers.")?;
    }
    Ok(())
}

fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

pub(super) fn parse_instant(text: &str) -> Result<DateTime<Utc>, String> {
    instants::parse_start(text, Zone::UTC, clock::now()).map_err(|error| error.to_string())
}

pub(super) fn parse_zone(name: &str) -> Result<Zone, String> {
    Zone::parse(name).map_err(|error| error.to_string())
}

fn parse_dst(word: &str) -> Result<Dst, String> {
    let words = Dst::WORDS.join(", ");
    Dst::parse(word).ok_or_else(|| format!("write one of {words}"))
}

fn parse_days(word: &str) -> Result<DayRule, String> {
    let words = DayRule::WORDS.join(", ");
    DayRule::parse(word).ok_or_else(|| format!("write one of {words}"))
}

pub(super) fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=MAX_FIRINGS) => Ok(count),
        _ => Err(format!("write a number from 1 to {MAX_FIRINGS}")),
    }
}
