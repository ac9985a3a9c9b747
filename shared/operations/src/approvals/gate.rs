//! Clears an action, or keeps it as a request that waits for others.

use serde::Serialize;
use serde_json::Value;
use sexton_model::approval::{
    Demand, JobShare, MAX_WAITING_REQUESTS, MAX_WAITING_REQUESTS_OF_PERSON, Rule, demand,
    person_names,
};
use sexton_store::Store;
use sexton_store::approvals::{self, ApprovalRequest, Claim, NewRequest, RequestCreation};

use super::proposal::Proposal;
use super::{requests, restricted};
use crate::actor::Actor;
use crate::digest::sha256_hex;
use crate::error::{Conflict, InvalidRequest, OperationError};
use crate::secrets::mask_proposal;

/// What became of an action that a rule may concern.
#[derive(Debug)]
pub enum Outcome<T> {
    /// It is carried out.
    Done(T),
    /// It waits for the approval of others.
    Waits(Box<ApprovalRequest>),
}

impl<T> Outcome<T> {
    /// Changes what was carried out.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Done(value) => Outcome::Done(change(value)),
            Self::Waits(request) => Outcome::Waits(request),
        }
    }
}

/// The permission to carry an action out: no rule concerns it, or enough people have approved it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Clearance(Option<Claim>);

impl Clearance {
    /// For actions that no rule can concern: a requeue of one execution, which is not many, and what takes actions back.
    pub(crate) const UNRULED: Self = Self(None);

    /// For a request that this process has claimed, which the store counts the approvals of.
    pub(crate) const fn of_claim(claim: Claim) -> Self {
        Self(Some(claim))
    }

    /// Returns the claim that the action's transaction ends.
    pub(crate) const fn claim(self) -> Option<Claim> {
        self.0
    }
}

/// What an action needs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ApprovalDemand {
    /// How many people it takes, the one who requests among them.
    pub people: u16,
    /// The names of the rules.
    pub rules: Vec<String>,
}

impl ApprovalDemand {
    /// Describes it in a sentence's end.
    pub fn describe(&self) -> String {
        let others = self.people.saturating_sub(1);
        let noun = if others == 1 { "other person" } else { "other people" };
        let rules = if self.rules.len() == 1 { "rule" } else { "rules" };
        format!("the approval of {others} {noun} ({rules} {})", self.rules.join(", "))
    }
}

/// The rules as they are now.
#[derive(Debug)]
pub(crate) struct Gate(Vec<Rule>);

impl Gate {
    /// Reads the rules.
    pub(crate) async fn load(store: &Store) -> Result<Self, OperationError> {
        let rules = approvals::list_rules(store).await?;
        Ok(Self(rules.iter().map(approvals::ApprovalRule::to_model).collect()))
    }

    /// Clears everything if there is no rule at all.
    pub(crate) fn without_rules(&self) -> Option<Clearance> {
        self.0.is_empty().then_some(Clearance(None))
    }

    /// Returns what an action needs; `None`: nothing.
    pub(crate) async fn demand(
        &self,
        store: &Store,
        proposal: &Proposal,
    ) -> Result<Option<Demand>, OperationError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let jobs = proposal.jobs();
        let names: Vec<String> = jobs.iter().map(|(name, _)| name.clone()).collect();
        let mut labels = approvals::list_job_labels(store, &names).await?;
        let share = |(name, executions): &(String, u64)| JobShare {
            labels: labels.remove(name).unwrap_or_default(),
            executions: *executions,
        };
        let shares: Vec<JobShare> = jobs.iter().map(share).collect();
        Ok(demand(&self.0, proposal.counts(), &shares, proposal.has_more()))
    }

    /// Clears an action, or keeps it as a request; an equal one that waits already is returned instead. A crash leaves the whole request, or nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`]: it is too large to be kept; [`Conflict`]: too many wait.
    pub(crate) async fn clear(
        &self,
        store: &Store,
        proposal: &Proposal,
        (actor, reason): (&Actor, Option<&str>),
    ) -> Result<Outcome<Clearance>, OperationError> {
        let Some(needs) = self.demand(store, proposal).await? else {
            return Ok(Outcome::Done(Clearance(None)));
        };
        restricted::check(store, proposal).await?;
        let value = serde_json::to_value(proposal)
            .map_err(|error| OperationError::Failed(error.to_string()))?;
        let names = names_of(store, actor).await?;
        let new = NewRequest {
            kind: proposal.kind(),
            proposal: &value,
            digest: &digest(value.clone()),
            shown_digest: &digest(mask_proposal(&value)),
            people: i16::try_from(needs.people).unwrap_or(i16::MAX),
            rules: &needs.rules,
            names: &names,
        };
        match approvals::create(store, new, actor.because(reason), None).await? {
            RequestCreation::Created(id) => {
                Ok(Outcome::Waits(Box::new(requests::find(store, id).await?)))
            }
            RequestCreation::TooLarge => {
                let text = "it needs approval, and is too large to wait for it: narrow it";
                Err(InvalidRequest::Other(text.to_owned()).into())
            }
            RequestCreation::TooMany => {
                let text = format!(
                    "{MAX_WAITING_REQUESTS} requests wait for approval already; decide about some first"
                );
                Err(Conflict::Other(text).into())
            }
            RequestCreation::TooManyOfPerson => {
                let text = format!(
                    "{MAX_WAITING_REQUESTS_OF_PERSON} of your requests wait for approval already; take some back first"
                );
                Err(Conflict::Other(text).into())
            }
        }
    }
}

/// The digest of an action: two that only looked at another moment are equal.
fn digest(mut proposal: Value) -> String {
    if let Some(fields) = proposal.as_object_mut() {
        fields.remove("previewed_at");
    }
    sha256_hex(proposal.to_string().as_bytes())
}

/// Returns what an action needs, for previews; `None`: nothing.
pub(crate) async fn preview(
    store: &Store,
    proposal: &Proposal,
) -> Result<Option<ApprovalDemand>, OperationError> {
    let needs = Gate::load(store).await?.demand(store, proposal).await?;
    Ok(needs.map(|Demand { people, rules }| ApprovalDemand { people, rules }))
}

/// Returns the names by which a person is known.
pub(crate) async fn names_of(store: &Store, actor: &Actor) -> Result<Vec<String>, OperationError> {
    let actors = approvals::list_creators(store, &actor.name).await?;
    Ok(person_names(actors.iter().map(String::as_str)).into_iter().collect())
}
