//! The forms of pages are restricted as the routes of the API are.

use std::collections::BTreeMap;

use super::others::failed_mail;
use super::{count, restricted};
use crate::api::Fixture;
use crate::api::copied::OF_BROWSERS;
use crate::console::fixture::arrange;
use crate::console::routes::routes;

/// The forms that pages accept, and those that only admins may send left out.
fn forms() -> Vec<String> {
    let mut found = routes("post");
    found.retain(|path| !path.starts_with("/settings/") && !OF_BROWSERS.contains(&&**path));
    found
}

async fn post(f: &Fixture, token: &str, path: &str, form: &str) -> (u16, String) {
    let authorization = format!("Authorization: Bearer {token}");
    let headers = ["Host: localhost", "Sec-Fetch-Site: same-origin", &authorization];
    let answer = f.send_to("POST", path, &headers, form).await;
    (answer.status, answer.body.as_str().unwrap_or_default().to_owned())
}

/// The form that makes an edit, with the digest of the page that showed it.
async fn edit_form(f: &Fixture, token: &str, path: &str) -> String {
    let form = "attempt=2&params=%7B%22customer%22%3A1%7D&stay_failed=true&reason=x";
    let (status, page) = post(f, token, path, form).await;
    assert_eq!(status, 200, "{page}");
    let shown = page.split(r#"name="shown" value=""#).nth(1).and_then(|it| it.split('"').next());
    format!("{form}&apply=true&shown={}", shown.unwrap_or_else(|| panic!("{page}")))
}

#[tokio::test]
async fn who_is_restricted_to_jobs_changes_no_other_by_any_form() {
    let f = Fixture::new().await;
    let run = async |command: &[&str]| f.console.run(command).await.expect(0).text();
    let nightly = "[[job]]\nname = \"shop.nightly\"\nschedule = \"0 1 1 * *\"\ntask = \"report\"\n";
    run(&["jobs", "apply", "-f", &f.console.file("nightly.toml", nightly)]).await;
    let (id, mail) = (f.console.failed().await.to_string(), failed_mail(&f).await.to_string());
    let waiting = f.console.json(&["jobs", "trigger", "shop.mail"]).await["id"].clone();
    let slowly = ["failed", "requeue", &mail, "--rate", "1/h", "--detach", "--yes"];
    run(&slowly).await;
    let values = arrange(&f).await;
    let value = |name: &str| values.iter().find(|(it, _)| *it == name).unwrap().1.clone();
    let [incident, flow, discarded] = ["incident", "flow", "discarded"].map(value);
    f.console.incident("silenced", "high", "open", 60).await;
    run(&["incidents", "silence", "silenced", "--for", "1h", "--reason", "x"]).await;
    let groups = f.console.json(&["groups", "list"]).await;
    let group = groups["items"][0]["fingerprint"].as_str().unwrap().to_owned();
    let incidents = f.console.json(&["incidents", "list"]).await;
    let silenced =
        incidents["items"].as_array().unwrap().iter().find(|it| it["name"] == "silenced");
    let silenced = silenced.unwrap()["id"].as_str().unwrap().to_owned();
    let token = restricted(&f, "team", "editor", "billing.*").await;
    let edit = edit_form(&f, &token, &format!("/failed/{id}/edit")).await;
    let backfill = "since=2024-01-01T00:00:00Z&until=2024-04-01T00:00:00Z&reason=x";
    let waiting = waiting.as_str().unwrap();
    let (because, name) = ("reason=x", "shop.mail");
    // The form's path, what stands for the part in braces, and its fields.
    let all = BTreeMap::from([
        ("/jobs:trigger", ("", "contains=shop.charge&seen=x&key=all")),
        ("/jobs/{name}/trigger", (name, "params=%7B%7D")),
        ("/jobs/{name}/pause", ("shop.charge", because)),
        ("/jobs/{name}/resume", (name, because)),
        ("/jobs/{name}/backfill", ("shop.nightly", backfill)),
        ("/incidents/{id}/acknowledge", (&incident, because)),
        ("/incidents/{id}/silence", (&incident, "for=1h&reason=x")),
        ("/incidents/{id}/unsilence", (&silenced, because)),
        ("/incidents/{id}/resolve", (&incident, because)),
        ("/bulks/{id}/stop", ("1", because)),
        ("/bulks/{id}/resume", ("2", because)),
        ("/channels/{name}/test", ("ops", "")),
        ("/flows/{id}/cancel", (&flow, because)),
        ("/failed/bulk", ("", "kind=discard&reason=x&job_prefix=shop.")),
        ("/executions/bulk", ("", "kind=cancel&reason=x&job_prefix=shop.")),
        ("/failed/groups/{fingerprint}", (&group, "state=muted&reason=x")),
        ("/failed/{id}/edit", (&id, &edit)),
        ("/failed/{id}/requeue", (&id, "attempt=2")),
        ("/failed/{id}/discard", (&id, because)),
        ("/failed/{id}/restore", (&discarded, because)),
        ("/executions/{id}/cancel", (waiting, because)),
        ("/executions/{id}/run-again", (&id, because)),
        ("/checks/{name}/pause", ("backup", because)),
        ("/checks/{name}/resume", ("paused", because)),
        ("/approvals/{id}/approve", ("1", because)),
        ("/approvals/{id}/reject", ("1", because)),
    ]);
    // What waits for a second person is looked at behind the others, which would wait as well.
    let (approvals, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
        all.into_iter().partition(|(path, _)| path.starts_with("/approvals/"));
    let viewer = f.token("viewer", "viewer").await;
    let (recorded, made) = (count(&f, "operator_actions").await, count(&f, "executions").await);
    let refuse = async |path: &str, (part, form): (&str, &str)| {
        let braces = path.find('{').zip(path.find('}'));
        let address = braces.map_or(path.to_owned(), |(from, to)| {
            format!("{}{part}{}", &path[..from], &path[to + 1..])
        });
        let (status, page) = post(&f, &viewer, &address, form).await;
        assert_eq!(status, 403, "a viewer at {address}: {page}");
        let (status, page) = post(&f, &token, &address, form).await;
        assert_eq!(status, 403, "{address}: {page}");
        assert!(page.contains("restricted to the jobs billing.*"), "{address}: {page}");
    };
    let mut left = forms();
    assert_eq!(left.len(), others.len() + approvals.len());
    for (path, filled) in others {
        refuse(path, filled).await;
        left.retain(|form| form != path);
    }
    assert_eq!(count(&f, "operator_actions").await, recorded, "nothing was changed");
    assert_eq!(count(&f, "executions").await, made);
    run(&["approvals", "rules", "set", "all"]).await;
    f.console.run(&["failed", "discard", &id, "--yes", "--reason", "x"]).await.expect(11);
    for (path, filled) in approvals {
        refuse(path, filled).await;
        left.retain(|form| form != path);
    }
    assert!(left.is_empty(), "nobody has looked at {left:?}");
    let (status, page) = post(&f, &token, "/jobs/billing.invoices/pause", because).await;
    assert_eq!(status, 303, "{page}");
}

#[tokio::test]
async fn each_of_two_people_sees_in_a_preview_what_that_one_may_change() {
    let f = Fixture::new().await;
    f.console.failed().await;
    let team = restricted(&f, "team", "editor", "billing.*").await;
    let admin = f.token("root", "editor").await;
    let preview = async |token: &str| {
        let authorization = format!("Authorization: Bearer {token}");
        let headers = ["Host: localhost", "Sexton-Refresh: 1", &authorization];
        let page = f.send_to("GET", "/failed/bulk?kind=requeue", &headers, "").await.expect(200);
        page.as_str().unwrap().to_owned()
    };
    let (all, none) = tokio::join!(preview(&admin), preview(&team));
    assert!(all.contains("shop.charge"), "{all}");
    assert!(!none.contains("shop.charge"), "{none}");
}

#[tokio::test]
async fn a_trigger_of_all_that_match_is_of_the_jobs_that_one_may_change() {
    let f = Fixture::new().await;
    let token = restricted(&f, "team", "operator", "billing.*").await;
    let get = async |address: &str, status: u16| {
        let authorization = format!("Authorization: Bearer {token}");
        let headers = ["Host: localhost", "Sec-Fetch-Site: same-origin", &authorization];
        let page = f.send_to("GET", address, &headers, "").await.expect(status);
        page.as_str().unwrap().to_owned()
    };
    let page = get("/jobs:trigger?key=all", 200).await;
    assert!(page.contains("<h1>Trigger 1 job</h1>") && !page.contains("shop.charge"), "{page}");
    let seen = page.split(r#"name="seen" value=""#).nth(1).and_then(|it| it.split('"').next());
    let form = format!("seen={}&key=all", seen.unwrap());
    let (status, page) = post(&f, &token, "/jobs:trigger", &form).await;
    assert!(status == 200 && page.contains("1 of 1 job was triggered."), "{page}");
    let none = get("/jobs:trigger?contains=shop.&key=all", 200).await;
    assert!(none.contains("No job matches"), "{none}");
    let ours = restricted(&f, "ours", "operator", "team=billing").await;
    let (status, page) = post(&f, &ours, "/jobs:trigger", "label=team%3Dshop&seen=x&key=b").await;
    assert!(status == 403 && page.contains("restricted to the jobs team=billing"), "{page}");
    assert_eq!(count(&f, "executions").await, 1);
}

#[tokio::test]
async fn a_filter_by_the_beginning_of_names_stays_on_its_way_through_the_pages() {
    let f = Fixture::new().await;
    let (charge, mail) = (f.console.failed().await, failed_mail(&f).await);
    let authorization = format!("Authorization: Bearer {}", f.token("ann", "operator").await);
    let headers = ["Host: localhost", "Sec-Fetch-Site: same-origin", &authorization];
    let get = async |path: &str| {
        let page = f.send_to("GET", path, &headers, "").await.expect(200);
        page.as_str().unwrap().to_owned()
    };
    let listed = get("/failed?job_prefix=shop.c").await;
    assert!(
        listed.contains(&charge.to_string()) && !listed.contains(&mail.to_string()),
        "{listed}"
    );
    for page in [
        listed,
        get("/executions?job_prefix=shop.c").await,
        get("/failed/bulk?kind=requeue&job_prefix=shop.c").await,
    ] {
        assert!(page.contains(r#"name="job_prefix" value="shop.c""#), "{page}");
    }
    let form = "kind=requeue&job_prefix=shop.c";
    let created = f.send_to("POST", "/failed/bulk", &headers, form).await;
    assert_eq!(created.status, 303, "{}", created.body);
    let bulk = f.console.json(&["bulks", "show", "1"]).await;
    assert_eq!(bulk["bulk"]["selector"]["filter"]["job_prefix"], "shop.c", "{bulk}");
    assert!(get("/bulks/1").await.contains("of jobs whose names begin with shop.c"));
}
