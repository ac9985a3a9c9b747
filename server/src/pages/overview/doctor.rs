//! What the doctor has found, as far as the overview has room for it.

use chrono::{DateTime, TimeDelta, Utc};
use sexton_model::lint::Severity;
use sexton_operations::doctor::Finding;

use crate::api::examination::{DoctorReport, Latest};

/// Findings that the page shows, the worst first. Notes are only counted: nothing is wrong yet.
const MAX_SHOWN: usize = 5;

/// The doctor's last examination.
#[derive(Debug)]
pub(super) struct Examination {
    /// When it was made, by the database's clock; `None`: nothing is known yet.
    pub(super) at: Option<DateTime<Utc>>,
    /// Why nothing is known, if the last examination failed.
    pub(super) failure: Option<String>,
    pub(super) findings: Vec<Finding>,
    /// How many findings are not shown.
    pub(super) more: usize,
    /// Whether it looked at the broker, too.
    pub(super) broker_examined: bool,
}

/// A part of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TextPart<'a> {
    pub(super) text: &'a str,
    /// Whether it stood between backticks.
    pub(super) is_code: bool,
}

impl Examination {
    /// Makes it of what is known at `now`, by the database's clock.
    pub(super) fn new(latest: Latest<DoctorReport>, now: DateTime<Utc>) -> Self {
        let nothing =
            Self { at: None, failure: None, findings: Vec::new(), more: 0, broker_examined: false };
        match latest {
            Latest::Made { answer, age } => {
                let age = TimeDelta::from_std(age).unwrap_or(TimeDelta::zero());
                let DoctorReport { mut findings, broker_examined, .. } = answer;
                let found = findings.len();
                findings.retain(|finding| finding.severity != Severity::Note);
                findings.truncate(MAX_SHOWN);
                let more = found - findings.len();
                Self { at: Some(now - age), failure: None, findings, more, broker_examined }
            }
            Latest::Failed(reason) => Self { failure: Some(reason), ..nothing },
            Latest::Pending => nothing,
        }
    }
}

/// Divides a text at its backticks.
pub(super) fn parts(text: &str) -> Vec<TextPart<'_>> {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(number, text)| TextPart { text, is_code: number % 2 == 1 });
    parts.filter(|part| !part.text.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sexton_operations::doctor::Code;

    use super::*;

    fn report(findings: usize, now: DateTime<Utc>) -> DoctorReport {
        let finding = |number: usize| Finding {
            code: Code::PoolWithoutWorkers,
            severity: Severity::Warning,
            what: "Jobs wait.",
            evidence: number.to_string(),
            remedy: "Start a worker.",
            fix: false,
        };
        DoctorReport {
            examined_at: now,
            broker_examined: true,
            worst: (findings > 0).then_some(Severity::Warning),
            findings: (0..findings).map(finding).collect(),
        }
    }

    #[test]
    fn the_first_findings_are_shown_and_the_others_counted() {
        let now = DateTime::from_timestamp(1_767_225_600, 0).unwrap();
        for (found, shown, more) in [(0, 0, 0), (5, 5, 0), (6, 5, 1)] {
            let (answer, age) = (report(found, now), Duration::from_secs(40));
            let examination = Examination::new(Latest::Made { answer, age }, now);
            assert_eq!((examination.findings.len(), examination.more), (shown, more));
            assert!(examination.findings.first().is_none_or(|one| one.evidence == "0"));
            assert_eq!(examination.at, Some(now - TimeDelta::seconds(40)));
            assert!(examination.broker_examined && examination.failure.is_none());
        }
        let mut answer = report(3, now);
        answer.findings[2].severity = Severity::Note;
        let noted = Examination::new(Latest::Made { answer, age: Duration::ZERO }, now);
        assert_eq!((noted.findings.len(), noted.more), (2, 1));
        let failed = Examination::new(Latest::Failed("no".to_owned()), now);
        assert_eq!((failed.at, failed.failure.as_deref()), (None, Some("no")));
        let pending = Examination::new(Latest::Pending, now);
        assert_eq!((pending.at, pending.failure), (None, None));
    }

    #[test]
    fn what_stands_between_backticks_is_code() {
        let shown: Vec<_> =
            parts("`a b` or `c`, then d.").iter().map(|it| (it.text, it.is_code)).collect();
        let expected = [("a b", true), (" or ", false), ("c", true), (", then d.", false)];
        assert_eq!(shown, expected);
        assert!(parts("").is_empty());
    }
}
