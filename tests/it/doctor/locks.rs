//! Locks of jobs that are held for too long, or by the dead.

use sexton_model::id::JobId;
use sexton_model::state::State;
use sexton_operations::doctor::Code;
use sexton_servers::{PostgresOptions, PostgresServer, shared};
use sexton_service::clock;
use sexton_tests::factory::{NewExecution, NewJob};
use sexton_tests::platform::Platform;
use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, query};

use super::{DoctorFixture, evidence};

impl DoctorFixture {
    /// A job with a timeout of a minute, and with a lock.
    async fn job_with(&self, lock: &str) -> JobId {
        let id = NewJob::new("shop.charge").insert(self.platform.store().pool()).await.unwrap();
        self.sql(&format!("UPDATE sexton.jobs SET {lock}")).await;
        id
    }

    /// An attempt that the worker `w1` opened so many minutes ago.
    async fn attempt(&self, job: JobId, minutes: i64) {
        let at = clock::now() - chrono::TimeDelta::minutes(minutes);
        let lease = chrono::TimeDelta::hours(1);
        let execution = NewExecution { lease, ..NewExecution::new(job, State::Running, at) };
        execution.published().insert(self.platform.store().pool()).await.unwrap();
        let worker = "UPDATE sexton.executions
            SET worker_id = (SELECT id FROM sexton.instances WHERE name = 'w1') WHERE state = 'running'";
        assert_eq!(self.sql(worker).await, 1);
    }
}

#[tokio::test]
async fn doctor_finds_lock_held_too_long() {
    let fixture = DoctorFixture::new().await;
    fixture.process("worker", "w1", "ready => true, pools => '{default}'").await;
    let job = fixture.job_with("lock_key = 5101").await;
    let options = (*fixture.platform.store().pool().connect_options()).clone();
    let options = options.application_name("sexton worker w1 locks");
    let mut session = PgConnection::connect_with(&options).await.unwrap();
    query("SELECT pg_advisory_lock(5101)").execute(&mut session).await.unwrap();
    fixture.attempt(job, 1).await;
    fixture.is_well().await;
    fixture.sql("UPDATE sexton.executions SET started_at = now() - interval '1 hour'").await;
    let found = fixture.has(Code::LockHeldTooLong).await;
    assert!(
        evidence(&found).starts_with("key 5101 of shop.charge for 1 h, timeout 1 m: "),
        "{found}"
    );
    assert!(evidence(&found).ends_with(" runs on w1"), "{found}");
    query("SELECT pg_advisory_unlock(5101)").execute(&mut session).await.unwrap();
    fixture.has_no(Code::LockHeldTooLong).await;
    // A row as well, also one of another program.
    fixture
        .sql("UPDATE sexton.jobs SET lock_key = NULL, lock_row = 'charge', lock_at_most_ms = 1, lock_at_least_ms = 0")
        .await;
    fixture
        .sql(
            "INSERT INTO sexton.lock_rows (name, lock_until, locked_at, locked_by)
             VALUES ('charge', timezone('utc', now()) + interval '1 hour', timezone('utc', now()), 'app1')",
        )
        .await;
    fixture.is_well().await;
    fixture.sql("UPDATE sexton.lock_rows SET locked_at = locked_at - interval '3 minutes'").await;
    let found = fixture.has(Code::LockHeldTooLong).await;
    assert!(evidence(&found).starts_with("row charge of shop.charge for 3 m"), "{found}");
    fixture.sql("UPDATE sexton.lock_rows SET lock_until = locked_at").await;
    fixture.is_well().await;
}

/// As behind a pooler: the client that took the lock is gone, and the session is not.
#[tokio::test]
async fn doctor_finds_lock_stranded() {
    let options = PostgresOptions { own_clock: true, ..PostgresOptions::default() };
    let (postgres, shared) = tokio::join!(PostgresServer::start_private(options), shared());
    let postgres = postgres.unwrap();
    let platform = Platform::on(postgres.url(), &shared.unwrap().amqp_url).await.unwrap();
    let fixture = DoctorFixture::of(platform).await;
    fixture.process("worker", "w1", "ready => true, pools => '{default}'").await;
    fixture.job_with("lock_key = 5101").await;
    let options = (*fixture.platform.store().pool().connect_options()).clone();
    let mut session =
        PgConnection::connect_with(&options.application_name("billing-api")).await.unwrap();
    query("SELECT pg_advisory_lock(5101)").execute(&mut session).await.unwrap();
    fixture.is_well().await;
    // The session does nothing for a day.
    postgres.set_clock(25 * 3_600).unwrap();
    let found = fixture.has(Code::LockStranded).await;
    assert!(evidence(&found).contains("5101"), "{found}");
    assert!(evidence(&found).contains("billing-api"), "{found}");
    query("SELECT 1").execute(&mut session).await.unwrap();
    fixture.has_no(Code::LockStranded).await;
}

#[tokio::test]
async fn doctor_finds_lock_left_behind() {
    let fixture = DoctorFixture::new().await;
    fixture.process("worker", "w1", "ready => true, pools => '{default}'").await;
    let job = fixture
        .job_with("lock_row = 'charge', lock_at_most_ms = 3600000, lock_at_least_ms = 0, timeout_ms = 3600000")
        .await;
    fixture.attempt(job, 10).await;
    fixture
        .sql(
            "INSERT INTO sexton.lock_rows (name, lock_until, locked_at, locked_by)
             VALUES ('charge', timezone('utc', now()) + interval '1 hour',
                     timezone('utc', now()) - interval '9 minutes', 'h1:1:x')",
        )
        .await;
    fixture.is_well().await;
    fixture
        .sql(
            "UPDATE sexton.executions SET state = 'succeeded', finished_at = now(), outcome = 'lost',
                 worker_id = NULL, open_token = NULL, lease_until = NULL",
        )
        .await;
    // Its worker releases the row just after it has recorded the end.
    fixture.is_well().await;
    fixture.sql("UPDATE sexton.attempts SET finished_at = now() - interval '2 minutes'").await;
    let found = fixture.has(Code::LockLeftBehind).await;
    assert!(evidence(&found).starts_with("charge: attempt 1 of "), "{found}");
    assert!(evidence(&found).contains("on w1 has ended (lost), its time ends in "), "{found}");
    let break_row = ["locks", "break", "charge", "--reason", "w1 is dead", "--yes"];
    let broken = fixture.platform.sexton(&break_row).await;
    assert!(broken.status.success(), "{broken}");
    fixture.is_well().await;
}
