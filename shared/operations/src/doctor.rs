//! The doctor: finds problems of a platform, with evidence and remedies.
//!
//! [`gather`] queries both servers, with time limits, and continues when a part does not answer; it returns
//! [`facts`]. [`diagnose`] turns them into [`Finding`]s; it is a pure function, one file per group of checks. [`fix`]
//! makes the repairs that are safe while the platform works, and repeatable. The list of all findings is in [`code`],
//! and docs/operations/doctor.md repeats it.
//!
//! Gathering changes nothing, on either server. The audit records a repair before it is made.

mod checks;
pub mod code;
pub mod facts;
pub mod fix;
pub mod gather;

use serde::Serialize;
use sexton_model::lint::Severity;

pub use code::Code;
use facts::Facts;

/// Maximum length of the evidence, in characters.
const MAX_EVIDENCE_CHARS: usize = 600;

/// A problem of the platform.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Finding {
    /// Its code in the list.
    pub code: Code,
    /// Its severity here.
    pub severity: Severity,
    /// The problem, in a sentence.
    pub what: &'static str,
    /// The evidence: names, numbers, a server's own words.
    pub evidence: String,
    /// The remedy, with a command where one exists.
    pub remedy: &'static str,
    /// Whether `--fix` repairs it here.
    pub fix: bool,
}

impl Finding {
    /// Makes a finding with the severity and repair of the list.
    fn new(code: Code, evidence: impl AsRef<str>) -> Self {
        let entry = code.entry();
        Self {
            code,
            severity: entry.severity,
            what: entry.what,
            evidence: crate::text::line(evidence.as_ref(), MAX_EVIDENCE_CHARS),
            remedy: entry.remedy,
            fix: entry.fix.is_some(),
        }
    }

    /// Lowers the severity below the list's.
    const fn into_note(mut self) -> Self {
        self.severity = Severity::Note;
        self
    }

    /// Marks it as not repairable here.
    const fn without_fix(mut self) -> Self {
        self.fix = false;
        self
    }
}

/// Returns all findings from the facts, the worst first, otherwise in the order of the list.
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut found = Vec::new();
    checks::connections::check(facts, &mut found);
    checks::schema::check(facts, &mut found);
    checks::permissions::check(facts, &mut found);
    checks::topology::check(facts, &mut found);
    checks::policies::check(facts, &mut found);
    checks::capacity::check(facts, &mut found);
    checks::time::check(facts, &mut found);
    checks::outbox::check(facts, &mut found);
    checks::audit::check(facts, &mut found);
    checks::approvals::check(facts, &mut found);
    checks::failed_queue::check(facts, &mut found);
    checks::processes::check(facts, &mut found);
    checks::verify_tasks::check(facts, &mut found);
    checks::locks::check(facts, &mut found);
    found.sort_by_key(|one| (std::cmp::Reverse(one.severity), one.code));
    found
}

/// Returns the highest severity; `None`: no findings.
pub fn worst(findings: &[Finding]) -> Option<Severity> {
    findings.iter().map(|one| one.severity).max()
}
