//! Readiness: the named conditions under which a program can do its work.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

/// Characters of a reason that are kept.
const MAX_REASON_CHARACTERS: usize = 300;

/// All conditions of a program. Cheap to clone; the clones share them.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    conditions: Arc<Mutex<BTreeMap<&'static str, State>>>,
}

/// One condition: what its owner reports it with. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Condition {
    name: &'static str,
    readiness: Readiness,
}

#[derive(Clone, Debug)]
struct State {
    /// `None`: ready.
    why_not: Option<String>,
    /// When it last became ready or stopped being so.
    since: DateTime<Utc>,
}

/// What `/readyz` answers.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) ready: bool,
    conditions: Vec<Entry>,
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
    /// No conditions, and so not ready: nobody has said yet what the program needs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a condition, such as `database`, `broker` or `consuming`, that does not hold yet. The
    /// same name again yields the same condition, set back.
    pub fn condition(&self, name: &'static str, now: DateTime<Utc>) -> Condition {
        let state = State { why_not: Some("not yet".to_owned()), since: now };
        self.lock().insert(name, state);
        Condition { name, readiness: self.clone() }
    }

    /// Whether there are conditions and every one holds.
    pub fn is_ready(&self) -> bool {
        let conditions = self.lock();
        !conditions.is_empty() && conditions.values().all(|state| state.why_not.is_none())
    }

    /// `stopping`: the program was told to end, which alone makes it not ready.
    pub(crate) fn report(&self, stopping: bool) -> Report {
        let conditions: Vec<_> = self
            .lock()
            .iter()
            .map(|(name, state)| Entry {
                name,
                ready: state.why_not.is_none(),
                since: state.since.to_rfc3339_opts(SecondsFormat::Millis, true),
                reason: state.why_not.clone(),
            })
            .collect();
        let holding = !conditions.is_empty() && conditions.iter().all(|it| it.ready);
        Report { ready: holding && !stopping, conditions }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, State>> {
        self.conditions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Condition {
    /// The name it was added under.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// It holds.
    pub fn ready(&self, now: DateTime<Utc>) {
        self.set(None, now);
    }

    /// It does not hold, and why. The reason is shown to whoever can reach the health address, so
    /// it must hold no secret. Long ones are cut.
    pub fn not_ready(&self, why: &str, now: DateTime<Utc>) {
        self.set(Some(why.chars().take(MAX_REASON_CHARACTERS).collect()), now);
    }

    fn set(&self, why_not: Option<String>, now: DateTime<Utc>) {
        if let Some(state) = self.readiness.lock().get_mut(self.name) {
            if state.why_not.is_some() != why_not.is_some() {
                state.since = now;
            }
            state.why_not = why_not;
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
