//! The graveyard: what failed or was discarded, as operators look for it, and groups of what failed alike.
//!
//! The table `failures` has a row for each such execution. A trigger keeps it in the transaction that fails
//! the execution or ends the failure, so that it is never behind; rows that never fail cost nothing.
//! Another trigger appends to `failure_changes` what becomes more or less, and [`fold()`] adds that up, so
//! groups are counted without reading what they count. Whoever reads takes both together: the counts are
//! exact at once, whether anybody folds or not.

mod deeds;
mod fill;
mod fold;
mod groups;
mod left_out;
mod list;
mod read;
mod search;
mod statements;

pub use deeds::{Decided, GroupChange, MAX_NOTE_CHARS, NotDecided, decide};
pub use fill::{Filled, fill, is_filled};
pub use fold::{Folded, fold, name_groups, tidy};
pub use groups::{Group, GroupFilter, GroupOrder, TREND_HOURS, groups, known_fingerprints, trends};
pub use left_out::{LeftOut, left_out};
pub use list::{Buried, page};
pub use read::{Unread, record_fingerprints, unread};
pub use search::{Found, MAX_FOUND, count, explain, search};
