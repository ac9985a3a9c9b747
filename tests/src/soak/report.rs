//! The records of a soak: a line for each sample, and sections of the documents.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::Outcome;
use super::verdict::Growth;

/// When and where a soak ran.
#[derive(Clone, Debug, Serialize)]
pub struct Circumstances {
    /// The day, as in 2026-01-01.
    pub day: String,
    /// The commit of the code, as in 1a2b3c4d, and the changes since.
    pub commit: String,
    /// The servers, with their versions.
    pub servers: String,
    /// The number of processors.
    pub processors: usize,
}

/// Adds a line of JSON.
pub fn append(log: &Path, line: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut file = OpenOptions::new().create(true).append(true).open(log)?;
    file.write_all(text.as_bytes()).with_context(|| format!("write {}", log.display()))
}

/// The summary, a section of the documentation.
pub fn section(of: &Circumstances, outcome: &Outcome, growths: &[Growth]) -> String {
    let mut text = heading(of, outcome);
    // Writing to a String cannot fail.
    let _ = write!(
        text,
        "Two schedulers and two workers drained {:.0} executions a second, and then got {:.0} a second, at\n\
         most half of that.\n\n",
        outcome.drained_per_s, outcome.fed_per_s
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
    let growing = growths.iter().filter(|growth| !growth.is_bounded()).count();
    let _ = match growing {
        0 => writeln!(text, "\nAll {} quantities are bounded.", growths.len()),
        _ => writeln!(text, "\n**{growing} of {} quantities grow.**", growths.len()),
    };
    text += "Growth and limit are those of the quantity that came nearest to its limit; the\n\
             [record](../../tests/long-runs.md#soak) has each of them, and the rule.\n\n";
    text += "| kind of quantity | number | nearest to its limit | growth | limit |\n|---|---|---|---|---|\n";
    for (kind, growths) in by_kind(growths) {
        let share = |growth: &Growth| growth.grown / growth.allowed;
        let Some(nearest) = growths.iter().max_by(|a, b| share(a).total_cmp(&share(b))) else {
            continue;
        };
        let Growth { name, grown, allowed, .. } = nearest;
        let whose = name.split(": ").next().unwrap_or(name);
        let _ =
            writeln!(text, "| {kind} | {} | {whose} | {grown:+.0} | {allowed:.0} |", growths.len());
    }
    text
}

/// Every quantity, for the record.
pub fn record(of: &Circumstances, outcome: &Outcome, growths: &[Growth]) -> String {
    let mut text = heading(of, outcome);
    text += "Only the second half is judged. *Grown* is what the Theil-Sen line through its samples \
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

fn heading(of: &Circumstances, outcome: &Outcome) -> String {
    let minutes = outcome.seconds / 60.0;
    format!(
        "## Soak\n\n<!-- Written by `make soak`; not to be edited by hand. -->\n\n\
         {minutes:.0} minutes, {}, commit {}, {}, {} processors, shared\nwith other work; debug builds. ",
        of.day, of.commit, of.servers, of.processors
    )
}

/// The growths by the part of their names before the colon, in the order of the first of each.
fn by_kind(growths: &[Growth]) -> Vec<(&str, Vec<&Growth>)> {
    let mut kinds: Vec<(&str, Vec<&Growth>)> = Vec::new();
    for growth in growths {
        let kind = growth.name.split_once(": ").map_or(growth.name.as_str(), |(_, kind)| kind);
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, of_kind)) => of_kind.push(growth),
            None => kinds.push((kind, vec![growth])),
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_what_grows() {
        let growth =
            Growth { name: "x: RSS".into(), median: 5.0, grown: 9.0, noise: 1.0, allowed: 1.0 };
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
        let growths = [growth];
        let text = section(&of, &outcome, &growths);
        for part in [
            "20 minutes, 2026-01-01, commit 1a2b",
            "**1 of 1 quantities grow.**",
            "| RSS | 1 | x | +9 | 1 |",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(text.contains("Fewer than 95 %"), "{text}");
        let record = record(&of, &outcome, &growths);
        assert!(record.contains("| x: RSS | 5 | +9 | 1 | 1 | **grows** |"), "{record}");
        outcome.executions = 22_800;
        assert!(!section(&of, &outcome, &[]).contains("**"));
    }

    #[test]
    fn the_summary_shows_of_each_kind_what_came_nearest_to_its_limit() {
        let named = |name: &str, grown| Growth {
            name: name.to_owned(),
            median: 1.0,
            grown,
            noise: 0.0,
            allowed: 10.0,
        };
        let growths = [named("a: RSS", 1.0), named("a: threads", 0.0), named("b: RSS", 2.0)];
        let kinds = by_kind(&growths);
        let counts: Vec<_> = kinds.iter().map(|(kind, of_kind)| (*kind, of_kind.len())).collect();
        assert_eq!(counts, [("RSS", 2), ("threads", 1)]);
    }
}
