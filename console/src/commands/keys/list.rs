//! `sexton keys list`: for people, for spreadsheets and for programs.

use clap::{Args, ValueEnum};
use serde_json::json;
use sexton_operations::lock_keys;
use sexton_store::lock_keys::AssignedRange;

use crate::failure::Failure;
use crate::session::Session;
use crate::show::{Cell, Table, Tone, ago};

/// As which text.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// A table for people
    Table,
    /// Comma-separated values with a heading
    Csv,
    /// One JSON document, as with `--json`
    Json,
}

/// Which ranges to list.
#[derive(Debug, Args)]
pub struct List {
    /// Only services whose name contains this text, in any case
    service: Option<String>,
    /// Format of the list; `import` reads csv and json
    #[arg(long, value_enum)]
    format: Option<Format>,
}

pub(super) async fn run(arguments: &List, session: &Session) -> Result<(), Failure> {
    let format = match (session.out.is_json(), arguments.format) {
        (false, format) => format.unwrap_or(Format::Table),
        (true, None | Some(Format::Json)) => Format::Json,
        (true, Some(Format::Table | Format::Csv)) => {
            return Err(Failure::Usage("--json prints JSON; leave it or --format out".to_owned()));
        }
    };
    let store = session.store().await?;
    let ranges = lock_keys::list(&store, arguments.service.as_deref()).await?;
    match format {
        Format::Json => session.out.document(&json!({"ranges": ranges})),
        Format::Csv => {
            session.out.print("service,start,keys,end,used,next")?;
            ranges.iter().try_for_each(|range| session.out.print(csv(range)))
        }
        Format::Table if ranges.is_empty() => {
            session.out.print("No service has a range; `sexton keys assign SERVICE` gives it one.")
        }
        Format::Table => {
            let now = session.now(&store).await?;
            let headings = ["SERVICE", "FROM", "TO", "KEYS", "USED", "NEXT", "BY", "ASSIGNED"];
            let mut table = Table::new(&headings);
            for AssignedRange { range, end, used, next, assigned_by, assigned_at } in &ranges {
                table.row(vec![
                    Cell::new(range.service()),
                    Cell::number(range.first()),
                    Cell::number(*end),
                    Cell::number(range.keys().into()),
                    Cell::number(*used as i64),
                    next.map_or_else(|| Cell::toned("full", Tone::Warning), Cell::number),
                    Cell::new(assigned_by),
                    Cell::new(ago(*assigned_at, now)),
                ]);
            }
            session.out.table(table)
        }
    }
}

/// A service's name needs no quotes.
fn csv(one: &AssignedRange) -> String {
    let AssignedRange { range, end, used, next, .. } = one;
    let next = next.map(|next| next.to_string()).unwrap_or_default();
    format!("{},{},{},{end},{used},{next}", range.service(), range.first(), range.keys())
}
