//! A platform at work: programs behind proxies, a steady stream of executions, a ledger.

mod final_checks;

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sexton_tests::platform::{Platform, Program};
use sexton_tests::proxy::Proxy;
use tokio::time::Instant;

use super::{FINAL_TIMEOUT, Machine};
use crate::bad_input::probe::{assert_sound, readiness};
use crate::process::ledger::Ledger;

/// How a dead connection is noticed: twice this. The default is for networks that are not tests.
const HEARTBEAT_S: u32 = 3;
/// What each delivery of a ticket bears, once.
const TICKET: &[u8] = b"sexton-attempt";
/// Tasks at a time, of one worker.
const SLOTS: usize = 8;
/// Of one program to the database: servers that many tests share have a hundred for all of them.
const POOL_CONNECTIONS: &str = "4";
/// Lines of one program about one fault, attempts that it cost not counted.
const MAX_LOG_LINES: usize = 40;

/// A second's work is two executions: most are short, one outlives its lease and is renewed, one fails
/// for good. The last is triggered, and its first attempt ends only by force. Firings that pass while the database is away are run when it is back.
const JOBS: &str = r#"
[[job]]
name = "load.quick"
every = "1s"
task = "work"
lease = "3s"
misfire = { policy = "fire_all", window = "1h", limit = 1000 }
retry = { max_retries = 3, delay = "1s", multiplier = 1.0 }
[[job]]
name = "load.slow"
every = "2s"
task = "work"
lease = "3s"
misfire = { policy = "fire_all", window = "1h", limit = 1000 }
retry = { max_retries = 3, delay = "1s", multiplier = 1.0 }
[[job]]
name = "load.long"
every = "4s"
task = "work"
lease = "3s"
misfire = { policy = "fire_all", window = "1h", limit = 1000 }
retry = { max_retries = 3, delay = "1s", multiplier = 1.0 }
[[job]]
name = "load.failing"
every = "5s"
task = "work"
lease = "3s"
misfire = { policy = "fire_all", window = "1h", limit = 1000 }
retry = { max_retries = 1, delay = "1s" }
[[job]]
name = "load.endless"
task = "work"
lease = "3s"
"#;

/// What a task does between its two lines in the ledger.
const TASK: &str = "case $SEXTON_JOB.$SEXTON_ATTEMPT in load.slow.*) sleep 1;; load.long.*) sleep 5;; load.failing.*) exit 1;; load.endless.1) sleep 300;; esac";

/// The names of those that fire and how many seconds are between two firings.
const EVERY_S: [(&str, i64); 4] =
    [("load.quick", 1), ("load.slow", 2), ("load.long", 4), ("load.failing", 5)];

/// One connection of one kind of program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Line {
    SchedulerToDatabase,
    SchedulerToBroker,
    WorkerToDatabase,
    WorkerToBroker,
}

/// A platform at work.
pub(super) struct LoadedPlatform {
    pub(super) platform: Platform,
    pub(super) ledger: Ledger,
    /// Those that must be at work, in the end as well.
    pub(super) programs: Vec<Program>,
    /// Those that were stopped on purpose.
    stopped: Vec<Program>,
    lines: [Proxy; 4],
    machine: Machine,
    faults: Cell<usize>,
}

impl LoadedPlatform {
    /// On these servers, with so many schedulers and workers. The load flows when it returns: some
    /// executions have ended, and one has failed for good.
    pub(super) async fn on(
        database: &str,
        broker: &str,
        replicas: usize,
        machine: Machine,
    ) -> Self {
        let platform = Platform::on(database, broker).await.unwrap();
        let (database, broker) = (platform.database_url(), platform.amqp_url());
        let lines = [
            Proxy::before(database).await.unwrap(),
            Proxy::before(broker).await.unwrap(),
            Proxy::before(database).await.unwrap(),
            Proxy::before_counting(broker, TICKET).await.unwrap(),
        ];
        let ledger = Ledger::new(&platform, TASK);
        let faults = Cell::new(0);
        let (programs, stopped) = (Vec::new(), Vec::new());
        let mut platform_under_load =
            Self { platform, ledger, programs, stopped, lines, machine, faults };
        platform_under_load.platform.catalogue(&platform_under_load.ledger.catalogue());
        platform_under_load.apply_jobs().await;
        for number in 1..=replicas {
            platform_under_load.add_scheduler(&format!("s{number}"));
            platform_under_load.add_worker(&format!("w{number}"));
        }
        for program in &mut platform_under_load.programs {
            program.ready().await;
        }
        platform_under_load.flows().await;
        platform_under_load
    }

    pub(super) async fn apply_jobs(&self) {
        self.platform.apply(JOBS).await.unwrap();
    }

    pub(super) fn add_scheduler(&mut self, name: &str) {
        let [database, broker] = self.servers(Line::SchedulerToDatabase, Line::SchedulerToBroker);
        let env = [
            ("DATABASE_URL", database.as_str()),
            ("AMQP_URL", broker.as_str()),
            ("DB_POOL_SIZE", POOL_CONNECTIONS),
        ];
        self.programs.push(self.platform.start_scheduler(name, &env).unwrap());
    }

    pub(super) fn add_worker(&mut self, name: &str) {
        let [database, broker] = self.servers(Line::WorkerToDatabase, Line::WorkerToBroker);
        let slots = SLOTS.to_string();
        let env = [
            ("DATABASE_URL", database.as_str()),
            ("AMQP_URL", broker.as_str()),
            ("DB_POOL_SIZE", POOL_CONNECTIONS),
            ("WORKER_SLOTS", &slots),
        ];
        self.programs.push(self.platform.start_worker(name, &env).unwrap());
    }

    /// The servers' URLs by way of these lines.
    fn servers(&self, database: Line, broker: Line) -> [String; 2] {
        let broker = self.line(broker).url(self.platform.amqp_url());
        let separator = if broker.contains('?') { '&' } else { '?' };
        let broker = format!("{broker}{separator}heartbeat={HEARTBEAT_S}");
        let database = self.line(database).url(self.platform.database_url());
        let separator = if database.contains('?') { '&' } else { '?' };
        // Without TLS: a program that is not optimised needs seconds for its handshake where many
        // tests share the processors, and each fault asks for new connections.
        [format!("{database}{separator}sslmode=disable"), broker]
    }

    pub(super) fn line(&self, line: Line) -> &Proxy {
        &self.lines[line as usize]
    }

    /// The program whose `SEXTON_INSTANCE` this is.
    pub(super) fn program(&mut self, name: &str) -> &mut Program {
        self.programs.iter_mut().find(|program| program.name() == name).unwrap()
    }

    /// Stops the program for good, in order.
    pub(super) async fn stops(&mut self, name: &str) {
        let place = self.programs.iter().position(|program| program.name() == name).unwrap();
        let mut program = self.programs.remove(place);
        program.terminate();
        let status = program.exit(FINAL_TIMEOUT).await;
        assert!(status.success(), "{name} ended with {status}\n{}", program.log());
        self.stopped.push(program);
    }

    /// The same, to look at.
    pub(super) fn program_named(&self, name: &str) -> &Program {
        self.programs.iter().find(|program| program.name() == name).unwrap()
    }

    /// One row's one column; `None` while the database does not answer.
    pub(super) async fn number(&self, what: &str) -> Option<i64> {
        let statement = sqlx::AssertSqlSafe(format!("SELECT {what}"));
        sqlx::query_scalar(statement).fetch_one(self.platform.store().pool()).await.ok()
    }

    /// Waits until so many rows are there, or more.
    pub(super) async fn at_least(&self, what: &str, count: i64) {
        let question = format!("count(*) FROM {what}");
        let check = async || self.number(&question).await.filter(|now| *now >= count).map(|_| ());
        self.platform.eventually(&format!("{count} of {what}"), FINAL_TIMEOUT, check).await;
    }

    /// Waits until no row is left.
    pub(super) async fn none(&self, what: &str) {
        let question = format!("count(*) FROM {what}");
        let check = async || (self.number(&question).await? == 0).then_some(());
        self.platform.eventually(&format!("none of {what}"), FINAL_TIMEOUT, check).await;
    }

    /// Waits until some executions have ended, and one has failed for good.
    pub(super) async fn flows(&self) {
        self.at_least("sexton.executions WHERE state = 'succeeded'", 4).await;
        self.at_least("sexton.executions WHERE state = 'failed'", 1).await;
    }

    /// Waits until a task has just begun that outlives its lease.
    pub(super) async fn long_task_begins(&self) {
        let begun = || self.ledger.lines("begin").into_iter().filter(|it| it.contains("load_long"));
        let before = begun().count();
        let check = async || begun().nth(before);
        self.platform.eventually("a long task begins", FINAL_TIMEOUT, check).await;
    }

    /// Begins a task that ends only by force; its process.
    pub(super) async fn endless_task(&self) -> u32 {
        let triggered = self.platform.sexton(&["jobs", "trigger", "load.endless"]).await;
        assert!(triggered.status.success(), "{triggered}");
        let begun = async || {
            self.ledger.lines("begin").into_iter().find(|line| line.contains("load_endless"))
        };
        let line = self.platform.eventually("the endless task begins", FINAL_TIMEOUT, begun).await;
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// Waits until a task's process is gone; when that was.
    pub(super) async fn dies(&self, process: u32) -> Instant {
        let path = PathBuf::from(format!("/proc/{process}"));
        let gone = async || (!path.exists()).then(Instant::now);
        self.platform.eventually("the endless task is ended", FINAL_TIMEOUT, gone).await
    }

    /// A fault begins: each may cost some redeliveries and some lines.
    pub(super) fn fault(&self) {
        self.faults.set(self.faults.get() + 1);
    }

    /// The fault is over now. Waits until each worker has run a firing that is claimed from now on,
    /// which must be within what is promised, and until each program says that it is ready.
    pub(super) async fn resumes(&self, after: &str, promised: Duration) {
        let elapsed = self.goes_on(after).await;
        self.all_are_ready(after).await;
        let limit = self.machine.within(promised);
        assert!(
            elapsed < limit,
            "work went on {elapsed:?} after {after}\n{}",
            self.platform.log_tails()
        );
    }

    /// Waits until every program that was not stopped on purpose says that it is ready.
    async fn all_are_ready(&self, when: &str) {
        for program in &self.programs {
            let what = format!("{} is ready after {when}", program.name());
            let check = async || {
                assert_sound(program);
                (readiness(program).await?["ready"] == true).then_some(())
            };
            self.platform.eventually(&what, FINAL_TIMEOUT, check).await;
        }
    }

    /// Waits until each worker has run a firing that is claimed from now on; how long that took.
    pub(super) async fn goes_on(&self, after: &str) -> Duration {
        let answered = Instant::now();
        let mut healed: Option<DateTime<Utc>> = None;
        let pool = self.platform.store().pool();
        let is_worker = |program: &&Program| program.name().starts_with('w');
        let workers = self.programs.iter().filter(is_worker).count() as i64;
        let check = async || {
            if healed.is_none() {
                let now = sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(pool).await;
                healed = Some(now.ok()?);
            }
            let at_work: i64 = sqlx::query_scalar(
                "SELECT count(DISTINCT a.worker_id)
                 FROM sexton.all_attempts a JOIN sexton.executions e ON e.id = a.execution_id
                 WHERE e.claimed_at > $1 AND a.opened_at > $1",
            )
            .bind(healed)
            .fetch_one(pool)
            .await
            .ok()?;
            (at_work >= workers).then(|| answered.elapsed())
        };
        let what = format!("each worker runs a new firing after {after}");
        let elapsed = self.platform.eventually(&what, FINAL_TIMEOUT, check).await;
        println!("MEASURED work went on {elapsed:?} after {after}");
        elapsed
    }
}
