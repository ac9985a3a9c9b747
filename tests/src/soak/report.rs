//! What a soak leaves behind: a line for each sample, and a section of the documents.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::Outcome;
use super::verdict::Growth;

/// Where and on what a soak ran.
#[derive(Clone, Debug, Serialize)]
pub struct Circumstances {
    /// The day, as in 2026-01-01.
    pub day: String,
    /// Of the code, as in 1a2b3c4d, and what was changed since.
    pub commit: String,
    /// The servers, with their versions.
    pub servers: String,
    /// Processors.
    pub processors: usize,
}

/// Adds a line of JSON.
pub fn append(log: &Path, line: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut file = OpenOptions::new().create(true).append(true).open(log)?;
    file.write_all(text.as_bytes()).with_context(|| format!("write {}", log.display()))
}

/// The section.
pub fn section(of: &Circumstances, outcome: &Outcome, growths: &[Growth]) -> String {
    let minutes = outcome.seconds / 60.0;
    let mut text = format!(
        "## A soak of {minutes:.0} minutes\n\n\
         {}, commit {}, {}, {} processors, shared with other work; debug\n\
         builds. Two schedulers and two workers drained {:.0} executions a second, and were then fed\n\
         with {:.0} a second, at most half of that.\n\n",
        of.day, of.commit, of.servers, of.processors, outcome.drained_per_s, outcome.fed_per_s
    );
    let counts = [
        ("executions", outcome.executions),
        ("removed by retention", outcome.removed),
        ("failed and requeued", outcome.requeued),
        ("failed and discarded", outcome.discarded),
        ("cancelled", outcome.cancelled),
        ("rows in the audit", outcome.audited),
        ("samples", outcome.samples.len() as u64),
    ];
    text += "| what | count |\n|---|---|\n";
    for (what, count) in counts {
        let _ = writeln!(text, "| {what} | {count} |");
    }
    if !outcome.was_fed() {
        text += "\n**Fewer than 95 % of what was to be fed became executions.**\n";
    }
    text += "\nOnly the second half is judged. *Grown* is what the Theil-Sen line through its samples \
             gains over\nthe whole length; *noise* is three standard deviations about that line; \
             *allowed* is the largest of the\nnoise, a share of the median (5 % of memory, 10 % of \
             tables) and a floor (4 descriptors or threads,\n1 MiB or 500 rows of a table, 5 seconds of \
             feeding of what waits).\n\n";
    text += "| quantity | median | grown | noise | allowed | |\n|---|---|---|---|---|---|\n";
    for growth in growths {
        let Growth { name, median, grown, noise, allowed } = growth;
        let verdict = if growth.is_bounded() { "bounded" } else { "**grows**" };
        let _ = writeln!(
            text,
            "| {name} | {median:.0} | {grown:+.0} | {noise:.0} | {allowed:.0} | {verdict} |"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_what_grows() {
        let growth = Growth { name: "x".into(), median: 5.0, grown: 9.0, noise: 1.0, allowed: 1.0 };
        let mut outcome = Outcome {
            drained_per_s: 40.0,
            fed_per_s: 20.0,
            seconds: 1_200.0,
            executions: 22_799,
            removed: 2,
            requeued: 3,
            discarded: 4,
            cancelled: 5,
            audited: 12,
            samples: Vec::new(),
        };
        let of = Circumstances {
            day: "2026-01-01".into(),
            commit: "1a2b".into(),
            servers: "PostgreSQL 15".into(),
            processors: 2,
        };
        let text = section(&of, &outcome, &[growth]);
        assert!(
            text.contains("soak of 20 minutes")
                && text.contains("| x | 5 | +9 | 1 | 1 | **grows** |")
        );
        assert!(text.contains("Fewer than 95 %"), "{text}");
        outcome.executions = 22_800;
        assert!(!section(&of, &outcome, &[]).contains("Fewer than"));
    }
}
