//! How long a session counts, and who may begin or end one.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use sexton_model::access::{MAX_SESSIONS_PER_ACCOUNT, Role};
use sexton_model::oidc::{ProviderSettings, RoleRules};
use sexton_server::access::client::ProxySettings;
use sexton_store::operator::AuditContext;
use sexton_store::sessions::{SessionOwner, VouchedPerson, end_all, start_vouched};
use sexton_store::{Store, StoreOptions};

use super::super::turns::Gate;
use super::super::{Fixture, LOCAL_HOST, eventually};
use super::provider::{ENDPOINTS, Fault, Provider};
use super::{
    Answer, NOT_BEGUN, ROLES, assert_refused, begin, beside, finish, log_in, log_in_by,
    return_path, session, settings, start,
};

/// A person, by the name in the audit.
const EVE: &str = "eve@example.com";
const FORGOTTEN: &str = "set-cookie: sexton_log_in=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0";

async fn me(f: &Fixture, cookie: &str) -> u16 {
    f.visit(cookie, "GET", "/me", "").await.status
}

#[tokio::test]
async fn a_session_counts_under_the_settings_by_which_it_began_and_no_others() {
    let (provider, f) = start().await;
    let cookie = session(&log_in(&f).await).unwrap();
    let known = || settings(provider.issuer());
    // What decides nothing about people: another order of the rules, scopes.
    let mut turned: Vec<&str> = ROLES.split(',').collect();
    turned.reverse();
    let roles = RoleRules::parse(&turned.join(", ")).unwrap();
    let same = ProviderSettings { roles, scopes: "openid".to_owned(), ..known() };
    assert_eq!(me(&beside(&f, same).await, &cookie).await, 200);
    let fewer = RoleRules::parse("groups:admins=admin").unwrap();
    for other in [
        settings("https://id.example.com"),
        ProviderSettings { client_id: "other".to_owned(), ..known() },
        ProviderSettings { name_claim: "sub".to_owned(), ..known() },
        ProviderSettings { roles: fewer, ..known() },
    ] {
        let about = format!("{other:?}");
        assert_eq!(me(&beside(&f, other).await, &cookie).await, 401, "{about}");
    }
    // The first server knows it still, and an account is bound to nothing.
    assert_eq!(me(&f, &cookie).await, 200);
    let account = f.session("bob", "viewer").await;
    let off = Fixture::beside(&f, |backend| backend.with_provider(None)).await;
    assert_eq!(me(&off, &account).await, 200);
    // One that began before sessions were bound.
    let pool = f.console.store().pool();
    sqlx::query("UPDATE sexton.sessions SET provider_hash = NULL").execute(pool).await.unwrap();
    assert_eq!((me(&f, &cookie).await, me(&f, &account).await), (401, 200));
}

#[tokio::test]
async fn an_operator_ends_all_sessions_of_a_person_or_an_account_and_the_audit_says_so() {
    let (provider, f) = start().await;
    let mut of_ann = Vec::new();
    for _ in 0..2 {
        of_ann.push(session(&log_in(&f).await).unwrap());
    }
    provider.change(|behavior| behavior.claims = json!({"email": "bob@example.com"}));
    let of_bob = session(&log_in(&f).await).unwrap();
    let account = f.session("ann", "viewer").await;
    let end = ["--json", "accounts", "end-sessions", "oidc ann@example.com", "--reason", "left"];
    let ended = f.console.run(&end).await.expect(0).text();
    assert_eq!(serde_json::from_str::<Value>(&ended).unwrap()["ended_sessions"], 2);
    for cookie in &of_ann {
        assert_eq!(me(&f, cookie).await, 401);
    }
    assert_eq!((me(&f, &of_bob).await, me(&f, &account).await), (200, 200));
    let audit = f.console.json(&["audit", "list"]).await;
    let row = &audit["items"][0];
    let after = json!({"person": "ann@example.com", "ended_sessions": 2});
    assert_eq!((&row["action"], &row["reason"]), (&"end_sessions".into(), &"left".into()));
    assert_eq!(row["after"], after);
    // Once more, a misspelt name, and what has no sessions.
    f.console.run(&end).await.expect(4);
    f.console.run(&["accounts", "end-sessions", "oidc bob"]).await.expect(4);
    f.console.run(&["accounts", "end-sessions", "bob@example.com"]).await.expect(2);
    // By the API.
    let token = f.token("admin", "admin").await;
    let post = async |name: &str| -> Answer {
        let body = json!({"name": name}).to_string();
        f.ask(&token, "POST", "/accounts/end-sessions", &body).await
    };
    assert_eq!(post("account ann").await.expect(200)["ended_sessions"], 1);
    assert_eq!((me(&f, &of_bob).await, me(&f, &account).await), (200, 401));
    post("account ann").await.expect(409);
    post("token admin").await.expect(400);
    assert_eq!(post("oidc bob@example.com").await.expect(200)["ended_sessions"], 1);
    assert_eq!(me(&f, &of_bob).await, 401);
}

#[tokio::test]
async fn no_page_of_another_site_swaps_a_session_and_a_new_one_ends_the_old_one() {
    let (_provider, f) = start().await;
    let old = session(&log_in(&f).await).unwrap();
    let begin_from = async |site: &str, cookie: &str| {
        f.send_to("GET", "/log-in/oidc", &[LOCAL_HOST, cookie, site], "").await
    };
    for site in
        ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example"]
    {
        let refused = begin_from(site, &old).await;
        assert_refused(&refused, 403, "a page of another site has led here");
        assert_eq!(refused.header("set-cookie"), None, "{site}");
        // Nobody is logged in: a link leads people here.
        assert_eq!(begin_from(site, "Cookie: sexton_session=gone").await.status, 303, "{site}");
    }
    assert_eq!(me(&f, &old).await, 200);
    let begun = begin_from("Sec-Fetch-Site: same-origin", &old).await;
    let path = return_path(begun.header("location").unwrap()).await;
    let both = format!("{}; {}", begun.cookie(), old.strip_prefix("Cookie: ").unwrap());
    let new = session(&finish(&f, &both, &path).await).unwrap();
    assert_eq!((me(&f, &old).await, me(&f, &new).await), (401, 200));
}

#[tokio::test]
async fn the_cookie_of_a_log_in_that_is_over_is_forgotten_and_no_other() {
    let (provider, f) = start().await;
    let (cookie, url) = begin(&f, "/jobs").await;
    let path = return_path(&url).await;
    // What any page can make a browser send.
    let guess = finish(&f, &cookie, "/log-in/oidc/callback?code=a&state=guess").await;
    assert_refused(&guess, 403, NOT_BEGUN);
    assert!(!guess.head.contains("set-cookie"), "{}", guess.head);
    provider.change(|behavior| behavior.claims = json!({"groups": []}));
    let nobody = finish(&f, &cookie, &path).await;
    assert_refused(&nobody, 403, "has no role here");
    assert!(nobody.head.contains(FORGOTTEN), "{}", nobody.head);
    let (cookie, url) = begin(&f, "/jobs").await;
    let state = url.split("state=").nth(1).unwrap().split('&').next().unwrap();
    let denied = format!("/log-in/oidc/callback?error=access_denied&state={state}");
    let denied = finish(&f, &cookie, &denied).await;
    assert!(denied.head.contains(FORGOTTEN), "{}", denied.head);
}

#[tokio::test]
async fn who_has_begun_no_log_in_costs_the_database_nothing() {
    let (provider, f) = start().await;
    let (cookie, url) = begin(&f, "/jobs").await;
    let path = return_path(&url).await;
    // A server whose database is away.
    let away = StoreOptions::new("postgres://nobody@127.0.0.1:9/none", "api");
    let known = Some(log_in_by(settings(provider.issuer())));
    let away = Store::open(&away).unwrap();
    let away = Fixture::beside(&f, |backend| backend.asking(away).with_provider(known)).await;
    for (browser, path) in [
        ("X-None: no cookie", &*path),
        ("Cookie: sexton_log_in=x", &path),
        (&cookie, "/log-in/oidc/callback?state=x"),
    ] {
        assert_refused(&finish(&away, browser, path).await, 403, NOT_BEGUN);
    }
    assert_eq!(finish(&away, &cookie, &path).await.status, 503);
}

#[tokio::test]
async fn nobody_takes_all_places_on_the_way_to_the_provider() {
    const HERE: &str = "X-Forwarded-For: 203.0.113.7";
    const ELSEWHERE: &str = "X-Forwarded-For: 203.0.113.8";
    const TLS: &str = "X-Forwarded-Proto: https";
    let provider = Provider::start().await;
    let log_in = log_in_by(settings(provider.issuer()));
    let proxies =
        ProxySettings { trusted: vec!["127.0.0.1".parse().unwrap()], ..ProxySettings::default() };
    let f = Fixture::with(|backend| backend.behind(proxies).with_provider(Some(log_in))).await;
    let send = async |path: String, from: &str, cookie: String| -> Answer {
        f.send_to("GET", &path, &[LOCAL_HOST, from, TLS, &cookie], "").await
    };
    let begin_from = async |from: &str| {
        send("/log-in/oidc".to_owned(), from, "X-None: no cookie".to_owned()).await
    };
    let mut begun = Vec::new();
    for _ in 0..5 {
        let one = begin_from(HERE).await;
        let path = super::return_url(one.header("location").unwrap()).await;
        begun.push((path.strip_prefix(super::PUBLIC_URL).unwrap().to_owned(), one.cookie()));
    }
    let [_, token, _] = ENDPOINTS;
    provider.change(|behavior| behavior.fault = Some((token, Fault::Silent)));
    let mut waiting: FuturesUnordered<_> =
        begun.into_iter().map(|(path, cookie)| send(path, HERE, cookie)).collect();
    // One of the five is answered while the provider answers none.
    let busy = "too many people log in at the same time";
    assert_refused(&waiting.next().await.unwrap(), 503, busy);
    assert_refused(&begin_from(HERE).await, 503, busy);
    assert_eq!(begin_from(ELSEWHERE).await.status, 303);
    while let Some(late) = waiting.next().await {
        assert_refused(&late, 503, "it takes longer than 8 s");
    }
    assert_eq!(begin_from(HERE).await.status, 303);
}

/// Logs one person in, whose session has this number.
async fn log_in_as(store: &Store, number: u8) {
    let person = VouchedPerson {
        name: EVE,
        role: Role::Viewer,
        issuer: "https://id.example.com",
        subject: "248289761001",
        provider_hash: &[0; 32],
    };
    let by = AuditContext { actor: "oidc eve@example.com", reason: None };
    start_vouched(store, &[number; 32], &person, by, None).await.unwrap();
}

async fn open_sessions(f: &Fixture) -> i64 {
    let open = "SELECT count(*) FROM sexton.sessions WHERE ended_at IS NULL";
    sqlx::query_scalar(open).fetch_one(f.console.store().pool()).await.unwrap()
}

/// Waits until a session of the database waits for a lock.
pub(in crate::api) async fn one_waits(f: &Fixture) {
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("one waits for the other", async || {
        let waiting = sqlx::query_scalar::<_, i64>(waiting);
        waiting.fetch_one(f.console.store().pool()).await.unwrap() == 1
    })
    .await;
}

#[tokio::test]
async fn log_ins_of_one_person_at_the_same_moment_leave_no_session_beyond_the_limit() {
    let f = Fixture::new().await;
    let store = Store::open(&StoreOptions::new(f.console.url(), "api")).unwrap();
    let limit = u8::try_from(MAX_SESSIONS_PER_ACCOUNT).unwrap();
    for number in 1..limit {
        log_in_as(&store, number).await;
    }
    // There is room for one of two, and no session that both would end.
    let gate = Gate::close(&f, "sexton.sessions").await;
    let both = async { tokio::join!(log_in_as(&store, limit), log_in_as(&store, limit + 1)) };
    let release = async {
        gate.is_reached(1).await;
        one_waits(&f).await;
        gate.open().await;
    };
    tokio::join!(both, release);
    assert_eq!(open_sessions(&f).await, i64::from(MAX_SESSIONS_PER_ACCOUNT));
}

#[tokio::test]
async fn an_end_of_all_sessions_of_a_person_waits_for_a_log_in_and_ends_its_session() {
    let f = Fixture::new().await;
    let store = Store::open(&StoreOptions::new(f.console.url(), "api")).unwrap();
    for number in 1..=2 {
        log_in_as(&store, number).await;
    }
    let gate = Gate::close(&f, "sexton.sessions").await;
    let end = async {
        gate.is_reached(1).await;
        let by = AuditContext { actor: "account ann", reason: None };
        let ended = end_all(&store, SessionOwner::Person(EVE), by, None);
        let release = async {
            one_waits(&f).await;
            gate.open().await;
        };
        tokio::join!(ended, release).0.unwrap()
    };
    let ((), ended) = tokio::join!(log_in_as(&store, 3), end);
    assert_eq!((ended, open_sessions(&f).await), (3, 0));
}
