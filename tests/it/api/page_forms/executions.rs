//! The forms about executions that wait or run, about bulks, and about flows.

use serde_json::json;

use super::{BECAUSE, Outcome, Submission, Walk, id_of_execution};

async fn cancel_and_run_again(walk: &mut Walk) {
    let waiting = walk.f.console.trigger("shop.charge").await.to_string();
    let page = format!("/executions/{waiting}");
    let cancelled = format!("{page}?done=cancelled");
    let cancel = Submission {
        route: "/executions/{id}/cancel",
        part: &waiting,
        page: &page,
        values: &[BECAUSE],
        outcome: Outcome::LeadsTo(&cancelled),
        action: "cancel",
    };
    walk.submit(cancel).await;
    assert_eq!(walk.state(&waiting).await, "cancelled");
    let again = Submission {
        route: "/executions/{id}/run-again",
        part: &waiting,
        page: &page,
        values: &[BECAUSE],
        outcome: Outcome::LeadsTo("/executions/*?done=run_again"),
        action: "trigger",
    };
    let place = walk.submit(again).await;
    let made = id_of_execution(&place);
    assert_ne!(made, waiting);
    assert_eq!(walk.state(&made).await, "pending");
}

/// What a bulk does, its state, its options and its job.
async fn bulk(walk: &Walk, id: i64) -> String {
    let row = format!(
        "SELECT concat_ws(' ', b.kind, b.state, b.rate, b.canary, j.name) FROM sexton.bulks b
         JOIN sexton.jobs j ON j.id::text = b.selector #>> '{{filter,job}}' WHERE b.id = {id}"
    );
    walk.text(&row).await
}

async fn bulks(walk: &mut Walk) {
    walk.f.console.trigger("shop.mail").await;
    let cancel = Submission {
        route: "/executions/bulk",
        part: "",
        page: "/executions/bulk?kind=cancel&job=shop.mail",
        values: &[("kind", "cancel"), ("job", "shop.mail"), ("rate", "9/m"), BECAUSE],
        outcome: Outcome::LeadsTo("/bulks/1"),
        action: "bulk",
    };
    walk.submit(cancel).await;
    assert_eq!(bulk(walk, 1).await, "cancel preparing 9/m shop.mail");
    let stop = Submission {
        route: "/bulks/{id}/stop",
        part: "1",
        page: "/bulks/1",
        values: &[BECAUSE],
        outcome: Outcome::LeadsTo("/bulks/1"),
        action: "bulk_stop",
    };
    walk.submit(stop).await;
    assert_eq!(bulk(walk, 1).await, "cancel stopped 9/m shop.mail");
    let resume = Submission {
        route: "/bulks/{id}/resume",
        part: "1",
        page: "/bulks/1",
        values: &[BECAUSE],
        outcome: Outcome::LeadsTo("/bulks/1"),
        action: "bulk_resume",
    };
    walk.submit(resume).await;
    assert_eq!(bulk(walk, 1).await, "cancel preparing 9/m shop.mail");
    let discarded = walk.f.console.failed().await.to_string();
    walk.run(&["failed", "discard", &discarded, "--yes", "--reason", "x"]).await;
    walk.f.console.failed().await;
    for (id, kind, pace) in [
        (2, "requeue", ("canary", "1")),
        (3, "discard", ("rate", "9/m")),
        (4, "restore", ("rate", "8/h")),
    ] {
        let (page, made) =
            (format!("/failed/bulk?kind={kind}&job=shop.charge"), format!("/bulks/{id}"));
        let change = Submission {
            route: "/failed/bulk",
            part: "",
            page: &page,
            values: &[("kind", kind), ("job", "shop.charge"), pace, BECAUSE],
            outcome: Outcome::LeadsTo(&made),
            action: "bulk",
        };
        walk.submit(change).await;
        assert_eq!(bulk(walk, id).await, format!("{kind} preparing {} shop.charge", pace.1));
    }
}

async fn cancel_flow(walk: &mut Walk) {
    let flow = json!({"name": "nightly", "members": [{"name": "one", "job": "shop.charge"}]});
    let flow: uuid::Uuid = sqlx::query_scalar("SELECT flow_id FROM sexton.flow($1::jsonb)")
        .bind(flow)
        .fetch_one(walk.f.console.store().pool())
        .await
        .unwrap();
    let (flow, page) = (flow.to_string(), format!("/flows/{flow}"));
    let cancel = Submission {
        route: "/flows/{id}/cancel",
        part: &flow,
        page: &page,
        values: &[BECAUSE],
        outcome: Outcome::LeadsTo(&page),
        action: "cancel",
    };
    walk.submit(cancel).await;
    let open = format!("SELECT open::text FROM sexton.flows WHERE id = '{flow}'");
    assert_eq!(walk.text(&open).await, "0");
}

pub(super) async fn submit_all(walk: &mut Walk) {
    cancel_and_run_again(walk).await;
    bulks(walk).await;
    cancel_flow(walk).await;
}
