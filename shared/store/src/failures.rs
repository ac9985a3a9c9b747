//! Search in failed and discarded executions, and the groups of similar failures.
//!
//! The table `failures` has a row for each such execution. A trigger writes it in the transaction that fails the
//! execution or ends the failure, so it is never behind; rows that never fail cost nothing. Another trigger appends
//! each change of a count to `failure_changes`, and [`aggregate()`] adds the changes up, so a group is counted
//! without reading its failures. Readers add the pending changes to the counts, which are therefore exact at any
//! time.

mod aggregate;
mod group_actions;
mod groups;
mod list;
mod missing_fingerprints;
mod muted;
mod reopened;
mod search;
mod statements;

pub use aggregate::{Aggregated, aggregate, name_groups, prune_groups};
pub use group_actions::{DecideError, GroupChange, GroupStatus, MAX_NOTE_CHARS, decide};
pub use groups::{
    Group, GroupFilter, GroupOrder, GroupPosition, TREND_HOURS, known_fingerprints, list_groups,
    trends,
};
pub use list::{FailedExecution, list_page};
pub use missing_fingerprints::{
    MissingFingerprint, list_missing_fingerprints, record_fingerprints,
};
pub use muted::{MutedMatches, count_muted};
pub use search::{FoundFailure, MAX_SEARCH_ROWS, count, explain, search};
