//! `sexton cron`: when an expression fires. Needs neither database nor broker.

pub mod stream;

use chrono::{DateTime, SecondsFormat, Utc};
use clap::{Args, Subcommand};
use serde_json::json;
use sexton_model::cron::{Dialect, Expression};
use sexton_service::clock;

use crate::failure::Failure;
use crate::session::Session;
use crate::show::ago;

/// The most firings of one answer.
const MAX_COUNT: usize = 1_000;
/// As many firings are shown unless said otherwise.
const COUNT: usize = 5;

/// Try cron expressions.
#[derive(Debug, Subcommand)]
pub enum CronCommand {
    /// When an expression fires next
    Next(Next),
}

/// When an expression fires next.
#[derive(Debug, Args)]
pub struct Next {
    /// Five fields, or six with seconds first, in quotes: "0 8 * * MON-FRI"
    #[arg(required_unless_present = "stdin", conflicts_with = "stdin")]
    expression: Option<String>,
    /// The time zone; UTC is the only one so far
    #[arg(long, default_value = "UTC")]
    tz: String,
    /// Firings strictly after this instant (RFC 3339); default: now
    #[arg(long, value_parser = parse_instant)]
    from: Option<DateTime<Utc>>,
    /// How many firings
    #[arg(long, default_value_t = COUNT, value_parser = parse_count)]
    count: usize,
    /// Answer JSON lines {"id","dialect","expr","tz","from","count"} from standard input, a line each
    #[arg(long)]
    stdin: bool,
}

/// Answers.
///
/// # Errors
///
/// [`Failure::Failed`] for an expression that cannot be read.
pub fn run(command: &CronCommand, session: &Session) -> Result<(), Failure> {
    let CronCommand::Next(next) = command;
    match &next.expression {
        Some(expression) => show(expression, next, session),
        None => stream::answer(std::io::stdin().lock(), std::io::stdout().lock(), clock::now),
    }
}

fn show(expression: &str, next: &Next, session: &Session) -> Result<(), Failure> {
    let now = clock::now();
    let from = next.from.unwrap_or(now);
    let firings =
        firings(expression, Dialect::Any, &next.tz, from, next.count).map_err(Failure::Failed)?;
    if session.out.is_json() {
        return session.out.document(&json!({
            "expression": expression,
            "tz": next.tz,
            "from": text(from),
            "next": firings.iter().copied().map(text).collect::<Vec<_>>(),
        }));
    }
    if firings.is_empty() {
        return session.out.say("It never fires: nothing matches within 100 years.");
    }
    for at in firings {
        session.out.say(format!("{}  {}  {}", text(at), at.format("%a"), ago(at, now)))?;
    }
    Ok(())
}

/// The next `count` firings strictly after `from`; fewer if there are no more.
fn firings(
    expression: &str,
    dialect: Dialect,
    tz: &str,
    from: DateTime<Utc>,
    count: usize,
) -> Result<Vec<DateTime<Utc>>, String> {
    if !matches!(tz, "UTC" | "Etc/UTC") {
        return Err(format!(
            "time zone {:?} is not supported yet; write UTC",
            sexton_model::ticket::shorten(tz, 80)
        ));
    }
    let expression = Expression::parse(expression, dialect).map_err(|error| error.to_string())?;
    Ok(expression.iter_after(from).take(count.min(MAX_COUNT)).collect())
}

fn text(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

fn parse_instant(text: &str) -> Result<DateTime<Utc>, String> {
    DateTime::parse_from_rfc3339(text)
        .map(|at| at.with_timezone(&Utc))
        .map_err(|_| "write it as in 2025-12-01T08:00:00Z".to_owned())
}

fn parse_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=MAX_COUNT) => Ok(count),
        _ => Err(format!("write a number from 1 to {MAX_COUNT}")),
    }
}
