//! What people do in the console.

use sexton_model::access::Role;

use super::story;
use crate::api::Fixture;

#[tokio::test]
async fn of_two_people_who_requeue_a_failure_the_second_reads_who_was_faster() {
    let f = Fixture::with_local_role(Some(Role::Operator)).await;
    f.console.failed().await;
    let job = "shop.charge";
    story("requeue.js", &[&f.site(), job]).await;
}

#[tokio::test]
async fn a_failure_is_found_and_requeued_without_a_script() {
    let f = Fixture::with_local_role(Some(Role::Operator)).await;
    f.console.failed().await;
    story("requeue.js", &[&f.site(), "shop.charge", "noscript"]).await;
}

#[tokio::test]
async fn a_person_logs_in_sees_what_the_role_allows_and_logs_out() {
    let f = Fixture::new().await;
    let id = f.console.failed().await;
    let password = f.account("ann", "viewer").await;
    let failure = format!("/failed/{id}");
    // By the one name that needs no HTTPS.
    let site = f.site().replace("127.0.0.1", "localhost");
    story("log-in.js", &[&site, &failure, "ann", &password]).await;
}

/// Every page of the console, of rows of every kind.
#[tokio::test]
async fn every_page_can_be_used_on_a_phone_and_on_a_desk_in_light_and_dark() {
    let f = Fixture::with_local_role(Some(Role::Admin)).await;
    let id = f.console.failed().await;
    let other = f.console.failed().await.to_string();
    f.console.incident("backup", "high", "open", 60).await;
    f.console
        .run(&["failed", "requeue", &other, "--rate", "1/h", "--detach", "--yes"])
        .await
        .expect(0);
    let group = f.console.json(&["groups", "list"]).await["items"][0]["fingerprint"].clone();
    let (group, incident) = (group.as_str().unwrap_or_default().to_owned(), incident(&f).await);
    let of_rows = [
        format!("/failed/{id}"),
        format!("/failed/{id}/edit"),
        format!("/failed/groups/{group}"),
        format!("/executions/{id}"),
        format!("/incidents/{incident}"),
    ];
    let mut pages: Vec<&str> = PAGES.split_whitespace().collect();
    pages.extend(of_rows.iter().map(String::as_str).filter(|page| !page.ends_with('/')));
    let site = f.site();
    story("pages.js", &[&[site.as_str()], pages.as_slice()].concat()).await;
}

/// A platform on which nothing happened yet.
#[tokio::test]
async fn pages_without_rows_say_what_would_be_there() {
    let f = Fixture::with_local_role(Some(Role::Viewer)).await;
    let site = f.site();
    let pages: Vec<&str> = PAGES.split_whitespace().filter(|page| !page.contains("bulk")).collect();
    story("pages.js", &[&[site.as_str()], pages.as_slice()].concat()).await;
}

async fn incident(f: &Fixture) -> String {
    let list = f.console.json(&["incidents", "list"]).await;
    list["items"][0]["id"].as_str().unwrap().to_owned()
}

const PAGES: &str = "/ /jobs /jobs?contains=nothing /jobs/shop.charge /jobs/billing.invoices /firings /executions /failed
    /failed?text=nothing /failed?discarded=true /failed/groups /failed/bulk?kind=requeue /bulks /bulks/1 /incidents /monitors /channels
    /workers /locks /audit /me /flows /search /search?q=shop";
