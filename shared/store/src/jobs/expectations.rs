//! What a job's monitor expects, as the database has it.

use sexton_model::incident::Severity;
use sexton_model::job::Expectations;

use super::millis;
use crate::StoreError;
use crate::error::parse_column;

/// The columns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectationColumns<'a> {
    pub(crate) start_within_ms: Option<i64>,
    pub(crate) expect_within_ms: Option<i64>,
    pub(crate) max_runtime_ms: Option<i64>,
    pub(crate) alert_after: Option<i32>,
    pub(crate) recover_after: Option<i32>,
    pub(crate) remind_every_ms: Option<i64>,
    pub(crate) severity: Option<&'a str>,
}

/// Reads the columns.
pub(crate) fn expectations(columns: ExpectationColumns<'_>) -> Result<Expectations, StoreError> {
    let severity = |text| parse_column("jobs.severity", text, Severity::parse);
    Ok(Expectations {
        start_within: columns.start_within_ms.map(millis),
        expect_within: columns.expect_within_ms.map(millis),
        max_runtime: columns.max_runtime_ms.map(millis),
        alert_after: columns.alert_after.map(|number| number as u32),
        recover_after: columns.recover_after.map(|number| number as u32),
        remind_every: columns.remind_every_ms.map(millis),
        severity: columns.severity.map(severity).transpose()?,
    })
}
