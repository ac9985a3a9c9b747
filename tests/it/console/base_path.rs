//! The console below a path of a proxy.

use super::{story, story_with};
use crate::api::Fixture;

#[tokio::test]
async fn a_person_works_below_a_path_that_the_proxy_passes_on_and_below_one_that_it_removes() {
    let f = Fixture::below("/ops/sexton").await;
    let id = f.console.failed().await;
    let password = f.account("ann", "viewer").await;
    let (site, failure) = (f.site().replace("127.0.0.1", "localhost"), format!("/failed/{id}"));
    let arguments = [&*site, &failure, "ann", &password];
    story("log-in.js", &arguments).await;
    story_with("log-in.js", &arguments, &[("BASE_PATH_REMOVED", "yes")]).await;
}
