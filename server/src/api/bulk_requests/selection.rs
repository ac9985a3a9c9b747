//! The executions that a bulk acts on.

use std::collections::HashSet;

use sexton_model::bulk::BulkKind;
use sexton_model::id::{AttemptNumber, ExecutionId};
use sexton_operations::bulks::request::{BulkPreview, preview, preview_cancel};
use sexton_operations::filter::{FailureScope, FilterRequest};
use sexton_operations::selection::SelectionRequest;
use sexton_store::{Store, status};
use uuid::Uuid;

use super::{BulkFilter, BulkRequest};
use crate::problem::{Problem, ProblemPlace};

/// Maximum number of executions that are selected by their ids.
const MAX_IDS: usize = 1_000;

impl BulkRequest {
    /// The executions by their ids whose attempt numbers were sent.
    fn seen(&self) -> impl Iterator<Item = (ExecutionId, AttemptNumber)> {
        self.executions.iter().filter_map(|one| {
            Some((ExecutionId::new(one.id), one.attempt.and_then(AttemptNumber::new)?))
        })
    }

    /// Counts what it would act on.
    pub(super) async fn preview(&self, store: &Store) -> Result<BulkPreview, Problem> {
        let places = self.misplaced();
        if !places.is_empty() {
            return Err(Problem::several(places));
        }
        let ids: Vec<String> = self.executions.iter().map(|one| one.id.to_string()).collect();
        let (filter, none) = (self.filter.as_ref(), BulkFilter::default());
        let fields = filter.unwrap_or(&none);
        let texts = fields.request();
        let request = SelectionRequest { ids: &ids, filter: &texts, all: self.all };
        let now = match self.previewed_at {
            Some(at) => at,
            None => status::clock(store).await?,
        };
        let until = self.previewed_at;
        let counted = if self.kind == BulkKind::Cancel {
            match request.read_executions(store, &fields.state, now).await {
                Ok(selection) => preview_cancel(store, &selection, until).await,
                Err(error) => return Err(problem_of_filter(error)),
            }
        } else {
            let scope =
                FailureScope { discarded: self.kind == BulkKind::Restore, muted: fields.muted };
            match request.read_failures(store, scope, now).await {
                Ok(selection) => preview(store, &selection, until).await,
                Err(error) => return Err(problem_of_filter(error)),
            }
        };
        let counted = counted.map_err(|error| Problem::from(error).in_body(&[]))?;
        self.check_known(&counted)?;
        let seen: Vec<_> = self.seen().collect();
        Ok(counted.at_attempts(&seen))
    }

    /// Refuses ids that no execution has.
    fn check_known(&self, counted: &BulkPreview) -> Result<(), Problem> {
        let known: HashSet<Uuid> = counted.seen().iter().map(|(id, _)| id.get()).collect();
        let missing =
            self.executions.iter().enumerate().filter(|(_, one)| !known.contains(&one.id));
        let places: Vec<_> = missing
            .map(|(index, one)| {
                let detail = format!("there is no execution {}", one.id);
                ProblemPlace::at(format!("/executions/{index}/id"), detail)
            })
            .collect();
        if places.is_empty() { Ok(()) } else { Err(Problem::several(places)) }
    }

    /// What does not go with the action.
    fn misplaced(&self) -> Vec<ProblemPlace> {
        let kind = self.kind;
        let mut places = Vec::new();
        if self.executions.len() > MAX_IDS {
            let detail = format!("has more than {MAX_IDS} executions; select them by a filter");
            places.push(ProblemPlace::at("/executions", detail));
        }
        for (index, one) in self.executions.iter().enumerate() {
            if one.attempt.is_some_and(|number| AttemptNumber::new(number).is_none()) {
                let at = format!("/executions/{index}/attempt");
                places.push(ProblemPlace::at(at, "is no number of an attempt"));
            }
        }
        let Some(filter) = &self.filter else { return places };
        let is_failed = matches!(kind, BulkKind::Requeue | BulkKind::Discard);
        if filter.muted && !is_failed {
            let detail = "goes with a requeue or discard: only failures have muted groups";
            places.push(ProblemPlace::at("/filter/muted", detail));
        }
        if kind != BulkKind::Cancel && !filter.state.is_empty() {
            places.push(ProblemPlace::at("/filter/state", "goes with a cancel"));
        } else if filter.state.iter().any(|state| !kind.acts_on(*state)) {
            let detail = "must be pending, retrying or running; discard failed executions instead";
            places.push(ProblemPlace::at("/filter/state", detail));
        }
        places
    }
}

fn problem_of_filter(error: sexton_operations::error::OperationError) -> Problem {
    Problem::from(error).below("/filter", &[("params", "param")])
}

impl BulkFilter {
    fn request(&self) -> FilterRequest {
        FilterRequest {
            job: self.job.clone(),
            job_prefix: self.job_prefix.clone(),
            task_type: self.task_type.clone(),
            pool: self.pool.clone(),
            error_class: self.error_class.clone(),
            text: self.text.clone(),
            group: self.group.clone(),
            since: self.since.clone(),
            until: self.until.clone(),
            worker: self.worker.clone(),
            label: self.label.clone(),
            params: self.param.clone(),
        }
    }
}
