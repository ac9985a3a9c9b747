//! Counts violations, and decides what becomes of the incident.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Cause, Change, sentences};

/// A violation that is not counted yet.
#[derive(Debug)]
pub(crate) struct Violation {
    pub(crate) at: DateTime<Utc>,
    pub(crate) cause: Cause,
    pub(crate) detail: String,
    pub(crate) execution: Option<Uuid>,
    pub(crate) occurrences: u32,
}

/// The violations in a row, and whether an incident is open about them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) violations: u32,
    pub(crate) violated_at: Option<DateTime<Utc>>,
    pub(crate) is_open: bool,
}

/// How many in a row open an incident, and how many successes resolve it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limits {
    pub(crate) alert_after: u32,
    pub(crate) recover_after: u32,
}

/// Counts the violations, in the order of their instants, and decides what becomes of the incident.
pub(crate) fn settle(
    tally: &mut Tally,
    limits: Limits,
    successes: &[DateTime<Utc>],
    violations: Vec<Violation>,
) -> Option<Change> {
    let occurrences = violations.iter().fold(0u32, |sum, one| sum.saturating_add(one.occurrences));
    let mut last = None;
    for violation in violations {
        let between = |at: &&DateTime<Utc>| {
            tally.violated_at.is_none_or(|before| **at > before) && **at <= violation.at
        };
        if !tally.is_open && successes.iter().any(|at| between(&at)) {
            tally.violations = 0;
        }
        tally.violations = tally.violations.saturating_add(violation.occurrences.max(1));
        tally.violated_at = tally.violated_at.max(Some(violation.at));
        last = Some(violation);
    }
    if let Some(last) = last
        && (tally.is_open || tally.violations >= limits.alert_after)
    {
        tally.is_open = true;
        let Violation { cause, detail, execution, .. } = last;
        return Some(Change::Violated { cause, detail, execution, occurrences });
    }
    let after = |instant: DateTime<Utc>| successes.iter().filter(|at| **at > instant).count();
    let successes = tally.violated_at.map_or(0, after);
    if tally.is_open && successes >= (limits.recover_after as usize).max(1) {
        tally.is_open = false;
        tally.violations = 0;
        return Some(Change::Recovered { detail: sentences::recovered(successes) });
    }
    None
}
