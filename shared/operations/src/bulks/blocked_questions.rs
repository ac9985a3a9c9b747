//! Reports that a bulk's questions wait for a missing worker, or for the end of an old one.

use std::collections::BTreeSet;
use std::time::Duration;

use sexton_store::Store;
use sexton_store::bulk::{self, BlockedQuestions, Bulk, MAX_QUESTION_WAIT_MINUTES};
use tokio::time::Instant;

use crate::error::OperationError;
use crate::text::line;

/// Maximum number of names listed.
const MAX_NAMED: usize = 5;
/// Pause between two polls of a watcher.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Returns why a bulk's questions are blocked; `None`: they are not.
///
/// # Errors
///
/// Those of the database.
pub async fn find_blocked(
    store: &Store,
    id: i64,
) -> Result<Option<BlockedQuestions>, OperationError> {
    Ok(bulk::list_blocked_questions(store, &[id], None).await?.remove(&id))
}

/// Describes it on one line.
pub fn describe_blocked(waits: &BlockedQuestions) -> String {
    let mut parts: Vec<String> = Vec::new();
    for one in waits.unheard.iter().take(MAX_NAMED) {
        let (n, task, pool) = (one.questions, &one.task_type, &one.pool);
        let them = if n == 1 { "1 question waits" } else { &format!("{n} questions wait") };
        parts.push(format!("{them}: no worker at work in pool {pool} offers {task}"));
    }
    if waits.unheard.len() > MAX_NAMED {
        parts.push(format!("and of {} more pools and tasks", waits.unheard.len() - MAX_NAMED));
    }
    if !waits.unheard.is_empty() {
        parts.push(format!("what waits for {MAX_QUESTION_WAIT_MINUTES} minutes is given up"));
    }
    if let Some(first) = waits.old_workers.first() {
        let more = match waits.old_workers.len() - 1 {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        parts.push(format!(
            "no verify task runs until worker {first}{more} is replaced: its version has no verify tasks"
        ));
    }
    line(&parts.join("; "), 1_000)
}

/// A watcher's last known state of a bulk's blocked questions.
#[derive(Debug, Default)]
pub struct BlockedNotice {
    known: Option<BlockedQuestions>,
    checked_at: Option<Instant>,
}

impl BlockedNotice {
    /// Returns why a running bulk's questions are blocked, if that differs from the last call; queries every few
    /// seconds.
    ///
    /// # Errors
    ///
    /// Those of the database.
    pub async fn poll(
        &mut self,
        store: &Store,
        bulk: &Bulk,
    ) -> Result<Option<&BlockedQuestions>, OperationError> {
        let asks = bulk.verify.as_deref() == Some("task");
        if !asks || self.checked_at.is_some_and(|checked_at| checked_at.elapsed() < POLL_INTERVAL) {
            return Ok(None);
        }
        self.checked_at = Some(Instant::now());
        let found = find_blocked(store, bulk.id).await?;
        let is_known = match (&self.known, &found) {
            (Some(old), Some(new)) => is_same_block(old, new),
            _ => false,
        };
        self.known = found;
        Ok(self.known.as_ref().filter(|_| !is_known))
    }
}

/// Returns whether both are blocked by the same workers, whatever the numbers.
fn is_same_block(one: &BlockedQuestions, other: &BlockedQuestions) -> bool {
    let places = |waits: &BlockedQuestions| {
        let each = waits
            .unheard
            .iter()
            .map(|question| (question.task_type.clone(), question.pool.clone()));
        each.collect::<BTreeSet<_>>()
    };
    places(one) == places(other) && one.old_workers == other.old_workers
}

#[cfg(test)]
mod tests {
    use sexton_store::bulk::UnofferedQuestions;

    use super::*;

    #[test]
    fn what_is_waited_for_is_told_with_its_limit_and_on_one_line() {
        let unheard = |task: &str, questions| UnofferedQuestions {
            task_type: task.to_owned(),
            pool: "default".to_owned(),
            questions,
        };
        let mut waits =
            BlockedQuestions { unheard: vec![unheard("a", 3)], old_workers: Vec::new() };
        assert_eq!(
            describe_blocked(&waits),
            "3 questions wait: no worker at work in pool default offers a; what waits for 10 minutes is given up"
        );
        waits.unheard = Vec::new();
        waits.old_workers = vec!["w1 0.0.1\u{1b}[2J".to_owned(), "w2 0.0.1".to_owned()];
        let text = describe_blocked(&waits);
        assert!(text.starts_with("no verify task runs until worker w1 0.0.1"), "{text}");
        assert!(text.contains(" and 1 more is replaced") && !text.contains('\u{1b}'), "{text}");
        waits.unheard = (0..7).map(|n| unheard(&n.to_string(), 1)).collect();
        assert!(describe_blocked(&waits).contains("and of 2 more pools and tasks"));
    }
}
