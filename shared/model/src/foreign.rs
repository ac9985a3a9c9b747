//! Decides which tasks of other programs become executions.
//!
//! Any program that may publish to a main queue names a task type, so a message alone must not make rows: a worker
//! adopts a task when a worker of the pool offers its type, or when the setting `WORKER_FOREIGN_TYPES` lists the
//! type. Any other message waits for a short while in delay queues, since a deployment may start the publisher before
//! the worker, and is then parked as it is. The message itself counts these delays.

use std::time::Duration;

use crate::ticket::is_task_type;

/// Maximum number of jobs `foreign.<type>` at the same time; deleted ones do not count.
pub const MAX_FOREIGN_JOBS: i64 = 1_000;
/// How long a message waits each time that no worker offers its type, before it is parked.
pub const UNOFFERED_DELAYS: [Duration; 4] = [
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_secs(30),
    Duration::from_mins(1),
];
/// Maximum number of entries of [`TypePatterns`].
pub const MAX_PATTERNS: usize = 100;
/// How long the offers of a stopped or silent worker still count, in milliseconds.
pub const OFFER_GRACE_MS: u64 = 3_600_000;

/// A worker's reaction to another program's task that has no execution yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// Claim an execution.
    Adopt,
    /// Send the message into a delay queue for this long.
    Delay(Duration),
    /// Park the message as it is.
    Park,
}

/// Decides by whether the task type is offered or listed, and by the number of delays that the message has counted.
/// An invalid count (negative, or too high) ends the waiting.
pub fn admit(offered: bool, listed: bool, delays: i64) -> Admission {
    if offered || listed {
        return Admission::Adopt;
    }
    let delay = usize::try_from(delays).ok().and_then(|count| UNOFFERED_DELAYS.get(count));
    delay.map_or(Admission::Park, |delay| Admission::Delay(*delay))
}

/// Task types by name, or by a prefix followed by `*`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TypePatterns(Vec<String>);

impl TypePatterns {
    /// Parses a comma-separated list; spaces around entries do not count.
    ///
    /// # Errors
    ///
    /// The problem, as a fragment.
    pub fn parse(text: &str) -> Result<Self, String> {
        let entries: Vec<&str> = text.split(',').map(str::trim).collect();
        if entries.len() > MAX_PATTERNS {
            return Err(format!("{} entries are too many", entries.len()));
        }
        for entry in &entries {
            let beginning = entry.strip_suffix('*').unwrap_or(entry);
            if entry.is_empty() {
                return Err("an entry between the commas is missing".to_owned());
            }
            if !(beginning.is_empty() || is_task_type(beginning)) {
                return Err(format!("{entry:?} is neither a task type nor the beginning of one"));
            }
        }
        Ok(Self(entries.into_iter().map(str::to_owned).collect()))
    }

    /// Returns whether an entry matches `task_type`.
    pub fn matches(&self, task_type: &str) -> bool {
        self.0.iter().any(|entry| match entry.strip_suffix('*') {
            Some(beginning) => task_type.starts_with(beginning),
            None => entry == task_type,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_adopted_when_its_type_is_offered_or_listed_and_waits_a_bounded_time_otherwise() {
        for delays in [0, 3, 4, 1_000, -1] {
            assert_eq!(admit(true, false, delays), Admission::Adopt);
            assert_eq!(admit(false, true, delays), Admission::Adopt);
        }
        let waits: Vec<_> = (0..).map(|delays| admit(false, false, delays)).take(6).collect();
        let expected = UNOFFERED_DELAYS.map(Admission::Delay);
        assert_eq!(waits[..4], expected);
        assert_eq!(waits[4..], [Admission::Park, Admission::Park]);
        for impossible in [-1, i64::MIN, i64::MAX] {
            assert_eq!(admit(false, false, impossible), Admission::Park);
        }
    }

    #[test]
    fn types_are_listed_by_name_or_by_their_beginning() {
        let patterns = TypePatterns::parse("report, billing.*").unwrap();
        for (task_type, listed) in
            [("report", true), ("reports", false), ("billing.charge", true), ("billing", false)]
        {
            assert_eq!(patterns.matches(task_type), listed, "{task_type}");
        }
        assert!(TypePatterns::parse("*").unwrap().matches("anything"));
        assert!(!TypePatterns::default().matches("anything"));
        for wrong in ["", "a,,b", "a b", "*a", "a**", "ü", &"a,".repeat(200)] {
            assert!(TypePatterns::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
