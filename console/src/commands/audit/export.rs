//! `sexton audit export`: all of it, a page at a time in memory.
//!
//! It goes by the actions' numbers, so an export that broke off is gone on with behind the last number that it
//! wrote. Numbers are drawn before a transaction commits: an action may appear later than one with a higher
//! number. So an export waits for those who may be recording something below what it would write, and if they
//! take too long it ends before the first number that they may have drawn. An export that goes on from the last
//! number of the one before misses nothing.
//!
//! The last line says what the export contains, and names the head of the audit's chain.

use chrono::Utc;
use clap::{Args, ValueEnum};
use serde_json::json;
use sexton_operations::audit::export::ExportDigest;
use sexton_operations::audit::{self, SettledActions, WRITERS_TIMEOUT, wait_until_settled};
use sexton_store::operator::{OperatorAction, PageStart};

use super::Selector;
use crate::failure::Failure;
use crate::session::Session;
use crate::show::record_line;

/// Actions of one page.
const PAGE_ACTIONS: i64 = 1_000;

/// As which text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// One JSON document on each line
    Jsonl,
    /// Comma-separated values with a heading
    Csv,
}

/// What to write, and how.
#[derive(Debug, Args)]
pub struct Export {
    #[command(flatten)]
    selector: Selector,
    /// Format of the lines
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,
    /// Only actions after the one with this number: the last of an earlier export
    #[arg(long, value_name = "ID", default_value_t = 0)]
    after: i64,
    /// Do not wait for actions that are being recorded; some may be missing
    #[arg(long)]
    unsettled: bool,
    /// Write values that look like secrets, which are masked otherwise
    #[arg(long)]
    unmasked: bool,
}

pub(super) async fn run(arguments: &Export, session: &Session) -> Result<(), Failure> {
    let store = session.store().await?;
    let now = session.now(&store).await?;
    let filter = arguments.selector.request().read(&store, now).await?;
    let mut after = arguments.after;
    let SettledActions { through, missing, is_whole } = if arguments.unsettled {
        SettledActions { through: i64::MAX, missing: None, is_whole: false }
    } else {
        wait_until_settled(&store, after, i64::MAX).await?
    };
    if arguments.format == Format::Csv {
        session.out.print(COLUMNS.join(","))?;
    }
    let mut digest = ExportDigest::default();
    loop {
        let beginning = PageStart::After { after, through };
        let page =
            audit::list(&store, &filter, beginning, PAGE_ACTIONS, arguments.unmasked).await?;
        for action in &page {
            let line = match arguments.format {
                Format::Jsonl => record_line(action)?,
                Format::Csv => csv(action),
            };
            session.out.print(&line)?;
            digest.add(&line);
        }
        after = page.last().map_or(after, |last| last.id);
        if (page.len() as i64) < PAGE_ACTIONS {
            break;
        }
    }
    // A filter may leave out the last ones. An export that did not wait knows only of those that it has.
    let through = if arguments.unsettled { after } else { after.max(through) };
    let end = digest.finish(&store, through, is_whole).await?;
    match arguments.format {
        Format::Jsonl => session.out.record(&end)?,
        // A table has no place for it.
        Format::Csv => {
            let noun = if end.actions == 1 { "action" } else { "actions" };
            let (actions, head) = (end.actions, &end.head.head);
            let text = format!("{actions} {noun}, through {through}; the audit's head is {head}");
            session.out.note(&text);
        }
    }
    if let Some(missing) = missing {
        eprintln!(
            "sexton: the export ends before action {missing}: somebody has been recording actions for longer \
             than {} s, and that may be one of his; export the rest later, with --after {}",
            WRITERS_TIMEOUT.as_secs(),
            missing - 1
        );
    }
    Ok(())
}

const COLUMNS: [&str; 12] = [
    "id",
    "at",
    "actor",
    "action",
    "job_id",
    "execution_id",
    "bulk_id",
    "reason",
    "from_where",
    "from_address",
    "before",
    "after",
];

fn csv(action: &OperatorAction) -> String {
    let text = |value: Option<String>| value.unwrap_or_default();
    let json = |value: &Option<serde_json::Value>| value.as_ref().map(|it| json!(it).to_string());
    let fields = [
        action.id.to_string(),
        action.at.with_timezone(&Utc).to_rfc3339(),
        action.actor.clone(),
        action.action.clone(),
        text(action.job_id.map(|id| id.to_string())),
        text(action.execution_id.map(|id| id.to_string())),
        text(action.bulk_id.map(|id| id.to_string())),
        text(action.reason.clone()),
        text(action.from_where.clone()),
        text(action.from_address.clone()),
        text(json(&action.before)),
        text(json(&action.after)),
    ];
    fields.map(|field| quoted(&field)).join(",")
}

/// As RFC 4180 has it, and one line each: a control character, a line's end among them, is written as an
/// escape. What a spreadsheet would take for a formula begins with an apostrophe.
fn quoted(field: &str) -> String {
    let field: String = field
        .chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
        .collect();
    let formula = field.starts_with(['=', '+', '-', '@']);
    let field = if formula { format!("'{field}") } else { field };
    if field.contains(['"', ',', '\'']) || field.starts_with(' ') || field.ends_with(' ') {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_field_is_quoted_where_it_must_be_and_stays_on_its_line() {
        assert_eq!(quoted("bank is back"), "bank is back");
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(quoted("one\ntwo\u{1b}[31m"), "one\\ntwo\\u{1b}[31m");
        assert_eq!(quoted("=HYPERLINK(1)"), "\"'=HYPERLINK(1)\"");
    }
}
