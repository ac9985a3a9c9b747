//! The first account, by a code of the server's log.

use std::time::Duration;

use sexton_operations::passwords::Password;
use sexton_server::access::client::Client;
use sexton_server::access::set_up::{create_admin, is_open, open};
use sexton_tests::platform::Platform;

use super::{Answer, Fixture, LOCAL_HOST, send_to_address};

const PATIENCE: Duration = Duration::from_mins(2);
const PASSWORD: &str = "correct+horse+battery";

async fn submit(f: &Fixture, code: &str, name: &str, more: &[&str]) -> Answer {
    let headers = [&[LOCAL_HOST], more].concat();
    let body = format!("code={code}&name={name}&password={PASSWORD}");
    f.send_to("POST", "/set-up", &headers, &body).await
}

#[tokio::test]
async fn the_code_creates_one_admin_who_is_logged_in() {
    let f = Fixture::new().await;
    let show = async || f.send_to("GET", "/set-up", &[LOCAL_HOST], "").await;
    show().await.expect(404);
    let code = open(&f.backend).await.unwrap().unwrap();
    let page = show().await;
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    let html = page.expect(200);
    assert!(!html.as_str().unwrap().contains(&code));
    submit(&f, "wrong", "ann", &[]).await.expect(403);
    submit(&f, &code, "ann", &["Sec-Fetch-Site: cross-site"]).await.expect(403);
    submit(&f, &code, "Ann%3Cb%3E", &[]).await.expect(400);
    let abroad = format!("code={code}&name=ann&password={PASSWORD}");
    f.send_to("POST", "/set-up", &["Host: sexton.example.com"], &abroad).await.expect(403);
    let created = submit(&f, &code, "ann", &["Sec-Fetch-Site: same-origin"]).await;
    assert_eq!((created.status, created.header("location")), (303, Some("/")), "{}", created.body);
    let me = f.visit(&created.cookie(), "GET", "/me", "").await.expect(200);
    assert_eq!((&me["name"], &me["role"]), (&"account ann".into(), &"admin".into()));
    show().await.expect(404);
    submit(&f, &code, "bob", &[]).await.expect(404);
    assert_eq!(open(&f.backend).await.unwrap(), None);
    let audit = f.console.json(&["audit", "list"]).await;
    let row = &audit["items"][1];
    assert_eq!((&row["action"], &row["actor"]), (&"create_account".into(), &"first set-up".into()));
}

#[tokio::test]
async fn the_code_ends_with_an_account_from_elsewhere_and_makes_one_of_two_the_first() {
    let f = Fixture::new().await;
    let code = open(&f.backend).await.unwrap().unwrap();
    let client = Client {
        address: [127, 0, 0, 1].into(),
        is_secure: true,
        is_to_this_machine: false,
        is_from_proxy: false,
    };
    let password = Password::new(PASSWORD.to_owned());
    let create = async |name: &str| create_admin(&f.backend, &client, &code, name, &password).await;
    let (one, other) = tokio::join!(create("ann"), create("bob"));
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    let f = Fixture::new().await;
    let code = open(&f.backend).await.unwrap().unwrap();
    f.account("cron", "viewer").await;
    assert!(!is_open(&f.backend).await.unwrap());
    submit(&f, &code, "ann", &[]).await.expect(404);
    // Guessing is limited like passwords.
    let f = Fixture::new().await;
    let code = open(&f.backend).await.unwrap().unwrap();
    let mut guesses = 0;
    while submit(&f, "guess", "ann", &[]).await.status == 403 {
        guesses += 1;
        assert!(guesses < 50, "guesses are never limited");
    }
    assert!(guesses >= 10, "{guesses}");
    submit(&f, &code, "ann", &[]).await.expect(429);
}

#[tokio::test]
async fn the_program_logs_the_code_and_follows_its_settings() {
    let platform = Platform::new().await.unwrap();
    let mut server = platform.start_server("serve", &[]).unwrap();
    server.ready().await;
    let after = |words: &str| {
        let log = server.log();
        let rest = log.split(words).nth(1)?.to_owned();
        rest.split([' ', '/', '\n']).next().map(str::to_owned)
    };
    let code = platform.eventually("it logs the code", PATIENCE, async || after("with the code "));
    let code = code.await;
    let address = after("pings are accepted at http://").unwrap();
    let body = format!("code={code}&name=ann&password={PASSWORD}");
    let created = send_to_address(&address, "POST", "/set-up", &[LOCAL_HOST], &body).await;
    let headers = [LOCAL_HOST, &created.cookie()];
    let me = send_to_address(&address, "GET", "/api/v1/me", &headers, "").await.expect(200);
    assert_eq!(me["name"], "account ann");
    let settings = [
        ("SERVE_TRUSTED_PROXIES", "10.0.0.0/8, 127.0.0.1"),
        ("SERVE_PROXY_USER_HEADER", "X-Forwarded-User"),
        ("SERVE_PROXY_ROLE", "operator"),
        ("SERVE_REQUESTS_PER_MINUTE", "1"),
    ];
    let mut server = platform.start_server("behind", &settings).unwrap();
    server.ready().await;
    let log = server.log();
    let address = log.split("pings are accepted at http://").nth(1).unwrap();
    let address = address.split('/').next().unwrap();
    let headers = ["Host: sexton.example.com", "X-Forwarded-User: bob"];
    let mut statuses = Vec::new();
    while statuses.last() != Some(&429) && statuses.len() < 200 {
        let answer = send_to_address(address, "GET", "/api/v1/me", &headers, "").await;
        statuses.push(answer.status);
        if answer.status == 200 {
            let me = answer.body;
            assert_eq!((&me["name"], &me["role"]), (&"proxy bob".into(), &"operator".into()));
        }
    }
    assert_eq!((statuses[0], statuses.last()), (200, Some(&429)));
    let refused = platform.start_server("wrong", &settings[1..2]).unwrap();
    let refusal = platform.eventually("it refuses its settings", PATIENCE, async || {
        refused.log().contains("SERVE_TRUSTED_PROXIES").then_some(())
    });
    refusal.await;
}
