//! Checks rows, ledger, queues, programs and logs when the faults are over.

use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties};
use sexton_broker::{PoolName, names};

use super::{EVERY_S, FINAL_TIMEOUT, Line, LoadedPlatform, MAX_LOG_LINES, SLOTS};
use crate::bad_input::probe::assert_sound;

impl LoadedPlatform {
    /// Ends the stream, waits until every execution has come to its end, and asks for all that is
    /// promised.
    pub(in crate::chaos::servers) async fn end(self) {
        self.stream_ends().await;
        self.every_firing_has_its_execution().await;
        self.every_execution_ended_as_its_task_did().await;
        self.nothing_ran_twice();
        self.failed_ones_are_parked().await;
        self.all_are_ready("all of it").await;
        self.nothing_stormed().await;
    }

    /// Ends the stream, and waits until every execution has come to its end.
    pub(in crate::chaos::servers) async fn stream_ends(&self) {
        for (job, _) in EVERY_S {
            // A claim that was lost in a silence holds its jobs until the server ends it, for up to a
            // minute.
            let paused = async || {
                let pause = ["jobs", "pause", job, "--reason", "the end"];
                let done = self.platform.sexton(&pause).await;
                let locked = done.stderr.contains("is locked by somebody else");
                assert!(done.status.success() || locked, "{done}");
                (!locked).then_some(())
            };
            self.platform.eventually(&format!("{job} is paused"), FINAL_TIMEOUT, paused).await;
        }
        self.none("sexton.executions WHERE state NOT IN ('succeeded', 'failed')").await;
    }

    /// None is missing between the first and the last.
    pub(in crate::chaos::servers) async fn every_firing_has_its_execution(&self) {
        for (job, every_s) in EVERY_S {
            let missing = self
                .number(&format!(
                    "coalesce(extract(epoch FROM max(scheduled_for) - min(scheduled_for))::bigint
                                  / {every_s} + 1 - count(*), 0)
                     FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id WHERE j.name = '{job}'"
                ))
                .await;
            assert_eq!(missing, Some(0), "firings of {job} without an execution");
        }
        assert_eq!(self.number("count(*) FROM sexton.gaps").await, Some(0));
    }

    async fn every_execution_ended_as_its_task_did(&self) {
        let fails =
            "EXISTS (SELECT FROM sexton.jobs j WHERE j.id = job_id AND j.name = 'load.failing')";
        let wrong = format!("count(*) FROM sexton.executions WHERE (state = 'failed') <> {fails}");
        assert_eq!(self.number(&wrong).await, Some(0), "{}", self.platform.log_tails());
        let succeeded =
            self.number("count(*) FROM sexton.executions WHERE state = 'succeeded'").await;
        let ended = self.ledger.keys("end").len() as i64;
        assert_eq!(succeeded, Some(ended), "what succeeded has ended, and the other way round");
        let attempts = self.number("count(*) FROM sexton.all_attempts").await.unwrap();
        let begun = self.ledger.lines("begin").len() as i64;
        assert!(begun <= attempts, "{begun} runs of {attempts} attempts");
    }

    pub(in crate::chaos::servers) fn nothing_ran_twice(&self) {
        self.ledger.no_overlap();
        self.ledger.each_attempt_once();
    }

    /// Each failed row has its message, and no message is there besides.
    async fn failed_ones_are_parked(&self) {
        let failed =
            self.number("count(*) FROM sexton.executions WHERE state = 'failed'").await.unwrap();
        let check = async || (i64::from(self.parked().await?) == failed).then_some(());
        let what = format!("{failed} messages are parked");
        self.platform.eventually(&what, FINAL_TIMEOUT, check).await;
    }

    /// Messages in the failed queue.
    pub(in crate::chaos::servers) async fn parked(&self) -> Option<u32> {
        self.depth(&names::failed_queue(self.platform.namespace())).await
    }

    /// Messages in the main queue that nobody has.
    pub(in crate::chaos::servers) async fn waiting(&self) -> Option<u32> {
        let pool = PoolName::default_pool();
        self.depth(&names::main_queue(self.platform.namespace(), &pool)).await
    }

    async fn depth(&self, queue: &str) -> Option<u32> {
        let properties = ConnectionProperties::default();
        let connection = Connection::connect(self.platform.amqp_url(), properties).await.ok()?;
        let channel = connection.create_channel().await.ok()?;
        let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::durable() };
        let declared = channel.queue_declare(queue.into(), options, FieldTable::default()).await;
        let depth = declared.ok()?.message_count();
        connection.close(200, "done".into()).await.ok()?;
        Some(depth)
    }

    /// Deliveries and log lines are in proportion to attempts and faults.
    pub(in crate::chaos::servers) async fn nothing_stormed(&self) {
        let attempts = self.ledger.lines("begin").len();
        let lost =
            self.number("count(*) FROM sexton.all_attempts WHERE outcome = 'lost'").await.unwrap();
        let faults = self.faults.get();
        let delivered = self.line(Line::WorkerToBroker).matches();
        println!(
            "MEASURED {delivered} deliveries for {attempts} attempts, {lost} lost, {faults} faults"
        );
        // A delay that was over a moment too early makes two of a retry's.
        let bound = 2 * attempts + faults * 4 * SLOTS;
        assert!(delivered <= bound, "{delivered} deliveries for {attempts} attempts");
        self.programs.iter().for_each(assert_sound);
        for program in self.programs.iter().chain(&self.stopped) {
            let log = program.log();
            assert!(!log.contains("panicked"), "{} panicked\n{log}", program.name());
            // A worker tells how each attempt ended.
            let ended = "sexton_worker::attempt";
            let lines = log.lines().filter(|line| !line.contains(ended)).count();
            println!("MEASURED {} said {lines} lines", program.name());
            let bound = (faults + 1) * MAX_LOG_LINES + 3 * lost as usize;
            assert!(lines <= bound, "{} said {lines} lines\n{log}", program.name());
        }
    }
}
