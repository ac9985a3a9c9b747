//! A platform for one test or the demo: the real programs, a database, a namespace.
//!
//! # Guarantees
//!
//! - The programs that run are the binaries `scheduler`, `worker` and `sexton` that cargo has built
//!   beside this one (or those in `TEST_BIN_DIR`), in a minimal environment: no setting of the person
//!   who runs the tests reaches them.
//! - A dropped platform leaves nothing: programs are killed, tasks with them, then database,
//!   namespace and folder are deleted. Also when a test panics.
//! - A test process that is killed with SIGKILL leaves no process and no folder behind; see
//!   `lifeline`. It may leave a database on a server that outlives it; the next run of the tests
//!   drops those that are a day old.
//!
//! # What it does not do
//!
//! It does not build: a single test runs the programs as they were built last (`make test` builds
//! them first). It does not wait for the programs: use [`Program::ready`].

mod binaries;
mod command;
mod environment;
mod lifeline;
mod program;
mod readiness;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sexton_broker::{Namespace, PoolName};
use sexton_store::Store;
use tokio::time::Instant;

pub use command::CommandOutput;
pub use program::Program;

use crate::database::TestDatabase;
use crate::namespace::TestNamespace;
use environment::Environment;
use lifeline::Lifeline;
use program::Watched;

/// The time between two checks of [`Platform::eventually`].
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Programs, a database and a namespace; see the module.
///
/// The fields are dropped in this order: programs, what is left of their tasks, what they wrote to.
#[derive(Debug)]
pub struct Platform {
    watched: Mutex<Vec<Watched>>,
    lifeline: Lifeline,
    database: TestDatabase,
    namespace: TestNamespace,
    catalogue: Option<PathBuf>,
    pools: Mutex<Vec<PoolName>>,
    files: AtomicUsize,
}

impl Platform {
    /// Creates a platform on the servers that all tests of this process share, with a migrated database.
    pub async fn new() -> Result<Self> {
        let servers = sexton_servers::shared().await?;
        Self::on(&servers.database_url, &servers.amqp_url).await
    }

    /// Creates a platform on the given servers (a superuser's URL of any database, a broker's URL),
    /// with a migrated database. The servers must outlive it, or their data are lost with them.
    pub async fn on(database_server: &str, amqp_url: &str) -> Result<Self> {
        let database = TestDatabase::create_on(database_server).await?;
        Self::with(database, TestNamespace::on(amqp_url))
    }

    /// Creates a platform on the given servers whose database is empty, for `sexton migrate`.
    /// Database and namespace are called `name` (lower-case letters), which distinguishes them from
    /// those of tests.
    pub async fn unmigrated_on(database_server: &str, amqp_url: &str, name: &str) -> Result<Self> {
        let run = &uuid::Uuid::new_v4().simple().to_string()[..12];
        let database = format!("sexton_{name}_{run}");
        let database = TestDatabase::create_empty_on(database_server, &database).await?;
        Self::with(database, TestNamespace::named_on(&format!("{name}-{run}"), amqp_url))
    }

    fn with(database: TestDatabase, namespace: TestNamespace) -> Result<Self> {
        Ok(Self {
            watched: Mutex::default(),
            lifeline: Lifeline::create().context("failed to prepare a folder for programs")?,
            database,
            namespace,
            catalogue: None,
            pools: Mutex::default(),
            files: AtomicUsize::new(0),
        })
    }

    /// The platform's own database.
    pub fn database_url(&self) -> &str {
        self.database.url()
    }

    /// The broker.
    pub fn amqp_url(&self) -> &str {
        self.namespace.url()
    }

    /// The platform's own namespace there.
    pub fn namespace(&self) -> &Namespace {
        self.namespace.namespace()
    }

    /// A few connections to the database, for queries.
    pub fn store(&self) -> &Store {
        self.database.store()
    }

    /// A folder that lives as long as the platform: the working directory of its programs and of
    /// the tasks they run.
    pub fn folder(&self) -> PathBuf {
        self.lifeline.run_folder()
    }

    /// Writes the task catalogue of the workers that are started from now on.
    ///
    /// # Panics
    ///
    /// If it cannot be written.
    pub fn catalogue(&mut self, toml: &str) {
        // Unwrap safety: without a temporary folder no test can run.
        let path = self.write("tasks", toml).expect("the catalogue is written");
        self.catalogue = Some(path);
    }

    /// Starts a scheduler called `name`; `env` overrides the minimal environment.
    pub fn start_scheduler(&self, name: &str, env: &[(&str, &str)]) -> Result<Program> {
        self.start("scheduler", name, env)
    }

    /// Starts a worker called `name`; `env` overrides the minimal environment.
    pub fn start_worker(&self, name: &str, env: &[(&str, &str)]) -> Result<Program> {
        self.start("worker", name, env)
    }

    /// Starts `sexton serve` called `name` on a free port, unless `env` names one.
    pub fn start_server(&self, name: &str, env: &[(&str, &str)]) -> Result<Program> {
        self.start("sexton", name, &[&[("SERVE_ADDR", "127.0.0.1:0")], env].concat())
    }

    /// Starts the worker with handlers, `tests/src/bin/handlers.rs`, as `name`; as [`Self::start_worker`].
    pub fn start_handlers(&self, name: &str, env: &[(&str, &str)]) -> Result<Program> {
        self.start("handlers", name, env)
    }

    /// Starts a process that holds locks, `tests/src/bin/lock-holder.rs`, as `name`, on the platform's database unless `env`
    /// names another.
    pub fn start_lock_holder(&self, name: &str, env: &[(&str, &str)]) -> Result<Program> {
        let database = [("DATABASE_URL", self.database_url())];
        self.start("lock-holder", name, &[&database, env].concat())
    }

    /// Starts a service with cron jobs of its own, `tests/src/bin/cron-instance.rs`, as `name`, on the platform's database.
    pub fn start_cron_instance(&self, name: &str, env: &[(&str, &str)]) -> Result<Program> {
        let database = [("DATABASE_URL", self.database_url())];
        self.start("cron-instance", name, &[&database, env].concat())
    }

    /// Starts the worker of `worker/examples/nothing.rs` as `name`; as [`Self::start_worker`].
    pub fn start_nothing(&self, name: &str, env: &[(&str, &str)]) -> Result<Program> {
        self.start("examples/nothing", name, env)
    }

    fn start(&self, binary: &str, name: &str, env: &[(&str, &str)]) -> Result<Program> {
        let mut variables = self.environment().of_service(name, &self.lifeline.state_folder());
        if binary != "scheduler"
            && let Some(path) = &self.catalogue
        {
            variables.set("WORKER_TASKS", path);
        }
        variables.extend(env);
        self.remember_pools(env);
        let log = self.lifeline.log_file(&self.fresh(name));
        // The command `sexton` runs on as one of the services.
        let arguments: &[&str] = if binary == "sexton" { &["serve"] } else { &[] };
        let program = Program::start((binary, arguments), name, &variables, &self.folder(), log)?;
        self.watched.lock().unwrap_or_else(PoisonError::into_inner).push(program.watched());
        Ok(program)
    }

    /// Runs `sexton` with these arguments and waits for its end.
    ///
    /// # Panics
    ///
    /// If it cannot be run, or takes longer than a minute.
    pub async fn sexton(&self, args: &[&str]) -> CommandOutput {
        // Unwrap safety: a test whose command cannot be run at all has failed.
        self.try_sexton(args).await.expect("sexton runs")
    }

    /// As [`Self::sexton`]; `env` overrides the minimal environment.
    ///
    /// # Panics
    ///
    /// As [`Self::sexton`].
    pub async fn sexton_with(&self, env: &[(&str, &str)], args: &[&str]) -> CommandOutput {
        let mut variables = self.environment();
        variables.extend(env);
        // Unwrap safety: as above.
        command::run("sexton", args, &variables, &self.folder()).await.expect("sexton runs")
    }

    /// As [`Self::sexton`], but returns errors instead of panicking.
    pub async fn try_sexton(&self, args: &[&str]) -> Result<CommandOutput> {
        command::run("sexton", args, &self.environment(), &self.folder()).await
    }

    /// As [`Self::try_sexton`]; `env` overrides the minimal environment.
    pub async fn try_sexton_with(
        &self,
        env: &[(&str, &str)],
        args: &[&str],
    ) -> Result<CommandOutput> {
        let mut variables = self.environment();
        variables.extend(env);
        command::run("sexton", args, &variables, &self.folder()).await
    }

    /// Runs `sexton --json` with these arguments and reads its answer.
    ///
    /// # Panics
    ///
    /// If it fails or answers anything but JSON.
    pub async fn sexton_json(&self, args: &[&str]) -> serde_json::Value {
        let output = self.sexton(&[&["--json"], args].concat()).await;
        assert!(output.status.success(), "sexton {args:?} failed: {output}");
        match serde_json::from_str(&output.stdout) {
            Ok(answer) => answer,
            Err(error) => panic!("sexton {args:?} does not answer JSON ({error}): {output}"),
        }
    }

    /// Runs a `sexton` command that lists, and returns the rows of its page.
    pub async fn sexton_items(&self, args: &[&str]) -> serde_json::Value {
        self.sexton_json(args).await["items"].take()
    }

    /// Applies a jobs file of this content through `sexton jobs apply`.
    pub async fn apply(&self, jobs_toml: &str) -> Result<()> {
        let path = self.write("jobs", jobs_toml)?;
        self.apply_file(&path).await
    }

    /// Applies the jobs file at `path` through `sexton jobs apply`.
    pub async fn apply_file(&self, path: &Path) -> Result<()> {
        let path = path.to_str().context("the jobs file's path is not UTF-8")?;
        let output = self.try_sexton(&["jobs", "apply", "-f", path]).await?;
        ensure!(output.status.success(), "sexton jobs apply failed: {output}");
        Ok(())
    }

    /// Runs `check` every 50 ms until it returns a value.
    ///
    /// # Panics
    ///
    /// After `deadline`, naming `what` and showing the end of every program's log.
    pub async fn eventually<T>(
        &self,
        what: &str,
        deadline: Duration,
        mut check: impl AsyncFnMut() -> Option<T>,
    ) -> T {
        let end = Instant::now() + deadline;
        loop {
            // The check itself may hang, on a server that a test has frozen.
            match tokio::time::timeout_at(end, check()).await {
                Ok(Some(answer)) => return answer,
                Ok(None) if Instant::now() < end => tokio::time::sleep(POLL_INTERVAL).await,
                _ => panic!("not within {deadline:?}: {what}\n{}", self.log_tails()),
            }
        }
    }

    /// The end of every program's log, under its name.
    pub fn log_tails(&self) -> String {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.iter().map(Watched::log_tail).collect()
    }

    /// The whole log of every program, under its name.
    pub fn logs(&self) -> String {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.iter().map(Watched::log).collect()
    }

    /// Deletes the queues of this pool as well when the platform is dropped.
    pub fn uses_pool(&self, pool: &str) {
        self.remember_pools(&[("WORKER_POOLS", pool)]);
    }

    /// The broker does not list queues, so the names of all pools in use are kept for the deletion.
    fn remember_pools(&self, env: &[(&str, &str)]) {
        let named = env.iter().filter(|(name, _)| *name == "WORKER_POOLS");
        let pools = named.flat_map(|(_, pools)| pools.split(','));
        // A pool may be given with its number of slots.
        let pools = pools.filter_map(|pool| pool.split(':').next());
        let pools = pools.filter_map(|pool| PoolName::new(pool.trim()).ok());
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).extend(pools);
    }

    fn environment(&self) -> Environment {
        Environment::minimal()
            .with("DATABASE_URL", self.database_url())
            .with("AMQP_URL", self.amqp_url())
            .with("SEXTON_NAMESPACE", self.namespace().as_str())
    }

    /// Writes a TOML file of this content, and returns its path.
    pub fn write(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.lifeline.file(&format!("{}.toml", self.fresh(name)));
        std::fs::write(&path, content).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }

    /// An unused file name: a program may be started twice under one name.
    fn fresh(&self, name: &str) -> String {
        format!("{name}-{}", self.files.fetch_add(1, Ordering::Relaxed))
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        for pool in self.pools.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            self.namespace.add_pool(pool);
        }
    }
}
