//! The scheduler, with firings to claim, jobs from its environment and rows past retention.

use std::time::Duration;

use sexton_model::id::JobId;
use sexton_model::state::State;
use sexton_service::clock;
use sexton_tests::factory::NewExecution;

use super::{Scene, count, died, until};

const UNPUBLISHED: &str = "state = 'pending' AND attempt = 1 AND ticket_published_at IS NULL";
const DONE_AT_FIRST: &str = "state = 'succeeded' AND attempt = 1";

/// A schedule that fires once in four years, so that the test decides when.
pub(super) const SELDOM: &str = "schedule = \"0 0 29 2 *\"";

/// Makes every job with a schedule due.
pub(super) const FALLS_DUE: &str =
    "UPDATE sexton.jobs SET next_fire_at = date_trunc('second', now())
     WHERE next_fire_at IS NOT NULL";

#[tokio::test]
async fn scheduler_claiming() {
    let scene = Scene::new(SELDOM, ":").await;
    assert_eq!(scene.sql(FALLS_DUE).await, 1);
    scene.scheduler_dies("scheduler.claiming").await;
    scene.holds("true", 0).await;
    assert_eq!(
        count(&scene.platform, "sexton.jobs WHERE next_fire_at <= now()").await,
        1,
        "still due"
    );
    let successors = scene.successors();
    until(&scene.platform, "sexton.executions", 1).await;
    scene.ends(successors, "scheduler.claiming", DONE_AT_FIRST, [1, 1]).await;
}

#[tokio::test]
async fn scheduler_claimed() {
    let scene = Scene::new(SELDOM, ":").await;
    scene.sql(FALLS_DUE).await;
    scene.scheduler_dies("scheduler.claimed").await;
    scene.holds(UNPUBLISHED, 1).await;
    assert_eq!(count(&scene.platform, "sexton.jobs WHERE next_fire_at <= now()").await, 0);
    scene.time_passes().await;
    scene.ends(scene.successors(), "scheduler.claimed", DONE_AT_FIRST, [1, 1]).await;
    scene.holds("true", 1).await;
}

#[tokio::test]
async fn scheduler_published() {
    let scene = Scene::new(SELDOM, ":").await;
    let env = [("FAULT_POINT", "scheduler.published")];
    let mut doomed = scene.platform.start_scheduler("s1", &env).unwrap();
    // Without a broker the scheduler leaves the claim to the relay, which has its own points.
    doomed.ready().await;
    scene.sql(FALLS_DUE).await;
    died(&mut doomed, "scheduler.published").await;
    scene.holds(UNPUBLISHED, 1).await;
    scene.waits(scene.wire.main(), 1).await;
    scene.time_passes().await;
    scene.published("state = 'pending'", 1).await;
    scene.waits(scene.wire.main(), 2).await;
    scene.ends(scene.successors(), "scheduler.published", DONE_AT_FIRST, [1, 1]).await;
}

#[tokio::test]
async fn scheduler_applied() {
    let scene = Scene::plain().await;
    let jobs = ("CRON_JOBS", "{\"work\": {\"schedule\": \"0 0 29 2 *\"}}");
    let env = [jobs, ("FAULT_POINT", "scheduler.applied")];
    died(&mut scene.platform.start_scheduler("s1", &env).unwrap(), "scheduler.applied").await;
    assert_eq!(count(&scene.platform, "sexton.jobs WHERE name = 'work'").await, 1);
    assert_eq!(count(&scene.platform, "sexton.jobs").await, 2);
    scene.sql(FALLS_DUE).await;
    // The same jobs again: they do not change, and no firing is lost.
    let successors = scene.successors_of(&[jobs], &[]);
    until(&scene.platform, "sexton.executions", 1).await;
    scene.ends(successors, "scheduler.applied", DONE_AT_FIRST, [1, 1]).await;
    let applied = "sexton.operator_actions WHERE action = 'apply'";
    assert_eq!(count(&scene.platform, applied).await, 2, "each job once");
}

#[tokio::test]
async fn scheduler_pruned() {
    let scene = Scene::plain().await;
    scene.trigger().await;
    scene.old_rows().await;
    scene.scheduler_dies("scheduler.pruned").await;
    scene.holds("execution_key = 'old'", 0).await;
    assert_eq!(count(&scene.platform, OLD_GAPS).await, 1);
    let successors = scene.successors();
    until(&scene.platform, OLD_GAPS, 0).await;
    until(&scene.platform, OLD_INSTANCES, 0).await;
    scene.ends(successors, "scheduler.pruned", DONE_AT_FIRST, [1, 1]).await;
}

#[tokio::test]
async fn scheduler_pruned_gaps() {
    let scene = Scene::plain().await;
    scene.trigger().await;
    scene.old_rows().await;
    scene.scheduler_dies("scheduler.pruned_gaps").await;
    assert_eq!(count(&scene.platform, OLD_GAPS).await, 0);
    assert_eq!(count(&scene.platform, OLD_INSTANCES).await, 1);
    let successors = scene.successors();
    until(&scene.platform, OLD_INSTANCES, 0).await;
    scene.ends(successors, "scheduler.pruned_gaps", DONE_AT_FIRST, [1, 1]).await;
}

const OLD_GAPS: &str = "sexton.gaps WHERE reason = 'paused'";
const OLD_INSTANCES: &str = "sexton.instances WHERE name = 'old'";

impl Scene {
    /// Creates an execution, a gap and an instance that are past retention.
    async fn old_rows(&self) {
        let pool = self.platform.store().pool();
        let job = sqlx::query_scalar("SELECT id FROM sexton.jobs").fetch_one(pool).await.unwrap();
        let at = clock::now() - Duration::from_hours(40 * 24);
        let key = Some("old".to_owned());
        let old = NewExecution { key, ..NewExecution::new(JobId::new(job), State::Succeeded, at) };
        old.insert(pool).await.unwrap();
        let gap = "INSERT INTO sexton.gaps (job_id, first_firing, last_firing, count, reason, recorded_at)
             SELECT id, now() - interval '40 days', now() - interval '40 days', 1, 'paused',
                    now() - interval '40 days' FROM sexton.jobs";
        assert_eq!(self.sql(gap).await, 1);
        let instance =
            "INSERT INTO sexton.instances (id, kind, name, pid, version, started_at, heartbeat_at)
             VALUES (gen_random_uuid(), 'scheduler', 'old', 1, '0', now() - interval '40 days',
                     now() - interval '40 days')";
        assert_eq!(self.sql(instance).await, 1);
    }
}
