//! Counting: a case is called under valgrind's callgrind, in a process of its own.
//!
//! Only `counted_calls` is counted: not the start of the process, nor the values of the case, nor the
//! first calls, which do what is done once.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::cases::Call;

/// Enough for whatever is done once.
const FIRST: u64 = 20;
/// Over so many calls the average is taken. A case whose values differ has so many of them.
pub const CALLS: u64 = 100;
/// The function by whose entry and end callgrind begins and stops to count, however its name is written.
const COUNTED: &str = "*counted_calls*";

/// Instructions of one call of the case `name`. `program` is this program, which is run with `run` and the
/// name, and `folder` where callgrind may leave its file.
///
/// # Errors
///
/// There is no valgrind, or what it ran did not end well.
pub fn per_call(program: &Path, folder: &Path, name: &str) -> Result<u64> {
    let file = folder.join(format!("{}.out", name.replace(' ', "-")));
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--toggle-collect={COUNTED}"))
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args(["run", name])
        .stdin(Stdio::null())
        .output()
        .context("start valgrind; `sh bench/counts/valgrind.sh` installs it")?;
    if !ran.status.success() {
        bail!("{name} under valgrind: {}\n{}", ran.status, String::from_utf8_lossy(&ran.stderr));
    }
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    match total(&text) {
        Some(total) if total > 0 => Ok((total + CALLS / 2) / CALLS),
        _ => bail!("{} counts nothing: was the program stripped of its names?", file.display()),
    }
}

/// What runs under valgrind.
pub fn run(call: &mut Call) {
    (0..FIRST).for_each(|_| call());
    counted_calls(call);
}

#[inline(never)]
fn counted_calls(call: &mut Call) {
    (0..CALLS).for_each(|_| call());
}

fn total(callgrind: &str) -> Option<u64> {
    let line = callgrind.lines().find_map(|line| line.strip_prefix("totals:"))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_all_instructions_is_found() {
        assert_eq!(
            total("version: 1\nevents: Ir\nfn=(1) a\n1 7\n\ntotals: 284113\n"),
            Some(284_113)
        );
        assert_eq!(total("events: Ir\n1 7\n"), None);
        assert_eq!(total("totals: 12 34\n"), None);
    }
}
