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
async fn every_page_can_be_used_on_a_phone_and_on_a_desk_in_light_and_dark() {
    let f = Fixture::with_local_role(Some(Role::Viewer)).await;
    let id = f.console.failed().await;
    f.console.incident("backup", "high", "open", 60).await;
    let failure = format!("/failed/{id}");
    story(
        "pages.js",
        &[&f.site(), "/failed", "/failed?text=nothing", "/failed?discarded=true", &failure],
    )
    .await;
}
