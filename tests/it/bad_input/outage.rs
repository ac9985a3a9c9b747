//! A server that is killed for a minute while tasks run and wait.
//!
//! What counts as a storm: a ticket that is handed out again and again while nobody can open it. The
//! broker counts that itself, per message, and gives a ticket up after 100 times.

use std::path::PathBuf;
use std::time::Duration;

use sexton_tests::platform::{Platform, Program};
use sexton_tests::servers::{PostgresOptions, PostgresServer, RabbitOptions, RabbitServer, shared};
use tokio::time::{Instant, sleep_until};

use super::probe::{assert_sound, lines, lines_with, not_ready, processor_time};
use super::wire::Wire;
use super::{DEADLINE, in_state, trigger};

/// How long a server is away: the time itself is what is tested, so this one wait is for the clock.
const OUTAGE: Duration = Duration::from_mins(1);
/// Five seconds are promised; a machine that runs all tests at once is allowed some more.
const RESUMED: Duration = Duration::from_secs(10);
/// A tenth of a processor: what polls stays far below, what loops is far above.
const BUSY: Duration = Duration::from_secs(6);
/// Lines of one program about one outage.
const LINES: usize = 30;
const SLOTS: u8 = 4;
/// Before a slot has noticed the outage, it may take the ticket that another has just given back.
const RETURNED: i64 = SLOTS as i64;

/// Tasks that note their beginning, wait until a file of their type's name exists, and note their
/// end.
const CATALOGUE: &str = r#"
[tasks.first]
command = ["/bin/sh", "-c", "echo start $SEXTON_EXECUTION_ID >> runs; until [ -e first ]; do sleep 0.1; done; echo end $SEXTON_EXECUTION_ID >> runs"]
[tasks.second]
command = ["/bin/sh", "-c", "echo start $SEXTON_EXECUTION_ID >> runs; until [ -e second ]; do sleep 0.1; done; echo end $SEXTON_EXECUTION_ID >> runs"]
"#;

/// Attempts of `patient` outlive the outage under their lease, those of `hasty` do not.
const JOBS: &str = r#"
[[job]]
name = "outage.patient"
task = "first"
lease = "3m"
overlap = "allow"
[[job]]
name = "outage.hasty"
task = "first"
lease = "5s"
overlap = "allow"
[[job]]
name = "outage.waiting"
task = "second"
lease = "3m"
overlap = "allow"
"#;

/// A scheduler and a worker with [`SLOTS`] slots.
async fn start(platform: &mut Platform) -> [Program; 2] {
    platform.catalogue(CATALOGUE);
    let mut programs = [
        platform.start_scheduler("s1", &[]).unwrap(),
        platform.start_worker("w1", &[("WORKER_SLOTS", &SLOTS.to_string())]).unwrap(),
    ];
    for program in &mut programs {
        program.ready().await;
    }
    platform.apply(JOBS).await.unwrap();
    programs
}

async fn trigger_some(platform: &Platform, job: &str, count: usize) {
    for _ in 0..count {
        trigger(platform, job).await;
    }
}

fn open_gate(platform: &Platform, name: &str) {
    std::fs::write(platform.folder().join(name), "").unwrap();
}

fn runs(platform: &Platform) -> Vec<String> {
    let path: PathBuf = platform.folder().join("runs");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn ended(platform: &Platform) -> usize {
    runs(platform).iter().filter(|line| line.starts_with("end")).count()
}

/// Waits until so many executions are in a state.
async fn until(platform: &Platform, state: &str, count: i64) {
    let what = format!("{count} are {state}");
    let check = async || (in_state(platform, state).await? == count).then_some(());
    platform.eventually(&what, DEADLINE, check).await;
}

/// Waits until so many tickets wait in the main queue.
async fn until_queued(platform: &Platform, wire: &Wire, count: u32) {
    let what = format!("{count} tickets wait");
    let check = async || (wire.depth(wire.main()).await == count).then_some(());
    platform.eventually(&what, DEADLINE, check).await;
}

/// The lines that the programs had logged and the processor time they had used when the server went away.
struct Before([(usize, Duration); 2]);

impl Before {
    fn of(programs: &[Program; 2]) -> Self {
        Self(programs.each_ref().map(|program| (lines(program), processor_time(program))))
    }

    /// Fails for a program that worked or talked too much since then, or did not say what is wrong:
    /// `words`, once a minute for each connection.
    fn assert_quiet(&self, programs: &[Program; 2], words: &str) {
        for (program, (line_count, cpu_time)) in programs.iter().zip(self.0) {
            assert_sound(program);
            let complaints = lines_with(program, words);
            assert!((1..=4).contains(&complaints), "{words}\n{}", program.log());
            let line_count = lines(program) - line_count;
            println!(
                "MEASURED {} said {line_count} busy {:?}",
                program.name(),
                processor_time(program).saturating_sub(cpu_time)
            );
            assert!(
                line_count < LINES,
                "{} said {line_count} lines\n{}",
                program.name(),
                program.log()
            );
            let cpu_time = processor_time(program).saturating_sub(cpu_time);
            assert!(cpu_time < BUSY, "{} was busy for {cpu_time:?}", program.name());
        }
    }
}

/// Waits for one more attempt than there were, which must come soon after the server answered.
async fn resumes(platform: &Platform, attempts: i64, answered: Instant) {
    let pool = platform.store().pool();
    let check = async || {
        let now: i64 = sqlx::query_scalar("SELECT count(*) FROM sexton.all_attempts")
            .fetch_one(pool)
            .await
            .ok()?;
        (now > attempts).then(|| answered.elapsed())
    };
    let after = platform.eventually("another ticket is opened", DEADLINE, check).await;
    assert!(after < RESUMED, "consumption went on {after:?} after the server answered");
}

/// All succeeded, and nothing is left over: no ticket, no parked message, no second end of a task.
async fn all_is_done(platform: &Platform, programs: &[Program; 2], wire: &Wire, count: usize) {
    until(platform, "succeeded", count as i64).await;
    let mut ends: Vec<_> =
        runs(platform).into_iter().filter(|line| line.starts_with("end")).collect();
    ends.sort();
    ends.dedup();
    assert_eq!((ends.len(), ended(platform)), (count, count), "each task came to its end once");
    until_queued(platform, wire, 0).await;
    assert_eq!(wire.depth(wire.failed()).await, 0);
    for program in programs {
        assert_sound(program);
    }
}

/// The attempts of a job: number, outcome, and how many there are of them.
async fn attempts(platform: &Platform, job: &str) -> Vec<(i32, Option<String>, i64)> {
    sqlx::query_as(
        "SELECT a.number, a.outcome, count(*) FROM sexton.all_attempts a
         JOIN sexton.executions e ON e.id = a.execution_id JOIN sexton.jobs j ON j.id = e.job_id
         WHERE j.name = $1 GROUP BY 1, 2 ORDER BY 1, 2",
    )
    .bind(job)
    .fetch_all(platform.store().pool())
    .await
    .unwrap()
}

fn done(number: i32, outcome: &str, count: i64) -> (i32, Option<String>, i64) {
    (number, Some(outcome.to_owned()), count)
}

#[tokio::test]
async fn a_minute_without_postgresql_loses_nothing_storms_nothing_and_runs_no_task_twice() {
    let options = PostgresOptions::default();
    let (postgres, shared) = tokio::join!(PostgresServer::start_private(options), shared());
    let mut postgres = postgres.unwrap();
    let mut platform = Platform::on(postgres.url(), &shared.unwrap().amqp_url).await.unwrap();
    let programs = start(&mut platform).await;
    let wire = Wire::connect(&platform).await;
    trigger_some(&platform, "outage.patient", 2).await;
    trigger_some(&platform, "outage.hasty", 2).await;
    until(&platform, "running", 4).await;
    trigger_some(&platform, "outage.waiting", 8).await;
    until_queued(&platform, &wire, 8).await;

    let before = Before::of(&programs);
    postgres.kill().await.unwrap();
    let end = Instant::now() + OUTAGE;
    for program in &programs {
        not_ready(&platform, program, "database", &["does not answer"]).await;
    }
    // The worker has ended what it could not renew; what it may go on with comes to its end.
    let what = "the hasty attempts are given up";
    let given_up = async || {
        let log = programs[1].log();
        (log.matches("could not be renewed in time").count() >= 2).then_some(())
    };
    platform.eventually(what, DEADLINE, given_up).await;
    open_gate(&platform, "first");
    let what = "the patient tasks end";
    let ends = async || (ended(&platform) == 2).then_some(());
    platform.eventually(what, DEADLINE, ends).await;
    sleep_until(end).await;
    before.assert_quiet(&programs, "cannot reach the database");
    let waiting = wire.look(wire.main()).await;
    assert_eq!(waiting.len(), 8, "tickets stay in their queue while nobody can open them");
    for program in &programs {
        println!("{}", program.log());
    }
    assert!(waiting.iter().all(|it| it.returned <= RETURNED), "{waiting:?}");

    postgres.restart().await.unwrap();
    resumes(&platform, 4, Instant::now()).await;
    open_gate(&platform, "second");
    all_is_done(&platform, &programs, &wire, 12).await;
    assert_eq!(attempts(&platform, "outage.patient").await, [done(1, "succeeded", 2)]);
    assert_eq!(attempts(&platform, "outage.waiting").await, [done(1, "succeeded", 8)]);
    let hasty = [done(1, "lost", 2), done(2, "succeeded", 2)];
    assert_eq!(attempts(&platform, "outage.hasty").await, hasty);
}

#[tokio::test]
async fn a_minute_without_rabbitmq_loses_nothing_storms_nothing_and_runs_no_task_twice() {
    let (rabbit, shared) =
        tokio::join!(RabbitServer::start_private(RabbitOptions::default()), shared());
    let mut rabbit = rabbit.unwrap();
    let mut platform = Platform::on(&shared.unwrap().database_url, rabbit.url()).await.unwrap();
    let programs = start(&mut platform).await;
    let wire = Wire::connect(&platform).await;
    trigger_some(&platform, "outage.patient", 4).await;
    until(&platform, "running", 4).await;
    trigger_some(&platform, "outage.waiting", 8).await;
    until_queued(&platform, &wire, 8).await;

    let before = Before::of(&programs);
    rabbit.kill().await.unwrap();
    let end = Instant::now() + OUTAGE;
    for program in &programs {
        not_ready(&platform, program, "broker", &["check AMQP_URL"]).await;
    }
    // What runs needs the database alone, and so does a trigger.
    open_gate(&platform, "first");
    until(&platform, "succeeded", 4).await;
    trigger_some(&platform, "outage.waiting", 4).await;
    sleep_until(end).await;
    before.assert_quiet(&programs, "no connection to the broker");
    assert_eq!(in_state(&platform, "pending").await, Some(12), "unpublished or queued, none lost");

    rabbit.restart().await.unwrap();
    resumes(&platform, 4, Instant::now()).await;
    // Four run, so eight wait: of before the outage and of the outage itself.
    let wire = Wire::connect(&platform).await;
    until(&platform, "running", 4).await;
    until_queued(&platform, &wire, 8).await;
    let waiting = wire.look(wire.main()).await;
    for program in &programs {
        println!("{}", program.log());
    }
    assert!(waiting.iter().all(|it| it.returned <= RETURNED), "{waiting:?}");
    open_gate(&platform, "second");
    all_is_done(&platform, &programs, &wire, 16).await;
    assert_eq!(attempts(&platform, "outage.patient").await, [done(1, "succeeded", 4)]);
    assert_eq!(attempts(&platform, "outage.waiting").await, [done(1, "succeeded", 12)]);
}
