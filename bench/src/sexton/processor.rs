//! Processor time of processes, from the kernel's accounts.

use std::time::Duration;

use anyhow::{Context as _, Result};

/// Returns the time of a process of this machine, over all its live threads.
pub(super) fn used_by(pid: u32) -> Result<Duration> {
    let mut nanoseconds = 0;
    let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
    for thread in threads.with_context(|| format!("process {pid} is not on this machine"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))
            .context("the kernel keeps no account")?;
        let on = text.split_whitespace().next().context("an empty account")?;
        nanoseconds += on.parse::<u64>()?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}
