//! Jobs go when they are over and nothing is left of them.

use chrono::Days;
use sexton_model::id::{ExecutionId, JobId};
use sexton_model::job::JobSpec;
use sexton_model::jobs_file;
use sexton_model::state::State;
use sexton_store::jobs::{Applied, Apply, Delete, apply, delete};
use sexton_store::operator::AuditContext;
use sexton_store::trigger::{Trigger, TriggerError, trigger};
use sexton_tests::factory::{NewExecution, NewJob};
use uuid::Uuid;

use super::pruned;
use crate::scheduler::{Fixture, at};

const ANN: AuditContext<'static> = AuditContext { actor: "ann", reason: Some("test") };

async fn jobs(f: &Fixture) -> i64 {
    f.number("SELECT count(*) FROM sexton.jobs").await
}

async fn deleted(f: &Fixture, name: &str) -> JobId {
    let job = f.job(NewJob::new(name)).await;
    let request = Delete { name, cancel: false, dry_run: false, revision: None };
    delete(&f.store(), request, ANN, Some(at(0))).await.unwrap();
    job
}

#[tokio::test]
async fn retention_removes_a_deleted_job_with_its_last_row() {
    let f = Fixture::without_broker().await;
    f.job(NewJob::new("lives")).await;
    deleted(&f, "empty").await;
    let ran = deleted(&f, "ran").await;
    let failed = deleted(&f, "failed").await;
    let gap = deleted(&f, "gap").await;
    f.insert(NewExecution::new(ran, State::Succeeded, at(86_400))).await;
    f.insert(NewExecution::new(failed, State::Failed, at(0))).await;
    sqlx::query(
        "INSERT INTO sexton.gaps (job_id, first_firing, last_firing, count, reason, recorded_at)
         VALUES ($1, $2, $2, 1, 'deleted', $2)",
    )
    .bind(gap.get())
    .bind(at(86_400))
    .execute(f.db.pool())
    .await
    .unwrap();
    pruned(&f, 30).await;
    assert_eq!(jobs(&f).await, 5, "deleted thirty days ago, and not more");
    assert_eq!(pruned(&f, 31).await.other, 1, "the one that never ran");
    // The night in which the last of it goes, or the next.
    pruned(&f, 32).await;
    pruned(&f, 33).await;
    assert_eq!(jobs(&f).await, 2);
    assert_eq!(f.number("SELECT count(*) FROM sexton.job_revisions").await, 2);
    // What failed is there until it is discarded, and its time is over.
    sqlx::query("UPDATE sexton.executions SET state = 'discarded', finished_at = $1")
        .bind(at(0) + Days::new(40))
        .execute(f.db.pool())
        .await
        .unwrap();
    pruned(&f, 69).await;
    assert_eq!(jobs(&f).await, 2);
    pruned(&f, 71).await;
    pruned(&f, 72).await;
    assert_eq!(jobs(&f).await, 1);
}

async fn applied(f: &Fixture, file: &str, days: u64) -> Applied {
    let specs: Vec<JobSpec> = jobs_file::parse("jobs.toml", file).unwrap();
    let request = Apply { specs: &specs, actor: "ann", dry_run: false, prune: false };
    let fresh = || JobId::new(Uuid::now_v7());
    apply(&f.store(), request, fresh, Some(at(0) + Days::new(days))).await.unwrap()
}

/// It ran, and its execution is gone: as a new job it would run again.
#[tokio::test]
async fn a_one_shot_job_that_is_over_stays_while_a_file_has_it_and_as_long_after_as_a_key() {
    let f = Fixture::without_broker().await;
    let file =
        "[[job]]\nname = \"once\"\ntask = \"work\"\nat = 2020-01-01T00:00:00Z\npast = \"run\"\n";
    assert_eq!(applied(&f, file, 0).await.created, ["once"]);
    // It is due: not over.
    pruned(&f, 500).await;
    assert_eq!(jobs(&f).await, 1);
    sqlx::raw_sql("UPDATE sexton.jobs SET next_fire_at = NULL").execute(f.db.pool()).await.unwrap();
    assert_eq!(applied(&f, file, 510).await.unchanged, ["once"]);
    pruned(&f, 909).await;
    assert_eq!(applied(&f, file, 909).await.unchanged, ["once"], "and it does not run again");
    pruned(&f, 1_308).await;
    assert_eq!(jobs(&f).await, 1);
    assert_eq!(pruned(&f, 1_310).await.other, 1);
    assert_eq!(jobs(&f).await, 0);
}

/// A trigger while retention looks at the job keeps it, or finds it gone; never half of it.
#[tokio::test]
async fn a_job_that_is_triggered_meanwhile_stays() {
    let f = Fixture::without_broker().await;
    f.job(NewJob::new("once")).await;
    sqlx::raw_sql(
        "UPDATE sexton.jobs SET schedule_kind = 'once', schedule_expression = '2020-01-01T00:00:00Z',
                   updated_at = '2020-01-01'",
    )
    .execute(f.db.pool())
    .await
    .unwrap();
    let request = |id| Trigger {
        job: "once",
        key: None,
        params: serde_json::Map::new(),
        id: ExecutionId::new(id),
        claimed_by: "test:1",
    };
    let mut holds = f.db.pool().begin().await.unwrap();
    sqlx::raw_sql("SELECT FROM sexton.jobs FOR NO KEY UPDATE").execute(&mut *holds).await.unwrap();
    assert_eq!(pruned(&f, 31).await.other, 0, "it is passed over");
    holds.rollback().await.unwrap();
    trigger(&f.store(), request(Uuid::now_v7()), Some(ANN), Some(at(0))).await.unwrap();
    assert_eq!(pruned(&f, 32).await.other, 0, "it has an execution");
    sqlx::raw_sql("DELETE FROM sexton.executions").execute(f.db.pool()).await.unwrap();
    assert_eq!(pruned(&f, 33).await.other, 1);
    let gone = trigger(&f.store(), request(Uuid::now_v7()), Some(ANN), None).await;
    assert!(matches!(gone, Err(TriggerError::Missing(_))), "{gone:?}");
}
