//! Builds a worker inside another program.

use std::collections::BTreeMap;
use std::fmt;
use std::process::ExitCode;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;
use sexton_client::Job;
use sexton_model::job::check_task_type;
use sexton_model::quoting::escaped;
use sexton_service::arguments::{self, EXIT_USAGE};
use sexton_service::settings::{
    Program, WorkerSettings, process_environment, unknown_setting_reason,
};

use crate::guard::run_guard_if_requested;
use crate::handler::{
    AnyHandler, Handler, HandlerExecutor, HandlerHost, HandlerOptions, ParamsSchema,
};
use crate::program;
use crate::tasks::Task;

/// A worker with [handlers](crate::handler) written in Rust; otherwise it is the program `worker`.
#[derive(Debug)]
#[non_exhaustive]
pub struct Worker;

impl Worker {
    /// Returns a builder with the environment's settings and, as its only task types, those of the catalogue,
    /// if `WORKER_TASKS` names one.
    pub fn builder() -> WorkerBuilder {
        WorkerBuilder::default()
    }
}

/// The configuration of a worker.
///
/// It has the settings of the program `worker`, from the same environment variables; `--help` of the finished
/// program lists them. A value [set](Self::setting) here takes precedence.
#[derive(Debug, Default)]
#[must_use = "a worker does nothing until `run`"]
pub struct WorkerBuilder {
    handlers: Handlers,
    settings: BTreeMap<String, String>,
    custom_arguments: bool,
}

impl WorkerBuilder {
    /// Runs jobs of the task type `task_type` with `handler`.
    ///
    /// The name has 1 to 100 characters of `A-Z a-z 0-9 . _ -`. [`Self::run`] refuses any other name, a name
    /// that was given before, and one that is also in the catalogue.
    pub fn handler<P, H>(self, task_type: impl Into<String>, handler: H) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        H: Handler<P>,
    {
        self.handler_with(task_type, HandlerOptions::default(), handler)
    }

    /// Adds a [`Self::handler`] with a longest run, another grace or retry settings.
    pub fn handler_with<P, H>(
        mut self,
        task_type: impl Into<String>,
        options: HandlerOptions,
        handler: H,
    ) -> Self
    where
        P: DeserializeOwned + Send + 'static,
        H: Handler<P>,
    {
        self.handlers.all.push((task_type.into(), options, AnyHandler::new(handler)));
        self
    }

    /// Runs jobs of the task type [`Job::TASK`] with `handler`, which takes the type that producers enqueue.
    ///
    /// So a producer and this program share one type, by the crate `sexton-client`: the names, the params, and the
    /// schema, if [`Job::PARAMS_SCHEMA`] has one, as if it were [set](Self::params_schema) here.
    ///
    /// ```no_run
    /// use serde::{Deserialize, Serialize};
    /// use sexton_worker::{Ctx, HandlerError, Job, Worker};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Charge {
    ///     order: i64,
    ///     cents: i64,
    /// }
    ///
    /// impl Job for Charge {
    ///     const NAME: &'static str = "billing.charge";
    ///     const TASK: &'static str = "charge";
    /// }
    ///
    /// async fn charge(ctx: Ctx, charge: Charge) -> Result<(), HandlerError> {
    ///     ctx.log(format_args!("{} cents for order {}", charge.cents, charge.order));
    ///     Ok(())
    /// }
    ///
    /// fn main() -> std::process::ExitCode {
    ///     Worker::builder().job(charge).run()
    /// }
    /// ```
    ///
    /// The handler runs every job of the task type, whatever its name: [`Ctx::job`](crate::Ctx::job) says which. Params
    /// that are not those of the type fail the attempt, as with every [handler](Self::handler).
    pub fn job<J, H>(self, handler: H) -> Self
    where
        J: Job + Send + 'static,
        H: Handler<J>,
    {
        self.job_with(HandlerOptions::default(), handler)
    }

    /// Adds a [`Self::job`] with a longest run, another grace or retry settings.
    pub fn job_with<J, H>(self, options: HandlerOptions, handler: H) -> Self
    where
        J: Job + Send + 'static,
        H: Handler<J>,
    {
        let builder = self.handler_with(J::TASK, options, handler);
        match J::PARAMS_SCHEMA {
            Some(schema) => builder.params_schema(J::TASK, schema),
            None => builder,
        }
    }

    /// Sets the schema of the params of the handler `task_type`: a JSON Schema (draft 2020-12 unless its
    /// `$schema` names an older one) of at most 64 KiB, without references outside itself; a text or a
    /// [`Value`].
    ///
    /// The worker publishes it like the `params_schema` of a catalogue, so the console rejects other params
    /// when a job is edited, triggered or applied, before anything runs. The handler still receives the params
    /// of every job, valid or not. [`Self::run`] refuses an invalid schema, with the place of each problem, a
    /// schema for a task type without a handler here, and a second one for the same type.
    pub fn params_schema(
        mut self,
        task_type: impl Into<String>,
        schema: impl Into<ParamsSchema>,
    ) -> Self {
        self.handlers.schemas.push((task_type.into(), schema.into()));
        self
    }

    /// Serves this pool with `slots` slots. Calls add up, and replace the pools of the environment.
    ///
    /// Workers of one pool should offer the same task types, so a program with handlers usually has its own
    /// pool.
    pub fn pool(mut self, name: &str, slots: u32) -> Self {
        let pools = self.settings.entry("WORKER_POOLS".to_owned()).or_default();
        let comma = if pools.is_empty() { "" } else { "," };
        *pools = format!("{pools}{comma}{name}:{slots}");
        self.setting("WORKER_SLOTS", "")
    }

    /// Sets a setting in place of the environment variable of this name: `("LEASE_MS", "60000")`. The same
    /// checks apply.
    pub fn setting(mut self, variable: &str, value: impl Into<String>) -> Self {
        self.settings.insert(variable.to_owned(), value.into());
        self
    }

    /// Leaves the command line to the program. By default [`Self::run`] answers `--help` and `--version` and
    /// refuses all other arguments.
    ///
    /// The worker starts its own program again, with the first argument `guard`, for each command of the
    /// catalogue. So a program that reads its arguments before [`Self::run`], or takes long until then, must
    /// call [`run_guard_if_requested`] first in `main`.
    pub fn custom_arguments(mut self) -> Self {
        self.custom_arguments = true;
        self
    }

    /// Runs the worker; return its result from `main`.
    ///
    /// Reads the settings, waits for its servers without a limit, answers health checks, and takes tickets
    /// until SIGTERM or SIGINT; then tasks may end within `SHUTDOWN_GRACE_MS`. The exit status is 0 after such
    /// a stop, 2 if settings, handlers or arguments are invalid (all problems at once, on standard error), 1
    /// for any other error.
    ///
    /// It starts its own threads, so call it outside of any runtime: from a plain `fn main`, not under
    /// `#[tokio::main]`, where it returns an error, too.
    pub fn run(self) -> ExitCode {
        // A guard must start fast and stay small.
        run_guard_if_requested();
        let arguments =
            std::env::args_os().skip(if self.custom_arguments { usize::MAX } else { 1 });
        if let Some(status) = arguments::handle(Program::Worker, arguments) {
            return status;
        }
        let settings = match self.checked() {
            Ok(settings) => settings,
            Err(problems) => {
                eprintln!("{problems}");
                return ExitCode::from(EXIT_USAGE);
            }
        };
        program::main(&settings, self.handlers).unwrap_or_else(|error| {
            eprintln!("worker: {error:#}");
            ExitCode::FAILURE
        })
    }

    /// Returns the settings, if they and the handlers are valid.
    fn checked(&self) -> Result<WorkerSettings, String> {
        let is_set = |(name, _): &(String, String)| self.settings.contains_key(name);
        let others = process_environment().filter(|variable| !is_set(variable));
        let set = self.settings.iter().map(|(name, value)| (name.clone(), value.clone()));
        let settings = WorkerSettings::from_env(others.chain(set));
        let mut problems = self.handlers.problems();
        problems.extend(self.settings.keys().filter_map(|name| {
            // Names that look like settings are already among the environment's problems.
            let reason = unknown_setting_reason(Program::Worker, name)?;
            let is_reported = settings.as_ref().is_err_and(|errors| {
                errors.problems().iter().any(|problem| problem.name() == name)
            });
            (!is_reported).then(|| format!("the setting `{}`: {reason}", escaped(name)))
        }));
        if tokio::runtime::Handle::try_current().is_ok() {
            let message = "`run` starts a runtime of its own and cannot be called within another: call it \
                        from a plain `fn main`, without #[tokio::main]";
            problems.push(message.to_owned());
        }
        let message = if problems.is_empty() {
            return settings.map_err(|errors| errors.to_string());
        } else {
            format!("{} in the program:\n  {}", count(problems.len()), problems.join("\n  "))
        };
        Err(match settings {
            Ok(_) => message,
            Err(errors) => format!("{errors}\n{message}"),
        })
    }
}

fn count(problems: usize) -> String {
    if problems == 1 { "1 problem".to_owned() } else { format!("{problems} problems") }
}

/// The handlers of a program, in the order of their addition.
#[derive(Default)]
pub(crate) struct Handlers {
    all: Vec<(String, HandlerOptions, AnyHandler)>,
    /// The schemas of the params of some of them, by task type.
    schemas: Vec<(String, ParamsSchema)>,
}

impl Handlers {
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the problems of their names and options.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (nth, (name, options, _)) in self.all.iter().enumerate() {
            let shown = escaped(name);
            let wrong = options.problems().into_iter();
            problems.extend(wrong.map(|problem| format!("the handler `{shown}`: {problem}")));
            if check_task_type(name).is_err() {
                let allowed = "a task type's name is 1 to 100 of A-Z a-z 0-9 . _ -";
                problems.push(format!("the handler `{shown}`: {allowed}"));
            } else if self.all[..nth].iter().any(|(earlier, ..)| earlier == name) {
                problems.push(format!("the handler `{shown}` is given twice"));
            }
        }
        problems.extend(self.schema_problems());
        problems
    }

    /// Returns the problems of their schemas.
    fn schema_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        for (nth, (name, schema)) in self.schemas.iter().enumerate() {
            let mut wrong = |problem: &str| {
                problems.push(format!("the schema of `{}` {problem}", escaped(name)));
            };
            if !self.all.iter().any(|(handler, ..)| handler == name) {
                wrong("is of no handler of this program");
            } else if self.schemas[..nth].iter().any(|(earlier, _)| earlier == name) {
                wrong("is given twice");
            }
            if let Err(errors) = schema.read() {
                for error in errors {
                    wrong(&error);
                }
            }
        }
        problems
    }

    /// Converts them into task types.
    pub(crate) fn into_tasks(
        self,
        host: &Arc<HandlerHost>,
    ) -> impl Iterator<Item = (String, Task)> {
        // Invalid schemas were refused before.
        let mut schemas: BTreeMap<String, Value> = self
            .schemas
            .into_iter()
            .filter_map(|(name, schema)| Some((name, schema.read().ok()?)))
            .collect();
        self.all.into_iter().map(move |(name, options, handler)| {
            let executor = HandlerExecutor::new(Arc::clone(host), handler, options.grace);
            let executor = Arc::new(executor);
            let params_schema = schemas.remove(&name);
            (name, Task { executor, timeout: options.timeout, retry: options.retry, params_schema })
        })
    }
}

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all.iter().map(|(name, ..)| name)).finish()
    }
}

#[cfg(test)]
mod tests;
