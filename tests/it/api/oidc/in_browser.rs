//! A real browser on its way to the provider and back.

use serde_json::json;
use sexton_model::oidc::ProviderSettings;

use super::super::Fixture;
use super::provider::Provider;
use super::{log_in_by, settings};
use crate::console::story;

#[tokio::test]
async fn a_person_comes_back_from_the_provider_to_the_page_of_the_link_or_reads_why_not() {
    let provider = Provider::start().await;
    let f = Fixture::with_address(|backend, address| {
        let public_url = format!("http://localhost:{}", address.port()).parse().unwrap();
        let settings = ProviderSettings { public_url, ..settings(provider.issuer()) };
        backend.with_provider(Some(log_in_by(settings)))
    })
    .await;
    // By the one name that needs no HTTPS.
    let site = f.site().replace("127.0.0.1", "localhost");
    let page = "/jobs?contains=shop";
    story("oidc.js", &[&site, page, "oidc ann@example.com"]).await;
    provider.change(|behavior| behavior.claims = json!({"groups": ["staff"]}));
    story("oidc.js", &[&site, page, "refused", "has no role here"]).await;
}
