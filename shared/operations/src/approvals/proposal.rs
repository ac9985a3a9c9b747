//! An action as it will be carried out, with what the person had seen.
//!
//! Another version may write further fields. What this one does not know could limit what was approved, so it reads no such action.

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sexton_model::access::Role;
use sexton_model::approval::ProposalKind;
use uuid::Uuid;

use crate::error::{Conflict, OperationError};

/// The most changed places of an edit that its request lists.
pub const MAX_LISTED_CHANGES: usize = 100;

/// An action that may need approval.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Proposal {
    /// Other params or another pool for a failed execution.
    Edit(EditProposal),
    /// A failed execution is given up.
    Discard(DiscardProposal),
    /// Failed executions run again.
    BulkRequeue(BulkProposal),
    /// Failed executions are given up.
    BulkDiscard(BulkProposal),
    /// Executions that wait or run are cancelled.
    BulkCancel(BulkProposal),
    /// Past firings run.
    Backfill(BackfillProposal),
}

/// An edit.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EditProposal {
    /// The execution.
    pub execution: Uuid,
    /// Its job's name.
    pub job: String,
    /// The attempt number that the person had seen.
    pub attempt: i32,
    /// SHA-256 of the params that the person had seen.
    pub seen: String,
    /// The new params.
    pub params: Value,
    /// The first [`MAX_LISTED_CHANGES`] changed places, without the values.
    pub changes: Vec<String>,
    /// How many places change.
    pub change_count: usize,
    /// The new pool; `None`: unchanged.
    pub pool: Option<String>,
    /// Whether it is requeued.
    pub requeue: bool,
    /// Whether its job's verify task runs before that.
    pub verify: bool,
}

/// A discard.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiscardProposal {
    /// The execution.
    pub execution: Uuid,
    /// Its job's name.
    pub job: String,
    /// The attempt number that the person had seen.
    pub attempt: i32,
}

/// A bulk.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BulkProposal {
    /// Which executions, as a filter of failures or, to cancel, of executions; `None`: `ids`.
    pub filter: Option<Value>,
    /// Executions at their attempt numbers.
    pub ids: Vec<(Uuid, i32)>,
    /// When the person looked: what fails later is not touched.
    pub previewed_at: DateTime<Utc>,
    /// How many there were then.
    pub count: u64,
    /// Whether there were more than a preview reads.
    pub has_more: bool,
    /// How many of each job, the largest first.
    pub jobs: Vec<(String, u64)>,
    /// How many per time.
    pub rate: Option<String>,
    /// How many first.
    pub canary: Option<u32>,
    /// The pool; `None`: each its own.
    pub pool: Option<String>,
    /// Who verifies: `task`, `command` or `none`.
    pub verify: String,
}

/// A backfill.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackfillProposal {
    /// The job's name.
    pub job: String,
    /// Its id.
    pub job_id: Uuid,
    /// The revision that the person had seen.
    pub revision: i32,
    /// The first instant.
    pub since: DateTime<Utc>,
    /// The instant behind the last one.
    pub until: DateTime<Utc>,
    /// How many become due per time.
    pub rate: Option<String>,
    /// Whether the executions overlap, against the job's policy.
    pub allow_overlap: bool,
    /// How many firings had no execution.
    pub count: u64,
}

impl Proposal {
    /// Returns the kind.
    pub const fn kind(&self) -> ProposalKind {
        match self {
            Self::Edit(_) => ProposalKind::Edit,
            Self::Discard(_) => ProposalKind::Discard,
            Self::BulkRequeue(_) => ProposalKind::BulkRequeue,
            Self::BulkDiscard(_) => ProposalKind::BulkDiscard,
            Self::BulkCancel(_) => ProposalKind::BulkCancel,
            Self::Backfill(_) => ProposalKind::Backfill,
        }
    }

    /// Returns whether it waits only above a rule's number of executions. A requeue into another pool changes each execution, as an edit does.
    pub const fn counts(&self) -> bool {
        match self {
            Self::BulkRequeue(bulk) => bulk.pool.is_none(),
            other => other.kind().counts(),
        }
    }

    /// Returns the names of the jobs that it concerns, each with how many executions.
    pub fn jobs(&self) -> Vec<(String, u64)> {
        match self {
            Self::Edit(edit) => vec![(edit.job.clone(), 1)],
            Self::Discard(discard) => vec![(discard.job.clone(), 1)],
            Self::BulkRequeue(bulk) | Self::BulkDiscard(bulk) | Self::BulkCancel(bulk) => {
                bulk.jobs.clone()
            }
            Self::Backfill(backfill) => vec![(backfill.job.clone(), backfill.count)],
        }
    }

    /// Returns whether it concerns executions that nobody has counted.
    pub const fn has_more(&self) -> bool {
        match self {
            Self::BulkRequeue(bulk) | Self::BulkDiscard(bulk) | Self::BulkCancel(bulk) => {
                bulk.has_more
            }
            Self::Edit(_) | Self::Discard(_) | Self::Backfill(_) => false,
        }
    }
}

impl BulkProposal {
    /// Reads the filter as that of failures or, to cancel, of executions.
    pub(crate) fn read_filter<F: DeserializeOwned>(&self) -> Result<Option<F>, OperationError> {
        let Some(filter) = &self.filter else { return Ok(None) };
        // The reason may quote a condition, which can be a secret.
        let read = serde_json::from_value(filter.clone());
        read.map(Some).map_err(|_| made_by_another("filter"))
    }
}

/// Refuses a part of a request that this version does not know: what runs must be what was approved.
pub(crate) fn made_by_another(part: &str) -> OperationError {
    let text = format!(
        "it was made by another version of Sexton, and its {part} cannot be read; request it again"
    );
    Conflict::Other(text).into()
}

/// Returns the role of those who may request it, and so approve it.
pub fn role(kind: &str) -> Role {
    if kind == ProposalKind::Edit.as_str() { Role::Editor } else { Role::Operator }
}
