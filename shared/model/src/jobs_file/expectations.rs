//! Parses what a job's monitor expects.

use std::time::Duration;

use super::fields::Fields;
use super::limits::{EXPECT_WITHIN, MAX_RUNTIME, REMIND_EVERY, START_WITHIN};
use crate::duration;
use crate::incident::Severity;
use crate::job::{Expectations, MAX_IN_A_ROW};

/// Parses the fields, and reports those that can never be met.
pub(super) fn read(fields: &mut Fields<'_, '_, '_>, timeout: Duration) -> Expectations {
    let expectations = Expectations {
        start_within: fields.duration("start_within", START_WITHIN),
        expect_within: fields.duration("expect_within", EXPECT_WITHIN),
        max_runtime: fields.duration("max_runtime", MAX_RUNTIME),
        alert_after: in_a_row(fields, "alert_after"),
        recover_after: in_a_row(fields, "recover_after"),
        remind_every: fields.duration("remind_every", REMIND_EVERY),
        severity: fields.choice("severity", Severity::parse, &["low", "medium", "high"], &[]),
    };
    let problem = |short: &str, long: &str| format!("{short} is not shorter than {long}");
    if let (Some(start), Some(success)) = (expectations.start_within, expectations.expect_within)
        && start >= success
    {
        let success = format!("expect_within = {}", duration::format(success));
        fields.problem("start_within", problem(&duration::format(start), &success));
    }
    if let Some(runtime) = expectations.max_runtime
        && runtime >= timeout
    {
        let timeout = format!("timeout = {}, which ends the attempt", duration::format(timeout));
        fields.problem("max_runtime", problem(&duration::format(runtime), &timeout));
    }
    expectations
}

/// Parses how many in a row.
pub(crate) fn in_a_row(fields: &mut Fields<'_, '_, '_>, field: &str) -> Option<u32> {
    fields.integer(field, 1..=i64::from(MAX_IN_A_ROW)).map(|number| number as u32)
}
