//! Failed and discarded executions, as operators search for them, and the groups of those that failed alike.
//!
//! The table `failures` has a row for each such execution. A trigger keeps it in the transaction that fails
//! the execution or ends the failure, so that it is never behind; rows that never fail cost nothing.
//! Another trigger appends to `failure_changes` what becomes more or less, and [`aggregate()`] adds that up, so
//! groups are counted without reading what they count. Whoever reads takes both together: the counts are
//! exact at once, whether anybody folds or not.

mod aggregate;
mod backfill;
mod group_actions;
mod groups;
mod list;
mod missing_fingerprints;
mod muted;
mod search;
mod statements;

pub use aggregate::{Aggregated, aggregate, name_groups, prune_groups};
pub use backfill::{BackfillProgress, backfill_failures, is_backfilled};
pub use group_actions::{DecideError, GroupChange, GroupStatus, MAX_NOTE_CHARS, decide};
pub use groups::{
    Group, GroupFilter, GroupOrder, TREND_HOURS, known_fingerprints, list_groups, trends,
};
pub use list::{FailedExecution, list_page};
pub use missing_fingerprints::{
    MissingFingerprint, list_missing_fingerprints, record_fingerprints,
};
pub use muted::{MutedMatches, count_muted};
pub use search::{FoundFailure, MAX_SEARCH_ROWS, count, explain, search};
