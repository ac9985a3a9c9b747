//! The bare limit: loops around the client libraries, on the same kind of queue and on the same tables.
//!
//! They would not survive a crash; they show the best that the two servers allow on this machine. A task of Sexton
//! costs one delivery with its acknowledgement, and one open and one settlement of its rows, so both servers together
//! allow 1 / (1 / broker + 1 / database).

mod broker;
mod database;

pub(crate) use database::{BATCHES, TRANSACTION, fill};

use std::io::{Seek as _, Write as _};
use std::process::Command;
use std::time::Instant;

use anyhow::Result;
use serde_json::{Map, Value};

use crate::line::Line;
use crate::{Arguments, Work, processor};

pub(crate) async fn work(arguments: &Arguments, database_url: &str, amqp_url: &str) -> Result<()> {
    if arguments.work == Work::Commands {
        commands(arguments)?.print();
        return Ok(());
    }
    if arguments.work == Work::Enqueue {
        for batch in BATCHES {
            let inserted = database::inserted(arguments, database_url, batch).await?;
            enqueue(arguments, "enqueue", batch, inserted).print();
        }
        let singly = database::inserted_singly(arguments, database_url).await?;
        enqueue(arguments, "enqueue-one", TRANSACTION, singly).print();
        return Ok(());
    }
    anyhow::ensure!(
        arguments.work == Work::Drain,
        "only drain, commands and enqueue have a bare limit"
    );
    let broker = broker::drained(arguments, amqp_url).await?;
    drain(arguments, "broker", broker).print();
    let database = database::recorded(arguments, database_url).await?;
    drain(arguments, "database", database).print();
    Ok(())
}

/// Measures how many processes a second `xargs` starts and waits for.
fn commands(arguments: &Arguments) -> Result<Line> {
    let processes = std::thread::available_parallelism()?.to_string();
    let mut input = tempfile::tempfile()?;
    for number in 0..arguments.count {
        writeln!(input, "{number}")?;
    }
    input.rewind()?;
    let (began, busy) = (Instant::now(), processor::busy()?);
    let status = Command::new("xargs")
        .args(["-P", &processes, "-n", "1", "/bin/true"])
        .stdin(input)
        .status()?;
    anyhow::ensure!(status.success(), "xargs: {status}");
    let rate = arguments.count as f64 / began.elapsed().as_secs_f64();
    let processor_ms = Some(processor::busy_ms_each(busy, arguments.count)?);
    Ok(Line { processor_ms, ..line(arguments, "commands", rate) })
}

/// Makes one of the two lines from which the report computes the limit of both.
fn drain(arguments: &Arguments, part: &str, value: f64) -> Line {
    let mut line = line(arguments, "drain", value);
    line.settings.insert("part".to_owned(), part.into());
    line.prefetch = Some(arguments.prefetch);
    line
}

/// Makes a line with the rows of a transaction.
fn enqueue(arguments: &Arguments, work: &'static str, batch: usize, value: f64) -> Line {
    let mut line = line(arguments, work, value);
    line.settings.insert("batch".to_owned(), batch.into());
    line.settings.remove("consumers");
    line
}

fn line(arguments: &Arguments, work: &'static str, value: f64) -> Line {
    let mut settings = Map::new();
    settings.insert("consumers".to_owned(), arguments.slots.into());
    settings.insert("prefetch".to_owned(), arguments.prefetch.into());
    settings.insert("batch".to_owned(), Value::from(database::BATCH));
    Line {
        peer: "bare",
        version: env!("CARGO_PKG_VERSION"),
        work,
        round: arguments.round,
        settings,
        prefetch: None,
        p99: None,
        processor_ms: None,
        value,
        unit: "/s",
        samples: Vec::new(),
    }
}
