//! What operators decide about a group of failures.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Serialize;

/// What was decided about a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GroupDecision {
    /// Nothing: somebody should look at it.
    Open,
    /// It is known and does not matter: lists leave it out.
    Muted,
    /// Its cause is gone: should it come back, somebody wants to know.
    Resolved,
}

/// How a group stands: what was decided, and what happened since.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupState {
    /// To be looked at.
    Open,
    /// Left out of lists.
    Muted,
    /// Its cause is gone.
    Resolved,
    /// It was resolved, and has failed again since.
    Reopened,
}

impl GroupDecision {
    /// As the database has it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Muted => "muted",
            Self::Resolved => "resolved",
        }
    }

    /// The decision that `text` names.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Open, Self::Muted, Self::Resolved].into_iter().find(|one| one.as_str() == text)
    }

    /// How a group stands about which this was decided at `decided`, and which failed last at `seen`. A
    /// failure that was under way at the decision and committed after it counts as before it.
    pub fn group_state(
        self,
        decided: Option<DateTime<Utc>>,
        seen: Option<DateTime<Utc>>,
    ) -> GroupState {
        let since = decided.zip(seen).is_some_and(|(decided, seen)| seen > decided);
        match self {
            Self::Open => GroupState::Open,
            Self::Muted => GroupState::Muted,
            Self::Resolved if since => GroupState::Reopened,
            Self::Resolved => GroupState::Resolved,
        }
    }
}

impl GroupState {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Open, Self::Muted, Self::Resolved, Self::Reopened];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Muted => "muted",
            Self::Resolved => "resolved",
            Self::Reopened => "reopened",
        }
    }

    /// The state that `text` names.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

impl fmt::Display for GroupState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_resolved_reopens_and_only_by_a_later_failure() {
        let at = |second| DateTime::from_timestamp(second, 0);
        for (decision, decided, seen, expected) in [
            (GroupDecision::Open, None, at(5), GroupState::Open),
            (GroupDecision::Open, at(1), at(5), GroupState::Open),
            (GroupDecision::Muted, at(1), at(5), GroupState::Muted),
            (GroupDecision::Resolved, at(5), at(1), GroupState::Resolved),
            (GroupDecision::Resolved, at(5), at(5), GroupState::Resolved),
            (GroupDecision::Resolved, at(5), None, GroupState::Resolved),
            (GroupDecision::Resolved, at(5), at(6), GroupState::Reopened),
        ] {
            assert_eq!(
                decision.group_state(decided, seen),
                expected,
                "{decision:?} {decided:?} {seen:?}"
            );
        }
        for state in GroupState::ALL {
            assert_eq!(GroupState::parse(state.as_str()), Some(state));
        }
    }
}
