//! Options that several commands have, with one meaning and one help text.

mod filter;
mod paging;
mod time_range;

pub use filter::FilterOptions;
pub use paging::{PageOptions, render_next};
pub use time_range::{AT_HELP, SINCE_HELP, TimeRangeOptions, UNTIL_HELP};
