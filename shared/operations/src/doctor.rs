//! The doctor: what is wrong with a platform, what shows it, and what to do.
//!
//! [`gather`] asks both servers, with limits, and goes on when a part does not answer; what came of it
//! are [`facts`]. [`diagnose`] makes [`Finding`]s of them, and nothing else: it is a pure function, one
//! file per group of checks. [`fix`] puts right what is safe to put right while the platform works,
//! and what can be done twice. The list of all findings is in [`code`], and docs/operations/doctor.md repeats it.
//!
//! Looking changes nothing, on either server. A repair is recorded in the audit before it is made.

mod checks;
pub mod code;
pub mod facts;
pub mod fix;
pub mod gather;

use serde::Serialize;
use sexton_model::lint::Severity;

pub use code::Code;
use facts::Facts;

/// The longest evidence, in characters.
const MAX_EVIDENCE_CHARS: usize = 600;

/// Something that is not as it should be.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// Which of the list.
    pub code: Code,
    /// How bad it is here.
    pub severity: Severity,
    /// What is wrong, in a sentence.
    pub what: &'static str,
    /// What shows it: names, numbers, a server's own words.
    pub evidence: String,
    /// What to do; a command where one does it.
    pub remedy: &'static str,
    /// Whether `--fix` does it here.
    pub fix: bool,
}

impl Finding {
    /// As bad as the list says, fixed as the list says.
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

    /// Less bad than the list says.
    const fn into_note(mut self) -> Self {
        self.severity = Severity::Note;
        self
    }

    /// Not to be fixed here.
    const fn without_fix(mut self) -> Self {
        self.fix = false;
        self
    }
}

/// All findings of what was gathered, the worst first, otherwise in the order of the list.
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
    checks::failed_queue::check(facts, &mut found);
    checks::processes::check(facts, &mut found);
    checks::verify_tasks::check(facts, &mut found);
    found.sort_by_key(|one| (std::cmp::Reverse(one.severity), one.code));
    found
}

/// The worst of them; none: nothing was found.
pub fn worst(findings: &[Finding]) -> Option<Severity> {
    findings.iter().map(|one| one.severity).max()
}
