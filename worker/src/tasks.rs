//! The task types of a worker, ready to run.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sexton_model::job::RetryOverrides;
use sexton_model::retry::RetryPolicy;
use sexton_store::open::Offer;
use sexton_store::task::TaskDatabase;

use crate::catalogue::{Catalogue, TaskKind};
use crate::executor::Executor;
use crate::executor::command::{CommandExecutor, CommandHost};
use crate::executor::email::{EmailExecutor, EmailHost};
use crate::executor::http::{HttpExecutor, HttpHost};
use crate::executor::noop::NoopExecutor;
use crate::executor::sql::SqlExecutor;

/// A task type that this worker runs.
#[derive(Clone)]
pub struct Task {
    /// The executor.
    pub executor: Arc<dyn Executor>,
    /// The longest run that the deployer allows; a job may set less.
    pub timeout: Option<Duration>,
    /// The deployer's retry settings, for jobs without their own.
    pub retry: RetryOverrides,
    /// The schema of its params, for editors of jobs.
    pub params_schema: Option<Value>,
}

/// State that the tasks of each kind share.
pub struct Hosts {
    /// For commands.
    pub command: Arc<CommandHost>,
    /// For requests.
    pub http: Arc<HttpHost>,
    /// For statements.
    pub database: TaskDatabase,
    /// For mails.
    pub email: Arc<EmailHost>,
}

/// All task types of a worker.
#[derive(Clone, Default)]
pub struct Tasks(BTreeMap<String, Task>);

impl Tasks {
    /// Creates the tasks of a catalogue.
    pub fn from_catalogue(catalogue: &Catalogue, hosts: &Hosts) -> Self {
        let entry = |name: &str| {
            let entry = catalogue.get(name)?;
            let executor: Arc<dyn Executor> = match &entry.kind {
                TaskKind::Command(command) => {
                    Arc::new(CommandExecutor::new(Arc::clone(&hosts.command), command.clone()))
                }
                TaskKind::Email(mail) => {
                    Arc::new(EmailExecutor::new(Arc::clone(&hosts.email), mail.clone()))
                }
                TaskKind::Http(request) => {
                    Arc::new(HttpExecutor::new(Arc::clone(&hosts.http), request.clone()))
                }
                TaskKind::Noop => Arc::new(NoopExecutor),
                TaskKind::Sql(task) => {
                    Arc::new(SqlExecutor::new(hosts.database.clone(), task.clone()))
                }
            };
            let (timeout, retry) = (entry.timeout, entry.retry.clone());
            let params_schema = entry.params_schema.clone();
            Some((name.to_owned(), Task { executor, timeout, retry, params_schema }))
        };
        Self(catalogue.types().filter_map(entry).collect())
    }

    /// Adds a task type.
    pub(crate) fn add(&mut self, task_type: String, task: Task) {
        self.0.insert(task_type, task);
    }

    /// Returns the task that runs `task_type`.
    pub fn get(&self, task_type: &str) -> Option<&Task> {
        self.0.get(task_type)
    }

    /// Returns the types with the schemas of their params, sorted.
    pub fn schemas(&self) -> Vec<(String, Option<Value>)> {
        self.0.iter().map(|(name, task)| (name.clone(), task.params_schema.clone())).collect()
    }

    /// Returns the offers of a worker with these retry defaults, sorted.
    pub fn offers(&self, defaults: &RetryPolicy) -> Vec<Offer> {
        let offer = |(name, task): (&String, &Task)| Offer {
            task_type: name.clone(),
            max_crashes: defaults.with(&task.retry).max_crashes,
        };
        self.0.iter().map(offer).collect()
    }
}
