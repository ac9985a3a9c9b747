//! Processor time of processes and of the whole machine, from the kernel's accounts.

use std::time::Duration;

use anyhow::{Context as _, Result};

/// Returns the time of a process of this machine, over all its live threads.
pub(crate) fn used_by(pid: u32) -> Result<Duration> {
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

/// Returns how long the machine's processors have been busy since it runs, for all programs.
pub(crate) fn busy() -> Result<Duration> {
    let text = std::fs::read_to_string("/proc/stat").context("the kernel keeps no account")?;
    let line = text.lines().next().and_then(|line| line.strip_prefix("cpu ")).unwrap_or_default();
    let ticks: Vec<u64> =
        line.split_whitespace().map(str::parse).collect::<Result<_, _>>().context("/proc/stat")?;
    let [user, nice, system, _idle, _waiting, interrupts, soft_interrupts, ..] = ticks[..] else {
        anyhow::bail!("/proc/stat has an unknown form: {text:.80}");
    };
    let busy = user + nice + system + interrupts + soft_interrupts;
    // The kernel counts hundredths of a second for every program, whatever its own clock is.
    Ok(Duration::from_millis(busy * 10))
}

/// Returns the milliseconds for each of `count` tasks, from `before` on.
pub(crate) fn busy_ms_each(before: Duration, count: i64) -> Result<f64> {
    Ok(busy()?.saturating_sub(before).as_secs_f64() * 1_000.0 / count as f64)
}
