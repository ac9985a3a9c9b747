//! An arena: a platform of its own, under load, with a victim and a peer of each program.
//!
//! The victims reach the servers through proxies, one for each server, so that a network fault is
//! theirs alone; they are the ones that are killed at fault points. The peers stay, so that there is
//! somebody to go on and somebody to overlap with. The worker that is the victim has one slot, so
//! that the rows show what was inside a struck step.

use std::collections::HashSet;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, Utc};
use rustix::process::Signal;
use sexton_broker::{PoolName, names};
use sexton_model::id::ExecutionId;
use sexton_service::clock;
use sexton_store::operator::AuditContext;
use sexton_store::trigger::{Trigger, trigger};
use sqlx::PgPool;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::broker_client::BrokerClient;
use super::fault::{self, Server};
use super::ledger::{Ledger, Runner, TaskBehavior};
use super::random::Random;
use super::test_servers::TestServers;
use super::{effects, jobs, rows};
use crate::platform::{Platform, Program};
use crate::proxy::Proxy;

/// Between two looks at the rows.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How a lease and the patience with it are set in an arena.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// `LEASE_MS`.
    pub lease: Duration,
    /// How long a struck execution may take to its end.
    pub recovery: Duration,
    /// How long a fault may take to find an execution inside its step.
    pub strike: Duration,
}

/// An arena; see the module.
#[derive(Debug)]
pub(super) struct Arena {
    /// Of its run.
    pub(super) number: usize,
    pub(super) site: Arc<TestServers>,
    pub(super) platform: Platform,
    pub(super) ledger: Ledger,
    pub(super) timeouts: Timeouts,
    pub(super) random: Random,
    schedulers: ProcessPair,
    workers: ProcessPair,
    to_postgres: Proxies,
    to_rabbit: Proxies,
    moved: Mutex<HashSet<Uuid>>,
    crashes: Vec<String>,
    /// The server that is killed when a process stands at its fault point; otherwise it dies there.
    pub(super) storm: Option<Server>,
}

/// The proxies between the victims and a server.
#[derive(Debug)]
struct Proxies {
    scheduler: Proxy,
    worker: Proxy,
}

/// The processes of a program.
#[derive(Debug, Default)]
struct ProcessPair {
    victim: Option<Program>,
    peer: Option<Program>,
}

/// Which process of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Victim,
    Peer,
}

impl Arena {
    /// Creates an arena on a site, with its programs at work.
    pub(super) async fn begin(
        number: usize,
        site: &Arc<TestServers>,
        timeouts: Timeouts,
        seed: u64,
    ) -> Result<Self> {
        let (database, broker) = (&site.database_url, &site.amqp_url);
        let platform = Platform::unmigrated_on(database, broker, "torture").await?;
        // By the programs under test: they bring their own migrations.
        let migrated = platform.try_sexton(&["migrate"]).await?;
        ensure!(migrated.status.success(), "sexton migrate failed: {migrated}");
        effects::prepare(platform.store().pool()).await?;
        let ledger = Ledger::create(&platform.folder()).context("prepare the ledger")?;
        platform.apply(jobs::FILE).await?;
        for pool in [jobs::VICTIM_POOL, jobs::UNSERVED_POOL] {
            platform.uses_pool(pool);
        }
        let between = async |url: &str| -> Result<Proxies> {
            Ok(Proxies { scheduler: Proxy::before(url).await?, worker: Proxy::before(url).await? })
        };
        let mut arena = Self {
            number,
            ledger,
            timeouts,
            // Each arena draws by itself, so that none waits for another.
            random: Random::new(seed ^ (number as u64) << 32),
            schedulers: ProcessPair::default(),
            workers: ProcessPair::default(),
            to_postgres: between(platform.database_url()).await?,
            to_rabbit: between(platform.amqp_url()).await?,
            platform,
            moved: Mutex::default(),
            crashes: Vec::new(),
            storm: None,
            site: Arc::clone(site),
        };
        for program in [fault::Program::Scheduler, fault::Program::Worker] {
            for role in [Role::Victim, Role::Peer] {
                arena.start(program, role, &[])?;
            }
        }
        Ok(arena)
    }

    /// The database, past all proxies.
    pub(super) fn pool(&self) -> &PgPool {
        self.platform.store().pool()
    }

    /// Starts a process, killing the one before it.
    pub(super) fn start(
        &mut self,
        program: fault::Program,
        role: Role,
        env: &[(&str, &str)],
    ) -> Result<()> {
        self.kill(program, role);
        let variables = self.environment(program, role);
        let base_env = variables.iter().map(|(name, value)| (*name, value.as_str()));
        let env: Vec<(&str, &str)> = base_env.chain(env.iter().copied()).collect();
        let started = match program {
            fault::Program::Scheduler => self.platform.start_scheduler(name(program, role), &env),
            fault::Program::Worker => self.platform.start_worker(name(program, role), &env),
        }?;
        *self.program_slot(program, role) = Some(started);
        Ok(())
    }

    fn environment(&self, program: fault::Program, role: Role) -> Vec<(&'static str, String)> {
        let (mut database, mut broker) =
            (self.platform.database_url().to_owned(), self.platform.amqp_url().to_owned());
        if role == Role::Victim {
            database = self.proxy(program, Server::PostgreSql).url(&database);
            broker = self.proxy(program, Server::RabbitMq).url(&broker);
        }
        // Without TLS, so that proxies see the statements; with a heartbeat that notices silence soon.
        let pools = match role {
            Role::Victim => jobs::VICTIM_POOL.to_owned(),
            Role::Peer => format!("{},default", jobs::VICTIM_POOL),
        };
        let slots = if role == Role::Victim { "1" } else { "4" };
        let mut variables = vec![
            ("DATABASE_URL", format!("{database}?sslmode=disable")),
            ("AMQP_URL", format!("{broker}?heartbeat=4")),
        ];
        if program == fault::Program::Worker {
            let lease = self.timeouts.lease.as_millis().to_string();
            let worker = [("WORKER_POOLS", pools), ("WORKER_SLOTS", slots.to_owned())];
            variables.extend(worker);
            variables.push(("LEASE_MS", lease));
            let runner = if role == Role::Victim { Runner::Victim } else { Runner::Peer };
            let catalogue = self.ledger.catalogue(runner);
            variables.push(("WORKER_TASKS", catalogue.to_string_lossy().into_owned()));
        }
        variables
    }

    /// SIGKILL, if it runs. One that has ended by itself is remembered.
    pub(super) fn kill(&mut self, program: fault::Program, role: Role) {
        if let Some(mut running) = self.program_slot(program, role).take() {
            match running.ended() {
                Some(status) => self.crashes.extend(crash(running.name(), status, &running.log())),
                None => running.kill(),
            }
        }
    }

    /// The programs that have ended and nobody had caused it, and what panicked in them.
    pub(super) fn crashes(&self) -> Vec<String> {
        let logs = self.platform.logs();
        let panics = logs.lines().filter(|line| line.contains("panicked at")).map(str::to_owned);
        self.crashes.iter().cloned().chain(panics).collect()
    }

    /// Starts each process that does not run.
    pub(super) fn complete(&mut self) -> Result<()> {
        self.complete_all(None)
    }

    /// Starts each process that does not run, but for one.
    pub(super) fn complete_but(&mut self, one: (fault::Program, Role)) -> Result<()> {
        self.complete_all(Some(one))
    }

    fn complete_all(&mut self, but: Option<(fault::Program, Role)>) -> Result<()> {
        for program in [fault::Program::Scheduler, fault::Program::Worker] {
            for role in [Role::Victim, Role::Peer] {
                if but == Some((program, role)) {
                    continue;
                }
                let runs =
                    self.program_slot(program, role).as_ref().is_some_and(|p| p.ended().is_none());
                if !runs {
                    self.start(program, role, &[])?;
                }
            }
        }
        Ok(())
    }

    /// The process in a slot, which must have been started.
    pub(super) fn process(&mut self, program: fault::Program, role: Role) -> Result<&mut Program> {
        self.program_slot(program, role).as_mut().context("no program is in this slot")
    }

    fn program_slot(&mut self, program: fault::Program, role: Role) -> &mut Option<Program> {
        let crew = match program {
            fault::Program::Scheduler => &mut self.schedulers,
            fault::Program::Worker => &mut self.workers,
        };
        match role {
            Role::Victim => &mut crew.victim,
            Role::Peer => &mut crew.peer,
        }
    }

    /// The proxy between the victim of a program and a server.
    pub(super) fn proxy(&self, program: fault::Program, server: Server) -> &Proxy {
        let to_server = match server {
            Server::PostgreSql => &self.to_postgres,
            Server::RabbitMq => &self.to_rabbit,
        };
        match program {
            fault::Program::Scheduler => &to_server.scheduler,
            fault::Program::Worker => &to_server.worker,
        }
    }

    /// The id under which a worker writes rows; `None`: it has not introduced itself yet.
    pub(super) async fn worker_id(&mut self, role: Role) -> Result<Option<Uuid>> {
        let pid = self.process(fault::Program::Worker, role)?.pid() as i32;
        let found = sqlx::query_scalar(
            "SELECT id FROM sexton.instances WHERE kind = 'worker' AND pid = $1
             ORDER BY started_at DESC LIMIT 1",
        )
        .bind(pid)
        .fetch_optional(self.pool())
        .await?;
        Ok(found)
    }

    /// Triggers a job, with a key of the caller's own or without.
    pub(super) async fn trigger(&self, job: &str, key: Option<&str>) -> Result<Uuid> {
        let request = Trigger {
            job,
            key,
            params: serde_json::Map::new(),
            id: ExecutionId::new(Uuid::now_v7()),
            claimed_by: "torture:1",
        };
        Ok(trigger(self.platform.store(), request, Some(ME), None).await?.id.get())
    }

    /// Says how tasks of a job behave from now on.
    pub(super) fn behavior(&self, job: &str, behavior: TaskBehavior) -> Result<()> {
        self.ledger.behavior(job, behavior).context("write a mood")
    }

    /// All tasks do well from now on.
    pub(super) fn calm(&self) -> Result<()> {
        jobs::ALL.into_iter().try_for_each(|job| self.behavior(job, TaskBehavior::Well))
    }

    /// A hand in the broker.
    pub(super) async fn hand(&self) -> Result<BrokerClient> {
        BrokerClient::reach(self.platform.amqp_url()).await
    }

    /// The main queue of a pool.
    pub(super) fn queue(&self, pool: &str) -> Result<String> {
        Ok(names::main_queue(self.platform.namespace(), &PoolName::new(pool)?))
    }

    /// The failed queue.
    pub(super) fn failed_queue(&self) -> String {
        names::failed_queue(self.platform.namespace())
    }

    /// Remembers that a hand moves a parked message of `id`, which is a requeue.
    pub(super) fn will_move(&self, id: Uuid) {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    }

    /// The executions that the test has moved to requeue them by hand.
    pub(super) fn moved(&self) -> HashSet<Uuid> {
        self.moved.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until `check` has an answer. An error counts as none: a server may be away.
    pub(super) async fn until<T>(
        &self,
        deadline: Duration,
        mut check: impl AsyncFnMut() -> Result<Option<T>>,
    ) -> Option<T> {
        let end = Instant::now() + deadline;
        while Instant::now() < end {
            if let Ok(Some(answer)) = check().await {
                return Some(answer);
            }
            sleep(POLL_INTERVAL).await;
        }
        None
    }

    /// Waits until `ids` have come to their ends; those that have not in time otherwise.
    pub(super) async fn ended(&self, ids: &[Uuid], within: Duration) -> Result<(), Vec<Uuid>> {
        let mut left = ids.to_vec();
        let ended = self
            .until(within, async || {
                left = rows::without_end(self.pool(), &left).await?;
                Ok(left.is_empty().then_some(()))
            })
            .await;
        ended.ok_or(left)
    }
}

/// Who acts as an operator.
pub(super) const ME: AuditContext<'static> =
    AuditContext { actor: "torture", reason: Some("torture") };

/// What a process is called; the victim keeps its name over restarts.
pub(super) const fn name(program: fault::Program, role: Role) -> &'static str {
    match (program, role) {
        (fault::Program::Scheduler, Role::Victim) => "s1",
        (fault::Program::Scheduler, Role::Peer) => "s2",
        (fault::Program::Worker, Role::Victim) => "w1",
        (fault::Program::Worker, Role::Peer) => "w2",
    }
}

/// Describes a program that has ended, unless it died at a fault point.
fn crash(name: &str, status: ExitStatus, log: &str) -> Option<String> {
    let last = log.lines().last().unwrap_or_default();
    let at_point = last.starts_with("fault point ") && last.ends_with(": killing this process");
    let is_expected = at_point && status.signal() == Some(Signal::KILL.as_raw());
    (!is_expected).then(|| format!("{name} ended by itself ({status}): {last}"))
}

/// An instant to ask rows from.
pub(super) fn now() -> DateTime<Utc> {
    clock::now()
}

/// Fails with `why` unless `done`.
pub(super) fn require(done: bool, why: &str) -> Result<()> {
    ensure!(done, "{why}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_ends_by_itself_has_crashed_and_one_that_dies_at_a_fault_point_has_not() {
        let (killed, ended, panicked) =
            (ExitStatus::from_raw(9), ExitStatus::from_raw(0), ExitStatus::from_raw(101 << 8));
        let at_point = "at work\nfault point worker.ran: killing this process\n";
        assert_eq!(crash("w1", killed, at_point), None);
        assert_eq!(
            crash("w1", killed, "at work\n").unwrap(),
            "w1 ended by itself (signal: 9 (SIGKILL)): at work"
        );
        assert!(crash("w1", ended, at_point).is_some());
        assert!(crash("w1", panicked, at_point).is_some());
        assert!(crash("w1", killed, &format!("{at_point}but it went on\n")).is_some());
    }
}
