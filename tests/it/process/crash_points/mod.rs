//! Struck between two effects: one test for each fault point, called after it.
//!
//! Each leads an execution (or a message, or a job) into the step, lets the process die exactly
//! there, looks at what it left behind while nobody else is at work, and then starts its successors.
//! In the end the rows are right, no queue holds a ticket, the failed queue holds one message for each
//! failed row and no other, and the ledger, which is kept outside the platform by the tasks themselves,
//! shows for each idempotency key no run that the list of points does not allow.

mod alerts;
mod batches;
mod bulks;
mod console;
mod flows;
mod heartbeats;
mod leftovers;
mod overlaps;
mod plan;
mod scheduler;
mod sql;
mod sweep;
mod tasks;
mod tickets;
mod unknown_messages;
mod unopened;

use std::os::unix::process::ExitStatusExt as _;

use sexton_service::fault::{POINTS, Point, Reruns};
use sexton_tests::platform::{Platform, Program};

use super::ledger::Ledger;
use super::{FINAL_TIMEOUT, by_hand, count, until};
use crate::bad_input::wire::Wire;

/// Variables and their values.
type Env<'a> = &'a [(&'a str, &'a str)];

/// The job of every scene.
const JOB: &str = "a.b";

/// How many workers may stop before they open the last ticket.
const MAX_WORKERS: usize = 4;

/// A platform with one job, nobody at work yet.
struct Scene {
    platform: Platform,
    ledger: Ledger,
    wire: Wire,
}

/// Who goes on from what the dead has left.
struct Successors {
    scheduler: Program,
    worker: Program,
}

impl Scene {
    /// The job has the fields `job`, its task does `task` (shell) between its two lines in the
    /// ledger.
    async fn new(job: &str, task: &str) -> Self {
        let mut platform = Platform::new().await.unwrap();
        let ledger = Ledger::new(&platform, task);
        platform.catalogue(&ledger.catalogue());
        platform.apply(&by_hand(JOB, "work", job)).await.unwrap();
        let wire = Wire::connect(&platform).await;
        Self { platform, ledger, wire }
    }

    /// Whose task does nothing and succeeds.
    async fn plain() -> Self {
        Self::new("", ":").await
    }

    /// A job whose first attempt fails once the file `fail` is there.
    async fn retried() -> Self {
        let retry = "retry = { delay = \"1s\", max_retries = 3 }";
        let until_stopped = "while ! test -e fail; do sleep 0.05; done; exit 1";
        Self::new(retry, &format!("[ $SEXTON_ATTEMPT = 1 ] && {{ {until_stopped}; }}")).await
    }

    /// Starts a worker that dies at `point`, and tells the first attempt to fail when the worker can
    /// publish: what it cannot publish it leaves to the relay.
    async fn worker_fails_and_dies(&self, point: &str) {
        let env = [("FAULT_POINT", point), ("WORKER_SLOTS", "1")];
        let mut doomed = self.platform.start_worker("w1", &env).unwrap();
        doomed.ready().await;
        std::fs::write(self.platform.folder().join("fail"), "").unwrap();
        died(&mut doomed, point).await;
    }

    /// Whose first attempt would take for ever.
    async fn endless(job: &str) -> Self {
        Self::new(job, "[ $SEXTON_ATTEMPT = 1 ] && sleep 3000").await
    }

    /// Triggers an execution; its ticket is unpublished.
    async fn trigger(&self) {
        let done = self.platform.sexton(&["jobs", "trigger", JOB, "--key", "struck"]).await;
        assert!(done.status.success(), "{done}");
    }

    /// An execution whose ticket is in its queue; nobody is at work.
    async fn ticket(&self) {
        self.trigger().await;
        self.published("state = 'pending'", 1).await;
    }

    /// Lets a scheduler publish the tickets of `wanted` executions; nobody is at work afterwards.
    async fn published(&self, queue_name: &str, wanted: i64) {
        let mut first = self.platform.start_scheduler("s0", &[]).unwrap();
        self.until(&format!("{queue_name} AND ticket_published_at IS NOT NULL"), wanted).await;
        // Not killed: its sweep may be putting a message back, of which a second copy would stay.
        first.terminate();
        assert!(first.exit(FINAL_TIMEOUT).await.success(), "{}", first.log());
    }

    /// Starts a worker that dies at `point`.
    async fn worker_dies(&self, point: &str, env: Env<'_>) {
        let env = [&[("FAULT_POINT", point), ("WORKER_SLOTS", "1")], env].concat();
        died(&mut self.platform.start_worker("w1", &env).unwrap(), point).await;
    }

    /// Starts a scheduler that dies at `point`.
    async fn scheduler_dies(&self, point: &str) {
        let env = [("FAULT_POINT", point)];
        died(&mut self.platform.start_scheduler("s1", &env).unwrap(), point).await;
    }

    /// A worker that opens the ticket with this lease and dies before the task begins; nobody is at
    /// work afterwards.
    async fn abandoned(&self, lease_ms: &str) {
        self.ticket().await;
        self.worker_dies("worker.opened", &[("LEASE_MS", lease_ms)]).await;
        self.holds("state = 'running' AND attempt = 1", 1).await;
    }

    /// Another scheduler, and a worker with the instance name of the one before.
    fn successors(&self) -> Successors {
        self.successors_of(&[], &[])
    }

    /// The same, with more in the scheduler's and in the worker's environment.
    fn successors_of(&self, of_scheduler: Env<'_>, of_worker: Env<'_>) -> Successors {
        let scheduler = self.platform.start_scheduler("s2", of_scheduler).unwrap();
        let worker = self.platform.start_worker("w1", of_worker).unwrap();
        Successors { scheduler, worker }
    }

    /// Now, while nobody is at work: so many executions are like this.
    async fn holds(&self, what: &str, wanted: i64) {
        let rows = count(&self.platform, &format!("sexton.executions WHERE {what}")).await;
        assert_eq!(rows, wanted, "{what}\n{}", self.platform.log_tails());
    }

    /// In the end so many executions are like this.
    async fn until(&self, what: &str, wanted: i64) {
        until(&self.platform, &format!("sexton.executions WHERE {what}"), wanted).await;
    }

    /// Deletes a queue, so that the next message for it is returned.
    async fn delete(&self, queue: &str) {
        let options = lapin::options::QueueDeleteOptions::default();
        self.wire.channel().queue_delete(queue.into(), options).await.unwrap();
    }

    /// In the end so many messages wait in the queue: the broker takes a moment to notice a death.
    async fn waits(&self, queue: &str, wanted: u32) {
        let what = format!("{wanted} messages in {queue}");
        let look = async || (self.wire.depth(queue).await == wanted).then_some(());
        self.platform.eventually(&what, FINAL_TIMEOUT, look).await;
    }

    /// Ends the head start of the process that changed a row, and the half minute of the relay that took it.
    async fn time_passes(&self) {
        let over = "UPDATE sexton.executions SET relay_after = now() WHERE relay_after > now()
             AND (waits IS NULL OR admitted_at IS NOT NULL)";
        self.sql(over).await;
    }

    /// The executions, oldest first.
    async fn ids(&self) -> Vec<String> {
        sqlx::query_scalar("SELECT id::text FROM sexton.executions ORDER BY id")
            .fetch_all(self.platform.store().pool())
            .await
            .unwrap()
    }

    /// The only one.
    async fn id(&self) -> String {
        let [id] = <[String; 1]>::try_from(self.ids().await).unwrap();
        id
    }

    async fn sql(&self, statement: &'static str) -> u64 {
        sqlx::query(statement).execute(self.platform.store().pool()).await.unwrap().rows_affected()
    }

    /// The successors work until no ticket is left, then end; the execution has come to `state`, and
    /// the tasks did of each key what `point` allows: `begun` and `ended` without the fault.
    async fn ends(
        &self,
        successors: Successors,
        point: &str,
        state: &str,
        [begun, ended]: [usize; 2],
    ) {
        self.until(state, count(&self.platform, "sexton.executions").await).await;
        self.are_done(successors).await;
        let allowed = match listed(point).reruns {
            Reruns::Never => 0,
            Reruns::Once => 1,
        };
        let runs = self.ledger.runs();
        for (key, run) in &runs {
            let text = format!("{key} began {} and ended {} times", run.begun, run.ended);
            assert!((begun..=begun + allowed).contains(&run.begun), "{text}");
            assert!((ended..=ended + allowed).contains(&run.ended), "{text}");
        }
        let keys = if begun == 0 { 0 } else { count(&self.platform, "sexton.executions").await };
        assert_eq!(runs.len() as i64, keys, "{runs:?}");
    }

    /// The same, of executions that come to these states, oldest first; each task begins once.
    async fn ends_as<const N: usize>(
        &self,
        successors: Successors,
        point: &str,
        states: [&str; N],
    ) {
        assert_eq!(listed(point).reruns, Reruns::Never);
        let all = async || {
            let query = "SELECT state FROM sexton.executions ORDER BY id";
            let now: Vec<String> =
                sqlx::query_scalar(query).fetch_all(self.platform.store().pool()).await.unwrap();
            (now == states).then_some(())
        };
        self.platform.eventually(&format!("{states:?}"), FINAL_TIMEOUT, all).await;
        self.are_done(successors).await;
        let runs = self.ledger.runs();
        assert!(runs.len() == N && runs.values().all(|run| run.begun == 1), "{runs:?}");
    }

    /// No ticket is left, the successors end, the queues are as the rows say.
    async fn are_done(&self, Successors { mut scheduler, mut worker }: Successors) {
        for attempt in 1..=MAX_WORKERS {
            self.waits(self.wire.main(), 0).await;
            self.ends_well(&mut worker).await;
            // A ticket that it has received and not opened when it stops returns to the queue: the next takes it.
            self.is_without_consumers().await;
            if self.wire.depth(self.wire.main()).await == 0 {
                break;
            }
            worker = self.platform.start_worker(&format!("after{attempt}"), &[]).unwrap();
        }
        self.ends_well(&mut scheduler).await;
        self.nothing_is_left_over().await;
        self.ledger.no_overlap();
    }

    /// What it has in hand it does to the end; what it may not run it recognises until then.
    async fn ends_well(&self, program: &mut Program) {
        program.ready().await;
        program.terminate();
        assert!(program.exit(FINAL_TIMEOUT).await.success(), "{}", program.log());
    }
}

/// Waits until the process has killed itself at `point`.
async fn died(program: &mut Program, point: &str) {
    let status = program.exit(FINAL_TIMEOUT).await;
    let log = program.log();
    assert_eq!(status.signal(), Some(9), "{status}: {log}");
    assert!(log.contains(&format!("fault point {point}: killing this process")), "{log}");
}

fn listed(name: &str) -> &'static Point {
    POINTS.iter().find(|point| point.name == name).unwrap()
}
