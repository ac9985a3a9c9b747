//! Watches the rows: each reading prints the new events and records the goals.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use anyhow::{Result, bail};
use chrono::{DateTime, Utc};
use tokio::time::Instant;
use uuid::Uuid;

use super::changes::{EventKind, changes};
use super::cluster::Cluster;
use super::event_lines::EventPrinter;
use super::ledger::{Goal, Ledger};
use super::output::Output;
use super::rows::{self, Execution};

/// The time between two readings of the rows.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The observer of one run.
pub(super) struct Observer<'a> {
    pub(super) cluster: &'a mut Cluster,
    pub(super) output: &'a Output,
    pub(super) ledger: Ledger,
    /// The executions as of the last reading.
    pub(super) seen: BTreeMap<Uuid, Execution>,
    /// The programs that the demo has killed, and when it last did.
    killed: HashSet<String>,
    killed_at: Option<DateTime<Utc>>,
    printer: EventPrinter,
    deadline: Instant,
    /// The instant by the database's clock that lines count from.
    zero: DateTime<Utc>,
}

impl<'a> Observer<'a> {
    /// Begins to watch; `deadline` is the end of all waiting.
    pub(super) async fn begin(
        cluster: &'a mut Cluster,
        output: &'a Output,
        deadline: Instant,
    ) -> Result<Self> {
        let now = rows::clock(cluster.platform.store().pool()).await?;
        Ok(Self {
            cluster,
            output,
            ledger: Ledger::default(),
            seen: BTreeMap::new(),
            killed: HashSet::new(),
            killed_at: None,
            printer: EventPrinter::default(),
            deadline,
            zero: now - output.elapsed(),
        })
    }

    /// Reads the rows until `check` has an answer.
    ///
    /// # Errors
    ///
    /// The deadline passed before `what`; a program ended by itself; the database does not answer.
    pub(super) async fn until<T>(
        &mut self,
        what: &'static str,
        mut check: impl FnMut(&Self) -> Option<T>,
    ) -> Result<T> {
        loop {
            self.look().await?;
            if let Some(answer) = check(self) {
                return Ok(answer);
            }
            for program in self.cluster.programs() {
                if let Some(status) = program.ended()
                    && !self.killed.contains(program.name())
                {
                    bail!("{} has ended by itself: {status}", program.name());
                }
            }
            if Instant::now() >= self.deadline {
                bail!("the time was up before {what}");
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Reads the rows, prints the new events and records the goals.
    pub(super) async fn look(&mut self) -> Result<()> {
        let rows = rows::executions(self.cluster.platform.store().pool()).await?;
        let mut news: Vec<_> = rows
            .values()
            .flat_map(|after| {
                let events = changes(self.seen.get(&after.id), after);
                events.into_iter().map(move |event| (after, event))
            })
            .collect();
        news.sort_by_key(|(_, event)| event.at);
        for (execution, event) in news {
            let at = (event.at - self.zero).to_std().unwrap_or_default();
            self.printer.print_event(self.output, at, execution, &event.what);
            self.ledger.note(execution.id, &event.what);
            let by_survivor = self.killed_at.is_some_and(|killed_at| event.at > killed_at)
                && matches!(&event.what, EventKind::Fired { by, .. } if !self.killed.contains(by));
            if by_survivor {
                self.ledger.observe(Goal::FiredOn, Some(execution.id));
            }
        }
        self.seen = rows;
        Ok(())
    }

    /// Kills a program with SIGKILL; returns its process id, or `None` if there is none of this name.
    pub(super) fn kill(&mut self, name: &str) -> Option<u32> {
        let pid = self.cluster.kill(name)?;
        self.killed.insert(name.to_owned());
        self.killed_at = Some(self.zero + self.output.elapsed());
        Some(pid)
    }

    /// The executions of a job, oldest first.
    pub(super) fn of(&self, job: &str) -> impl Iterator<Item = &Execution> {
        self.seen.values().filter(move |execution| execution.job == job)
    }

    /// Allows at least this much time from now on.
    pub(super) fn allow(&mut self, time: Duration) {
        self.deadline = self.deadline.max(Instant::now() + time);
    }

    /// The end of all waiting.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }
}
