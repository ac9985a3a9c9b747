//! The console on a slow phone.

use sexton_model::access::Role;

use super::story;
use crate::api::Fixture;

#[tokio::test]
async fn pages_cost_a_slow_phone_little_and_a_failure_is_requeued_before_the_script_has_come() {
    let f = Fixture::with_local_role(Some(Role::Operator)).await;
    let id = f.console.failed().await;
    let (failure, execution) = (format!("/failed/{id}"), format!("/executions/{id}"));
    let site = f.site();
    let pages = ["/", "/failed", &execution];
    let arguments = [&[site.as_str(), &failure], pages.as_slice()].concat();
    if let Some(printed) = story("slow-phone.js", &arguments).await {
        print!("{printed}");
        assert_eq!(printed.matches("MEASURED").count(), pages.len(), "{printed}");
    }
}
