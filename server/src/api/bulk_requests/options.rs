//! How a bulk acts on its executions.

use sexton_model::bulk::BulkKind;
use sexton_model::rate::Rate;
use sexton_operations::bulks::options::{BulkOptions, CheckedOptions};
use sexton_operations::bulks::request::BulkAction;
use sexton_operations::failed::actions::check_pool;
use sexton_store::Store;

use super::BulkRequest;
use crate::problem::{Problem, ProblemPlace};

/// Reads a rate.
pub(super) fn read_rate(text: Option<&str>) -> Result<Option<Rate>, ProblemPlace> {
    let rate = text.map(str::parse::<Rate>).transpose();
    rate.map_err(|error| ProblemPlace::at("/rate", error.to_string()))
}

impl BulkRequest {
    /// Reads the options.
    pub(super) fn check_options(&self) -> Result<CheckedOptions, Problem> {
        let options = BulkOptions {
            canary: self.canary,
            pool: self.pool.as_deref(),
            force_pool: self.force_pool,
            no_verify: self.no_verify,
            rate: self.rate.as_deref(),
        };
        options.check(self.kind).map_err(|problems| {
            let places = problems
                .into_iter()
                .map(|one| ProblemPlace::at(format!("/{}", one.option), one.problem));
            Problem::several(places.collect())
        })
    }

    /// Refuses a discard of many without a reason.
    pub(super) fn check_reason(&self) -> Result<(), Problem> {
        let reason = self.reason.as_deref().unwrap_or_default();
        if self.kind == BulkKind::Discard && reason.trim().is_empty() {
            let detail = "is missing: those who read it must learn why they were given up";
            return Err(Problem::invalid(ProblemPlace::at("/reason", detail)));
        }
        Ok(())
    }

    /// Refuses a pool without workers.
    pub(super) async fn check_pool(
        &self,
        store: &Store,
        checked: &CheckedOptions,
    ) -> Result<(), Problem> {
        let Some(pool) = checked.pool() else { return Ok(()) };
        Ok(check_pool(store, pool, self.force_pool).await?)
    }

    /// The action, of options that [`Self::check_options`] has read.
    pub(super) fn action<'a>(&'a self, checked: &'a CheckedOptions) -> BulkAction<'a> {
        checked.action(self.kind, self.reason.as_deref())
    }
}
