//! Ways around in the console, groups of failures, and incidents.

use sexton_model::access::Role;

use super::story;
use crate::api::Fixture;

#[tokio::test]
async fn a_group_of_failures_gets_a_note_is_muted_resolved_and_opened_again() {
    let f = Fixture::with_local_role(Some(Role::Operator)).await;
    f.console.failed().await;
    f.console.failed().await;
    story("group.js", &[&f.site()]).await;
}

#[tokio::test]
async fn the_search_the_clipboard_and_the_zone_work_from_everywhere() {
    let f = Fixture::with_local_role(Some(Role::Operator)).await;
    let id = f.console.failed().await.to_string();
    // 45 minutes beside UTC, as hardly any clock is.
    let zone = "Asia/Kathmandu";
    let change = "UPDATE sexton.jobs SET timezone = $1 WHERE name = 'shop.charge'";
    sqlx::query(change).bind(zone).execute(f.console.store().pool()).await.unwrap();
    story("search.js", &[&f.site(), "shop.charge", &id, "card declined", zone]).await;
}

#[tokio::test]
async fn an_incident_is_acknowledged_silenced_for_a_while_and_resolved() {
    let f = Fixture::with_local_role(Some(Role::Operator)).await;
    f.console.incident("shop.charge", "high", "open", 60).await;
    let done = story("incident.js", &[&f.site(), "shop.charge"]).await;
    if done.is_some() {
        let incidents = f.console.items(&["incidents", "list", "--all"]).await;
        assert_eq!(incidents[0]["state"], "resolved", "{incidents}");
    }
}
