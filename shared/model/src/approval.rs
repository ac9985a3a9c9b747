//! Approvals: which actions wait for further people, and who may approve them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use crate::access::ActorKind;
use crate::text_enum::text_enum;

/// The fewest people that a rule demands, the one who requests among them.
pub const MIN_PEOPLE: u16 = 2;
/// The most people that a rule demands.
pub const MAX_PEOPLE: u16 = 5;
/// The most rules.
pub const MAX_RULES: u32 = 100;
/// The most requests that wait.
pub const MAX_WAITING_REQUESTS: u32 = 1_000;
/// The most of them that one person has requested.
pub const MAX_WAITING_REQUESTS_OF_PERSON: u32 = 100;
/// The largest request, in bytes of the text that PostgreSQL makes of it: it has spaces, and numbers with all their digits. A CHECK of the table has
/// the same limit.
pub const MAX_PROPOSAL_BYTES: i32 = 1024 * 1024;
/// How long a request waits.
pub const REQUEST_LIFETIME: TimeDelta = TimeDelta::hours(24);
/// After which time another process may carry out what one has begun to carry out.
pub const CLAIM_LIFETIME: TimeDelta = TimeDelta::minutes(2);

/// What is requested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProposalKind {
    /// Other params, or another pool, for a failed execution.
    Edit,
    /// A failed execution is given up.
    Discard,
    /// Many failed executions run again.
    BulkRequeue,
    /// Many failed executions are given up.
    BulkDiscard,
    /// Many executions that wait or run are cancelled.
    BulkCancel,
    /// Past firings run.
    Backfill,
}

text_enum!(ProposalKind {
    Edit => "edit",
    Discard => "discard",
    BulkRequeue => "bulk_requeue",
    BulkDiscard => "bulk_discard",
    BulkCancel => "bulk_cancel",
    Backfill => "backfill",
});

impl ProposalKind {
    /// Returns whether it waits only above a rule's number of executions.
    pub const fn counts(self) -> bool {
        matches!(self, Self::BulkRequeue | Self::BulkCancel | Self::Backfill)
    }
}

/// A rule, as far as it decides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// The label and the value that jobs have; `None`: all jobs.
    pub label: Option<(String, String)>,
    /// [`MIN_PEOPLE`] to [`MAX_PEOPLE`].
    pub people: u16,
    /// What [`ProposalKind::counts`] waits above this number of executions.
    pub above: u64,
}

/// The part of an action that concerns jobs with the same name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JobShare {
    /// The labels of all jobs of that name, a deleted one among them.
    pub labels: Vec<BTreeMap<String, String>>,
    /// How many of its executions.
    pub executions: u64,
}

/// What an action needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Demand {
    /// How many people it takes, the one who requests among them.
    pub people: u16,
    /// The names of the rules.
    pub rules: Vec<String>,
}

/// Returns what an action needs by the rules; `None`: nothing, it is carried out at once. `counts`: it waits only above a rule's number of executions.
/// `has_more`: it concerns further executions that nobody has counted, so every rule may apply.
pub fn demand(rules: &[Rule], counts: bool, jobs: &[JobShare], has_more: bool) -> Option<Demand> {
    let applies = |rule: &&Rule| {
        let executions: u64 =
            jobs.iter().filter(|job| rule.concerns(job)).map(|job| job.executions).sum();
        has_more || executions > if counts { rule.above } else { 0 }
    };
    let found: Vec<&Rule> = rules.iter().filter(applies).collect();
    let people = found.iter().map(|rule| rule.people).max()?;
    Some(Demand { people, rules: found.iter().map(|rule| rule.name.clone()).collect() })
}

impl Rule {
    fn concerns(&self, job: &JobShare) -> bool {
        let Some((label, value)) = &self.label else { return true };
        job.labels.iter().any(|labels| labels.get(label) == Some(value))
    }
}

/// Returns the names by which a person is known, of the actors who stand for that person: the one who acts and, of a token, those who created it.
/// The audit writes `account ann`, `token ann`, `proxy ann`, `oidc ann` and `ann@host`; all of them are `ann`.
pub fn person_names<'a>(actors: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    let name = |actor: &'a str| {
        let (_, bare) = ActorKind::split(actor);
        bare.split('@').next().filter(|name| !name.is_empty()).unwrap_or(bare).to_lowercase()
    };
    actors.into_iter().map(name).collect()
}

/// A request as those see it who decide about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenRequest {
    /// The names of the person who requested it.
    pub requester: BTreeSet<String>,
    /// The names of each person who has approved it.
    pub approvers: Vec<BTreeSet<String>>,
    /// How many people it takes.
    pub people: u16,
    /// When it expires.
    pub expires_at: DateTime<Utc>,
    /// Since when somebody carries it out.
    pub claimed_at: Option<DateTime<Utc>>,
}

/// Why a person cannot approve a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum VoteRefusal {
    /// It has expired.
    #[error("has expired; request it again")]
    Expired,
    /// The person requested it.
    #[error("was requested by you; another person approves it")]
    Requester,
    /// The person has approved it.
    #[error("has your approval already; another person approves it")]
    Repeated,
}

impl OpenRequest {
    /// Returns whether enough people have approved it.
    pub fn is_approved(&self) -> bool {
        self.approvers.len() + 1 >= usize::from(self.people)
    }

    /// Returns whether some process carries it out now.
    pub fn is_claimed(&self, now: DateTime<Utc>) -> bool {
        self.claimed_at.is_some_and(|at| now - at < CLAIM_LIFETIME)
    }

    /// Decides whether a person may approve it.
    ///
    /// # Errors
    ///
    /// [`VoteRefusal`].
    pub fn judge(&self, voter: &BTreeSet<String>, now: DateTime<Utc>) -> Result<(), VoteRefusal> {
        let is_same = |person: &BTreeSet<String>| !person.is_disjoint(voter);
        if now >= self.expires_at {
            return Err(VoteRefusal::Expired);
        }
        if is_same(&self.requester) {
            return Err(VoteRefusal::Requester);
        }
        if self.approvers.iter().any(is_same) {
            return Err(VoteRefusal::Repeated);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, label: Option<(&str, &str)>, people: u16, above: u64) -> Rule {
        let label = label.map(|(label, value)| (label.to_owned(), value.to_owned()));
        Rule { name: name.to_owned(), label, people, above }
    }

    fn share(labels: &[(&str, &str)], executions: u64) -> JobShare {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        JobShare { labels: vec![labels.collect()], executions }
    }

    #[test]
    fn the_strictest_rule_decides_and_only_those_that_concern_the_jobs_apply() {
        let rules = [
            rule("all", None, 2, 100),
            rule("money", Some(("team", "billing")), 3, 10),
            rule("other", Some(("team", "shop")), 5, 1),
        ];
        let billing = [share(&[("team", "billing")], 11), share(&[], 9)];
        let people = |kind: ProposalKind, jobs: &[JobShare], more| {
            demand(&rules, kind.counts(), jobs, more)
                .map(|needs| (needs.people, needs.rules.join(" ")))
        };
        let of = |people, names: &str| Some((people, names.to_owned()));
        assert_eq!(people(ProposalKind::BulkRequeue, &billing, false), of(3, "money"));
        assert_eq!(people(ProposalKind::Backfill, &billing[1..], false), None);
        assert_eq!(people(ProposalKind::BulkDiscard, &billing[1..], false), of(2, "all"));
        assert_eq!(people(ProposalKind::Edit, &[share(&[], 1)], false), of(2, "all"));
        assert_eq!(people(ProposalKind::BulkRequeue, &[share(&[], 100)], false), None);
        assert_eq!(people(ProposalKind::BulkRequeue, &[share(&[], 101)], false), of(2, "all"));
        assert_eq!(people(ProposalKind::BulkRequeue, &[], true), of(5, "all money other"));
        assert_eq!(demand(&[], false, &billing, true), None);
    }

    #[test]
    fn one_name_is_one_person_by_whatever_way_it_comes() {
        let names = |actors: &[&str]| person_names(actors.iter().copied());
        for actor in [
            "account ann",
            "token ann",
            "proxy ann@example.com",
            "oidc ann@example.com",
            "ann@host1",
            "Ann@host2",
        ] {
            assert_eq!(names(&[actor]), ["ann".to_owned()].into(), "{actor}");
        }
        assert!(names(&["token deploy", "account ann"]).contains("ann"));
        assert_eq!(names(&["local"]), ["local".to_owned()].into());
        assert_eq!(names(&["@host"]), ["@host".to_owned()].into());
    }

    #[test]
    fn a_person_approves_once_in_time_and_never_an_own_request() {
        let names = |name: &str| BTreeSet::from([name.to_owned()]);
        let at = DateTime::UNIX_EPOCH;
        let mut request = OpenRequest {
            requester: names("ann"),
            approvers: Vec::new(),
            people: 3,
            expires_at: at + REQUEST_LIFETIME,
            claimed_at: None,
        };
        assert_eq!(request.judge(&names("ann"), at), Err(VoteRefusal::Requester));
        assert_eq!(request.judge(&names("bob"), at), Ok(()));
        assert_eq!(request.judge(&names("bob"), request.expires_at), Err(VoteRefusal::Expired));
        request.approvers.push(names("bob"));
        assert_eq!(request.judge(&names("bob"), at), Err(VoteRefusal::Repeated));
        assert!(!request.is_approved());
        request.approvers.push(names("eve"));
        assert!(request.is_approved());
        request.claimed_at = Some(at);
        assert!(request.is_claimed(at) && !request.is_claimed(at + CLAIM_LIFETIME));
    }
}
