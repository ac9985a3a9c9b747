//! The last step of both readers: task types, and the checker's word on every job.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sexton_model::jobs_file::{check_against, parse};

use super::{Entry, ImportOutcome, LeftOut, Program, write};

/// Lets entries that run the same share a task type, and leaves out every entry whose job the
/// checker refuses at `now`, with its words. What is left can be applied.
pub fn finish(mut outcome: ImportOutcome, now: DateTime<Utc>) -> ImportOutcome {
    let entries = std::mem::take(&mut outcome.entries);
    for entry in entries {
        match refusal(&entry, now) {
            None => outcome.entries.push(entry),
            Some(why) => {
                let what = format!("{} ({})", entry.name, entry.schedule);
                let place = (entry.file.as_str(), entry.line);
                outcome.leave_out(LeftOut::new(place, true, &what, why));
            }
        }
    }
    let mut types: HashMap<Program, String> = HashMap::new();
    for entry in &mut outcome.entries {
        let first = types.entry(entry.program.clone()).or_insert_with(|| entry.name.clone());
        entry.task.clone_from(first);
    }
    let files = outcome.files.clone();
    let file = |left: &LeftOut| files.iter().position(|file| *file == left.file);
    outcome.left_out.sort_by_cached_key(|left| (file(left), left.line.is_none(), left.line));
    outcome
}

fn refusal(entry: &Entry, now: DateTime<Utc>) -> Option<String> {
    let found = match parse("", &write::job(entry, true)) {
        Ok(jobs) => check_against(&jobs, now),
        Err(problems) => problems,
    };
    let messages = found.into_iter().map(|problem| match problem.field {
        Some(field) => format!("{field}: {}", problem.message),
        None => problem.message,
    });
    let messages: Vec<String> = messages.collect();
    (!messages.is_empty()).then(|| messages.join("; "))
}
