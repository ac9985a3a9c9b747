//! Actions that are approved, and that nobody carries out.

use sexton_model::state::State;
use sexton_operations::doctor::Code;

use super::{DoctorFixture, evidence};

impl DoctorFixture {
    /// Approves request 1 by a process that is killed at this point.
    async fn approval_dies(&self, point: &str) {
        let approve = ["approvals", "approve", "1", "--yes"];
        let output = self.platform.sexton_with(&[("FAULT_POINT", point)], &approve).await;
        assert_eq!(output.status.code(), None, "a signal has ended it: {output}");
    }
}

#[tokio::test]
async fn doctor_finds_approved_not_carried_out() {
    let fixture = DoctorFixture::new().await;
    let id = fixture.execution(State::Failed, 5, true).await.to_string();
    let rule = fixture.platform.sexton(&["approvals", "rules", "set", "all"]).await;
    assert!(rule.status.success(), "{rule}");
    let discard = ["failed", "discard", &*id, "--yes", "--reason", "in vain"];
    let waits = fixture.platform.sexton(&discard).await;
    assert_eq!(waits.status.code(), Some(11), "{waits}");
    // As if another person had requested it, an hour before.
    let by_another = "UPDATE sexton.approval_requests SET requested_by_names = '{somebody}',
        requested_at = requested_at - interval '1 hour'";
    fixture.sql(by_another).await;
    fixture.has_no(Code::ApprovedNotCarriedOut).await;

    fixture.approval_dies("console.approved").await;
    fixture.has_no(Code::ApprovedNotCarriedOut).await;
    fixture
        .sql("UPDATE sexton.approvals SET approved_at = approved_at - interval '6 minutes'")
        .await;
    let found = fixture.has(Code::ApprovedNotCarriedOut).await;
    assert!(evidence(&found).starts_with("request 1 (discard) for 6 m"), "{found}");

    // A process that has just begun is at it.
    fixture.approval_dies("console.claimed").await;
    fixture.has_no(Code::ApprovedNotCarriedOut).await;
    let lapsed =
        "UPDATE sexton.approval_requests SET claimed_at = claimed_at - interval '6 minutes'";
    fixture.sql(lapsed).await;
    fixture.has(Code::ApprovedNotCarriedOut).await;
    let expires = "UPDATE sexton.approval_requests SET expires_at = now()";
    fixture.sql(expires).await;
    fixture.has_no(Code::ApprovedNotCarriedOut).await;

    fixture.sql("UPDATE sexton.approval_requests SET expires_at = now() + interval '1 hour'").await;
    fixture.has(Code::ApprovedNotCarriedOut).await;
    let done = fixture.platform.sexton(&["approvals", "approve", "1", "--yes"]).await;
    assert!(done.status.success() && done.stdout.contains("is carried out"), "{done}");
    fixture.has_no(Code::ApprovedNotCarriedOut).await;
}
