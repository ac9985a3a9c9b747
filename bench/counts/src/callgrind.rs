//! Counting: a case is called under valgrind's callgrind, in a process of its own.
//!
//! A process is counted as a whole, twice: with few calls and with many. The difference is that of the
//! calls alone, without the start of the process, the values of the case and what is done once.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Enough for whatever is prepared at the first calls.
const FEW: u64 = 20;
/// What the difference is divided by.
const CALLS: u64 = 100;

/// Instructions of one call of the case `name`. `program` is this program, and `folder` where callgrind may
/// leave its files.
///
/// # Errors
///
/// There is no valgrind, or what it ran did not end well.
pub fn per_call(program: &Path, folder: &Path, name: &str) -> Result<u64> {
    let few = counted(program, folder, name, FEW)?;
    let many = counted(program, folder, name, FEW + CALLS)?;
    let calls = many.checked_sub(few).context("more calls took fewer instructions; count again")?;
    Ok((calls + CALLS / 2) / CALLS)
}

fn counted(program: &Path, folder: &Path, name: &str, calls: u64) -> Result<u64> {
    let file = folder.join(format!("{}.{calls}.out", name.replace(' ', "-")));
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(program)
        .args(["run", name, &calls.to_string()])
        .stdin(Stdio::null())
        .output()
        .context("start valgrind; `sh bench/counts/valgrind.sh` installs it")?;
    if !ran.status.success() {
        bail!("{name} under valgrind: {}\n{}", ran.status, String::from_utf8_lossy(&ran.stderr));
    }
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    total(&text).with_context(|| format!("{} has no line `totals: NUMBER`", file.display()))
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
