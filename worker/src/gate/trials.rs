//! Which slot of each pool tries whether the database takes opens again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sexton_model::pool::PoolName;
use tokio::sync::watch;

use super::State;

/// The pools of which a slot has a permit, and whether that slot holds a ticket.
#[derive(Clone, Debug, Default)]
pub(super) struct Trials(Arc<Mutex<BTreeMap<PoolName, bool>>>);

impl Trials {
    fn pools(&self) -> MutexGuard<'_, BTreeMap<PoolName, bool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn permit(
        &self,
        pool: &PoolName,
        state: &watch::Sender<State>,
    ) -> Option<TrialPermit> {
        let mut pools = self.pools();
        if pools.contains_key(pool) {
            return None;
        }
        pools.insert(pool.clone(), false);
        drop(pools);
        let (trials, state) = (self.clone(), state.clone());
        Some(TrialPermit { trials, pool: pool.clone(), state })
    }

    pub(super) fn has_ticket(&self) -> bool {
        self.pools().values().any(|ticket| *ticket)
    }
}

/// A slot's right to try opens for its pool, until it is dropped.
#[derive(Debug)]
pub(crate) struct TrialPermit {
    trials: Trials,
    pool: PoolName,
    state: watch::Sender<State>,
}

impl TrialPermit {
    /// The slot has a ticket to try with.
    pub(crate) fn has_ticket(&self) {
        self.trials.pools().insert(self.pool.clone(), true);
    }
}

impl Drop for TrialPermit {
    fn drop(&mut self) {
        self.trials.pools().remove(&self.pool);
        // Another slot of the pool may take it.
        self.state.send_modify(|_| {});
    }
}
