//! The forms that run, pause and resume jobs.

use super::{BECAUSE, Outcome, Submission, Walk, id_of_execution};
use crate::api::approvals::executions_of;

/// The job, the state and the customer of the execution to which an answer leads.
async fn made(walk: &Walk, place: &str) -> String {
    let id = id_of_execution(place);
    let row = format!(
        "SELECT concat_ws(' ', j.name, e.state, e.params ->> 'customer') FROM sexton.executions e
         JOIN sexton.jobs j ON j.id = e.job_id WHERE e.id = '{id}'"
    );
    walk.text(&row).await
}

async fn trigger(walk: &mut Walk) {
    let plain = Submission {
        route: "/jobs/{name}/trigger",
        part: "shop.charge",
        page: "/jobs/shop.charge",
        values: &[BECAUSE],
        outcome: Outcome::LeadsTo("/executions/*?done=run_again"),
        action: "trigger",
    };
    let place = walk.submit(plain).await;
    assert_eq!(made(walk, &place).await, "shop.charge pending 4891");
    let with_params = Submission {
        route: "/jobs/{name}/trigger",
        part: "shop.charge",
        page: "/jobs/shop.charge/trigger",
        values: &[("params", r#"{"customer": 7}"#), BECAUSE],
        outcome: Outcome::LeadsTo("/executions/*?done=run_again"),
        action: "trigger",
    };
    let place = walk.submit(with_params).await;
    assert_eq!(made(walk, &place).await, "shop.charge pending 7");
    let all = Submission {
        route: "/jobs:trigger",
        part: "",
        page: "/jobs:trigger?contains=shop.charge&key=evening",
        values: &[("contains", "shop.charge"), ("key", "evening"), BECAUSE],
        outcome: Outcome::Shows("1 of 1 job was triggered."),
        action: "trigger",
    };
    walk.submit(all).await;
    let of_key = "SELECT state FROM sexton.executions WHERE execution_key = 'evening'";
    assert_eq!(walk.text(of_key).await, "pending");
}

pub(super) async fn submit_all(walk: &mut Walk) {
    trigger(walk).await;
    let pause = Submission {
        route: "/jobs/{name}/pause",
        part: "shop.mail",
        page: "/jobs/shop.mail",
        values: &[BECAUSE],
        outcome: Outcome::LeadsTo("/jobs/shop.mail?done=paused"),
        action: "pause",
    };
    walk.submit(pause).await;
    let paused = "SELECT coalesce(paused_by || ': ' || paused_why, 'active') FROM sexton.jobs WHERE name = 'shop.mail'";
    assert_eq!(walk.text(paused).await, "token operator: it's due");
    let resume = Submission {
        route: "/jobs/{name}/resume",
        part: "shop.mail",
        page: "/jobs/shop.mail",
        values: &[BECAUSE],
        outcome: Outcome::LeadsTo("/jobs/shop.mail?done=resumed"),
        action: "resume",
    };
    walk.submit(resume).await;
    assert_eq!(walk.text(paused).await, "active");
    let backfill = Submission {
        route: "/jobs/{name}/backfill",
        part: "billing.invoices",
        page: "/jobs/billing.invoices/backfill?since=2024-01-01T00:00:00Z&until=2024-04-01T00:00:00Z&rate=9/m&reason=it%27s+due",
        // All of them hidden: they are what was previewed.
        values: &[("rate", "9/m"), BECAUSE],
        outcome: Outcome::LeadsTo("/jobs/billing.invoices?done=backfilled"),
        action: "backfill",
    };
    walk.submit(backfill).await;
    assert_eq!(executions_of(&walk.f, "billing.invoices").await, 3);
}
