//! Checks for approved actions that nobody carries out.

use super::join_first;
use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};
use crate::text::duration;

/// How long an approved request may show no sign of life. The last approval carries it out at once, and a backfill renews its claim
/// with each batch.
const MAX_SILENT_MS: i64 = 300_000;

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    let Some(rows) = facts.rows() else { return };
    let left: Vec<String> = rows
        .approved
        .iter()
        .filter(|request| request.silent_ms > MAX_SILENT_MS)
        .map(|one| format!("request {} ({}) for {}", one.id, one.kind, duration(one.silent_ms)))
        .collect();
    if !left.is_empty() {
        found.push(Finding::new(Code::ApprovedNotCarriedOut, join_first(left)));
    }
}
