//! What has been struck so far, in a file that a later run goes on from.
//!
//! One JSON document a line, appended as it happens. A run that is killed loses at most the line it
//! was writing; a line that cannot be read is passed over.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
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
        /// The kind's name.
        fault: String,
        /// The executions that were inside.
        executions: Vec<String>,
        /// From the strike to the end of the last of them.
        recovery_ms: u64,
    },
    /// A fault was tried, and no execution was inside.
    Missed {
        /// The kind's name.
        fault: String,
        /// What was waited for.
        why: String,
    },
    /// What an arena has done in one session; the last such line of a session counts.
    Done {
        /// Which session.
        session: u64,
        /// Which arena of it.
        arena: usize,
        /// What it counts.
        counts: Counts,
        /// How long the session has lasted.
        seconds: u64,
    },
    /// A promise was broken.
    Broken {
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
    /// Executions without an end.
    pub lost: u64,
    /// Attempts whose task was begun more than once.
    pub opened_twice: u64,
    /// Runs that began while another of the same idempotency key was alive.
    pub overlapping: u64,
}

impl Counts {
    /// Adds another's.
    pub const fn add(&mut self, other: Self) {
        self.executions += other.executions;
        self.attempts += other.attempts;
        self.runs += other.runs;
        self.reruns += other.reruns;
        self.lost += other.lost;
        self.opened_twice += other.opened_twice;
        self.overlapping += other.overlapping;
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

/// The faults that `lines` say were struck, each with the time until the recovery.
pub fn struck(lines: &[Line]) -> Vec<(Fault, Duration)> {
    let one = |line: &Line| match line {
        Line::Struck { fault, recovery_ms, .. } => {
            Some((Fault::named(fault)?, Duration::from_millis(*recovery_ms)))
        }
        _ => None,
    };
    lines.iter().filter_map(one).collect()
}

/// What all arenas of all sessions have done, and how long the sessions lasted together.
pub fn counts(lines: &[Line]) -> (Counts, Duration) {
    let mut last: BTreeMap<(u64, usize), (Counts, u64)> = BTreeMap::default();
    for line in lines {
        if let Line::Done { session, arena, counts, seconds } = line {
            last.insert((*session, *arena), (*counts, *seconds));
        }
    }
    let mut sum = Counts::default();
    let mut sessions: BTreeMap<u64, u64> = BTreeMap::default();
    for ((session, _), (counts, seconds)) in last {
        sum.add(counts);
        let longest = sessions.entry(session).or_default();
        *longest = seconds.max(*longest);
    }
    (sum, Duration::from_secs(sessions.values().sum()))
}

/// Refuses to go on from a run of another version, whose faults would be counted for this one, and
/// from one that broke a promise, which would be forgotten.
///
/// # Errors
///
/// It is one of these; says what to do.
pub fn check_lines(lines: &[Line], folder: &Path, now: &[String]) -> Result<()> {
    for line in lines {
        if let Line::Broken { what } = line {
            bail!(
                "the run in {} has broken a promise ({what}): mend what was wrong, delete the \
                 folder, and begin again",
                folder.display()
            );
        }
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
        Line::Struck { fault: fault.to_owned(), executions: vec!["e".to_owned()], recovery_ms }
    }

    #[test]
    fn a_killed_run_s_half_line_is_passed_over_and_does_not_spoil_the_next() {
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
        let expected = [
            (Fault::Point("worker.opened"), Duration::from_millis(5)),
            (Fault::Point("worker.ran"), Duration::from_millis(6)),
        ];
        assert_eq!(struck(&lines), expected);
    }

    #[test]
    fn of_each_session_the_last_counts_of_an_arena_are_summed() {
        let done = |session, arena, executions, seconds| Line::Done {
            session,
            arena,
            counts: Counts { executions, ..Counts::default() },
            seconds,
        };
        let lines = [done(1, 0, 5, 10), done(1, 1, 7, 10), done(1, 0, 9, 20), done(2, 0, 1, 5)];
        let (counts, time) = counts(&lines);
        assert_eq!((counts.executions, time.as_secs()), (9 + 7 + 1, 25));
    }

    #[test]
    fn a_run_that_broke_a_promise_is_not_gone_on_from() {
        let lines = [Line::Broken { what: "overlap".to_owned() }];
        let said = check_lines(&lines, Path::new("target/torture/1"), &[]).unwrap_err().to_string();
        assert!(said.contains("has broken a promise (overlap)"), "{said}");
    }

    #[test]
    fn a_run_of_another_version_is_not_gone_on_from() {
        let lines = [Line::Begun { seed: 1, versions: vec!["a 1".to_owned()] }];
        let folder = Path::new("target/torture/1");
        assert!(check_lines(&lines, folder, &["a 1".to_owned()]).is_ok());
        let said = check_lines(&lines, folder, &["a 2".to_owned()]).unwrap_err().to_string();
        assert!(said.contains("delete it, or choose another SEED"), "{said}");
    }
}
