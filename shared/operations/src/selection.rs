//! The selection of a request on many executions: ids, or a filter.

use chrono::{DateTime, Utc};
use sexton_model::execution_filter::ExecutionFilter;
use sexton_model::failures::FailureFilter;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_model::state::State;
use sexton_store::{Store, executions};

use crate::error::{InvalidRequest, OperationError};
use crate::execution_ids;
use crate::filter::{FailureScope, FilterRequest};

/// Ids, or a filter, in texts.
#[derive(Clone, Copy, Debug)]
pub struct SelectionRequest<'a> {
    /// Ids, or unique beginnings of them.
    pub ids: &'a [String],
    /// The filter.
    pub filter: &'a FilterRequest,
    /// Whether to select everything outside muted groups; required if no id or condition is given.
    pub all: bool,
}

/// What a [`SelectionRequest`] selects.
#[derive(Debug)]
pub enum Selection<F> {
    /// These, each once.
    Ids(Vec<ExecutionId>),
    /// All that match.
    Filter(Box<F>),
}

impl SelectionRequest<'_> {
    /// Parses the request for failed or for discarded executions; nothing is done before all of it is valid.
    ///
    /// # Errors
    ///
    /// [`InvalidRequest`] when nothing is selected, or ids and a filter at once; [`crate::error::NotFound`] for an
    /// id, a job or a group that does not exist.
    pub async fn read_failures(
        self,
        store: &Store,
        scope: FailureScope,
        now: DateTime<Utc>,
    ) -> Result<Selection<FailureFilter>, OperationError> {
        if let Some(ids) = self.read_ids(store, scope.muted).await? {
            return Ok(Selection::Ids(ids));
        }
        let filter = self.filter.read_failures(store, scope, now).await?;
        if filter.matches_everything() && !self.all {
            return Err(InvalidRequest::NothingSelected.into());
        }
        Ok(Selection::Filter(Box::new(filter)))
    }

    /// Parses the request for executions in these states (empty: in any).
    ///
    /// # Errors
    ///
    /// As [`Self::read_failures`].
    pub async fn read_executions(
        self,
        store: &Store,
        states: &[State],
        now: DateTime<Utc>,
    ) -> Result<Selection<ExecutionFilter>, OperationError> {
        if let Some(ids) = self.read_ids(store, !states.is_empty()).await? {
            return Ok(Selection::Ids(ids));
        }
        let filter = self.filter.read_executions(store, states, now).await?;
        if filter.matches_everything() && !self.all {
            return Err(InvalidRequest::NothingSelected.into());
        }
        Ok(Selection::Filter(Box::new(filter)))
    }

    /// Resolves the ids; `None`: none is given. `has_more`: whether there is a condition beside the filter.
    async fn read_ids(
        &self,
        store: &Store,
        has_more: bool,
    ) -> Result<Option<Vec<ExecutionId>>, OperationError> {
        if self.ids.is_empty() {
            return Ok(None);
        }
        if self.all || has_more || !self.filter.is_empty() {
            return Err(InvalidRequest::IdsAndFilter.into());
        }
        Ok(Some(self.resolve(store).await?))
    }

    /// Resolves every id; repeated ones count once.
    async fn resolve(&self, store: &Store) -> Result<Vec<ExecutionId>, OperationError> {
        let mut ids = Vec::with_capacity(self.ids.len());
        for text in self.ids {
            let id = ExecutionId::new(execution_ids::resolve(store, text).await?);
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Ok(ids)
    }
}

/// Returns the current attempt numbers of these executions, without those that do not exist.
///
/// # Errors
///
/// Those of the database.
pub(crate) async fn current_attempts(
    store: &Store,
    ids: &[ExecutionId],
) -> Result<Vec<(ExecutionId, AttemptNumber)>, OperationError> {
    let mut attempts = Vec::with_capacity(ids.len());
    for id in ids {
        let row = executions::find(store, id.get()).await?;
        attempts.extend(row.and_then(|row| Some((*id, AttemptNumber::new(row.attempt)?))));
    }
    Ok(attempts)
}
