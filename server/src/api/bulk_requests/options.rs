//! How a bulk acts on its executions.

use sexton_model::bulk::{BulkKind, MAX_CANARY_EXECUTIONS};
use sexton_model::pool::PoolName;
use sexton_model::rate::Rate;
use sexton_operations::bulks::request::{BulkAction, Verifier};
use sexton_operations::failed::actions::check_pool;
use sexton_store::Store;

use super::BulkRequest;
use crate::problem::{Problem, ProblemPlace};

/// Options that were understood.
#[derive(Debug)]
pub(super) struct CheckedOptions {
    rate: Option<Rate>,
    pool: Option<PoolName>,
}

/// Reads a rate.
pub(super) fn read_rate(text: Option<&str>) -> Result<Option<Rate>, ProblemPlace> {
    let rate = text.map(str::parse::<Rate>).transpose();
    rate.map_err(|error| ProblemPlace::at("/rate", error.to_string()))
}

impl BulkRequest {
    /// Reads the options.
    pub(super) fn check_options(&self) -> Result<CheckedOptions, Problem> {
        let mut places = Vec::new();
        let rate = read_rate(self.rate.as_deref());
        let pool = self.pool.as_deref().map(PoolName::new).transpose();
        let pool = pool.map_err(|error| ProblemPlace::at("/pool", error.to_string()));
        if self.canary.is_some_and(|size| !(1..=MAX_CANARY_EXECUTIONS).contains(&size)) {
            places
                .push(ProblemPlace::at("/canary", format!("must be 1 to {MAX_CANARY_EXECUTIONS}")));
        }
        let of_requeue = [
            ("/canary", self.canary.is_some()),
            ("/pool", self.pool.is_some()),
            ("/no_verify", self.no_verify),
        ];
        let misplaced =
            of_requeue.iter().filter(|(_, is_set)| *is_set && self.kind != BulkKind::Requeue);
        places.extend(misplaced.map(|(at, _)| ProblemPlace::at(*at, "goes with a requeue alone")));
        if self.force_pool && self.pool.is_none() {
            places.push(ProblemPlace::at("/force_pool", "goes with a pool"));
        }
        match (rate, pool) {
            (Ok(rate), Ok(pool)) if places.is_empty() => Ok(CheckedOptions { rate, pool }),
            (rate, pool) => {
                places.extend([rate.err(), pool.err()].into_iter().flatten());
                Err(Problem::several(places))
            }
        }
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
    pub(super) async fn check_pool(&self, store: &Store) -> Result<(), Problem> {
        let Some(pool) = self.pool.as_deref().and_then(|pool| PoolName::new(pool).ok()) else {
            return Ok(());
        };
        Ok(check_pool(store, &pool, self.force_pool).await?)
    }

    /// The action, of options that [`Self::check_options`] has read.
    pub(super) fn action<'a>(&'a self, checked: &'a CheckedOptions) -> BulkAction<'a> {
        BulkAction {
            kind: self.kind,
            canary: self.canary,
            pool: checked.pool.as_ref().map(PoolName::as_str),
            verify: if self.no_verify { Verifier::Nobody } else { Verifier::Tasks },
            rate: checked.rate,
            reason: self.reason.as_deref(),
        }
    }
}
