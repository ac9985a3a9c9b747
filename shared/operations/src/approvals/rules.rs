//! The rules by which actions wait for others.

use sexton_model::access::is_token_name;
use sexton_model::approval::{MAX_PEOPLE, MAX_RULES, MIN_PEOPLE};
use sexton_store::Store;
use sexton_store::approvals::{self, NewRule, RuleChange};

pub use sexton_store::approvals::ApprovalRule;

use crate::actor::Actor;
use crate::error::{Conflict, InvalidRequest, NotFound, OperationError};

/// Above which number of executions a rule holds unless it says so.
pub const DEFAULT_ABOVE: i32 = 100;
const MAX_LABEL_CHARS: usize = 200;
const MAX_VALUE_CHARS: usize = 500;

/// A rule to be set, in texts.
#[derive(Clone, Copy, Debug)]
pub struct RuleRequest<'a> {
    /// Its name.
    pub name: &'a str,
    /// A label of jobs, as in `team=billing`; `None`: all jobs.
    pub label: Option<&'a str>,
    /// How many people it takes, the one who requests among them.
    pub people: i64,
    /// Bulks that requeue or cancel, and backfills, wait above this number of executions.
    pub above: i64,
}

/// Lists the rules by name.
///
/// # Errors
///
/// Those of the database.
pub async fn list(store: &Store) -> Result<Vec<ApprovalRule>, OperationError> {
    Ok(approvals::list_rules(store).await?)
}

/// Sets a rule, in place of one of the same name. It holds for what is requested from now on, and for requests that wait.
///
/// # Errors
///
/// [`InvalidRequest`] with every field that is not possible; [`Conflict`]: there are too many.
pub async fn set(
    store: &Store,
    request: RuleRequest<'_>,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<ApprovalRule, OperationError> {
    let rule = check(request)?;
    match approvals::set_rule(store, rule, actor.because(reason), None).await? {
        RuleChange::Set(rule) => Ok(rule),
        RuleChange::TooMany => {
            let text = format!("there are {MAX_RULES} rules already; delete one first");
            Err(Conflict::Other(text).into())
        }
    }
}

/// Deletes a rule. Requests that wait by it still take as many people.
///
/// # Errors
///
/// [`NotFound::Other`].
pub async fn delete(
    store: &Store,
    name: &str,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<(), OperationError> {
    if approvals::delete_rule(store, name, actor.because(reason), None).await? {
        return Ok(());
    }
    Err(NotFound::Other(format!("there is no rule {name:?} for approvals")).into())
}

fn check(request: RuleRequest<'_>) -> Result<NewRule<'_>, InvalidRequest> {
    let RuleRequest { name, label, people, above } = request;
    let mut problems = Vec::new();
    if !is_token_name(name) {
        let shape = "is no name of a rule; write lower-case letters, digits, dots, hyphens and underscores, at most 63";
        problems.push(InvalidRequest::field("name", format!("{name:?} {shape}")));
    }
    let label = match label.map(|text| text.split_once('=')) {
        Some(Some((key, value)))
            if (1..=MAX_LABEL_CHARS).contains(&key.chars().count())
                && value.chars().count() <= MAX_VALUE_CHARS =>
        {
            Some((key, value))
        }
        Some(_) => {
            problems.push(InvalidRequest::field("label", "must be a label, as in team=billing"));
            None
        }
        None => None,
    };
    let range = i64::from(MIN_PEOPLE)..=i64::from(MAX_PEOPLE);
    if !range.contains(&people) {
        let problem = format!(
            "must be {MIN_PEOPLE} to {MAX_PEOPLE}: all of them, the one who requests included"
        );
        problems.push(InvalidRequest::field("people", problem));
    }
    let above = i32::try_from(above).ok().filter(|above| *above >= 1);
    if above.is_none() {
        problems.push(InvalidRequest::field("above", "must be at least 1"));
    }
    match problems.len() {
        0 => {
            let people = i16::try_from(people).unwrap_or(i16::MAX);
            Ok(NewRule { name, label, people, above: above.unwrap_or(1) })
        }
        1 => Err(problems.remove(0)),
        _ => Err(InvalidRequest::Several(problems.into_iter().map(Into::into).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_cannot_be_is_refused_with_everything_that_is_wrong() {
        let request = RuleRequest { name: "Money!", label: Some("team"), people: 1, above: 0 };
        let refused = check(request).unwrap_err().to_string();
        for field in ["name", "label", "people", "above"] {
            assert!(refused.lines().any(|line| line.starts_with(field)), "{field}: {refused}");
        }
        let request = RuleRequest { name: "money", label: Some("a=b=c"), people: 5, above: 1 };
        assert_eq!(check(request).unwrap().label, Some(("a", "b=c")));
    }
}
