//! Grants one slot of each pool the permit to try whether the database takes opens again.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sexton_model::pool::PoolName;
use tokio::sync::watch;

use super::State;

/// The pools of which a slot holds a permit.
#[derive(Clone, Debug, Default)]
pub(super) struct Trials(Arc<Mutex<BTreeSet<PoolName>>>);

impl Trials {
    fn pools(&self) -> MutexGuard<'_, BTreeSet<PoolName>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn permit(
        &self,
        pool: &PoolName,
        state: &watch::Sender<State>,
    ) -> Option<TrialPermit> {
        if !self.pools().insert(pool.clone()) {
            return None;
        }
        let (trials, state) = (self.clone(), state.clone());
        Some(TrialPermit { trials, pool: pool.clone(), state })
    }
}

/// A slot's right to consume for its pool, until it is dropped.
#[derive(Debug)]
pub(crate) struct TrialPermit {
    trials: Trials,
    pool: PoolName,
    state: watch::Sender<State>,
}

impl Drop for TrialPermit {
    fn drop(&mut self) {
        self.trials.pools().remove(&self.pool);
        // Another slot of the pool may now take the permit.
        self.state.send_modify(|_| {});
    }
}
