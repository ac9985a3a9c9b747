//! The jobs of the guides, literally, while the instances of a service contend for their locks: no task and no instance overlap.

use sexton_tests::platform::Platform;

use super::contender::Contention;
use super::contention::{overlaps, start};
use super::moves::{NODE, SPRING, block};
use super::{Fixture, PATIENCE};

/// Executions of each end that a test waits for.
const EXECUTIONS: i64 = 5;

/// Runs the job of a guide again and again while instances contend for its lock, until executions have run and were skipped.
async fn the_job_of_the_guide_and_instances(
    guide: &str,
    lock: &str,
    contentions: &[Contention<'_>],
) {
    let mut platform = Platform::new().await.unwrap();
    // A minute of at_least is for instances whose clocks differ; here it would only be long.
    let jobs = block(guide, "toml jobs").replace(", at_least = \"1m\"", "");
    let field = |name: &str| {
        let beginning = format!("{name} = \"");
        let mut lines = jobs.lines().map(str::trim);
        let value = lines.find_map(|line| line.strip_prefix(&beginning)).unwrap();
        value.trim_end_matches('"').to_owned()
    };
    let (job, task) = (field("name"), field("task"));
    let sql = format!(
        "INSERT INTO held (lock, holder, began, ended) SELECT '{lock}', 'worker', began, clock_timestamp() \
         FROM (SELECT clock_timestamp() AS began, pg_sleep(0.005)) t"
    );
    platform.catalogue(&format!("[tasks.{task}]\nsql = \"{sql}\"\n"));
    platform.apply(&jobs).await.unwrap();
    let resumed = platform.sexton(&["jobs", "resume", &job]).await;
    assert!(resumed.status.success(), "the job of {guide} begins paused: {}", resumed.stderr);
    let _scheduler = platform.start_scheduler("s", &[]).unwrap();
    let mut worker = platform.start_worker("w", &[("WORKER_SLOTS", "2")]).unwrap();
    worker.ready().await;
    let f = Fixture::of(platform.database_url()).await;
    let contenders = start(&f, contentions).await;
    if contenders.is_empty() {
        return;
    }
    let both_ends = async || {
        let enqueue = sqlx::query("SELECT execution_id FROM sexton.enqueue($1)").bind(&job);
        enqueue.execute(f.pool()).await.unwrap();
        let ends = "SELECT count(*) FILTER (WHERE state = 'succeeded'),
             count(*) FILTER (WHERE state = 'skipped' AND skip_reason LIKE 'lock ' || $1 || ' is held by %')
             FROM sexton.executions";
        let ends = sqlx::query_as(ends).bind(lock).fetch_one(f.pool()).await.unwrap();
        let (succeeded, skipped): (i64, i64) = ends;
        (succeeded >= EXECUTIONS && skipped >= EXECUTIONS).then_some(())
    };
    platform.eventually("executions run and are skipped", PATIENCE, both_ends).await;
    let won = async || {
        let winners = "SELECT count(DISTINCT holder) FROM held WHERE holder <> 'worker'";
        let winners: i64 = sqlx::query_scalar(winners).fetch_one(f.pool()).await.unwrap();
        (winners == contenders.len() as i64).then_some(())
    };
    platform.eventually("each instance gets the lock", PATIENCE, won).await;
    for contender in contenders {
        contender.end().await;
    }
    let ended = async || {
        let open = "SELECT count(*) FROM sexton.executions WHERE finished_at IS NULL";
        let open: i64 = sqlx::query_scalar(open).fetch_one(f.pool()).await.unwrap();
        (open == 0).then_some(())
    };
    platform.eventually("all executions have ended", PATIENCE, ended).await;
    assert_eq!(overlaps(&f, lock).await, 0, "an instance and a task, or two of them, overlap");
    let other =
        "SELECT count(*) FROM sexton.executions WHERE state NOT IN ('succeeded', 'skipped')";
    let other: i64 = sqlx::query_scalar(other).fetch_one(f.pool()).await.unwrap();
    assert_eq!(other, 0);
}

#[tokio::test]
async fn a_job_with_the_row_of_a_method_and_instances_with_shedlock_keep_each_other_out() {
    let jvm = |holder| Contention { holder, ..Contention::of("java", "row", "invoices") };
    let instances = [jvm("java-1"), jvm("java-2")];
    the_job_of_the_guide_and_instances(SPRING, "invoices", &instances).await;
}

#[tokio::test]
async fn a_job_with_the_key_of_a_service_and_its_instances_keep_each_other_out() {
    let of = |language, kind| Contention::of(language, kind, "5101");
    let instances = [of("node", "advisory"), of("python", "advisory"), of("java", "advisory")];
    the_job_of_the_guide_and_instances(NODE, "5101", &instances).await;
}
