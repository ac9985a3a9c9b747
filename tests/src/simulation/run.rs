//! Runs many simulations, one after the other, in one database.

use std::collections::BTreeSet;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use sqlx::AssertSqlSafe;

use super::bulks::EXPECTED_EVENTS;
use super::case::{Parts, Simulation};
use super::generator::Generator;
use super::op::{Op, as_rust};
use super::shrink::shrink;
use super::stop::Stop;
use crate::database::TestDatabase;

/// Operations of one case.
const CASE_OPERATIONS: usize = 120;

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// Each case has a seed of its own: this one and those that follow.
    pub seed: u64,
    /// How many.
    pub cases: u64,
    /// What the simulation plays.
    pub parts: Parts,
}

/// What was run without a broken promise.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Cases.
    pub cases: u64,
    /// Operations, with those that run everything to its end.
    pub operations: u64,
    /// Of all cases.
    pub seconds: f64,
    /// Kinds of operations that were drawn and changed nothing in any case.
    pub idle: BTreeSet<String>,
}

/// A broken promise.
#[derive(Clone, Debug)]
pub struct Counterexample {
    /// Of its case.
    pub seed: u64,
    /// The shortest list of operations that was found, after which everything is run to its end.
    pub ops: Vec<Op>,
    /// What is broken after them.
    pub broken: String,
}

impl Counterexample {
    /// For people: the seed, what broke, and the operations as Rust.
    pub fn render(&self) -> String {
        format!(
            "seed {}: {}\nafter these {} operations and an end without further faults; to keep it, paste \
             it into tests/it/chaos/simulation/regressions.rs:\n\nholds_after(&[\n{}])\n.await;\n",
            self.seed,
            self.broken,
            self.ops.len(),
            as_rust(&self.ops)
        )
    }
}

/// What broke in one run.
#[derive(Clone, Debug)]
pub struct Violation {
    /// For people.
    pub text: String,
    /// After so many of the given operations.
    after: usize,
    /// While everything was run to its end.
    at_the_end: bool,
}

/// Cases after which a long campaign says how far it is.
const PROGRESS_INTERVAL_CASES: u64 = 500;
/// What no operation is drawn for, and some must come to do all the same.
const SKIPS: &str = "an Ask that skips what is stale";
/// Nor for these, nor for what bulks come to.
const WAITS: &str = "a Plan whose firing waits";
const REPLACES: &str = "a Plan whose firing replaces what runs";
const DATABASE_AWAY: &str = "the simulation cannot go on";

/// A database in which simulations are run.
#[derive(Debug)]
pub struct SimulationRunner {
    database: TestDatabase,
    runs: u16,
    operations: u64,
    /// Kinds of operations that were applied, and those that changed something.
    applied: BTreeSet<String>,
    acted: BTreeSet<String>,
    /// The operations of the last run that changed nothing.
    idle: Vec<Op>,
}

impl SimulationRunner {
    /// Creates it. Its tables survive no crash of the server, which is not what is simulated here;
    /// so a commit waits for no disk.
    pub async fn create() -> Result<Self> {
        let database = TestDatabase::create().await?;
        let tables = [
            "bulk_questions",
            "bulk_items",
            "bulks",
            "failures",
            "failure_changes",
            "held_firings",
            "holds",
            "planner_clock",
            "attempt_output",
            "attempts",
            "gaps",
            "executions",
            "job_revisions",
            "ledger_checks",
            "unaccounted_firings",
            "job_monitors",
            "monitor_wakeups",
            "checks",
            "check_wakeups",
            "jobs",
            "offers",
            "instances",
            "operator_actions",
            "audit_seals",
            "audit_unsealed",
            "audit_chain",
            "retention",
        ];
        for table in tables {
            let unlogged = format!("ALTER TABLE sexton.{table} SET UNLOGGED");
            sqlx::query(AssertSqlSafe(unlogged)).execute(database.pool()).await?;
        }
        let (applied, acted) = (BTreeSet::new(), BTreeSet::new());
        Ok(Self { database, runs: 0, operations: 0, applied, acted, idle: Vec::new() })
    }

    /// Runs one list of operations, and then everything to its end; `Some`: what is broken.
    ///
    /// # Errors
    ///
    /// If the database is away.
    pub async fn run(&mut self, ops: &[Op], parts: Parts) -> Result<Option<Violation>> {
        self.play(ops, parts, true).await
    }

    /// As [`run`](Self::run), for a list that is kept.
    ///
    /// # Errors
    ///
    /// If the database is away, or if an operation changes nothing: then the list has come to be about
    /// something else than it was kept for.
    pub async fn run_keeping_database(&mut self, ops: &[Op]) -> Result<Option<Violation>> {
        let broken = self.run(ops, Parts::ALL).await?;
        ensure!(broken.is_some() || self.idle.is_empty(), "change nothing: {:?}", self.idle);
        Ok(broken)
    }

    async fn play(
        &mut self,
        ops: &[Op],
        parts: Parts,
        to_the_end: bool,
    ) -> Result<Option<Violation>> {
        self.runs = self.runs.wrapping_add(1);
        let store = self.database.store();
        let mut simulation =
            Simulation::begin(store, parts, self.runs).await.context(DATABASE_AWAY)?;
        let mut stop = None;
        let mut done = 0;
        self.applied.extend([SKIPS, WAITS, REPLACES].map(str::to_owned));
        self.applied.extend(EXPECTED_EVENTS.map(str::to_owned));
        let mut before = simulation.sight();
        self.idle.clear();
        while let (None, Some(op)) = (&stop, ops.get(done)) {
            stop = simulation.apply(*op).await.err();
            done += 1;
            let after = simulation.sight();
            self.applied.insert(op.kind());
            if after == before {
                self.idle.push(*op);
            } else {
                self.acted.insert(op.kind());
            }
            before = after;
        }
        let (skipped, waited) = (simulation.skipped, simulation.waited);
        let counted = [(SKIPS, skipped), (WAITS, waited), (REPLACES, simulation.replaced)];
        let some = counted.iter().filter(|(_, count)| *count > 0);
        self.acted.extend(some.map(|(what, _)| (*what).to_owned()));
        self.acted.extend(simulation.ledger.bulks.observed_events());
        let at_the_end = stop.is_none();
        if to_the_end && stop.is_none() {
            stop = simulation.run_to_the_end().await.err();
        }
        self.operations += simulation.applied();
        simulation.leave().await.context(DATABASE_AWAY)?;
        match stop {
            None => Ok(None),
            Some(Stop::Broken(text)) => Ok(Some(Violation { text, after: done, at_the_end })),
            Some(server) => Err(server).context(DATABASE_AWAY),
        }
    }

    /// Runs a campaign up to the first broken promise, which it makes short.
    ///
    /// # Errors
    ///
    /// If the database is away, or if a case does not end twice in the same way.
    pub async fn campaign(
        &mut self,
        campaign: Campaign,
    ) -> Result<std::result::Result<Report, Counterexample>> {
        let (began, operations) = (Instant::now(), self.operations);
        for case in 0..campaign.cases {
            let seed = campaign.seed.wrapping_add(case);
            let ops = Generator::new(seed).ops(CASE_OPERATIONS);
            if case > 0 && case % PROGRESS_INTERVAL_CASES == 0 {
                println!("{case} cases of {}", campaign.cases);
            }
            if let Some(broken) = self.run(&ops, campaign.parts).await? {
                return Ok(Err(self.shortest(seed, ops, broken, campaign.parts).await?));
            }
        }
        Ok(Ok(Report {
            cases: campaign.cases,
            operations: self.operations - operations,
            seconds: began.elapsed().as_secs_f64(),
            idle: self.applied.difference(&self.acted).cloned().collect(),
        }))
    }

    async fn shortest(
        &mut self,
        seed: u64,
        mut ops: Vec<Op>,
        Violation { text, after, at_the_end }: Violation,
        parts: Parts,
    ) -> Result<Counterexample> {
        if self.run(&ops, parts).await?.is_none() {
            bail!("seed {seed} breaks a promise only once, so time or chance got in: {text}");
        }
        ops.truncate(after);
        let mut server = Ok(());
        let ops = shrink(ops, async |ops| match self.play(ops, parts, at_the_end).await {
            Ok(broken) => broken.is_some(),
            Err(error) => {
                server = Err(error);
                false
            }
        })
        .await;
        server?;
        let broken = self.run(&ops, parts).await?.map_or(text, |broken| broken.text);
        Ok(Counterexample { seed, ops, broken })
    }
}
