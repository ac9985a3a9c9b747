//! `sexton bulks items`.

use clap::Args;
use sexton_model::bulk_item::ItemState;
use sexton_operations::bulks::items::{self, ItemPage};
use sexton_operations::paging::Page;
use sexton_operations::short_ids;
use sexton_store::bulk::MAX_WALKED_ITEMS;

use crate::failure::Failure;
use crate::options::{PageOptions, render_next};
use crate::session::Session;
use crate::show::{Cell, Table, ago, line};

/// Of a note, in a table.
const MAX_NOTE_CHARS: usize = 300;

/// Which items to list.
#[derive(Debug, Args)]
pub struct ListItems {
    /// Number of the bulk
    id: i64,
    /// Only items in this state
    #[arg(long, value_parser = parse_state, value_name = "STATE")]
    state: Option<ItemState>,
    #[command(flatten)]
    page: PageOptions,
}

fn parse_state(text: &str) -> Result<ItemState, String> {
    ItemState::parse(text).ok_or_else(|| {
        let all: Vec<&str> = ItemState::ALL.iter().map(|state| state.as_str()).collect();
        format!("write one of {}", all.join(", "))
    })
}

pub(super) async fn list(arguments: &ListItems, session: &Session) -> Result<(), Failure> {
    let ListItems { id, state, page: PageOptions { limit, cursor } } = arguments;
    let store = session.store().await?;
    let ItemPage { page, is_cut_short } =
        items::list(&store, *id, *state, cursor.as_deref(), *limit).await?;
    if session.out.is_json() {
        return session.out.document(&page);
    }
    let Page { items: found, next_cursor } = page;
    if found.is_empty() && is_cut_short {
        session.out.print("There are no such items among those looked at.")?;
    } else if found.is_empty() {
        session.out.print("There are no such items.")?;
    } else {
        let now = session.now(&store).await?;
        let ids = found.iter().map(|item| item.execution_id);
        let ids = short_ids::of_executions(&store, ids).await?;
        let mut table = Table::new(&["EXECUTION", "JOB", "RESULT", "WHEN", "STATE NOW", "WHY"]);
        for item in &found {
            let state_now = item.execution_state.as_deref().unwrap_or("removed by retention");
            table.row(vec![
                Cell::new(ids.get(&item.execution_id)),
                Cell::new(item.job_name.as_deref().unwrap_or_default()),
                Cell::new(&item.state),
                item.acted_at.map_or_else(Cell::none, |at| Cell::new(ago(at, now))),
                Cell::state(state_now),
                Cell::new(line(item.note.as_deref().unwrap_or_default(), MAX_NOTE_CHARS)),
            ]);
        }
        session.out.table(table)?;
    }
    if is_cut_short {
        session.out.print(format!(
            "{MAX_WALKED_ITEMS} items were looked at; the next page looks further."
        ))?;
    }
    render_next(next_cursor.as_ref(), session)
}
