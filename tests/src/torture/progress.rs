//! What has been struck so far, in a file that a later run goes on from.
//!
//! One JSON document a line, appended as it happens. A run that is killed loses at most the line it
//! was writing; a line that cannot be read is passed over.
//!
//! A strike counts when the arena that it happened in was judged in the end, at rest: until then nobody
//! has looked for executions without an end. Strikes of a run that was killed before are struck again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::fault::Fault;

/// A line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    /// A run, or its continuation, has begun.
    Begun {
        /// The plan's.
        seed: u64,
        /// What is under test: the versions of the platform and of the servers, a line each.
        versions: Vec<String>,
    },
    /// A fault was struck, and the platform recovered from it.
    Struck {
        /// Which session.
        session: u64,
        /// Which arena of it.
        arena: usize,
        /// The kind's name.
        fault: String,
        /// The executions that were inside.
        executions: Vec<String>,
        /// From the strike to the end of the last of them; nothing if that came before.
        recovery_ms: Option<u64>,
    },
    /// A fault was tried, and no execution was inside.
    Missed {
        /// The kind's name.
        fault: String,
        /// What was waited for.
        why: String,
    },
    /// An arena came to rest and all of it was judged: its strikes count.
    Closed {
        /// Which session.
        session: u64,
        /// Which arena of it.
        arena: usize,
        /// What it has done.
        counts: Counts,
        /// How long the session has lasted.
        seconds: u64,
    },
    /// A promise was broken.
    Broken {
        /// Which, in a word or two.
        kind: String,
        /// How.
        what: String,
    },
}

/// What arenas count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Executions that were to run.
    pub executions: u64,
    /// Attempts that were opened.
    pub attempts: u64,
    /// Tasks that were begun.
    pub runs: u64,
    /// Of those, tasks of an attempt that was lost: they were begun again.
    pub reruns: u64,
    /// Executions that succeeded before their deadlines.
    #[serde(default)]
    pub in_time: u64,
    /// Executions that were late or failed for so long that a monitor had to notice.
    #[serde(default)]
    pub late: u64,
}

impl Counts {
    /// Adds another's.
    pub const fn add(&mut self, other: Self) {
        self.executions += other.executions;
        self.attempts += other.attempts;
        self.runs += other.runs;
        self.reruns += other.reruns;
        self.in_time += other.in_time;
        self.late += other.late;
    }
}

/// The file.
#[derive(Debug)]
pub struct Progress {
    path: PathBuf,
    file: Mutex<File>,
}

impl Progress {
    /// Opens the file in `folder`, which is created if it is missing, and reads what it says.
    pub fn open(folder: &Path) -> Result<(Self, Vec<Line>)> {
        std::fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        let path = folder.join("progress.jsonl");
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
        };
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let mut file = file.with_context(|| format!("open {}", path.display()))?;
        if !text.is_empty() && !text.ends_with('\n') {
            // The line that a killed run was writing; what follows must not become part of it.
            writeln!(file)?;
        }
        let lines = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok((Self { path, file: Mutex::new(file) }, lines))
    }

    /// Appends a line.
    pub fn append(&self, line: &Line) -> Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let written = file.write_all(text.as_bytes());
        written.with_context(|| format!("write {}", self.path.display()))
    }
}

/// The faults that were struck in arenas that were judged in the end, each with the time until the
/// recovery.
pub fn list_strikes(lines: &[Line]) -> Vec<(Fault, Option<Duration>)> {
    let judged: BTreeSet<(u64, usize)> = closed(lines).map(|(of, ..)| of).collect();
    let one = |line: &Line| match line {
        Line::Struck { session, arena, fault, recovery_ms, .. }
            if judged.contains(&(*session, *arena)) =>
        {
            Some((Fault::named(fault)?, recovery_ms.map(Duration::from_millis)))
        }
        _ => None,
    };
    lines.iter().filter_map(one).collect()
}

/// How often a strike was written down, whether or not its arena was judged in the end.
pub fn strikes(lines: &[Line]) -> usize {
    lines.iter().filter(|line| matches!(line, Line::Struck { .. })).count()
}

/// The broken promises: which, and how.
pub fn broken(lines: &[Line]) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for line in lines {
        if let Line::Broken { kind, what } = line {
            found.push((kind.as_str(), what.as_str()));
        }
    }
    found
}

/// What all arenas that were judged have done, and how long their sessions lasted together.
pub fn counts(lines: &[Line]) -> (Counts, Duration) {
    let mut sum = Counts::default();
    let mut sessions: BTreeMap<u64, u64> = BTreeMap::default();
    for ((session, _), counts, seconds) in closed(lines) {
        sum.add(counts);
        let longest = sessions.entry(session).or_default();
        *longest = seconds.max(*longest);
    }
    (sum, Duration::from_secs(sessions.values().sum()))
}

fn closed(lines: &[Line]) -> impl Iterator<Item = ((u64, usize), Counts, u64)> {
    lines.iter().filter_map(|line| match line {
        Line::Closed { session, arena, counts, seconds } => {
            Some(((*session, *arena), *counts, *seconds))
        }
        _ => None,
    })
}

/// Refuses to go on from a run of another version: its faults would be counted for this one.
///
/// # Errors
///
/// The versions differ.
pub fn check_versions(lines: &[Line], folder: &Path, now: &[String]) -> Result<()> {
    for line in lines {
        if let Line::Begun { versions, .. } = line {
            ensure!(
                versions == now,
                "{} is of another version ({}; now {}): delete it, or choose another SEED",
                folder.display(),
                versions.join(", "),
                now.join(", ")
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(fault: &str, recovery_ms: u64) -> Line {
        struck_in(0, fault, recovery_ms)
    }

    fn struck_in(arena: usize, fault: &str, recovery_ms: u64) -> Line {
        let executions = vec!["e".to_owned()];
        let (fault, recovery_ms) = (fault.to_owned(), Some(recovery_ms));
        Line::Struck { session: 1, arena, fault, executions, recovery_ms }
    }

    fn closed_with(session: u64, arena: usize, executions: u64, seconds: u64) -> Line {
        let counts = Counts { executions, ..Counts::default() };
        Line::Closed { session, arena, counts, seconds }
    }

    #[test]
    fn a_truncated_line_of_a_killed_run_is_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let (progress, lines) = Progress::open(folder.path()).unwrap();
        assert_eq!(lines, []);
        progress.append(&line("worker.opened", 5)).unwrap();
        let path = folder.path().join("progress.jsonl");
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"line\":\"struck\",\"fau");
        std::fs::write(&path, text).unwrap();

        let (progress, lines) = Progress::open(folder.path()).unwrap();
        assert_eq!(lines, [line("worker.opened", 5)]);
        progress.append(&line("worker.ran", 6)).unwrap();
        let (_, lines) = Progress::open(folder.path()).unwrap();
        assert_eq!(lines, [line("worker.opened", 5), line("worker.ran", 6)]);
    }

    #[test]
    fn a_strike_counts_when_its_arena_was_judged_in_the_end() {
        let lines = [
            struck_in(0, "worker.opened", 5),
            struck_in(1, "worker.ran", 6),
            closed_with(1, 1, 7, 10),
            // Another session's arena of the same number is another arena.
            closed_with(2, 0, 7, 10),
        ];
        assert_eq!(
            list_strikes(&lines),
            [(Fault::Point("worker.ran"), Some(Duration::from_millis(6)))]
        );
        assert_eq!(strikes(&lines), 2);
    }

    #[test]
    fn counts_are_summed_over_arenas_and_sessions() {
        let lines = [closed_with(1, 0, 9, 10), closed_with(1, 1, 7, 20), closed_with(2, 0, 1, 5)];
        let (counts, time) = counts(&lines);
        assert_eq!((counts.executions, time.as_secs()), (9 + 7 + 1, 25));
    }

    #[test]
    fn a_run_of_another_version_is_not_resumed() {
        let lines = [Line::Begun { seed: 1, versions: vec!["a 1".to_owned()] }];
        let folder = Path::new("target/torture/1");
        assert!(check_versions(&lines, folder, &["a 1".to_owned()]).is_ok());
        let message = check_versions(&lines, folder, &["a 2".to_owned()]).unwrap_err().to_string();
        assert!(message.contains("delete it, or choose another SEED"), "{message}");
    }
}
