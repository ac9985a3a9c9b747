//! What people do in the console.

use sexton_model::access::Role;

use super::fixture::{NO_PAGES, Rows, empty_pages};
use super::routes::routes;
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
    let rows = Rows::new(Some(Role::Admin)).await;
    let pages = rows.pages();
    let mut left = routes("get");
    left.retain(|route| !NO_PAGES.contains(&route.as_str()));
    left.retain(|route| pages.iter().all(|(visited, _)| visited != route));
    assert!(left.is_empty(), "nobody has looked at {left:?}");
    let pages = pages.into_iter().map(|(_, address)| address);
    let pages: Vec<String> = pages.chain(["/no-such-page 404".to_owned()]).collect();
    look_at(&rows.f, &pages).await;
}

/// A platform on which nothing happened yet.
#[tokio::test]
async fn pages_without_rows_say_what_would_be_there() {
    let f = Fixture::without_jobs(Role::Viewer).await;
    f.open_set_up().await;
    look_at(&f, &empty_pages()).await;
}

async fn look_at(f: &Fixture, pages: &[String]) {
    // By the one name that needs no HTTPS for a log-in.
    let site = f.site().replace("127.0.0.1", "localhost");
    let pages = pages.iter().map(String::as_str);
    story("pages.js", &[site.as_str()].into_iter().chain(pages).collect::<Vec<_>>()).await;
}
