//! The forms about failures and their groups, and about requests that wait for another person.

use sexton_model::access::Role;

use super::form::Form;
use super::{BECAUSE, Outcome, Submission, Walk};

const PARAMS: &str = r#"{"customer": 7}"#;

async fn requeue_discard_and_restore(walk: &mut Walk) {
    let failed = walk.f.console.failed().await.to_string();
    let page = format!("/failed/{failed}");
    let requeued = format!("{page}?done=requeued");
    let requeue = Submission {
        route: "/failed/{id}/requeue",
        part: &failed,
        page: &page,
        values: &[("attempt", "2"), BECAUSE],
        outcome: Outcome::LeadsTo(&requeued),
        action: "requeue",
    };
    walk.submit(requeue).await;
    assert_eq!(walk.state(&failed).await, "pending");
    let failed = walk.f.console.failed().await.to_string();
    let page = format!("/failed/{failed}");
    let (discarded, restored) = (format!("{page}?done=discarded"), format!("{page}?done=restored"));
    let discard = Submission {
        route: "/failed/{id}/discard",
        part: &failed,
        page: &page,
        values: &[BECAUSE],
        outcome: Outcome::LeadsTo(&discarded),
        action: "discard",
    };
    walk.submit(discard).await;
    assert_eq!(walk.state(&failed).await, "discarded");
    let restore = Submission {
        route: "/failed/{id}/restore",
        part: &failed,
        page: &page,
        values: &[BECAUSE],
        outcome: Outcome::LeadsTo(&restored),
        action: "restore",
    };
    walk.submit(restore).await;
    assert_eq!(walk.state(&failed).await, "failed");
}

/// The form shows first what changes, and changes it when it is sent again.
async fn edit(walk: &mut Walk) {
    for (typed, done, action, becomes) in [
        (&[("params", PARAMS), ("stay_failed", "true"), BECAUSE][..], "edited", "edit", "failed 7"),
        (&[("params", PARAMS), BECAUSE], "requeued", "edit requeue", "pending 7"),
    ] {
        let failed = walk.f.console.failed().await.to_string();
        let path = format!("/failed/{failed}/edit");
        let shown = Form::filled(&walk.get(Role::Editor, &path).await, &path, typed);
        let last = walk.last_entry().await;
        let page = walk.send(Role::Editor, "POST", &path, &shown.body()).await.expect(200);
        assert_eq!(walk.last_entry().await, last, "nothing is changed by a look at it");
        let changed = format!("/failed/{failed}?done={done}");
        // What was typed stays in the form.
        let edit = Submission {
            route: "/failed/{id}/edit",
            part: &failed,
            page: &path,
            values: &[("attempt", "2"), ("apply", "true"), BECAUSE],
            outcome: Outcome::LeadsTo(&changed),
            action,
        };
        walk.submit_of(page.as_str().unwrap(), edit).await;
        let row = format!(
            "SELECT state || ' ' || (params ->> 'customer') FROM sexton.executions WHERE id = '{failed}'"
        );
        assert_eq!(walk.text(&row).await, becomes);
    }
}

async fn remark(walk: &mut Walk) {
    let groups = walk.f.console.items(&["groups", "list"]).await;
    let group = groups[0]["fingerprint"].as_str().unwrap();
    let page = format!("/failed/groups/{group}");
    let note = Submission {
        route: "/failed/groups/{fingerprint}",
        part: group,
        page: &page,
        values: &[("note", "bank is down")],
        outcome: Outcome::LeadsTo(&page),
        action: "group_note",
    };
    walk.submit(note).await;
    let row = format!(
        "SELECT concat_ws(' ', state, note) FROM sexton.failure_groups WHERE fingerprint = '{group}'"
    );
    assert_eq!(walk.text(&row).await, "open bank is down");
    for (state, action) in
        [("muted", "group_mute"), ("open", "group_reopen"), ("resolved", "group_resolve")]
    {
        let decide = Submission {
            route: "/failed/groups/{fingerprint}",
            part: group,
            page: &page,
            values: &[("state", state), BECAUSE],
            outcome: Outcome::LeadsTo(&page),
            action,
        };
        walk.submit(decide).await;
        assert_eq!(walk.text(&row).await, format!("{state} bank is down"));
    }
}

pub(super) async fn submit_all(walk: &mut Walk) {
    requeue_discard_and_restore(walk).await;
    edit(walk).await;
    remark(walk).await;
}

/// What somebody at the command line has requested is approved, and rejected.
pub(super) async fn submit_approvals(walk: &mut Walk) {
    walk.run(&["approvals", "rules", "set", "all"]).await;
    for (id, route, action, ended, state) in [
        ("1", "/approvals/{id}/approve", "approve_request", "carried_out", "discarded"),
        ("2", "/approvals/{id}/reject", "reject_request", "rejected", "failed"),
    ] {
        let failed = walk.f.console.failed().await.to_string();
        let discard = ["failed", "discard", &*failed, "--yes", "--reason", "x"];
        walk.f.console.run(&discard).await.expect(11);
        let page = format!("/approvals/{id}");
        let decide = Submission {
            route,
            part: id,
            page: &page,
            values: &[BECAUSE],
            outcome: Outcome::LeadsTo(&page),
            action,
        };
        walk.submit(decide).await;
        let row = format!("SELECT state FROM sexton.approval_requests WHERE id = {id}");
        assert_eq!(walk.text(&row).await, ended);
        assert_eq!(walk.state(&failed).await, state);
    }
}
