//! People whom an OpenID provider has logged in.

mod in_browser;
mod outages;
mod people;
mod places;
mod program;
mod provider;
mod refusals;
pub(super) mod sessions;
mod signing;

use sexton_model::oidc::{ClientSecret, Issuer, ProviderSettings, RoleRules};
use sexton_outbound::http::HttpClient;
use sexton_server::access::provider::ProviderLogIn;

use self::provider::{CLIENT, Provider, SECRET};
use super::{Answer, Fixture, LOCAL_HOST, send_to_address};

const PUBLIC_URL: &str = "http://localhost:8420";
const ROLES: &str = "groups:ops=operator,groups:admins=admin,email:eve@example.com=admin";
const NOT_BEGUN: &str = "this browser has begun no such log-in";

fn settings(issuer: &str) -> ProviderSettings {
    ProviderSettings {
        issuer: Issuer::parse(issuer).unwrap(),
        client_id: CLIENT.to_owned(),
        client_secret: Some(ClientSecret::new(SECRET.to_owned())),
        scopes: "openid profile email".to_owned(),
        name_claim: "email".to_owned(),
        roles: RoleRules::parse(ROLES).unwrap(),
        public_url: PUBLIC_URL.parse().unwrap(),
    }
}

fn log_in_by(settings: ProviderSettings) -> ProviderLogIn {
    ProviderLogIn::new(settings, HttpClient::default())
}

async fn start() -> (Provider, Fixture) {
    let provider = Provider::start().await;
    let log_in = log_in_by(settings(provider.issuer()));
    let f = Fixture::with(|backend| backend.with_provider(Some(log_in))).await;
    (provider, f)
}

/// Another server on the same database, with these settings.
async fn beside(f: &Fixture, settings: ProviderSettings) -> Fixture {
    Fixture::beside(f, |backend| backend.with_provider(Some(log_in_by(settings)))).await
}

/// Begins a log-in. Returns the browser's cookie, and the address at the provider.
async fn begin(f: &Fixture, next: &str) -> (String, String) {
    let answer = f.send_to("GET", &format!("/log-in/oidc?next={next}"), &[LOCAL_HOST], "").await;
    assert_eq!(answer.status, 303, "{}", answer.body);
    (answer.cookie(), answer.header("location").unwrap().to_owned())
}

/// Goes to the provider, and returns the address to which it sends the browser back.
async fn return_url(url: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_at(rest.find('/').unwrap());
    let host = format!("Host: {address}");
    let answer = send_to_address(address, "GET", path, &[&host], "").await;
    assert_eq!(answer.status, 303, "{}", answer.body);
    answer.header("location").unwrap().to_owned()
}

/// As [`return_url`], without the server's part.
async fn return_path(url: &str) -> String {
    let back = return_url(url).await;
    back.strip_prefix(PUBLIC_URL).unwrap_or_else(|| panic!("{back} is elsewhere")).to_owned()
}

async fn finish(f: &Fixture, cookie: &str, path: &str) -> Answer {
    f.send_to("GET", path, &[LOCAL_HOST, cookie, "Sec-Fetch-Site: cross-site"], "").await
}

async fn log_in(f: &Fixture) -> Answer {
    let (cookie, url) = begin(f, "/jobs").await;
    finish(f, &cookie, &return_path(&url).await).await
}

/// The header by which the browser sends the session that an answer began; `None`: it began none.
fn session(answer: &Answer) -> Option<String> {
    let set = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: sexton_session="));
    set.map(|set| format!("Cookie: sexton_session={}", set.split(';').next().unwrap()))
}

#[track_caller]
fn assert_refused(answer: &Answer, status: u16, words: &str) {
    assert_eq!((answer.status, session(answer)), (status, None), "{words}: {}", answer.body);
    let page = answer.body.as_str().unwrap_or_default();
    assert!(page.contains(words), "{words}: {page}");
    // With an account people can log in all the same.
    assert!(page.contains("type=\"password\""), "{page}");
}
