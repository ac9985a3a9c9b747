//! Checks that the audit is sealed in time.

use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};
use crate::text::duration;

/// An action is sealed within a few seconds.
const MAX_UNSEALED_S: f64 = 300.0;

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    let Some(rows) = facts.rows() else { return };
    let (unsealed, oldest_s) = (rows.audit.unsealed, rows.audit.oldest_unsealed_s);
    if oldest_s > MAX_UNSEALED_S {
        let noun = if unsealed == 1 { "action" } else { "actions" };
        let waits = duration((oldest_s * 1_000.0) as i64);
        let text = format!("{unsealed} {noun}, the first for {waits}");
        found.push(Finding::new(Code::AuditUnsealed, text));
    }
}
