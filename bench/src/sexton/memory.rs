//! Memory of the programs.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};
use sexton_tests::platform::{Platform, Program};

use super::{handlers, line, stop};
use crate::Arguments;
use crate::line::Line;

/// Measures the memory of an idle scheduler and an idle worker.
pub(super) async fn measure(platform: &Platform, arguments: &Arguments) -> Result<()> {
    let mut programs = vec![platform.start_scheduler("scheduler", &[])?];
    programs.extend(handlers(platform, arguments)?);
    for program in &mut programs {
        program.ready().await;
    }
    // Long enough for a round of every loop.
    tokio::time::sleep(Duration::from_secs(10)).await;
    for (work, program) in ["memory-scheduler", "memory-worker"].into_iter().zip(&programs) {
        let value = resident_mb(program)?;
        Line { value, unit: "MB", ..line(arguments, work) }.print();
    }
    stop(programs).await;
    Ok(())
}

/// Returns the resident memory of a program, in MB.
pub(super) fn resident_mb(program: &Program) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{}/status", program.pid()))?;
    field_mb(&status, "VmRSS:").context("the kernel does not tell the resident memory")
}

/// Returns the proportional memory of a worker and of its guards, in MB: a page that several processes share counts in
/// parts.
pub(super) fn proportional_mb(worker: &Program) -> Result<f64> {
    let mut total = share_mb(worker.pid())?;
    for thread in fs::read_dir(format!("/proc/{}/task", worker.pid()))? {
        // A thread or guard that ends meanwhile has no memory any more.
        let children = fs::read_to_string(thread?.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
            total += share_mb(child).unwrap_or(0.0);
        }
    }
    Ok(total)
}

/// The share of a process in the memory that it uses, its own and that of several.
fn share_mb(pid: u32) -> Result<f64> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    field_mb(&rollup, "Pss:").context("the kernel does not tell the proportional memory")
}

fn field_mb(text: &str, name: &str) -> Option<f64> {
    let kib = text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?;
    Some(kib.parse::<f64>().ok()? / 1024.0)
}
