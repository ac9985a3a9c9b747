//! What an open page shows of changes that it could miss.

use sexton_model::access::Role;

use super::story;
use crate::api::Fixture;

#[tokio::test]
async fn a_change_before_the_stream_and_a_refused_stream_are_no_change_missed() {
    let f = Fixture::with_local_role(Some(Role::Operator)).await;
    let id = f.console.failed().await;
    story("late.js", &[&f.site(), &format!("/failed/{id}")]).await;
}
