//! How a bulk acts on its executions, as people and programs write it.

use sexton_model::bulk::{BulkKind, MAX_CANARY_EXECUTIONS};
use sexton_model::pool::PoolName;
use sexton_model::rate::Rate;

use super::request::{BulkAction, Verifier};

/// The options of a bulk, as they are written.
#[derive(Clone, Copy, Debug, Default)]
pub struct BulkOptions<'a> {
    /// Of a requeue: how many first.
    pub canary: Option<u32>,
    /// Of a requeue: the pool; `None`: each its own.
    pub pool: Option<&'a str>,
    /// Also a pool from which no worker consumes.
    pub force_pool: bool,
    /// Of a requeue: without the verify tasks of the jobs.
    pub no_verify: bool,
    /// How many per time.
    pub rate: Option<&'a str>,
}

/// Options that were understood.
#[derive(Clone, Debug)]
pub struct CheckedOptions {
    canary: Option<u32>,
    pool: Option<PoolName>,
    no_verify: bool,
    rate: Option<Rate>,
}

/// What is wrong with an option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionProblem {
    /// The option's name, as the fields of [`BulkOptions`] are called.
    pub option: &'static str,
    /// The problem, to be read behind the name.
    pub problem: String,
}

impl OptionProblem {
    fn new(option: &'static str, problem: impl Into<String>) -> Self {
        Self { option, problem: problem.into() }
    }
}

impl BulkOptions<'_> {
    /// Returns the options that go with a requeue alone, if this is none.
    pub fn misplaced(&self, kind: BulkKind) -> Vec<OptionProblem> {
        let of_requeue = [
            ("canary", self.canary.is_some()),
            ("pool", self.pool.is_some()),
            ("no_verify", self.no_verify),
        ];
        let misplaced =
            of_requeue.into_iter().filter(|(_, is_set)| *is_set && kind != BulkKind::Requeue);
        misplaced
            .map(|(option, _)| OptionProblem::new(option, "goes with a requeue alone"))
            .collect()
    }

    /// Reads the options of a bulk of this kind.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with them.
    pub fn check(&self, kind: BulkKind) -> Result<CheckedOptions, Vec<OptionProblem>> {
        let mut problems = self.misplaced(kind);
        if self.canary.is_some_and(|size| !(1..=MAX_CANARY_EXECUTIONS).contains(&size)) {
            let problem = format!("must be 1 to {MAX_CANARY_EXECUTIONS}");
            problems.push(OptionProblem::new("canary", problem));
        }
        if self.force_pool && self.pool.is_none() {
            problems.push(OptionProblem::new("force_pool", "goes with a pool"));
        }
        let rate = self.rate.map(str::parse::<Rate>).transpose();
        let rate = rate.map_err(|error| OptionProblem::new("rate", error.to_string()));
        let pool = self.pool.map(PoolName::new).transpose();
        let pool = pool.map_err(|error| OptionProblem::new("pool", error.to_string()));
        match (rate, pool) {
            (Ok(rate), Ok(pool)) if problems.is_empty() => {
                let Self { canary, no_verify, .. } = *self;
                Ok(CheckedOptions { canary, pool, no_verify, rate })
            }
            (rate, pool) => {
                problems.extend([rate.err(), pool.err()].into_iter().flatten());
                Err(problems)
            }
        }
    }
}

impl CheckedOptions {
    /// Returns the action of these options.
    pub fn action<'a>(&'a self, kind: BulkKind, reason: Option<&'a str>) -> BulkAction<'a> {
        BulkAction {
            kind,
            canary: self.canary,
            pool: self.pool.as_ref().map(PoolName::as_str),
            verify: if self.no_verify { Verifier::Nobody } else { Verifier::Tasks },
            rate: self.rate,
            reason,
        }
    }

    /// Returns the pool.
    pub const fn pool(&self) -> Option<&PoolName> {
        self.pool.as_ref()
    }
}
