//! Which role each page and each form needs, and the headers by which a browser guards every answer.

use std::collections::BTreeSet;

use sexton_model::access::Role;
use sexton_server::pages::CONTENT_SECURITY_POLICY;

use super::fixture::{NO_PAGES, Rows};
use super::routes::routes;
use crate::api::{Answer, Fixture};

/// The routes of pages, by the role that they need; `None`: they are for everybody.
const READING: [(Option<Role>, &str); 5] = [
    (None, "/assets/{name} /log-in /log-in/oidc /log-in/oidc/callback /set-up"),
    (
        Some(Role::Viewer),
        "/ /approvals /approvals/{id} /audit /bulks /bulks/{id} /channels /checks /checks/{name} /events
        /executions /executions/{id} /failed /failed/groups /failed/groups/{fingerprint} /failed/{id} /firings /flows /flows/{id}
        /incidents /incidents/{id} /jobs /jobs/{name} /jobs/{name}/backfill /jobs/{name}/trigger /locks /me /monitors /search
        /pools /settings /upcoming /workers /workers/{name}",
    ),
    (Some(Role::Operator), "/executions/bulk /failed/bulk /jobs:trigger"),
    (Some(Role::Editor), "/failed/{id}/edit"),
    (Some(Role::Admin), "/settings/accounts /settings/tokens"),
];

/// The routes of forms, as in [`READING`].
const SENDING: [(Option<Role>, &str); 4] = [
    (None, "/log-in /log-out /set-up"),
    (
        Some(Role::Operator),
        "/approvals/{id}/approve /approvals/{id}/reject /bulks/{id}/resume /bulks/{id}/stop /channels/{name}/test
        /checks/{name}/pause /checks/{name}/resume /executions/bulk /executions/{id}/cancel /executions/{id}/run-again /failed/bulk
        /failed/groups/{fingerprint} /failed/{id}/discard /failed/{id}/requeue /failed/{id}/restore /flows/{id}/cancel
        /incidents/{id}/acknowledge /incidents/{id}/resolve /incidents/{id}/silence /incidents/{id}/unsilence
        /jobs/{name}/backfill /jobs/{name}/pause /jobs/{name}/resume /jobs/{name}/trigger /jobs:trigger",
    ),
    (Some(Role::Editor), "/failed/{id}/edit"),
    (
        Some(Role::Admin),
        "/settings/accounts /settings/accounts/{name}/disable /settings/accounts/{name}/enable
        /settings/accounts/{name}/password /settings/accounts/{name}/role /settings/tokens /settings/tokens/{name}/revoke",
    ),
];

fn needed(table: &[(Option<Role>, &str)], route: &str) -> Option<Role> {
    let found = table.iter().find(|(_, routes)| routes.split_whitespace().any(|it| it == route));
    found.unwrap_or_else(|| panic!("no test says which role {route} needs")).0
}

/// Returns the role that a page needs; `None`: it is for everybody.
pub(super) fn role_for_reading(route: &str) -> Option<Role> {
    needed(&READING, route)
}

/// Returns the role that a form needs, as [`role_for_reading`].
pub(crate) fn role_for_sending(route: &str) -> Option<Role> {
    needed(&SENDING, route)
}

/// Fails for a route that is only in the table or only in the source.
fn compare(table: &[(Option<Role>, &str)], method: &str) {
    let listed: BTreeSet<&str> =
        table.iter().flat_map(|(_, routes)| routes.split_whitespace()).collect();
    let found = routes(method);
    assert_eq!(listed, found.iter().map(String::as_str).collect(), "{method}");
}

fn assert_guarded(answer: &Answer, about: &str) {
    assert!(CONTENT_SECURITY_POLICY.contains("frame-ancestors 'none'"));
    for (name, value) in [
        ("content-security-policy", CONTENT_SECURITY_POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "same-origin"),
    ] {
        assert_eq!(answer.header(name), Some(value), "{about}: {name}");
    }
}

/// Somebody who sends requests; without a role: nobody.
struct Sender {
    role: Option<Role>,
    authorization: Option<String>,
}

impl Sender {
    async fn all(f: &Fixture) -> Vec<Self> {
        let mut senders = vec![Self { role: None, authorization: None }];
        for role in Role::ALL {
            let token = f.token(role.as_str(), role.as_str()).await;
            let authorization = Some(format!("Authorization: Bearer {token}"));
            senders.push(Self { role: Some(role), authorization });
        }
        senders
    }

    async fn send(&self, f: &Fixture, method: &str, path: &str, body: &str) -> Answer {
        let mut headers =
            vec!["Host: localhost", "Sec-Fetch-Site: same-origin", "Accept: text/html"];
        headers.extend(self.authorization.as_deref());
        let answer = f.send_to(method, path, &headers, body).await;
        let about = format!("{method} {path} as {:?}: {}", self.role, answer.status);
        assert_guarded(&answer, &about);
        assert!(answer.status < 500, "{about}");
        answer
    }
}

/// The address of the icon, which a page names.
async fn icon(f: &Fixture) -> String {
    let page = f.send_to("GET", "/log-in", &["Host: localhost"], "").await.expect(200);
    let (_, name) = page.as_str().unwrap().split_once("/assets/icon").unwrap();
    format!("/assets/icon{}", name.split('"').next().unwrap())
}

#[tokio::test]
async fn every_page_needs_the_role_that_it_should_and_every_answer_has_the_headers_of_security() {
    compare(&READING, "get");
    let rows = Rows::new(None).await;
    let f = &rows.f;
    let mut pages = rows.pages();
    pages.retain(|(_, address)| !address.contains(' '));
    let no_pages = NO_PAGES.into_iter().filter(|route| !route.contains('{'));
    pages.extend(no_pages.map(|route| (route, route.to_owned())));
    pages.push(("/assets/{name}", icon(f).await));
    pages.push(("/set-up", "/set-up".to_owned()));
    let senders = Sender::all(f).await;
    for route in routes("get") {
        assert!(pages.iter().any(|(it, _)| *it == route), "nobody has looked at {route}");
    }
    for (route, address) in pages {
        let needed = role_for_reading(route);
        for sender in &senders {
            let answer = sender.send(f, "GET", &address, "").await;
            let (role, status) = (sender.role, answer.status);
            let about = format!("{address} as {role:?}: {status}");
            if role >= needed {
                // The others need a provider, a set-up or a topic.
                let is_plain = !NO_PAGES.contains(&route) && route != "/set-up";
                assert!(![401, 403].contains(&status), "{about}");
                assert!(!is_plain || status == 200, "{about}");
            } else if role.is_none() {
                assert_eq!(status, 303, "{about}");
                let place = answer.header("location").unwrap_or_default();
                assert!(place.starts_with("/log-in?next="), "{about}: {place}");
            } else {
                assert_eq!(status, 403, "{about}");
            }
        }
    }
    for sender in &senders {
        assert_eq!(sender.send(f, "GET", "/no-such-page", "").await.status, 404);
    }
}

/// For the parameter of a path, a value that names nothing.
fn example(route: &str) -> String {
    let is_numbered = route.starts_with("/bulks/") || route.starts_with("/approvals/");
    let id = if is_numbered { "999999" } else { "01a21e8b-dbe2-7304-91c3-cd3c8aa248e3" };
    route.replace("{id}", id).replace("{name}", "no-such-name").replace("{fingerprint}", "0")
}

#[tokio::test]
async fn every_form_needs_the_role_that_it_should() {
    compare(&SENDING, "post");
    let f = Fixture::new().await;
    let senders = Sender::all(&f).await;
    for route in routes("post") {
        let (needed, address) = (needed(&SENDING, &route), example(&route));
        for sender in &senders {
            // A form with which nothing can be done, so that only the role decides.
            let status = sender.send(&f, "POST", &address, "x=1").await.status;
            let about = format!("{address} as {:?}: {status}", sender.role);
            match (needed, sender.role) {
                (None, _) => {}
                (Some(_), None) => assert_eq!(status, 401, "{about}"),
                (Some(needed), Some(role)) => {
                    assert_eq!(status == 403, role < needed, "{about}");
                    assert_ne!(status, 401, "{about}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_bulk_action_is_a_link_for_those_who_may_and_disabled_with_the_reason_for_others() {
    for role in [Role::Viewer, Role::Operator] {
        let f = Fixture::with_local_role(Some(role)).await;
        f.console.failed().await;
        for (path, label) in [
            ("/failed", "Requeue all …"),
            ("/failed", "Discard all …"),
            ("/jobs", "Trigger all …"),
            ("/executions", "Cancel all …"),
        ] {
            let page = f.send_to("GET", path, &["Host: localhost"], "").await.expect(200);
            let page = page.as_str().unwrap();
            let at = page.find(label).unwrap_or_else(|| panic!("{path} lacks {label}: {page}"));
            let tag = &page[page[..at].rfind('<').unwrap()..at];
            let (is_link, is_disabled) = (tag.starts_with("<a "), tag.contains(" disabled "));
            assert_eq!(
                (is_link, is_disabled),
                (role == Role::Operator, role == Role::Viewer),
                "{tag}"
            );
            assert_eq!(tag.contains("operator"), is_disabled, "{path}: the reason: {tag}");
        }
    }
}
