//! One server as all loops of a process see it: logged by the rules of [`Outage`], and shown by `/readyz`.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use sexton_model::outage::{FailureLine, Outage, PastOutage};

use crate::clock;
use crate::health::Condition;

/// Maximum number of characters of an error that are repeated.
const MAX_ERROR_CHARACTERS: usize = 500;

/// Whether one server can be reached, shared by all loops that use it, and tied to its readiness. Cheap to clone.
///
/// Only for errors that mean "the server cannot be reached or used": a refused statement says nothing about the
/// server, and would make the others' successes look like recoveries.
#[derive(Clone, Debug)]
pub struct Reachability {
    outage: Arc<Mutex<Outage>>,
    condition: Condition,
}

impl Reachability {
    /// Makes it for the server that `condition` is named after; it counts as not reached yet.
    pub fn new(condition: Condition) -> Self {
        Self { outage: Arc::default(), condition }
    }

    /// Records a failed try: logs at most a line a minute, and makes the program not ready.
    pub fn record_failure(&self, error: &dyn fmt::Display) {
        self.condition.not_ready(&error.to_string(), clock::now());
        if let Some(line) = self.lock().record_failure(Instant::now()) {
            let server = self.condition.name();
            tracing::warn!(server.name = server, "{}", describe_failure(server, line, error));
        }
    }

    /// Records a successful try. Cheap while there is no outage.
    pub fn record_success(&self) {
        self.condition.ready(clock::now());
        if let Some(past) = self.lock().record_recovery(Instant::now())
            && past.is_logged
        {
            let server = self.condition.name();
            tracing::info!(server.name = server, "{}", describe_recovery(server, past));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Outage> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn describe_failure(server: &str, line: FailureLine, error: &dyn fmt::Display) -> String {
    let error: String = error.to_string().chars().take(MAX_ERROR_CHARACTERS).collect();
    match line {
        FailureLine::Began => format!("cannot reach the {server}, will go on trying: {error}"),
        FailureLine::Continues { lasting, failures } => format!(
            "still cannot reach the {server} after {} s and {failures} failures: {error}",
            lasting.as_secs()
        ),
    }
}

fn describe_recovery(server: &str, past: PastOutage) -> String {
    let PastOutage { lasted, failures, .. } = past;
    format!("the {server} answers again after {} s and {failures} failures", lasted.as_secs())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_names_the_server_how_long_it_is_out_of_reach_and_the_error() {
        let lasting = Duration::from_mins(1);
        let continues = FailureLine::Continues { lasting, failures: 61 };
        let past = PastOutage { lasted: lasting, failures: 61, is_logged: true };
        assert_eq!(
            [
                describe_failure("database", FailureLine::Began, &"connection refused"),
                describe_failure("database", continues, &"connection refused"),
                describe_recovery("database", past),
            ],
            [
                "cannot reach the database, will go on trying: connection refused",
                "still cannot reach the database after 60 s and 61 failures: connection refused",
                "the database answers again after 60 s and 61 failures",
            ]
        );
    }

    #[test]
    fn an_endless_error_is_cut() {
        let line = describe_failure("broker", FailureLine::Began, &"x".repeat(10_000));
        assert!(line.len() < 600);
    }
}
