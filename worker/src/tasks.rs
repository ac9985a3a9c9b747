//! The task types of a worker, ready to run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::catalogue::Catalogue;
use crate::command::{CommandExecutor, CommandHost};
use crate::executor::Executor;

/// A task type that this worker runs.
#[derive(Clone)]
pub struct Task {
    /// What runs it.
    pub executor: Arc<dyn Executor>,
    /// The longest run that the deployer allows; a job may ask for less.
    pub timeout: Option<Duration>,
}

/// All of a worker's task types.
#[derive(Clone, Default)]
pub struct Tasks(BTreeMap<String, Task>);

impl Tasks {
    /// The types of a catalogue.
    pub fn from_catalogue(catalogue: &Catalogue, host: &Arc<CommandHost>) -> Self {
        let entry = |name: &str| {
            let entry = catalogue.get(name)?;
            let executor =
                CommandExecutor::new(Arc::clone(host), entry.command.clone(), entry.grace);
            Some((name.to_owned(), Task { executor: Arc::new(executor), timeout: entry.timeout }))
        };
        Self(catalogue.types().filter_map(entry).collect())
    }

    /// What runs `task_type`.
    pub fn get(&self, task_type: &str) -> Option<&Task> {
        self.0.get(task_type)
    }

    /// The names, sorted.
    pub fn types(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}
