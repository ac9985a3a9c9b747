//! Firings that did not run, in tables: the same columns wherever a page lists some.

use chrono::{DateTime, TimeDelta, Utc};
use sexton_operations::gaps::GapEntry;

use super::instant::in_address;

/// A row of a table of gaps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::pages) struct GapRow {
    pub(in crate::pages) entry: GapEntry,
    /// Their number, in words.
    pub(in crate::pages) count: String,
    /// The query of the address that explains the first one.
    pub(in crate::pages) explain: String,
    /// The query of the address that backfills them.
    pub(in crate::pages) backfill: String,
}

impl GapRow {
    /// Makes the row of a gap.
    pub(in crate::pages) fn new(entry: GapEntry) -> Self {
        let gap = &entry.gap;
        let at_least = if gap.reason.ends_with(", at least") { "at least " } else { "" };
        let count = match gap.count {
            1 => "1 firing".to_owned(),
            count => format!("{at_least}{count} firings"),
        };
        Self {
            explain: format!("at={}", in_address(gap.first_firing)),
            backfill: format!(
                "since={}&until={}",
                in_address(gap.first_firing),
                in_address(behind(gap.last_firing))
            ),
            count,
            entry,
        }
    }

    pub(in crate::pages) fn is_single(&self) -> bool {
        self.entry.gap.first_firing == self.entry.gap.last_firing
    }
}

/// An end of a range is behind its last firing; two firings of a job are at least a second apart.
fn behind(last: DateTime<Utc>) -> DateTime<Utc> {
    last + TimeDelta::milliseconds(1)
}
