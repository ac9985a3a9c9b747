//! Makes the database's jobs match the files: all of them or, on any error, none.

use sexton_model::id::JobId;
use sexton_service::fault;
use sexton_store::Store;
use sexton_store::jobs::{self, Applied, ApplyError};
use uuid::Uuid;

use super::files::JobsFiles;
use crate::actor::Actor;
use crate::error::{InvalidRequest, OperationError};

/// The options of an apply.
#[derive(Clone, Copy, Debug, Default)]
pub struct ApplyOptions {
    /// Only report the changes.
    pub dry_run: bool,
    /// Pause active jobs that are not in the files.
    pub prune: bool,
}

/// Applies files in one transaction, with its record in the audit.
///
/// # Errors
///
/// [`InvalidRequest::JobsFile`] with the places of jobs that would never fire or may not have their lock key; nothing was
/// applied.
pub async fn apply(
    store: &Store,
    files: &JobsFiles,
    options: ApplyOptions,
    actor: &Actor,
) -> Result<Applied, OperationError> {
    let fresh_id = || JobId::new(Uuid::now_v7());
    let ApplyOptions { dry_run, prune } = options;
    let request = jobs::Apply { specs: &files.specs, actor: &actor.name, dry_run, prune };
    let applied =
        jobs::apply(store, request, fresh_id, None).await.map_err(|error| match error {
            ApplyError::Problems(problems) => {
                let located = problems.into_iter().map(|problem| files.locate(problem));
                let mut located: Vec<_> = located.collect();
                located.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
                InvalidRequest::JobsFile(located).into()
            }
            ApplyError::TooMany(_) => {
                InvalidRequest::Other(format!("{error}; apply them in several calls")).into()
            }
            ApplyError::MissingMembers(_) | ApplyError::Templates(_) => {
                InvalidRequest::Other(error.to_string()).into()
            }
            ApplyError::Locked => OperationError::Failed(error.to_string()),
            ApplyError::Store(error) => error.into(),
        })?;
    let changed = [applied.created.len(), applied.changed.len(), applied.paused.len()];
    if !dry_run && changed.iter().sum::<usize>() > 0 {
        fault::point("console.applied");
    }
    Ok(applied)
}
