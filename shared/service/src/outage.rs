//! Logs that a server is out of reach without flooding the log.
//!
//! Once when it begins, once a minute while it lasts, once when it is over; and however fast a server comes and goes,
//! not more often than that. [`Outage`] decides and does no logging; [`Reachability`] is one server's outage, shared
//! by all loops that use it, tied to its readiness.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sexton_model::log_throttle::LogThrottle;

use crate::clock;
use crate::health::Condition;

/// Maximum number of characters of an error that are repeated.
const MAX_ERROR_CHARACTERS: usize = 500;

/// One server's outage.
#[derive(Debug)]
pub struct Outage {
    server: &'static str,
    since: Option<Instant>,
    failures: u64,
    failure_logged: bool,
    /// It lasts across outages, so a server that fails and returns each second is logged once a minute.
    throttle: LogThrottle,
}

/// A line to log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutageEvent {
    /// It began.
    Began {
        /// Such as `database`.
        server: &'static str,
        /// The latest error.
        error: String,
    },
    /// It continues.
    Continues {
        /// Such as `database`.
        server: &'static str,
        /// The latest error.
        error: String,
        /// Since the first failure.
        lasting: Duration,
        /// Failures so far.
        failures: u64,
    },
    /// It is over.
    Ended {
        /// Such as `database`.
        server: &'static str,
        /// From the first failure to now.
        lasted: Duration,
        /// Failures in all.
        failures: u64,
    },
}

impl fmt::Display for OutageEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Began { server, error } => {
                write!(f, "cannot reach the {server}, will go on trying: {error}")
            }
            Self::Continues { server, error, lasting, failures } => write!(
                f,
                "still cannot reach the {server} after {} s and {failures} failures: {error}",
                lasting.as_secs()
            ),
            Self::Ended { server, lasted, failures } => write!(
                f,
                "the {server} answers again after {} s and {failures} failures",
                lasted.as_secs()
            ),
        }
    }
}

impl Outage {
    /// Starts without an outage. `server` is a word such as `database`.
    pub fn new(server: &'static str) -> Self {
        let throttle = LogThrottle::default();
        Self { server, since: None, failures: 0, failure_logged: false, throttle }
    }

    /// Records a failed try.
    pub fn record_failure(
        &mut self,
        now: Instant,
        error: &dyn fmt::Display,
    ) -> Option<OutageEvent> {
        let since = *self.since.get_or_insert(now);
        self.failures += 1;
        if !self.throttle.permits(now) {
            return None;
        }
        let error = error.to_string().chars().take(MAX_ERROR_CHARACTERS).collect();
        let began = self.failures == 1;
        self.failure_logged = true;
        let server = self.server;
        Some(if began {
            OutageEvent::Began { server, error }
        } else {
            let lasting = now.saturating_duration_since(since);
            OutageEvent::Continues { server, error, lasting, failures: self.failures }
        })
    }

    /// Records a successful try. Returns an event if the outage was logged.
    pub fn record_recovery(&mut self, now: Instant) -> Option<OutageEvent> {
        let since = self.since.take()?;
        let failures = std::mem::take(&mut self.failures);
        let lasted = now.saturating_duration_since(since);
        std::mem::take(&mut self.failure_logged).then_some(OutageEvent::Ended {
            server: self.server,
            lasted,
            failures,
        })
    }
}

/// One server as all loops of a process see it: failures are logged by the rules of [`Outage`] and shown by
/// `/readyz`. Cheap to clone.
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
        Self { outage: Arc::new(Mutex::new(Outage::new(condition.name()))), condition }
    }

    /// Records a failed try: logs at most a line a minute, and makes the program not ready.
    pub fn record_failure(&self, error: &dyn fmt::Display) {
        self.condition.not_ready(&error.to_string(), clock::now());
        if let Some(event) = self.lock().record_failure(Instant::now(), error) {
            tracing::warn!(server.name = self.condition.name(), "{event}");
        }
    }

    /// Records a successful try. Cheap while there is no outage.
    pub fn record_success(&self) {
        self.condition.ready(clock::now());
        if let Some(event) = self.lock().record_recovery(Instant::now()) {
            tracing::info!(server.name = self.condition.name(), "{event}");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Outage> {
        self.outage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn an_outage_is_said_when_it_begins_each_minute_and_when_it_is_over() {
        let start = Instant::now();
        let mut outage = Outage::new("database");
        let mut lines = Vec::new();
        for second in 0..=130 {
            let event = outage.record_failure(start + seconds(second), &"connection refused");
            lines.extend(event.map(|event| (second, event.to_string())));
        }
        lines.extend(
            outage.record_recovery(start + seconds(131)).map(|event| (131, event.to_string())),
        );
        assert_eq!(
            lines,
            [
                (0, "cannot reach the database, will go on trying: connection refused".to_owned()),
                (
                    60,
                    "still cannot reach the database after 60 s and 61 failures: connection \
                     refused"
                        .to_owned()
                ),
                (
                    120,
                    "still cannot reach the database after 120 s and 121 failures: connection \
                     refused"
                        .to_owned()
                ),
                (131, "the database answers again after 131 s and 131 failures".to_owned()),
            ]
        );
        assert_eq!(outage.record_recovery(start + seconds(132)), None);
    }

    #[test]
    fn a_server_that_comes_and_goes_is_said_once_a_minute() {
        let start = Instant::now();
        let mut outage = Outage::new("broker");
        let mut lines = 0;
        for second in 0..600 {
            lines +=
                usize::from(outage.record_failure(start + seconds(second), &"reset").is_some());
            lines += usize::from(outage.record_recovery(start + seconds(second)).is_some());
        }
        assert_eq!(lines, 20);
    }

    #[test]
    fn a_second_outage_within_the_minute_is_said_when_the_minute_is_over() {
        let start = Instant::now();
        let mut outage = Outage::new("broker");
        assert!(outage.record_failure(start, &"reset").is_some());
        assert!(outage.record_recovery(start + seconds(1)).is_some());
        assert_eq!(outage.record_failure(start + seconds(30), &"reset"), None);
        let event = outage.record_failure(start + seconds(60), &"reset").unwrap();
        assert!(
            matches!(event, OutageEvent::Continues { lasting, failures: 2, .. } if lasting == seconds(30))
        );
        assert!(outage.record_recovery(start + seconds(61)).is_some());
    }

    #[test]
    fn an_endless_error_is_cut() {
        let event =
            Outage::new("broker").record_failure(Instant::now(), &"x".repeat(10_000)).unwrap();
        assert!(event.to_string().len() < 600);
    }
}
