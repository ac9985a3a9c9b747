//! For how long processes were on a processor, by the account that the kernel keeps.

use std::time::Duration;

use anyhow::{Context as _, Result};

/// A process of this machine, all its threads that have not ended together.
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
