//! Approvals: actions that wait for further people.
//!
//! A request holds the whole action. Each approval is a row; that a request is approved follows from their number. Then a process claims it, and
//! **the transaction that carries the action out also ends the request** (`crate::approved`), by a statement that counts the approvals: so
//! the action is done once or not at all, and never with fewer people, whatever crashes. A request that its process has left is claimed by another
//! one after two minutes.

mod carry_out;
mod requests;
mod rules;
mod votes;

pub use carry_out::{ClaimedRequest, claim, end_backfilled, fail, release};
pub use requests::{
    Approval, ApprovalRequest, NewRequest, RequestCreation, WaitingRequests, count_waiting, create,
    find, list, list_creators, list_job_labels,
};
pub use rules::{ApprovalRule, NewRule, RuleChange, delete_rule, list_rules, set_rule};
pub use votes::{VoteOutcome, approve, reject};

pub use crate::approved::Claim;
