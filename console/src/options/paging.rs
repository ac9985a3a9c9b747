//! The options of a page of a list, and the line that leads to the next page.

use clap::Args;
use sexton_operations::paging::{Cursor, MAX_PAGE_ROWS};

use crate::failure::Failure;
use crate::session::Session;

/// Which page of a list.
#[derive(Clone, Debug, Args)]
pub struct PageOptions {
    /// Maximum number of rows, from 1 to 1,000
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=MAX_PAGE_ROWS))]
    pub limit: i64,
    /// Continue after this cursor, with which the previous page ended
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

/// Prints how to see the next page, if there is one.
///
/// # Errors
///
/// [`Failure::Closed`] when nobody reads any more.
pub fn render_next(next: Option<&Cursor>, session: &Session) -> Result<(), Failure> {
    next.map_or(Ok(()), |cursor| session.out.print(format!("Next page: add --cursor {cursor}")))
}
