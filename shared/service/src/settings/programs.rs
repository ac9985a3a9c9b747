//! The settings of each program, typed.

mod identity;
mod server;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use regex::Regex;
use sexton_model::foreign::TypePatterns;
use sexton_model::retry::RetryPolicy;

use super::problem::SettingsErrors;
use super::reader::Reader;
use super::rule::{WatcherUrl, distribute_slots};
use super::server_url::ServerUrl;
use super::setting::{AnySetting, Program};
use super::table;
use crate::telemetry::TelemetrySettings;
use crate::traces::TraceSettings;

pub use server::ServerSettings;

fn read_retry_defaults(reader: &mut Reader) -> Option<RetryPolicy> {
    let max_retries = reader.value(&table::CRON_MAX_RETRIES);
    let delay = reader.value(&table::CRON_RETRY_DELAY_MS);
    let multiplier = reader.value(&table::CRON_RETRY_DELAY_MULTIPLIER);
    Some(RetryPolicy {
        max_retries: max_retries?,
        delay: delay?,
        multiplier: multiplier?,
        ..RetryPolicy::default()
    })
}

/// The common settings of scheduler and worker.
#[derive(Clone, Debug)]
pub struct ServiceSettings {
    /// The URL of PostgreSQL.
    pub database_url: ServerUrl,
    /// The same database without a pooler in between; `None`: by `database_url`.
    pub database_direct_url: Option<ServerUrl>,
    /// RabbitMQ.
    pub amqp_url: ServerUrl,
    /// The beginning of every queue's name.
    pub namespace: String,
    /// Connections to PostgreSQL; 3..=500.
    pub db_pool_size: u32,
    /// The process's name; letters, digits, `.`, `_`, `-`; at most 100 bytes.
    pub instance: String,
    /// Defaults for jobs that leave them out.
    pub retry: RetryPolicy,
    /// From the first signal to the hard stop.
    pub shutdown_grace: Duration,
    /// The address of the health server; port 0 takes a free one.
    pub health_addr: SocketAddr,
    /// Logs.
    pub telemetry: TelemetrySettings,
    /// Traces; `None`: off.
    pub traces: Option<TraceSettings>,
}

impl ServiceSettings {
    fn read(reader: &mut Reader) -> Option<Self> {
        // Each is parsed before any `?`, so that one problem does not hide the next.
        let database_url = reader.value(&table::DATABASE_URL);
        let database_direct_url = reader.value_if_set(&table::DATABASE_DIRECT_URL);
        let amqp_url = reader.value(&table::AMQP_URL);
        let namespace = reader.value(&table::SEXTON_NAMESPACE);
        let db_pool_size = reader.value(&table::DB_POOL_SIZE);
        let instance = reader.value_or(&table::SEXTON_INSTANCE, |_| host_name());
        let retry = read_retry_defaults(reader);
        let shutdown_grace = reader.value(&table::SHUTDOWN_GRACE_MS);
        let health_addr = reader.value(&table::HEALTH_ADDR);
        let telemetry = read_telemetry(reader);
        let traces = read_traces(reader);
        Some(Self {
            database_url: database_url?,
            database_direct_url,
            amqp_url: amqp_url?,
            namespace: namespace?,
            db_pool_size: db_pool_size?,
            instance: instance?,
            retry: retry?,
            shutdown_grace: shutdown_grace?,
            health_addr: health_addr?,
            telemetry: telemetry?,
            traces,
        })
    }
}

/// The scheduler's settings.
#[derive(Clone, Debug)]
pub struct SchedulerSettings {
    /// The settings in common with the worker.
    pub service: ServiceSettings,
    /// The prefix of the names of the jobs in `cron_jobs`, without its dot.
    pub job_prefix: Option<String>,
    /// `CRON_JOBS` as given; not parsed.
    pub cron_jobs: Option<String>,
    /// How long finished executions are kept; 1..=3650 days.
    pub retention_days: u32,
    /// How long the audit is kept; 30..=36500 days, `None`: for ever.
    pub audit_days: Option<u32>,
    /// How far the database's time may jump before catch-up is held; 1 minute to 31 days.
    pub hold_after: Duration,
    /// Whether each job has metrics of its own.
    pub metrics_per_job: bool,
    /// The outside watcher that is pinged while the platform is well, and the period; `None`: no pings.
    pub dead_man: Option<(WatcherUrl, Duration)>,
    /// The limits above which failed executions open an incident, and the servers that the platform's monitors look at.
    pub doctor: ConsoleSettings,
}

impl SchedulerSettings {
    /// Parses the settings in `variables` (usually [`super::process_environment`]).
    ///
    /// # Errors
    ///
    /// All problems at once.
    pub fn from_env(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, SettingsErrors> {
        let variables: Vec<(String, String)> = variables.into_iter().collect();
        let doctor = ConsoleSettings::from_env(variables.clone());
        let mut reader = Reader::new(Program::Scheduler, variables);
        let service = ServiceSettings::read(&mut reader);
        let job_prefix = reader.value(&table::SEXTON_SERVICE);
        let cron_jobs = reader.value(&table::CRON_JOBS);
        let retention_days = reader.value(&table::RETENTION_DAYS);
        let audit_days = reader.value(&table::AUDIT_DAYS);
        let hold_after = reader.value(&table::CATCH_UP_HOLD_MS);
        let per_job = reader.value(&table::METRICS_PER_JOB);
        let watcher = reader.value_if_set(&table::DEADMAN_URL);
        let period = reader.value(&table::DEADMAN_PERIOD_MS);
        let settings =
            || Some((service?, retention_days?, audit_days?, hold_after?, per_job?, period?));
        // The problems of this program first: they have those in common with the console.
        let (service, retention_days, audit_days, hold_after, metrics_per_job, period) =
            reader.finish(settings())?;
        Ok(Self {
            service,
            job_prefix,
            cron_jobs,
            retention_days,
            audit_days,
            hold_after,
            metrics_per_job,
            dead_man: watcher.map(|url| (url, period)),
            doctor: doctor?,
        })
    }
}

/// Why a number of slots beside those of the pools is refused.
const BOTH_SLOTS: &str = "WORKER_POOLS says how many slots each pool has; leave this one out, or the \
                          numbers there";

/// Why WORKER_SLOTS is refused if WORKER_POOLS names more pools.
const TOO_FEW_SLOTS: &str = "WORKER_POOLS names more pools than these slots can serve; each pool needs at \
                             least one";

/// The worker's settings.
#[derive(Clone, Debug)]
pub struct WorkerSettings {
    /// The settings in common with the scheduler.
    pub service: ServiceSettings,
    /// The folder for the instance's lock file; may not exist yet.
    pub state_dir: PathBuf,
    /// The task catalogue; `None`: only task types compiled in.
    pub tasks: Option<PathBuf>,
    /// At least one, distinct, each `[a-z][a-z0-9-]{0,30}`.
    pub pools: Vec<String>,
    /// Number of tasks at the same time; 1..=1000.
    pub slots: u32,
    /// Number of slots of each of `pools`, in the same order. A pool may have none if there are more pools than
    /// slots.
    pub pool_slots: Vec<u32>,
    /// Number of tickets that one slot receives ahead; 1..=100.
    pub prefetch: u16,
    /// Default for jobs that leave it out; 1 s to 1 h.
    pub lease: Duration,
    /// Types of other programs' tasks that are adopted even if no worker offers them.
    pub foreign_types: TypePatterns,
    /// Text to mask in the output of tasks; matches no empty text.
    pub mask: Option<Regex>,
}

impl WorkerSettings {
    /// Parses the settings in `variables` (usually [`super::process_environment`]).
    ///
    /// # Errors
    ///
    /// All problems at once.
    pub fn from_env(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, SettingsErrors> {
        let mut reader = Reader::new(Program::Worker, variables);
        let service = ServiceSettings::read(&mut reader);
        let state_dir = reader.value_or(&table::SEXTON_STATE_DIR, default_state_dir);
        let tasks = reader.value(&table::WORKER_TASKS);
        let pools = reader.value(&table::WORKER_POOLS);
        let given = pools.as_ref().and_then(|pools| pools.slots.clone());
        let slots = if given.is_some() {
            reader.refuse_if_set(&table::WORKER_SLOTS, BOTH_SLOTS);
            given
        } else {
            let named = pools.as_ref().map_or(1, |pools| pools.names.len());
            let slots = reader.value(&table::WORKER_SLOTS);
            if slots.is_some_and(|slots| (slots as usize) < named) {
                reader.refuse(&table::WORKER_SLOTS, TOO_FEW_SLOTS);
            }
            slots.map(|slots| distribute_slots(slots, named))
        };
        let prefetch = reader.value(&table::WORKER_PREFETCH);
        let lease = reader.value(&table::LEASE_MS);
        let foreign_types = reader.value(&table::WORKER_FOREIGN_TYPES).unwrap_or_default();
        let mask = reader.value(&table::WORKER_MASK);
        let settings = || {
            let pool_slots = slots?;
            Some(Self {
                service: service?,
                state_dir: state_dir?,
                tasks,
                pools: pools?.names,
                slots: pool_slots.iter().sum(),
                pool_slots,
                prefetch: u16::try_from(prefetch?).ok()?,
                lease: lease?,
                foreign_types,
                mask,
            })
        };
        reader.finish(settings())
    }
}

/// The limits above which `sexton status` warns of failed executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedLimits {
    /// More executions than this wait for an operator.
    pub count: u32,
    /// The oldest has waited for longer.
    pub age: Duration,
    /// More executions than this failed within an hour and still wait.
    pub per_hour: u32,
}

/// The settings of `sexton`.
///
/// Its commands need different servers, some none; so a missing URL is a problem only for the commands that need it.
#[derive(Clone, Debug)]
pub struct ConsoleSettings {
    database_url: Option<ServerUrl>,
    /// The same database without a pooler in between; `None`: by `database_url`.
    pub database_direct_url: Option<ServerUrl>,
    amqp_url: Option<ServerUrl>,
    /// The beginning of every queue's name.
    pub namespace: String,
    /// The limits above which failed executions are too many.
    pub failed: FailedLimits,
    /// Logs.
    pub telemetry: TelemetrySettings,
}

impl ConsoleSettings {
    /// Parses the settings in `variables` (usually [`super::process_environment`]).
    ///
    /// # Errors
    ///
    /// All problems at once.
    pub fn from_env(
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, SettingsErrors> {
        let mut reader = Reader::new(Program::Console, variables);
        let database_url = reader.value_if_set(&table::DATABASE_URL);
        let database_direct_url = reader.value_if_set(&table::DATABASE_DIRECT_URL);
        let amqp_url = reader.value_if_set(&table::AMQP_URL);
        let namespace = reader.value(&table::SEXTON_NAMESPACE);
        let count = reader.value(&table::FAILED_WARN_COUNT);
        let age = reader.value(&table::FAILED_WARN_AGE_MS);
        let per_hour = reader.value(&table::FAILED_WARN_PER_HOUR);
        let telemetry = read_telemetry(&mut reader);
        let settings = || {
            Some(Self {
                database_url,
                database_direct_url,
                amqp_url,
                namespace: namespace?,
                failed: FailedLimits { count: count?, age: age?, per_hour: per_hour? },
                telemetry: telemetry?,
            })
        };
        reader.finish(settings())
    }

    /// Returns the URL of PostgreSQL.
    ///
    /// # Errors
    ///
    /// If `DATABASE_URL` is not set.
    pub fn database_url(&self) -> Result<&ServerUrl, SettingsErrors> {
        require_url(self.database_url.as_ref(), &table::DATABASE_URL)
    }

    /// Returns the URL of RabbitMQ.
    ///
    /// # Errors
    ///
    /// If `AMQP_URL` is not set.
    pub fn amqp_url(&self) -> Result<&ServerUrl, SettingsErrors> {
        require_url(self.amqp_url.as_ref(), &table::AMQP_URL)
    }
}

fn require_url<'a>(
    url: Option<&'a ServerUrl>,
    setting: &dyn AnySetting,
) -> Result<&'a ServerUrl, SettingsErrors> {
    url.ok_or_else(|| {
        let reason = format!("not set, and this command needs it; allowed: {}", setting.allowed());
        SettingsErrors::one(setting.about().name, reason)
    })
}

fn read_telemetry(reader: &mut Reader) -> Option<TelemetrySettings> {
    let format = reader.value(&table::LOG_FORMAT);
    let filter = reader.value(&table::RUST_LOG);
    Some(TelemetrySettings { format: format?, filter: filter? })
}

/// Reads how to trace; `None`: not at all, or a value has a problem.
fn read_traces(reader: &mut Reader) -> Option<TraceSettings> {
    let endpoint = reader.value(&table::OTEL_EXPORTER_OTLP_ENDPOINT);
    let service_name = reader.value_or(&table::OTEL_SERVICE_NAME, |reader| {
        format!("sexton-{}", reader.program().name())
    });
    let ratio = reader.value(&table::OTEL_TRACES_SAMPLER_ARG);
    Some(TraceSettings { endpoint: endpoint?, service_name: service_name?, ratio: ratio? })
}

/// Returns the host's name as a valid instance name.
fn host_name() -> String {
    let name = rustix::system::uname();
    let fitting = |byte: &u8| if table::is_instance_byte(*byte) { char::from(*byte) } else { '-' };
    let name: String = name.nodename().to_bytes().iter().take(100).map(fitting).collect();
    if name.is_empty() { "unnamed-host".to_owned() } else { name }
}

/// Per user, so that the second user of a host does not find the first one's folder locked.
fn default_state_dir(reader: &Reader) -> PathBuf {
    match reader.foreign_path("XDG_RUNTIME_DIR") {
        Some(folder) => folder.join("sexton"),
        None => reader
            .foreign_path("TMPDIR")
            .unwrap_or_else(|| PathBuf::from("/tmp"))
            .join(format!("sexton-{}", rustix::process::getuid().as_raw())),
    }
}

#[cfg(test)]
mod tests;
