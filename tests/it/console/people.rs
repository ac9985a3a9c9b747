//! Several people at the console, and the first of them.

use std::time::Duration;

use sexton_tests::platform::Platform;

use super::play::site;
use super::story;
use crate::api::Fixture;

const DEADLINE: Duration = Duration::from_mins(1);

/// The console's address by the one name that needs no HTTPS.
fn local(site: &str) -> String {
    site.replace("127.0.0.1", "localhost")
}

#[tokio::test]
async fn what_one_person_has_requested_another_one_approves() {
    let f = Fixture::new().await;
    let id = f.console.failed().await;
    f.console.run(&["approvals", "rules", "set", "all"]).await.expect(0);
    let (ann, bob) = (f.account("ann", "operator").await, f.account("bob", "operator").await);
    let (site, failed) = (local(&f.site()), id.to_string());
    let done = story("approve.js", &[&site, &failed, "ann", &ann, "bob", &bob]).await;
    if done.is_some() {
        assert_eq!(f.console.state(id).await, "discarded/2");
    }
}

#[tokio::test]
async fn a_filtered_list_can_be_sent_to_a_colleague_who_has_to_log_in_first() {
    let f = Fixture::new().await;
    f.console.failed().await;
    let other = f.console.trigger("shop.mail").await;
    let open = f.console.open(other, 1).await;
    f.console.fail(open, "bank is down", None).await;
    f.console.failed().await;
    let (ann, bob) = (f.account("ann", "viewer").await, f.account("bob", "viewer").await);
    let site = local(&f.site());
    let people = ["ann", &*ann, "bob", &*bob];
    let filter = [&*site, "shop.charge", "card declined"];
    story("colleague.js", &[filter.as_slice(), people.as_slice()].concat()).await;
}

#[tokio::test]
async fn the_first_account_is_made_by_the_code_of_the_log() {
    let platform = Platform::new().await.unwrap();
    let mut server = platform.start_server("serve", &[]).unwrap();
    server.ready().await;
    let code = platform.eventually("it logs the code", DEADLINE, async || {
        let log = server.log();
        let rest = log.split("with the code ").nth(1)?;
        // A line that is written to its end.
        rest.split_once([' ', '\n']).map(|(code, _)| code.to_owned())
    });
    let code = code.await;
    story("set-up.js", &[&local(&site(&server)), &code]).await;
}
