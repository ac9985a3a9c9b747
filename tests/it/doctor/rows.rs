//! Rows that wait for somebody.

use chrono::TimeDelta;
use sexton_model::id::ExecutionId;
use sexton_model::state::State;
use sexton_operations::doctor::Code;
use sexton_service::clock;
use sexton_tests::factory::{NewExecution, NewJob};

use super::{DoctorFixture, evidence};

impl DoctorFixture {
    /// An execution of a job of its own, in a state since so many minutes.
    pub(super) async fn execution(
        &self,
        state: State,
        minutes: i64,
        published: bool,
    ) -> ExecutionId {
        let pool = self.platform.store().pool();
        let name = format!("a.{}", &uuid::Uuid::new_v4().simple().to_string()[..8]);
        let job = NewJob::new(name).insert(pool).await.unwrap();
        let execution = NewExecution::new(job, state, clock::now() - TimeDelta::minutes(minutes));
        let execution = if published { execution.published() } else { execution };
        execution.insert(pool).await.unwrap()
    }
}

#[tokio::test]
async fn doctor_finds_tickets_unpublished() {
    let fixture = DoctorFixture::new().await;
    fixture.execution(State::Pending, 5, false).await;
    let found = fixture.has(Code::TicketsUnpublished).await;
    assert!(evidence(&found).starts_with("1 are unpublished, the oldest for 5 m"), "{found}");
}

#[tokio::test]
async fn doctor_finds_tickets_lost() {
    let fixture = DoctorFixture::new().await;
    fixture.execution(State::Pending, 4, true).await;
    fixture.has_no(Code::TicketsLost).await;
    fixture.execution(State::Pending, 20, true).await;
    let found = fixture.has(Code::TicketsLost).await;
    assert!(evidence(&found).contains("1 of pool default"), "{found}");
    assert!(evidence(&found).contains("its main queue holds 0"), "{found}");
}

#[tokio::test]
async fn doctor_finds_leases_overdue() {
    let fixture = DoctorFixture::new().await;
    fixture.execution(State::Running, 2, true).await;
    let found = fixture.has(Code::LeasesOverdue).await;
    assert!(evidence(&found).starts_with("1, the first since "), "{found}");
    assert_eq!(found["fix"], false, "what follows is a scheduler's to decide");
}

#[tokio::test]
async fn doctor_finds_audit_unsealed() {
    let fixture = DoctorFixture::new().await;
    let record =
        "INSERT INTO sexton.operator_actions (at, actor, action) VALUES (now(), 'ann', 'pause')";
    fixture.sql(record).await;
    fixture.is_well().await;
    let wait =
        "UPDATE sexton.audit_unsealed SET waiting_since = waiting_since - interval '6 minutes'";
    fixture.sql(wait).await;
    let found = fixture.has(Code::AuditUnsealed).await;
    assert!(evidence(&found).starts_with("1 action, the first for 6 m"), "{found}");
    sexton_store::operator::chain::seal(fixture.platform.store(), 10).await.unwrap();
    fixture.has_no(Code::AuditUnsealed).await;
    // One that somebody has removed can never be sealed; `sexton audit verify` names it.
    fixture.sql(record).await;
    fixture.sql(wait).await;
    fixture.has(Code::AuditUnsealed).await;
    let remove = "DO $$ BEGIN PERFORM set_config('session_replication_role', 'replica', true);
                  DELETE FROM sexton.operator_actions WHERE id = (SELECT max(id) FROM sexton.operator_actions); END $$";
    fixture.sql(remove).await;
    fixture.has_no(Code::AuditUnsealed).await;
}
