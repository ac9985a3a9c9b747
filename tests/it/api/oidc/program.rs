//! `sexton serve` itself: its settings, and what its log must not have.

use serde_json::json;
use sexton_tests::platform::Platform;

use super::provider::{CLIENT, Provider, SECRET};
use super::signing::Signing;
use super::{PUBLIC_URL, ROLES, return_path};
use crate::api::{Answer, LOCAL_HOST, send_to_address};

#[tokio::test]
async fn the_program_logs_people_in_and_logs_no_code_verifier_token_or_secret() {
    let provider = Provider::start().await;
    let platform = Platform::new().await.unwrap();
    let settings = [
        ("SERVE_OIDC_ISSUER", provider.issuer()),
        ("SERVE_OIDC_CLIENT_ID", CLIENT),
        ("SERVE_OIDC_CLIENT_SECRET", SECRET),
        ("SERVE_OIDC_ROLES", ROLES),
        ("SERVE_PUBLIC_URL", PUBLIC_URL),
        ("RUST_LOG", "debug"),
    ];
    let mut server = platform.start_server("serve", &settings).unwrap();
    server.ready().await;
    let log = server.log();
    let address = log.split("pings are accepted at http://").nth(1).unwrap();
    let address = address.split('/').next().unwrap();
    let mut secrets = vec![SECRET.to_owned()];
    let mut pages = Vec::new();
    let claims =
        json!({"email": "eve@other.example", "groups": ["secret project"], "sub": "x".repeat(250)});
    for (signing, status) in [
        (Signing::Rs256, 303),
        (Signing::Altered, 403),
        (Signing::None, 403),
        (Signing::UnknownKeyId, 403),
        // Who has no role.
        (Signing::Es256, 403),
    ] {
        provider.change(|behavior| {
            behavior.signing = signing;
            if signing == Signing::Es256 {
                behavior.claims = claims.clone();
            }
        });
        let send = async |path: &str, cookie: &str| -> Answer {
            send_to_address(address, "GET", path, &[LOCAL_HOST, cookie], "").await
        };
        let begun = send("/log-in/oidc", "X-None: no cookie").await;
        let cookie = begun.cookie();
        let path = return_path(begun.header("location").unwrap()).await;
        let answer = send(&path, &cookie).await;
        assert_eq!(answer.status, status, "{signing:?}: {}", answer.body);
        let again = send(&path, &cookie).await;
        assert_eq!(again.status, 403, "{}", again.body);
        secrets.push(cookie.split('=').nth(1).unwrap().to_owned());
        if let Some(session) = super::session(&answer) {
            let me = send("/api/v1/me", &session).await.expect(200);
            assert_eq!((&me["name"], &me["how"]), (&"oidc ann@example.com".into(), &"oidc".into()));
            secrets.push(session.split('=').nth(1).unwrap().to_owned());
        }
        pages.extend([answer.body.to_string(), again.body.to_string()]);
    }
    secrets.extend(provider.secrets());
    assert!(secrets.len() > 15, "{secrets:?}");
    let log = server.log();
    let failures = log.matches("a log-in by the identity provider failed").count();
    assert_eq!(failures, 4, "{log}");
    let subject = format!("no_role, for the subject \"{}…\"", "x".repeat(100));
    assert!(log.contains(&subject), "{log}");
    for about in ["eve@other.example", "secret project", &"x".repeat(101)] {
        assert!(!log.contains(about), "{about} is in the log: {log}");
    }
    for secret in secrets {
        assert!(!log.contains(&secret), "{secret} is in the log: {log}");
        assert!(!pages.iter().any(|page| page.contains(&secret)), "{secret} is in a page");
    }
}
