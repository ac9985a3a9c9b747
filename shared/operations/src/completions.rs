//! Candidates for the completion of a command line, from the database.

use sexton_store::Store;
use sexton_store::completions::{self, Candidate};
use uuid::Uuid;

use crate::error::OperationError;
use crate::execution_ids::uuid_range_of;

/// Maximum number of candidates: more help nobody to choose.
pub const MAX_CANDIDATES: i64 = 100;

/// What a word of the command line names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CandidateKind {
    /// A job, by name.
    Job,
    /// An execution, by id.
    Execution,
    /// A failed execution, by id.
    FailedExecution,
    /// A discarded execution, by id.
    DiscardedExecution,
    /// A failure group, by fingerprint.
    Group,
    /// A bulk, by number.
    Bulk,
    /// An unknown message, by id.
    UnknownMessage,
    /// A pool, by name.
    Pool,
    /// A worker, by name.
    Worker,
    /// A lock row, by name.
    LockRow,
}

/// Returns the candidates that begin with `prefix`, those that people want first; at most [`MAX_CANDIDATES`].
///
/// # Errors
///
/// Those of the database.
pub async fn candidates(
    store: &Store,
    kind: CandidateKind,
    prefix: &str,
) -> Result<Vec<Candidate>, OperationError> {
    let limit = MAX_CANDIDATES;
    let ids = || uuid_range_of(prefix);
    let found = match kind {
        CandidateKind::Job => completions::jobs(store, prefix, limit).await?,
        CandidateKind::Group => completions::groups(store, prefix, limit).await?,
        CandidateKind::Bulk => completions::bulks(store, prefix, limit).await?,
        CandidateKind::UnknownMessage => {
            completions::unknown_messages(store, prefix, limit).await?
        }
        CandidateKind::Pool => completions::pools(store, prefix, limit).await?,
        CandidateKind::LockRow => completions::lock_rows(store, prefix, limit).await?,
        CandidateKind::Worker => completions::workers(store, prefix, limit).await?,
        CandidateKind::Execution => match ids() {
            Some(range) => completions::executions(store, range, limit).await?,
            None => Vec::new(),
        },
        CandidateKind::FailedExecution => failures(store, false, ids()).await?,
        CandidateKind::DiscardedExecution => failures(store, true, ids()).await?,
    };
    // A shell replaces the word with the candidate, so it must begin as the word does, dashes included.
    Ok(found.into_iter().filter(|candidate| candidate.value.starts_with(prefix)).collect())
}

async fn failures(
    store: &Store,
    discarded: bool,
    ids: Option<(Uuid, Uuid)>,
) -> Result<Vec<Candidate>, OperationError> {
    match ids {
        Some(range) => Ok(completions::failures(store, discarded, range, MAX_CANDIDATES).await?),
        None => Ok(Vec::new()),
    }
}
