//! The other routes that change something, the forms of pages, and bulks of several jobs.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sexton_model::id::ExecutionId;

use super::{OTHERS, count, restricted};
use crate::api::Fixture;
use crate::console::fixture::arrange;

/// Routes that other tests here try.
const ELSEWHERE: [&str; 5] = [
    "POST /approvals/{id}/approve",
    "POST /approvals/{id}/reject",
    "POST /failure-groups/{fingerprint}/remark",
    "POST /jobs:trigger",
    "POST /locks/{name}/break",
];

/// An execution of `shop.mail` that has failed.
pub(super) async fn failed_mail(f: &Fixture) -> ExecutionId {
    let id = f.console.json(&["jobs", "trigger", "shop.mail"]).await["id"].clone();
    let id: ExecutionId = id.as_str().unwrap().parse().unwrap();
    f.console.fail(f.console.open(id, 1).await, "no such address", None).await;
    id
}

#[tokio::test]
async fn who_is_restricted_to_jobs_changes_nothing_that_belongs_to_others_or_to_no_job() {
    let f = Fixture::new().await;
    let admin = f.token("root", "admin").await;
    let nightly = "[[job]]\nname = \"shop.nightly\"\nschedule = \"0 1 1 * *\"\ntask = \"report\"\n";
    let apply = json!({"file": "nightly.toml", "text": nightly}).to_string();
    f.ask(&admin, "POST", "/jobs:apply", &apply).await.expect(200);
    let values = arrange(&f).await;
    let value = |name: &str| values.iter().find(|(it, _)| *it == name).unwrap().1.as_str();
    let token = restricted(&f, "team", "editor", "billing.*").await;
    let because = || json!({"reason": "x"});
    let id = |route: &'static str, name: &str| (route, route.replace("{id}", value(name)));
    let name = |route: &'static str, name: &str| (route, route.replace("{name}", name));
    let requests: Vec<((&str, String), Value)> = vec![
        (id("/flows/{id}/cancel", "flow"), because()),
        (id("/incidents/{id}/acknowledge", "incident"), because()),
        (id("/incidents/{id}/silence", "incident"), json!({"for_s": 3600, "reason": "x"})),
        (id("/incidents/{id}/resolve", "incident"), because()),
        (id("/failures/{id}/restore", "discarded"), because()),
        (id("/unknown-messages/{id}/discard", "message"), because()),
        (id("/unknown-messages/{id}/restore", "message discarded"), json!({})),
        (name("/checks/{name}/pause", "backup"), because()),
        (name("/checks/{name}/resume", "paused"), because()),
        (name("/channels/{name}/test", "ops"), Value::Null),
        (name("/jobs/{name}/resume", "shop.mail"), because()),
        (("/bulks/{id}/resume", "/bulks/1/resume".to_owned()), because()),
        (name("/lock-keys/{name}/assign", "billing"), json!({})),
        (name("/lock-keys/{name}/remove", "shop"), json!({})),
        (
            ("/lock-keys:import", "/lock-keys:import".to_owned()),
            json!({"text": "service,start,keys\nbilling,7000,10\n"}),
        ),
        (
            ("/catch-up", "/catch-up".to_owned()),
            json!({"decision": "release", "jobs": ["shop.nightly"]}),
        ),
        (("/catch-up", "/catch-up".to_owned()), json!({"decision": "discard"})),
        (
            ("/jobs:apply", "/jobs:apply".to_owned()),
            json!({"prune": true, "text": "[[job]]\nname = \"billing.invoices\"\ntask = \"report\"\n"}),
        ),
    ];
    let recorded = count(&f, "operator_actions").await;
    let held = count(&f, "held_firings").await;
    let mut left: BTreeSet<&str> =
        OTHERS.split("POST ").map(str::trim).filter(|route| !route.is_empty()).collect();
    let refuse = async |path: &str, body: &Value| {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let refused = f.ask(&token, "POST", path, &body).await;
        assert_eq!(refused.status, 403, "{path}: {}", refused.body);
        let detail = refused.body["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("restricted to the jobs billing.*"), "{path}: {detail}");
    };
    for ((route, path), body) in &requests {
        refuse(path, body).await;
        left.remove(route);
    }
    assert_eq!(count(&f, "operator_actions").await, recorded, "nothing was changed");
    assert_eq!(count(&f, "held_firings").await, held);
    let silence = format!("/incidents/{}/silence", value("incident"));
    let hour = json!({"for_s": 3600, "reason": "x"}).to_string();
    f.ask(&admin, "POST", &silence, &hour).await.expect(200);
    refuse(&silence.replace("silence", "unsilence"), &because()).await;
    left.remove("/incidents/{id}/unsilence");
    let elsewhere = ELSEWHERE.iter().filter_map(|route| route.strip_prefix("POST "));
    assert_eq!(left, elsewhere.collect(), "nobody has looked at these");
    // Its firings that are held, it decides.
    let mine = json!({"decision": "discard", "jobs": ["billing.invoices"]}).to_string();
    f.ask(&token, "POST", "/catch-up", &mine).await.expect(200);
}

#[tokio::test]
async fn a_bulk_of_several_jobs_needs_all_of_them() {
    let f = Fixture::new().await;
    let (charge, mail) = (f.console.failed().await, failed_mail(&f).await);
    let waiting = f.console.json(&["jobs", "trigger", "shop.mail"]).await["id"].clone();
    let token = restricted(&f, "team", "operator", "shop.c*").await;
    let ids = |kind: &str, ids: &[String]| {
        let each: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
        json!({"kind": kind, "executions": each, "reason": "x"}).to_string()
    };
    let post = async |body: &str| f.ask(&token, "POST", "/bulks", body).await;
    let both = [charge.to_string(), mail.to_string()];
    for kind in ["requeue", "discard"] {
        post(&ids(kind, &both)).await.expect(403);
    }
    post(&ids("cancel", &[waiting.as_str().unwrap().to_owned()])).await.expect(403);
    let mails = json!({"kind": "cancel", "filter": {"job_prefix": "shop.mail"}}).to_string();
    post(&mails).await.expect(403);
    assert_eq!(count(&f, "bulks").await, 0);
    let cancelled = f.console.json(&["jobs", "trigger", "shop.charge"]).await["id"].clone();
    let all = json!({"kind": "cancel", "all": true, "reason": "x"}).to_string();
    let bulk = post(&all).await.expect(201);
    assert_eq!(bulk["selector"]["filter"]["job_prefix"], "shop.c", "{bulk}");
    let one = [cancelled.as_str().unwrap().to_owned()];
    post(&ids("cancel", &one)).await.expect(201);
    post(&ids("requeue", &both[..1])).await.expect(201);
}
