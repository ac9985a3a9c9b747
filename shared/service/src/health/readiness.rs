//! Readiness: the named conditions under which a program can do its work.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;
use tokio::time::Instant;

/// Maximum number of characters kept of a reason.
const MAX_REASON_CHARACTERS: usize = 300;
/// Maximum number of warnings shown.
const MAX_WARNINGS: usize = 50;
/// How long a warning lasts without repetition.
const WARNING_TTL: Duration = Duration::from_mins(5);

/// All conditions of a program. Cheap to clone; the clones share them.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    conditions: Arc<Mutex<BTreeMap<&'static str, State>>>,
    warnings: Arc<Mutex<BTreeMap<String, Warning>>>,
}

#[derive(Clone, Debug)]
struct Warning {
    text: String,
    since: DateTime<Utc>,
    last: Instant,
}

/// A handle with which a condition's owner reports it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Condition {
    name: &'static str,
    readiness: Readiness,
}

#[derive(Clone, Debug)]
struct State {
    /// The reason; `None`: ready.
    unready_reason: Option<String>,
    /// When it last changed between ready and not ready.
    since: DateTime<Utc>,
}

/// The body of `/readyz`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) ready: bool,
    conditions: Vec<Entry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<WarningEntry>,
}

#[derive(Debug, Serialize)]
struct WarningEntry {
    name: String,
    /// RFC 3339, UTC.
    since: String,
    text: String,
}

#[derive(Debug, Serialize)]
struct Entry {
    name: &'static str,
    ready: bool,
    /// RFC 3339, UTC.
    since: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Readiness {
    /// Starts without conditions, and so not ready, because the program's needs are not known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition, such as `database`, `broker` or `consuming`, that does not hold yet. The
    /// same name again yields the same condition, set back.
    pub fn condition(&self, name: &'static str, now: DateTime<Utc>) -> Condition {
        let state = State { unready_reason: Some("not yet".to_owned()), since: now };
        self.lock().insert(name, state);
        Condition { name, readiness: self.clone() }
    }

    /// Returns whether conditions exist and all hold.
    pub fn is_ready(&self) -> bool {
        let conditions = self.lock();
        !conditions.is_empty() && conditions.values().all(|state| state.unready_reason.is_none())
    }

    /// Shows a warning, or replaces its text. It does not affect readiness. Like a condition's reason it must not
    /// contain secrets, and is cut.
    pub fn warn(&self, name: &str, text: &str, now: DateTime<Utc>) {
        let text = text.chars().take(MAX_REASON_CHARACTERS).collect();
        let last = Instant::now();
        let mut warnings = self.warnings();
        warnings.retain(|_, warning| last.duration_since(warning.last) < WARNING_TTL);
        if let Some(warning) = warnings.get_mut(name) {
            *warning = Warning { text, since: warning.since, last };
        } else if warnings.len() < MAX_WARNINGS {
            warnings.insert(name.to_owned(), Warning { text, since: now, last });
        }
    }

    /// Ends a warning.
    pub fn withdraw(&self, name: &str) {
        self.warnings().remove(name);
    }

    fn warnings(&self) -> MutexGuard<'_, BTreeMap<String, Warning>> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `stopping`: the program is shutting down, which alone makes it not ready.
    pub(crate) fn report(&self, stopping: bool) -> Report {
        let conditions: Vec<_> = self
            .lock()
            .iter()
            .map(|(name, state)| Entry {
                name,
                ready: state.unready_reason.is_none(),
                since: format_instant(state.since),
                reason: state.unready_reason.clone(),
            })
            .collect();
        let holding = !conditions.is_empty() && conditions.iter().all(|condition| condition.ready);
        let warnings = self
            .warnings()
            .iter()
            .filter(|(_, warning)| warning.last.elapsed() < WARNING_TTL)
            .map(|(name, warning)| WarningEntry {
                name: name.clone(),
                since: format_instant(warning.since),
                text: warning.text.clone(),
            })
            .collect();
        Report { ready: holding && !stopping, conditions, warnings }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, State>> {
        self.conditions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn format_instant(instant: DateTime<Utc>) -> String {
    instant.to_rfc3339_opts(SecondsFormat::Millis, true)
}

impl Condition {
    /// Returns its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Reports that it holds.
    pub fn ready(&self, now: DateTime<Utc>) {
        self.set(None, now);
    }

    /// Reports that it does not hold, and why. Everybody who can reach the health address sees the reason, so it must
    /// not contain secrets. Long ones are cut.
    pub fn not_ready(&self, why: &str, now: DateTime<Utc>) {
        self.set(Some(why.chars().take(MAX_REASON_CHARACTERS).collect()), now);
    }

    fn set(&self, unready_reason: Option<String>, now: DateTime<Utc>) {
        if let Some(state) = self.readiness.lock().get_mut(self.name) {
            if state.unready_reason.is_some() != unready_reason.is_some() {
                state.since = now;
            }
            state.unready_reason = unready_reason;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_700_000_000 + second, 0).unwrap()
    }

    fn json(readiness: &Readiness) -> serde_json::Value {
        serde_json::to_value(readiness.report(false)).unwrap()
    }

    #[test]
    fn a_program_is_ready_when_every_condition_holds() {
        let readiness = Readiness::new();
        let database = readiness.condition("database", at(0));
        let broker = readiness.condition("broker", at(0));
        assert!(!readiness.is_ready());
        database.ready(at(1));
        assert!(!readiness.is_ready());
        broker.ready(at(2));
        assert!(readiness.is_ready());
        broker.not_ready("connection reset", at(3));
        assert!(!readiness.is_ready());
    }

    #[test]
    fn the_report_says_which_condition_why_and_since_when() {
        let readiness = Readiness::new();
        let broker = readiness.condition("broker", at(0));
        broker.not_ready("connection refused", at(1));
        broker.not_ready("name not found", at(2));
        assert_eq!(
            json(&readiness),
            serde_json::json!({"ready": false, "conditions": [{
                "name": "broker", "ready": false,
                "since": "2023-11-14T22:13:20.000Z", "reason": "name not found",
            }]})
        );
        broker.ready(at(5));
        broker.ready(at(9));
        assert_eq!(
            json(&readiness),
            serde_json::json!({"ready": true, "conditions": [{
                "name": "broker", "ready": true, "since": "2023-11-14T22:13:25.000Z",
            }]})
        );
    }

    #[test]
    fn warnings_are_shown_bounded_and_withdrawn_and_change_no_readiness() {
        let readiness = Readiness::new();
        readiness.condition("broker", at(0)).ready(at(0));
        for number in 0..2 * MAX_WARNINGS {
            readiness.warn(&format!("queue {number:03}"), "1 message", at(1));
        }
        readiness.warn("queue 000", "2 messages", at(2));
        assert!(readiness.is_ready());
        let shown = json(&readiness);
        assert_eq!(shown["warnings"].as_array().unwrap().len(), MAX_WARNINGS);
        assert_eq!(
            shown["warnings"][0],
            serde_json::json!({
                "name": "queue 000", "since": "2023-11-14T22:13:21.000Z", "text": "2 messages",
            })
        );
        for number in 0..MAX_WARNINGS {
            readiness.withdraw(&format!("queue {number:03}"));
        }
        assert_eq!(json(&readiness).get("warnings"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_warning_that_is_not_repeated_ends() {
        let readiness = Readiness::new();
        readiness.warn("queue", "1 message", at(0));
        tokio::time::advance(WARNING_TTL / 2).await;
        readiness.warn("queue", "2 messages", at(1));
        tokio::time::advance(WARNING_TTL / 2).await;
        assert_eq!(json(&readiness)["warnings"].as_array().unwrap().len(), 1);
        tokio::time::advance(WARNING_TTL / 2).await;
        assert_eq!(json(&readiness).get("warnings"), None);
    }

    #[test]
    fn a_program_that_has_not_said_what_it_needs_is_not_ready() {
        let readiness = Readiness::new();
        assert!(!readiness.is_ready());
        assert!(!readiness.report(false).ready);
    }

    #[test]
    fn a_program_that_is_stopping_is_not_ready() {
        let readiness = Readiness::new();
        readiness.condition("database", at(0)).ready(at(1));
        assert!(readiness.report(false).ready);
        assert!(!readiness.report(true).ready);
    }
}
