//! A provider that is away, slow or strange, and its new keys.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::time::{advance, pause, resume};

use super::super::{Fixture, LOCAL_HOST};
use super::provider::{ENDPOINTS, Fault, Provider};
use super::signing::Signing;
use super::{
    Answer, assert_refused, begin, beside, finish, log_in, log_in_by, return_path, session,
    settings, start,
};

/// Longest time of an answer while the provider is away.
const PATIENCE: Duration = Duration::from_secs(12);
const UNAVAILABLE: &str = "the identity provider does not answer as it should";

/// Lets time pass for the server's limits, all at once.
async fn pass(time: Duration) {
    pause();
    advance(time).await;
    resume();
}

async fn begin_only(f: &Fixture) -> Answer {
    f.send_to("GET", "/log-in/oidc", &[LOCAL_HOST], "").await
}

/// Logs in as far as the provider lets it.
async fn try_log_in(f: &Fixture) -> Answer {
    let begun = begin_only(f).await;
    if begun.status != 303 {
        return begun;
    }
    let path = return_path(begun.header("location").unwrap()).await;
    finish(f, &begun.cookie(), &path).await
}

/// A log-in while an endpoint of its provider has a fault, and one by the same server when that is over.
async fn log_in_meanwhile(first: &Fixture, fault: (&'static str, Fault), words: &str) {
    let provider = Provider::start().await;
    let f = beside(first, settings(provider.issuer())).await;
    provider.change(|behavior| behavior.fault = Some(fault));
    let begun = Instant::now();
    let answer = try_log_in(&f).await;
    assert_refused(&answer, 503, UNAVAILABLE);
    assert!(answer.body.as_str().unwrap().contains(words), "{fault:?}: {}", answer.body);
    assert!(begun.elapsed() < PATIENCE, "{fault:?}: {:?}", begun.elapsed());
    provider.change(|behavior| behavior.fault = None);
    assert!(session(&log_in(&f).await).is_some(), "it is back: {fault:?}");
}

#[tokio::test]
async fn while_the_provider_answers_wrongly_people_read_so_and_later_it_works() {
    let (_provider, f) = start().await;
    for endpoint in ENDPOINTS {
        for (fault, words) in [
            (Fault::Huge, "its answer is longer than 256 KiB"),
            (Fault::Redirects, "303"),
            (Fault::NoJson, "its answer is no JSON object"),
            (Fault::Fails, "500"),
        ] {
            log_in_meanwhile(&f, (endpoint, fault), words).await;
        }
    }
}

#[tokio::test]
async fn while_the_provider_is_slow_nothing_hangs_and_accounts_log_in() {
    let (_provider, f) = start().await;
    let password = f.account("ann", "viewer").await;
    let [discovery, token, keys] = ENDPOINTS;
    let late = "it takes longer than 8 s";
    let meanwhile = async {
        let begun = Instant::now();
        let answer = f.log_in("ann", &password).await;
        assert_eq!(answer.status, 204, "{}", answer.body);
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    };
    tokio::join!(
        log_in_meanwhile(&f, (discovery, Fault::Silent), late),
        log_in_meanwhile(&f, (token, Fault::Silent), late),
        log_in_meanwhile(&f, (token, Fault::Endless), late),
        log_in_meanwhile(&f, (keys, Fault::Endless), late),
        meanwhile
    );
}

#[tokio::test]
async fn a_provider_that_is_away_or_another_one_is_named_with_what_to_do() {
    let (provider, f) = start().await;
    let away = beside(&f, settings("http://127.0.0.1:9")).await;
    assert_refused(&begin_only(&away).await, 503, "cannot connect to 127.0.0.1");
    let other = beside(&f, settings(&format!("{}/", provider.issuer()))).await;
    assert_refused(&begin_only(&other).await, 503, "every character counts");
    // Endpoints on other hosts need public addresses, so that a provider leads the server to nothing of its network.
    for (endpoint, words) in [
        ("http://localhost:9/token", "only the host of SERVE_OIDC_ISSUER"),
        ("https://10.0.0.1/token", "only the host of SERVE_OIDC_ISSUER"),
        ("http://sexton.example.com/token", "must begin with https://"),
    ] {
        let fresh = log_in_by(settings(provider.issuer()));
        let fresh = Fixture::beside(&f, |backend| backend.with_provider(Some(fresh))).await;
        provider.change(|behavior| behavior.metadata = json!({"token_endpoint": endpoint}));
        let answer = try_log_in(&fresh).await;
        assert_refused(&answer, 503, UNAVAILABLE);
        assert!(answer.body.as_str().unwrap().contains(words), "{endpoint}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_new_key_of_the_provider_is_read_once_a_minute_at_most() {
    let (provider, f) = start().await;
    provider.change(|behavior| behavior.signing = Signing::Es256);
    for _ in 0..3 {
        assert!(session(&log_in(&f).await).is_some());
    }
    assert_eq!(provider.reads_of_keys(), 1);
    provider.change(|behavior| behavior.keys.rotate("next"));
    let soon = log_in(&f).await;
    assert_refused(&soon, 403, "does not publish; try again in a minute");
    assert_eq!(provider.reads_of_keys(), 1, "within a minute");
    pass(Duration::from_secs(61)).await;
    assert!(session(&log_in(&f).await).is_some());
    assert_eq!(provider.reads_of_keys(), 2);
    // Tokens with a key that it never publishes read them no more often.
    provider.change(|behavior| behavior.signing = Signing::UnknownKeyId);
    pass(Duration::from_secs(61)).await;
    for _ in 0..3 {
        assert_refused(&log_in(&f).await, 403, "does not publish");
    }
    assert_eq!(provider.reads_of_keys(), 3);
    // Nor do wrong signatures under a known id.
    provider.change(|behavior| behavior.signing = Signing::OtherKey);
    pass(Duration::from_secs(61)).await;
    for _ in 0..3 {
        assert_refused(&log_in(&f).await, 403, "its signature is wrong");
    }
    assert_eq!(provider.reads_of_keys(), 4);
    // A key that it has withdrawn counts for an hour at most.
    provider.change(|behavior| behavior.signing = Signing::Es256);
    let (cookie, url) = begin(&f, "/jobs").await;
    let path = return_path(&url).await;
    pass(Duration::from_hours(1)).await;
    assert!(session(&finish(&f, &cookie, &path).await).is_some());
    assert_eq!(provider.reads_of_keys(), 5);
}

#[tokio::test]
async fn a_key_that_is_renewed_under_its_old_id_or_without_one_is_read_again() {
    let (provider, f) = start().await;
    for signing in [Signing::Es256, Signing::WithoutKeyId] {
        provider.change(|behavior| behavior.signing = signing);
        assert!(session(&log_in(&f).await).is_some(), "{signing:?}");
        provider.change(|behavior| behavior.keys.rotate("ec"));
        let soon = log_in(&f).await;
        assert_refused(&soon, 403, "its signature is wrong");
        pass(Duration::from_secs(61)).await;
        assert!(session(&log_in(&f).await).is_some(), "{signing:?}");
    }
    // While the old one is published beside the new one, both sign.
    provider.change(|behavior| behavior.keys.publish_other());
    pass(Duration::from_secs(3_601)).await;
    for signing in [Signing::WithoutKeyId, Signing::OtherKey] {
        provider.change(|behavior| behavior.signing = signing);
        assert!(session(&log_in(&f).await).is_some(), "{signing:?}");
    }
}
