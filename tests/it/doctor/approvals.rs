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

    /// Makes request 1, a discard, as if another person had requested it three hours before.
    async fn request_discard(&self) {
        let id = self.execution(State::Failed, 5, true).await.to_string();
        let rule = self.platform.sexton(&["approvals", "rules", "set", "all"]).await;
        assert!(rule.status.success(), "{rule}");
        let discard = ["failed", "discard", &*id, "--yes", "--reason", "in vain"];
        let waits = self.platform.sexton(&discard).await;
        assert_eq!(waits.status.code(), Some(11), "{waits}");
        let by_another = "UPDATE sexton.approval_requests SET requested_by_names = '{somebody}',
            requested_at = requested_at - interval '3 hours'";
        self.sql(by_another).await;
    }
}

#[tokio::test]
async fn doctor_finds_approved_not_carried_out() {
    let fixture = DoctorFixture::new().await;
    fixture.request_discard().await;
    fixture.has_no(Code::ApprovedNotCarriedOut).await;

    fixture.approval_dies("console.approved").await;
    fixture.has_no(Code::ApprovedNotCarriedOut).await;
    let age =
        "UPDATE sexton.approvals SET approved_at = approved_at - interval '2 hours 6 minutes'";
    fixture.sql(age).await;
    let found = fixture.has(Code::ApprovedNotCarriedOut).await;
    assert!(evidence(&found).starts_with("request 1 (discard) for 2 h"), "{found}");

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

#[tokio::test]
async fn doctor_counts_all_approved_requests_that_are_not_carried_out() {
    let fixture = DoctorFixture::new().await;
    fixture.request_discard().await;
    let copies = "INSERT INTO sexton.approval_requests (kind, proposal, digest, people, rules, requested_by, requested_by_names,
             requested_at, expires_at)
         SELECT kind, proposal, md5(n::text) || md5(n::text), people, rules, requested_by, requested_by_names, requested_at, expires_at
         FROM sexton.approval_requests, generate_series(2, 120) n WHERE id = 1";
    assert_eq!(fixture.sql(copies).await, 119);
    let approved = "INSERT INTO sexton.approvals (request_id, actor, actor_names, approved_at)
         SELECT id, 'account bob', '{bob}', requested_at FROM sexton.approval_requests";
    assert_eq!(fixture.sql(approved).await, 120);
    let found = fixture.has(Code::ApprovedNotCarriedOut).await;
    assert!(evidence(&found).ends_with(", and 115 more"), "{found}");
}
