//! One instance within the test's process: what becomes of works that fail, take long, or lose their locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sexton_guard::{
    CREATE_SHEDLOCK, CronError, DistributedCron, Lock, LockError, LockRow, Statistics, Tick,
};
use sexton_servers::PgBouncer;
use sexton_tests::proxy::Proxy;
use sqlx::postgres::PgPool;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::super::{Fixture, KEY, PATIENCE, eventually, holder, terminate};

const EVERY_SECOND: &str = "* * * * * *";

/// Jobs that run until they are stopped.
struct Running {
    stop: oneshot::Sender<()>,
    statistics: Statistics,
    task: JoinHandle<Result<Statistics, CronError>>,
}

impl Running {
    fn start(cron: DistributedCron) -> Self {
        let (stop, stopped) = oneshot::channel();
        let statistics = cron.statistics();
        let task = tokio::spawn(cron.run(async move { drop(stopped.await) }));
        Self { stop, statistics, task }
    }

    async fn stop(self) -> Statistics {
        self.stop.send(()).unwrap();
        timeout(PATIENCE, self.task).await.unwrap().unwrap().unwrap()
    }
}

fn cron(f: &Fixture) -> DistributedCron {
    DistributedCron::new(f.pool().clone())
}

#[tokio::test]
async fn errors_and_panics_are_counted_and_the_next_tick_runs() {
    let f = Fixture::new().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let jobs = cron(&f)
        .job("fails", EVERY_SECOND, Lock::advisory(KEY), async |_| Err::<(), _>("it is closed"))
        .job("panics", EVERY_SECOND, Lock::advisory(KEY + 1), async |_| -> Result<(), String> {
            panic!("a mistake of the work")
        })
        .job("works", EVERY_SECOND, Lock::advisory(KEY + 2), move |_: Tick| {
            counter.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, String>(()) }
        });
    let running = Running::start(jobs);
    eventually("each has run twice", PATIENCE, async || {
        running.statistics.job("fails").failed > 1
            && running.statistics.job("panics").failed > 1
            && running.statistics.job("works").succeeded > 1
    })
    .await;
    let counts = running.stop().await;
    assert_eq!(counts.job("works").succeeded, runs.load(Ordering::SeqCst) as u64);
    assert_eq!(counts.job("works").failed + counts.job("fails").succeeded, 0);
    let of = "SELECT count(*) FROM sexton.guard_ticks WHERE outcome = 'failed' AND detail IN
              ('it is closed', 'the function panicked: a mistake of the work')";
    let failed = counts.job("fails").failed + counts.job("panics").failed;
    assert_eq!(f.count(of).await.unsigned_abs(), failed);
}

#[tokio::test]
async fn a_work_that_takes_long_skips_the_ticks_meanwhile_and_overlaps_nothing() {
    let f = Fixture::new().await;
    let under_way = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&under_way);
    let work = move |_: Tick| {
        let counter = Arc::clone(&counter);
        async move {
            let before = counter.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(2_500)).await;
            counter.fetch_sub(1, Ordering::SeqCst);
            if before == 0 { Ok(()) } else { Err("it overlaps itself") }
        }
    };
    let running = Running::start(cron(&f).job("long", EVERY_SECOND, Lock::advisory(KEY), work));
    let twice = async || running.statistics.job("long").succeeded > 1;
    eventually("it has run twice", PATIENCE, twice).await;
    let counts = running.stop().await.job("long");
    assert!(counts.overrun >= 3 && counts.failed == 0 && counts.lost == 0, "{counts:?}");
}

/// A work gets the signal and the time to end; one that takes longer is dropped, and recorded.
#[tokio::test]
async fn a_shutdown_gives_running_works_their_grace_and_begins_no_other() {
    let f = Fixture::new().await;
    f.run(CREATE_SHEDLOCK).await;
    let row = LockRow::new("obeys", Duration::from_mins(1)).unwrap();
    let jobs = cron(&f)
        .grace(Duration::from_millis(500))
        .job("obeys", EVERY_SECOND, Lock::row(row), async |tick: Tick| {
            tick.stop().cancelled().await;
            Ok::<_, String>(())
        })
        .job("hangs", EVERY_SECOND, Lock::advisory(KEY), async |_| -> Result<(), String> {
            std::future::pending().await
        });
    let running = Running::start(jobs);
    let both =
        "SELECT (SELECT count(*) FROM sexton.guard_ticks) * 10 + (SELECT count(*) FROM shedlock)";
    eventually("both run", PATIENCE, async || f.count(both).await == 11).await;
    let counts = running.stop().await;
    assert_eq!(counts.job("obeys").succeeded, 1);
    assert_eq!(counts.job("hangs").succeeded, 0);
    assert!(f.is_free(KEY).await, "its lock is released before the program ends");
    let cancelled = "SELECT count(*) FROM sexton.guard_ticks WHERE outcome = 'cancelled'";
    assert_eq!(f.count(cancelled).await, 1);
}

#[tokio::test]
async fn a_work_whose_lock_is_lost_is_dropped_and_counted_and_the_next_tick_runs() {
    let f = Fixture::new().await;
    let begun = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&begun);
    let hang = move |_: Tick| {
        counter.fetch_add(1, Ordering::SeqCst);
        std::future::pending::<Result<(), String>>()
    };
    let running = Running::start(cron(&f).job("hangs", EVERY_SECOND, Lock::advisory(KEY), hang));
    // The lock alone can be that of a call which is not answered yet: its loss is no loss of a work.
    eventually("it runs", PATIENCE, async || begun.load(Ordering::SeqCst) == 1).await;
    let pid = holder(f.pool(), KEY).await;
    terminate(&mut f.pool().acquire().await.unwrap(), pid).await;
    let ticks = "SELECT count(*) FROM sexton.guard_ticks";
    eventually("the next tick runs", PATIENCE, async || f.count(ticks).await > 1).await;
    assert_eq!(running.statistics.job("hangs").lost, 1);
    running.task.abort();
}

/// A call takes a tick, and its answer is lost with the session: the tick runs nowhere, and no count says that another had it.
#[tokio::test]
async fn a_tick_whose_answer_is_lost_is_counted_as_missed_and_the_next_tick_runs() {
    let f = Fixture::new().await;
    let proxy = Proxy::before(f.db.url()).await.unwrap();
    let work = async |_: Tick| Ok::<_, String>(());
    let jobs = cron(&f).direct(proxy.url(f.db.url()).parse().unwrap()).job(
        "works",
        EVERY_SECOND,
        Lock::advisory(KEY),
        work,
    );
    let running = Running::start(jobs);
    let succeeded = || running.statistics.job("works").succeeded;
    eventually("it runs", PATIENCE, async || succeeded() > 0).await;
    // The first statement that a session prepares is guard_try; the second session's is passed on.
    let swallowing = proxy.swallow_answers_matching(b"sqlx_s_1\0", 1);
    eventually("an answer is lost", PATIENCE, async || swallowing.is_over()).await;
    let before = succeeded();
    eventually("later ticks run", PATIENCE, async || succeeded() > before + 1).await;
    let counts = running.stop().await.job("works");
    assert!(counts.missed > 0 && counts.failed + counts.lost == 0, "{counts:?}");
    assert_eq!(counts.skipped, 0, "there is no other instance: {counts:?}");
    let unfinished = "SELECT count(*) FROM sexton.guard_ticks WHERE finished_at IS NULL";
    assert_eq!(f.count(unfinished).await, 1, "the tick was taken");
}

#[tokio::test]
async fn what_cannot_run_is_refused_at_the_start_with_the_remedy() {
    let f = Fixture::new().await;
    let work = async |_: Tick| Ok::<_, String>(());
    let one = |pool: PgPool, schedule: &str, key: i64| {
        DistributedCron::new(pool).job("a", schedule, Lock::advisory(key), work)
    };
    let refused = async |cron: DistributedCron| {
        timeout(PATIENCE, cron.run(std::future::pending())).await.unwrap().unwrap_err()
    };
    let both =
        one(f.pool().clone(), "61 * * * *", 1 << 60).job("a", "@daily", Lock::advisory(1), work);
    let CronError::Invalid(invalid) = refused(both).await else { panic!("all problems") };
    assert_eq!(invalid.problems.len(), 3, "{invalid}");
    let pooler = PgBouncer::start(f.db.url(), "transaction").await.unwrap();
    let through_it = PgPool::connect_lazy(pooler.url()).unwrap();
    let error = refused(one(through_it.clone(), EVERY_SECOND, KEY)).await;
    assert!(matches!(error, CronError::Lock(LockError::SharedSession)), "{error}");
    // With the direct way beside it.
    let direct = one(through_it, EVERY_SECOND, KEY).direct(f.db.url().parse().unwrap());
    let running = Running::start(direct);
    eventually("it runs", PATIENCE, async || running.statistics.job("a").succeeded > 0).await;
    running.stop().await;
    f.run("DROP FUNCTION sexton.guard_try").await;
    let error = refused(one(f.pool().clone(), EVERY_SECOND, KEY)).await.to_string();
    assert!(error.contains("run `sexton migrate`"), "{error}");
}
