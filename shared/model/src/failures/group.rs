//! Operators' decisions about a group of failures.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A decision about a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum GroupDecision {
    /// No decision: the group needs attention.
    Open,
    /// Known and unimportant: lists leave it out.
    Muted,
    /// Its cause is removed: if it fails again, it is reopened.
    Resolved,
}

/// The state of a group: the decision, and later failures.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum GroupState {
    /// It needs attention.
    Open,
    /// Left out of lists.
    Muted,
    /// Its cause is removed.
    Resolved,
    /// It was resolved, and has failed again since.
    Reopened,
}

impl GroupDecision {
    /// Returns the value in the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Muted => "muted",
            Self::Resolved => "resolved",
        }
    }

    /// Parses a decision.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Open, Self::Muted, Self::Resolved].into_iter().find(|one| one.as_str() == text)
    }

    /// Returns the state of a group with a decision made at `decided` and its last failure at `seen`. A failure that
    /// was under way at the decision and committed after it counts as before it.
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
    /// All states.
    pub const ALL: [Self; 4] = [Self::Open, Self::Muted, Self::Resolved, Self::Reopened];

    /// Returns the word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Muted => "muted",
            Self::Resolved => "resolved",
            Self::Reopened => "reopened",
        }
    }

    /// Parses a state.
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
