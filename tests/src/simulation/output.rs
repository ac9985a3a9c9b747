//! The tasks' output, as in `worker/src/output/streaming.rs`: a line with each part, sent again
//! until it is known to be stored, and the last one with the end of the attempt.

use std::sync::Arc;

use sexton_model::output::{Chunk, Line, Stream};
use sexton_store::lease::AttemptFence;
use sexton_store::output::{OutputPart, WriteOutcome, write};

use super::case::Simulation;
use super::op::Cut;
use super::slots::{Step, held};
use super::stop::Stop;

/// The bytes of each line, its end included.
const LINE_BYTES: i64 = 2;

impl Simulation<'_> {
    /// Stores the output of the worker's tasks: a part of each attempt that has begun, also of
    /// ended ones, and of attempts that the worker has lost.
    pub(super) async fn write(&mut self, worker: u8, cut: Cut) -> Result<(), Stop> {
        let mut parts: Vec<(usize, AttemptFence)> = Vec::new();
        for slot in Self::slots_of(worker) {
            let held = match &self.slots[slot].step {
                Step::Running { opened, .. } | Step::Ran { opened, .. } => held(opened),
                Step::Late { held, .. } => *held,
                _ => continue,
            };
            // Never two of one execution.
            if parts.iter().all(|(_, other)| other.execution_id != held.execution_id) {
                parts.push((slot, held));
            }
        }
        if parts.is_empty() || cut == Cut::Before {
            return Ok(());
        }
        let batch: Vec<_> =
            parts.iter().map(|(slot, held)| (*held, self.next_line(*slot))).collect();
        let written = write(self.writes(), &batch).await?;
        if cut == Cut::After {
            return Ok(());
        }
        for ((slot, _), written) in parts.into_iter().zip(written) {
            match written {
                WriteOutcome::Done => self.slots[slot].lines += 1,
                WriteOutcome::Fenced => {}
                WriteOutcome::Locked => {
                    return Err(Stop::broken("a part finds a lock that nobody has"));
                }
            }
        }
        Ok(())
    }

    /// The line of the slot's task that is not known to be stored.
    pub(super) fn next_line(&self, slot: usize) -> OutputPart {
        let before = self.slots[slot].lines;
        let line = Line { at: self.now, stream: Stream::Stdout, text: "x".to_owned() };
        let chunk = Chunk::new(before + 1, before * LINE_BYTES, LINE_BYTES, &[line]);
        OutputPart { chunks: vec![Arc::new(chunk)], ..OutputPart::default() }
    }
}
