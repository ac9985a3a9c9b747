//! Verify tasks that no worker offers.

use sexton_operations::doctor::Code;
use sexton_tests::factory::NewJob;

use super::{DoctorFixture, evidence};

impl DoctorFixture {
    /// A job that names the verify task `charged`, paused: what of it failed can be requeued all the same.
    async fn job_that_asks(&self) {
        NewJob::new("shop.charge").insert(self.platform.store().pool()).await.unwrap();
        self.sql(
            "UPDATE sexton.jobs SET verify_task = 'charged', status = 'paused', paused_at = now(), paused_by = 'ann',
                paused_why = 'x' WHERE name = 'shop.charge'",
        )
        .await;
    }

    async fn offers(&self, worker: &str, task: &str) {
        self.sql(&format!(
            "INSERT INTO sexton.offers (instance_id, task_type) SELECT id, '{task}' FROM sexton.instances WHERE name = '{worker}'"
        ))
        .await;
    }
}

#[tokio::test]
async fn doctor_finds_verify_task_unoffered() {
    let fixture = DoctorFixture::new().await;
    fixture.process("worker", "w1", "ready => true, pools => '{default}'").await;
    fixture.offers("w1", "work").await;
    NewJob::new("a.b").insert(fixture.platform.store().pool()).await.unwrap();
    fixture.has_no(Code::VerifyTaskUnoffered).await;
    fixture.job_that_asks().await;
    let found = fixture.has(Code::VerifyTaskUnoffered).await;
    let expected = "charged in pool default, named by shop.charge, 0 questions wait";
    assert_eq!(evidence(&found), expected);
    // One in another pool, one that is silent and one that has stopped are none.
    fixture.process("worker", "w2", "ready => true, pools => '{other}'").await;
    let silent = "pools => '{default}', heartbeat_at => now() - interval '2 minutes'";
    fixture.process("worker", "w3", silent).await;
    fixture.process("worker", "w4", "pools => '{default}', stopped_at => now()").await;
    for worker in ["w2", "w3", "w4"] {
        fixture.offers(worker, "charged").await;
    }
    fixture.has(Code::VerifyTaskUnoffered).await;
    fixture.offers("w1", "charged").await;
    fixture.has_no(Code::VerifyTaskUnoffered).await;
    // What is deleted asks nobody any more.
    fixture.sql("DELETE FROM sexton.offers WHERE task_type = 'charged'").await;
    fixture.has(Code::VerifyTaskUnoffered).await;
    let delete = ["jobs", "delete", "shop.charge", "--reason", "x", "--yes"];
    let deleted = fixture.platform.sexton(&delete).await;
    assert!(deleted.status.success(), "{deleted}");
    fixture.has_no(Code::VerifyTaskUnoffered).await;
}

#[tokio::test]
async fn doctor_finds_verify_task_held() {
    let fixture = DoctorFixture::new().await;
    fixture.process("worker", "w1", "ready => true, pools => '{default}'").await;
    fixture.offers("w1", "charged").await;
    fixture.process("worker", "w2", "ready => true, version => '0.0.9'").await;
    fixture.has_no(Code::VerifyTaskHeld).await;
    fixture.job_that_asks().await;
    let found = fixture.has(Code::VerifyTaskHeld).await;
    assert!(evidence(&found).ends_with(": w2 0.0.9"), "{found}");
    fixture.sql("UPDATE sexton.instances SET stopped_at = now() WHERE name = 'w2'").await;
    fixture.has_no(Code::VerifyTaskHeld).await;
}
