//! Enqueue: executions triggered from a file, from the command's start to its end.
//!
//! Each has its row, a key that deduplicates it, and its line in the audit. They are not published meanwhile, like
//! those of the bare insert in the comparison.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::{Result, ensure};
use sexton_tests::platform::Platform;

use super::{POOL, line, run};
use crate::Arguments;
use crate::line::Line;

const JOB: &str = "bench.enqueue";

/// Returns executions per second.
pub(super) async fn measure(platform: &Platform, arguments: &Arguments) -> Result<()> {
    let job = format!("[[job]]\nname = \"{JOB}\"\ntask = \"nothing\"\npool = \"{POOL}\"\n");
    platform.apply(&job).await?;
    let mut text = String::new();
    for number in 1..=arguments.count {
        writeln!(text, "{{\"key\": \"order-{number}\", \"params\": {{\"order\": {number}}}}}")?;
    }
    let file = platform.folder().join("each.jsonl");
    std::fs::write(&file, text)?;
    let file = file.to_string_lossy();
    let began = Instant::now();
    run(platform, &["jobs", "trigger", JOB, "--each", &file]).await?;
    let seconds = began.elapsed().as_secs_f64();
    let rows = sqlx::query_scalar::<_, i64>(
        "SELECT count(*) FROM sexton.executions WHERE state = 'pending'",
    )
    .fetch_one(platform.store().pool())
    .await?;
    ensure!(rows == arguments.count, "{rows} of {} were triggered", arguments.count);
    let value = arguments.count as f64 / seconds;
    Line { value, unit: "/s", ..line(arguments, "enqueue") }.print();
    Ok(())
}
