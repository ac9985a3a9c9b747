//! Each route that reads answers about rows that are there, as its description says.

use serde_json::json;

use super::described;
use crate::console::fixture::Rows;

/// A member of each collection whose members have routes, as `collection=member`; `<word>` stands for a value of [`Rows`].
const MEMBERS: &str = "
    accounts=ann approval-rules=all approvals=1 bulks=1 channels=ops checks=backup executions=<failed> failure-groups=<group>
    failures=<failed> flows=<flow> incidents=<incident> jobs=shop.nightly lock-keys=shop locks=charge ping-keys=team tokens=ci
    unknown-messages=<message> workers=worker-1";
/// Routes that need a query.
const QUERIES: [(&str, &str); 1] =
    [("/jobs/{name}/firings", "?since=2024-01-01T00:00:00Z&until=2024-03-01T00:00:00Z")];
/// Routes whose success is no JSON, and what it is.
const NO_JSON: [(&str, &str); 2] = [
    ("/audit/export", "one document on each line"),
    ("/unknown-messages/{id}/body", "the bytes of a message"),
];
/// Further rows and filters, with fields that the members do not have.
const FURTHER: &str = "
    /bulks/2 /checks/paused /executions/<discarded> /executions/<running> /executions/<running>/explain /incidents?all=true
    /jobs/billing.invoices /jobs/shop.charge /jobs/shop.mail /jobs/shop.mail/policy /jobs/shop.old /jobs?deleted=true";

/// Replaces the parameter of a path by a row that is there.
pub(super) fn with_member(rows: &Rows, path: &str) -> String {
    let Some((start, end)) = path.find('{').zip(path.find('}')) else { return path.to_owned() };
    let collection = path.split('/').nth(1).unwrap();
    let mut members = MEMBERS.split_whitespace().filter_map(|it| it.split_once('='));
    let found = members.find(|(name, _)| *name == collection);
    let (_, member) = found.unwrap_or_else(|| panic!("MEMBERS has none of {collection}"));
    format!("{}{}{}", &path[..start], rows.filled(member), &path[end + 1..])
}

#[tokio::test]
async fn each_route_that_reads_answers_as_described_about_rows_that_are_there() {
    let rows = Rows::new(None).await;
    let f = &rows.f;
    let token = f.token("root", "admin").await;
    f.ask(&token, "POST", "/ping-keys", r#"{"name": "team"}"#).await.expect(201);
    let description = f.send("GET", "/openapi.json", &["Host: x"], "").await.expect(200);
    let mut without_json = Vec::new();
    for (template, item) in description["paths"].as_object().unwrap() {
        if item.get("get").is_none() {
            continue;
        }
        let template = template.strip_prefix("/api/v1").unwrap();
        let query = QUERIES.iter().find(|(it, _)| *it == template).map_or("", |&(_, query)| query);
        let path = format!("{}{query}", with_member(&rows, template));
        let answer = f.get(&token, &path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        if !described::check("GET", &format!("/api/v1{path}"), &answer) {
            without_json.push(template);
        }
        assert_ne!(answer.body["items"], json!([]), "{path}: no item is compared");
    }
    assert_eq!(without_json, NO_JSON.map(|(template, _)| template));
    for path in FURTHER.split_whitespace() {
        f.get(&token, &rows.filled(path)).await.expect(200);
    }
}
