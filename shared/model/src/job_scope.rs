//! The jobs to which a token or an account is restricted.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::access::Role;

/// Characters of a scope's text, at most.
const MAX_CHARS: usize = 300;

/// The jobs that a restricted caller may change: `billing.*`, those whose names begin so, or `team=billing`, those with that label.
///
/// A label decides as it is when something is changed, so a job that gets it comes in.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum JobScope {
    /// Jobs whose names begin with this.
    Prefix(String),
    /// Jobs with this label and value.
    Label(String, String),
}

impl JobScope {
    /// Returns whether a job is among them.
    pub fn contains(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::Prefix(prefix) => name.starts_with(prefix),
            Self::Label(label, value) => labels.get(label) == Some(value),
        }
    }

    /// Narrows the conditions of a filter to these jobs. Returns `false` if it selects only others.
    pub fn narrow(
        &self,
        labels: &mut BTreeMap<String, String>,
        job_prefix: &mut Option<String>,
    ) -> bool {
        match self {
            Self::Label(label, value) => {
                labels.entry(label.clone()).or_insert_with(|| value.clone()) == value
            }
            Self::Prefix(prefix) => {
                let given = job_prefix.as_deref().unwrap_or_default();
                if !given.starts_with(prefix) && !prefix.starts_with(given) {
                    return false;
                }
                if prefix.len() > given.len() {
                    *job_prefix = Some(prefix.clone());
                }
                true
            }
        }
    }
}

impl fmt::Display for JobScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
            Self::Label(label, value) => write!(f, "{label}={value}"),
        }
    }
}

impl FromStr for JobScope {
    type Err = String;

    /// Parses `billing.*` or `team=billing`.
    fn from_str(text: &str) -> Result<Self, String> {
        let is_text = |part: &str| !part.is_empty() && !part.chars().any(char::is_control);
        let parsed = match text.split_once('=') {
            Some((label, value)) if is_text(label) && is_text(value) => {
                Some(Self::Label(label.to_owned(), value.to_owned()))
            }
            Some(_) => None,
            None => {
                let prefix = text.strip_suffix('*').filter(|prefix| is_text(prefix));
                prefix.filter(|prefix| !prefix.contains('*')).map(|p| Self::Prefix(p.to_owned()))
            }
        };
        let fits = text.chars().count() <= MAX_CHARS;
        parsed.filter(|_| fits).ok_or_else(|| {
            format!(
                "write billing.* for the jobs whose names begin so, or team=billing for those with that label; at most \
                 {MAX_CHARS} characters"
            )
        })
    }
}

impl TryFrom<String> for JobScope {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<JobScope> for String {
    fn from(scope: JobScope) -> Self {
        scope.to_string()
    }
}

/// What a token or an account may do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The role.
    pub role: Role,
    /// The jobs to which it is restricted; `None`: it may change whatever the role may.
    pub only_jobs: Option<JobScope>,
}

impl Grant {
    /// Checks that the two go together.
    ///
    /// # Errors
    ///
    /// What is wrong: who decides who may do what cannot be restricted.
    pub fn check(&self) -> Result<(), &'static str> {
        if self.role == Role::Admin && self.only_jobs.is_some() {
            return Err(
                "an admin decides who may do what, and cannot be restricted to jobs; take the role editor",
            );
        }
        Ok(())
    }
}

impl From<Role> for Grant {
    fn from(role: Role) -> Self {
        Self { role, only_jobs: None }
    }
}

/// What becomes of the jobs to which an account is restricted, when its role is set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScopeChange {
    /// They stay.
    Keep,
    /// These from now on; `None`: it is restricted no more.
    To(Option<JobScope>),
    /// As [`Self::To`], if role and jobs are still those that the person saw.
    Replace {
        /// What the person saw.
        seen: Grant,
        /// Those from now on.
        to: Option<JobScope>,
    },
}

impl ScopeChange {
    /// Returns them as they are then.
    ///
    /// # Errors
    ///
    /// The account is no longer as the person saw it.
    pub fn apply(&self, before: Grant) -> Result<Option<JobScope>, GrantChanged> {
        match self {
            Self::Keep => Ok(before.only_jobs),
            Self::To(after) => Ok(after.clone()),
            Self::Replace { seen, to } if *seen == before => Ok(to.clone()),
            Self::Replace { .. } => Err(GrantChanged),
        }
    }
}

/// An account has another role, or is restricted to other jobs, than the person saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GrantChanged;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_a_prefix_or_a_label_and_is_read_back_as_it_was_written() {
        for (text, scope) in [
            ("billing.*", JobScope::Prefix("billing.".to_owned())),
            ("team=billing", JobScope::Label("team".to_owned(), "billing".to_owned())),
            ("team=a=b*", JobScope::Label("team".to_owned(), "a=b*".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(scope.clone()));
            assert_eq!(scope.to_string(), text);
        }
        let long = format!("{}*", "a".repeat(MAX_CHARS));
        for text in ["", "*", "billing", "a*b*", "=x", "team=", "a\n*", &long] {
            assert!(text.parse::<JobScope>().unwrap_err().contains("billing.*"), "{text:?}");
        }
    }

    #[test]
    fn a_filter_is_narrowed_and_never_widened() {
        let label = |value: &str| BTreeMap::from([("team".to_owned(), value.to_owned())]);
        let narrow = |scope: &str, mut labels, prefix: Option<&str>| {
            let mut prefix = prefix.map(str::to_owned);
            let scope: JobScope = scope.parse().unwrap();
            scope.narrow(&mut labels, &mut prefix).then_some((labels, prefix))
        };
        let none = BTreeMap::new;
        assert_eq!(narrow("team=a", none(), None), Some((label("a"), None)));
        assert_eq!(narrow("team=a", label("a"), None), Some((label("a"), None)));
        assert_eq!(narrow("team=a", label("b"), None), None);
        let prefixed = |prefix: &str| Some((none(), Some(prefix.to_owned())));
        assert_eq!(narrow("a.*", none(), None), prefixed("a."));
        assert_eq!(narrow("a.*", none(), Some("a")), prefixed("a."));
        assert_eq!(narrow("a.*", none(), Some("a.b")), prefixed("a.b"));
        assert_eq!(narrow("a.*", none(), Some("b")), None);
    }

    #[test]
    fn an_admin_is_never_restricted() {
        for role in Role::ALL {
            let only_jobs = "billing.*".parse().ok();
            assert_eq!(Grant { role, only_jobs }.check().is_ok(), role < Role::Admin);
            Grant::from(role).check().unwrap();
        }
    }
}
