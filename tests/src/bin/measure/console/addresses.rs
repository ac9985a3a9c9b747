//! What people look at: every page, and every list of the API, each with its second page.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use serde_json::Value;
use sqlx::PgPool;

use super::Connection;

/// Pages and lists without a row of their address, and with filters.
const PAGES: &str = "/ /upcoming /jobs /jobs?contains=job1 /jobs?deleted=true /jobs?label=team%3Drare /jobs/team.job0
    /jobs/team.job0/trigger /jobs/team.job0/backfill /jobs/team.quarter /jobs/team.quarter/backfill
    /executions/bulk?kind=cancel&job=team.job0 /executions /executions?state=succeeded /executions?state=running
    /executions?job=team.job0 /executions?param=customer%3D77 /executions?text=declined /executions?text=zanzibar
    /executions?label=team%3Drare /executions?since=36h /executions?error_class=exit_3 /failed /failed?discarded=true /failed?sort=oldest
    /failed?job=team.job0 /failed?error_class=exit_3 /failed?text=declined /failed?text=zanzibar /failed?label=team%3Drare
    /failed?param=order.id%3D7 /failed?since=36h /failed/groups /failed/groups?all=true /failed/bulk?kind=requeue&job=team.job0
    /jobs:trigger?key=k /jobs:trigger?contains=job1&key=k
    /approvals /approvals?all=true /firings /firings?job=team.quarter /firings?reason=misfire_skip /bulks /incidents /incidents?all=true
    /incidents?all=true&contains=job1 /monitors /monitors?contains=job1 /checks /checks?contains=backup-1 /channels /workers
    /workers?all=true /locks /locks?all=true /flows /flows?open=true /flows?name=order-1 /audit /audit?actor=operator-1
    /audit?action=requeue /audit?job=team.job0 /audit?since=36h /me /settings /settings/accounts /settings/tokens
    /search?q=job1 /search?q=declined";
/// Parameters with which lists of the API show something else.
const VARIANTS: &str = "/api/v1/failures?error_class=exit_3 /api/v1/failures?text=declined /api/v1/failures?text=zanzibar
    /api/v1/executions?state=succeeded /api/v1/executions?label=team%3Drare /api/v1/incidents?all=true /api/v1/approvals?all=true /api/v1/locks?all=true
    /api/v1/audit?job=team.job0 /api/v1/notifications?state=sent";
/// What reads everything by design, or is a download: neither a page nor a list.
const EXAMINATIONS: [&str; 6] = [
    "/api/v1/audit/export",
    "/api/v1/audit/verify",
    "/api/v1/doctor",
    "/api/v1/failures:count",
    "/api/v1/lock-keys:check",
    "/api/v1/unknown-messages/{id}/body",
];
/// Parameters without which a list of the API is refused.
const NEEDED: [(&str, &str); 1] = [("/api/v1/jobs/{name}/firings", "since=36h")];
/// A row of each part of the API, by what stands for it in an address.
const ROWS: [(&str, &str); 11] = [
    ("approvals", "SELECT max(id)::text FROM sexton.approval_requests"),
    ("bulks", "SELECT max(id)::text FROM sexton.bulks"),
    ("checks", "SELECT name FROM sexton.checks ORDER BY name LIMIT 1"),
    (
        "executions",
        "SELECT e.id::text FROM sexton.executions e JOIN sexton.jobs j ON j.id = e.job_id
         WHERE j.name = 'team.quarter' ORDER BY e.claimed_at DESC LIMIT 1",
    ),
    (
        "failure-groups",
        "SELECT fingerprint FROM sexton.failures ORDER BY execution_id DESC LIMIT 1",
    ),
    (
        "failures",
        "SELECT execution_id::text FROM sexton.failures ORDER BY execution_id DESC LIMIT 1",
    ),
    ("flows", "SELECT id::text FROM sexton.flows ORDER BY created_at DESC LIMIT 1"),
    ("incidents", "SELECT id::text FROM sexton.incidents ORDER BY opened_at DESC LIMIT 1"),
    ("jobs", "SELECT name FROM sexton.jobs WHERE name = 'team.quarter'"),
    ("unknown-messages", "SELECT encode(digest, 'hex') FROM sexton.unknown_messages LIMIT 1"),
    ("workers", "SELECT name FROM sexton.instances ORDER BY name LIMIT 1"),
];
/// An instant in the middle of the job's firings, as it stands in an address.
const BEFORE: &str = "SELECT to_char((now() - interval '15 days') AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')";
const MEMBER: &str = "SELECT m.execution_id::text FROM sexton.flow_members m
    JOIN sexton.flows f ON f.id = m.flow_id ORDER BY f.created_at DESC LIMIT 1";

/// Rows, by the part of the API to which they belong.
type Rows = BTreeMap<&'static str, String>;

/// The addresses.
#[derive(Debug)]
pub(super) struct Addresses {
    /// The pages for people, without second pages.
    pub(super) pages: Vec<String>,
    /// All of them.
    pub(super) all: Vec<String>,
}

impl Addresses {
    /// Those of a server at `address`.
    pub(super) async fn read(address: &str, pool: &PgPool) -> Result<Self> {
        let mut rows = Rows::new();
        for (part, query) in ROWS {
            rows.insert(part, one(pool, query).await?);
        }
        let mut pages = pages(&rows);
        pages.push(format!("/jobs/team.quarter?before={}", one(pool, BEFORE).await?));
        pages.push(format!("/jobs/team.quarter?at={}", one(pool, BEFORE).await?));
        pages.push(format!("/executions/{}", one(pool, MEMBER).await?));
        let mut connection = Connection::open(address).await?;
        let mut all = pages.clone();
        all.extend(api(&mut connection, &rows).await?);
        let mut second = Vec::new();
        for path in &all {
            let answer = connection.get(path).await?;
            second.extend(next(path, &String::from_utf8_lossy(&answer.body)));
        }
        all.extend(second);
        Ok(Self { pages, all })
    }
}

async fn one(pool: &PgPool, query: &'static str) -> Result<String> {
    sqlx::query_scalar(query).fetch_one(pool).await.context(query)
}

/// Every page that people visit, those of single rows included.
fn pages(rows: &Rows) -> Vec<String> {
    PAGES.split_whitespace().map(str::to_owned).chain(pages_of_rows(rows)).collect()
}

/// The pages of single rows.
fn pages_of_rows(rows: &Rows) -> Vec<String> {
    let mut pages = Vec::new();
    for (part, row) in rows {
        match *part {
            "failures" => pages.extend([format!("/failed/{row}"), format!("/failed/{row}/edit")]),
            "failure-groups" => pages.push(format!("/failed/groups/{row}")),
            // The jobs are among the other pages, and unknown messages have no page.
            "jobs" | "unknown-messages" => {}
            part => pages.push(format!("/{part}/{row}")),
        }
    }
    pages
}

/// What the API lists and shows, by its description.
async fn api(connection: &mut Connection, rows: &Rows) -> Result<Vec<String>> {
    let answer = connection.get("/api/v1/openapi.json").await?;
    described(&serde_json::from_slice(&answer.body)?, rows)
}

/// What a description of the API lists and shows.
fn described(description: &Value, rows: &Rows) -> Result<Vec<String>> {
    let paths = description["paths"].as_object().context("the description has paths")?;
    let read = paths.iter().filter(|(path, operations)| {
        operations["get"].is_object() && !EXAMINATIONS.contains(&path.as_str())
    });
    let mut found = Vec::new();
    for (path, _) in read {
        let address = with_row(path, rows)?;
        let needed = NEEDED.iter().find(|(route, _)| *route == path.as_str());
        found.push(match needed {
            Some((_, parameter)) => format!("{address}?{parameter}"),
            None => address,
        });
    }
    found.extend(VARIANTS.split_whitespace().map(str::to_owned));
    Ok(found)
}

/// A path with a row in the place of its parameter.
fn with_row(path: &str, rows: &Rows) -> Result<String> {
    let Some((before, rest)) = path.split_once('{') else { return Ok(path.to_owned()) };
    let after = rest.split_once('}').context("a parameter that ends")?.1;
    let part = before.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let row = rows.get(part).with_context(|| format!("no row is known for {path}"))?;
    Ok(format!("{before}{row}{after}"))
}

/// The address of the page behind this one, if it is a list that has one.
fn next(path: &str, body: &str) -> Option<String> {
    if path.starts_with("/api/") {
        let answer: Value = serde_json::from_str(body).ok()?;
        let cursor = answer["next_cursor"].as_str()?;
        let mark = if path.contains('?') { '&' } else { '?' };
        return Some(format!("{path}{mark}cursor={cursor}"));
    }
    let (_, rest) = body.split_once("rel=\"next\" href=\"")?;
    let (href, _) = rest.split_once('"')?;
    Some(href.replace("&#38;", "&").replace("&amp;", "&"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sexton_tests::routes::routes;

    use super::*;

    const DESCRIPTION: &str = include_str!("../../../../../server/openapi.json");
    /// Routes that are not measured, each with the reason.
    const UNMEASURED: [(&str, &str); 7] = [
        ("/assets/{name}", "a file that a browser keeps"),
        ("/events", "a stream without an end, which is measured with the open pages"),
        ("/log-in", "it reads no rows"),
        ("/log-in/oidc", "it leads to an identity provider"),
        ("/log-in/oidc/callback", "it comes from an identity provider"),
        ("/pools", "it leads to the workers"),
        ("/set-up", "it is gone once there is an account"),
    ];

    /// A row of each part.
    fn rows() -> Rows {
        ROWS.iter().map(|(part, _)| (*part, "x".to_owned())).collect()
    }

    /// The route of an address: of those that fit, the one with the fewest parameters.
    fn route_of<'a>(routes: &'a [String], address: &str) -> &'a str {
        let path = address.split('?').next().unwrap();
        let fits = |route: &&String| {
            let (route, path) = (route.split('/'), path.split('/'));
            let is_segment = |(route, it): (&str, &str)| route == it || route.starts_with('{');
            route.clone().count() == path.clone().count() && route.zip(path).all(is_segment)
        };
        let found = routes.iter().filter(fits).min_by_key(|route| route.matches('{').count());
        found.unwrap_or_else(|| panic!("{address} has no route"))
    }

    #[test]
    fn every_page_is_measured_or_has_a_reason_why_not() {
        let (routes, pages) = (routes("get"), pages(&rows()));
        let measured: BTreeSet<&str> = pages.iter().map(|page| route_of(&routes, page)).collect();
        let others: BTreeSet<&str> = UNMEASURED.iter().map(|(route, _)| *route).collect();
        assert!(measured.is_disjoint(&others), "{measured:?}");
        let all: BTreeSet<&str> = measured.union(&others).copied().collect();
        assert_eq!(all, routes.iter().map(String::as_str).collect());
    }

    #[test]
    fn every_list_of_the_api_is_measured_with_what_it_needs() {
        let description: Value = serde_json::from_str(DESCRIPTION).unwrap();
        let found = described(&description, &rows()).unwrap();
        assert!(found.contains(&"/api/v1/jobs/x/firings?since=36h".to_owned()), "{found:?}");
        let operations = description["paths"].as_object().unwrap();
        let variants = VARIANTS.split_whitespace().filter_map(|address| address.split('?').next());
        for route in variants.chain(EXAMINATIONS).chain(NEEDED.map(|(route, _)| route)) {
            assert!(operations[route]["get"].is_object(), "{route} is gone");
        }
    }

    #[test]
    fn a_parameter_of_the_api_becomes_a_row_of_its_part() {
        let rows = Rows::from([("jobs", "team.quarter".to_owned())]);
        let path = |path| with_row(path, &rows);
        assert_eq!(path("/api/v1/jobs").unwrap(), "/api/v1/jobs");
        let firings = path("/api/v1/jobs/{name}/firings").unwrap();
        assert_eq!(firings, "/api/v1/jobs/team.quarter/firings");
        assert!(path("/api/v1/tickets/{id}").is_err());
    }

    #[test]
    fn a_list_leads_to_its_second_page() {
        let page = r#"<a rel="first" href="/x">First page</a> <a rel="next" href="/audit?since=36h&#38;cursor=ab">Next page</a>"#;
        assert_eq!(next("/audit?since=36h", page).as_deref(), Some("/audit?since=36h&cursor=ab"));
        let answer = r#"{"items": [], "next_cursor": "ab"}"#;
        assert_eq!(next("/api/v1/jobs", answer).as_deref(), Some("/api/v1/jobs?cursor=ab"));
        assert_eq!(
            next("/api/v1/jobs?all=true", answer).as_deref(),
            Some("/api/v1/jobs?all=true&cursor=ab")
        );
        assert_eq!(next("/api/v1/jobs", r#"{"next_cursor": null}"#), None);
    }
}
