//! Log-ins of other browsers, and tokens that say or are signed what they should not.

use serde_json::{Value, json};

use super::super::LOCAL_HOST;
use super::provider::CLIENT;
use super::signing::Signing;
use super::{NOT_BEGUN, assert_refused, begin, finish, log_in, return_path, session, start};

#[tokio::test]
async fn only_the_browser_that_began_a_log_in_ends_it() {
    let (_provider, f) = start().await;
    let (cookie, url) = begin(&f, "/jobs").await;
    let path = return_path(&url).await;
    let (other, other_url) = begin(&f, "/jobs").await;
    let nonsense = ["X-None: no cookie", "Cookie: sexton_log_in=x", "Cookie: sexton_log_in=a.0.b"];
    for browser in [&*other].into_iter().chain(nonsense) {
        assert_refused(&finish(&f, browser, &path).await, 403, NOT_BEGUN);
    }
    // Another state, and none.
    let code = code_of(&path);
    for wrong in [
        format!("/log-in/oidc/callback?code={code}&state=guess"),
        format!("/log-in/oidc/callback?code={code}"),
        "/log-in/oidc/callback".to_owned(),
    ] {
        assert_refused(&finish(&f, &cookie, &wrong).await, 403, NOT_BEGUN);
    }
    // The code of one log-in with the state of another: the provider has the hash of another verifier.
    let other_state = state_of(&other_url);
    let mixed = format!("/log-in/oidc/callback?code={code}&state={other_state}");
    let mixed = finish(&f, &other, &mixed).await;
    assert_refused(&mixed, 403, "refuses the log-in (invalid_grant)");
    // Its cookie says where to go and when it was begun; with another one the state is another.
    let value = cookie.strip_prefix("Cookie: sexton_log_in=").unwrap();
    let parts: Vec<&str> = value.split('.').collect();
    let changed = format!("Cookie: sexton_log_in={}.{}.L2V2aWw", parts[0], parts[1]);
    assert_refused(&finish(&f, &changed, &path).await, 403, NOT_BEGUN);
}

#[tokio::test]
async fn a_log_in_ends_once_and_by_its_provider_alone() {
    let (_provider, f) = start().await;
    let (cookie, url) = begin(&f, "/jobs").await;
    let path = return_path(&url).await;
    let by_another = path.replace("127.0.0.1", "evil.example");
    assert_ne!(by_another, path);
    assert_refused(&finish(&f, &cookie, &by_another).await, 403, NOT_BEGUN);
    assert!(session(&finish(&f, &cookie, &path).await).is_some());
    assert_refused(&finish(&f, &cookie, &path).await, 403, "it is over");
    // A provider that says why it logged nobody in.
    let (cookie, url) = begin(&f, "/jobs").await;
    let state = state_of(&url);
    let denied = format!("/log-in/oidc/callback?error=access%3Cb%3Edenied&state={state}");
    let denied = finish(&f, &cookie, &denied).await;
    assert_refused(&denied, 403, "has not logged you in (accessbdenied)");
}

#[tokio::test]
async fn a_log_in_takes_ten_minutes_at_most() {
    let (_provider, f) = start().await;
    let (cookie, _) = begin(&f, "/jobs").await;
    let value = cookie.strip_prefix("Cookie: sexton_log_in=").unwrap();
    let parts: Vec<&str> = value.split('.').collect();
    let begun: i64 = parts[1].parse().unwrap();
    let later = |seconds: i64| format!("{}.{}.{}", parts[0], begun + seconds, parts[2]);
    // Who knows the cookie's secret knows its state.
    let path = |value: &str| {
        let hash =
            ring::digest::digest(&ring::digest::SHA256, format!("state\n{value}").as_bytes());
        let state = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, hash);
        format!("/log-in/oidc/callback?code=guess&state={state}")
    };
    for (seconds, words) in [
        (-580, "refuses the log-in"),
        (-620, NOT_BEGUN),
        (0, "refuses the log-in"),
        (3_600, NOT_BEGUN),
    ] {
        let value = later(seconds);
        let answer = finish(&f, &format!("Cookie: sexton_log_in={value}"), &path(&value)).await;
        assert_refused(&answer, 403, words);
    }
}

#[tokio::test]
async fn a_forged_token_logs_nobody_in() {
    let (provider, f) = start().await;
    for (signing, words) in [
        (Signing::None, "it is signed with"),
        (Signing::Hs256, "it is signed with"),
        (Signing::Rs512, "it is signed with"),
        (Signing::OtherKey, "its signature is wrong"),
        (Signing::Altered, "its signature is wrong"),
        (Signing::UnknownKeyId, "does not publish"),
        (Signing::WrongKeyId, "does not publish"),
        (Signing::Critical, "extensions that must be understood"),
    ] {
        provider.change(|behavior| behavior.signing = signing);
        assert_refused(&log_in(&f).await, 403, words);
    }
    for signing in [Signing::Rs256, Signing::Es256] {
        provider.change(|behavior| behavior.signing = signing);
        assert!(session(&log_in(&f).await).is_some(), "{signing:?}");
    }
}

#[tokio::test]
async fn a_token_of_another_log_in_client_issuer_or_time_logs_nobody_in() {
    let (provider, f) = start().await;
    let now = sexton_service::clock::now().timestamp();
    for (claims, words) in [
        (json!({"nonce": "of another log-in"}), "another log-in (nonce)"),
        (json!({"nonce": Value::Null}), "another log-in (nonce)"),
        (json!({"aud": "other"}), "another client (aud)"),
        (json!({"aud": [CLIENT, "other"]}), "another client (azp)"),
        (json!({"iss": "https://evil.example"}), "another issuer (iss)"),
        (json!({"exp": now - 120}), "has expired (exp)"),
        (json!({"exp": Value::Null}), "has expired (exp)"),
        (json!({"iat": now + 120}), "of the future (iat or nbf)"),
        (json!({"sub": Value::Null}), "names no subject"),
    ] {
        provider.change(|behavior| behavior.claims = claims);
        assert_refused(&log_in(&f).await, 403, words);
    }
    provider.change(|behavior| behavior.claims = json!({}));
    assert!(session(&log_in(&f).await).is_some());
}

#[tokio::test]
async fn an_address_has_a_limit_of_failed_log_ins_and_right_ones_take_nothing_of_it() {
    let (_provider, f) = start().await;
    let fail = async || {
        let (cookie, url) = begin(&f, "/jobs").await;
        let path = format!("/log-in/oidc/callback?code=guess&state={}", state_of(&url));
        finish(&f, &cookie, &path).await
    };
    for _ in 0..3 {
        assert!(session(&log_in(&f).await).is_some());
    }
    for number in 0..100 {
        assert_eq!(fail().await.status, 403, "number {number}");
    }
    let limited = fail().await;
    assert_refused(&limited, 429, "too many failed attempts");
    assert!(limited.header("retry-after").is_some(), "{}", limited.head);
    // Accounts have a limit of their own.
    let password = f.account("ann", "viewer").await;
    assert_eq!(f.log_in("ann", &password).await.status, 204);
    let page = f.send_to("GET", "/log-in", &[LOCAL_HOST], "").await;
    assert_eq!(page.status, 200, "{}", page.body);
}

fn state_of(url: &str) -> &str {
    url.split("state=").nth(1).unwrap().split('&').next().unwrap()
}

fn code_of(path: &str) -> &str {
    path.split("code=").nth(1).unwrap().split('&').next().unwrap()
}
