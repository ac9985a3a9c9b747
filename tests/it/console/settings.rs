//! The pages about settings, accounts and tokens.

use sexton_model::access::Role;

use crate::api::Fixture;

const ROUTES: [(&str, &str, Role); 10] = [
    ("GET", "/settings", Role::Viewer),
    ("GET", "/settings/tokens", Role::Admin),
    ("POST", "/settings/tokens", Role::Admin),
    ("POST", "/settings/tokens/no-such-name/revoke", Role::Admin),
    ("GET", "/settings/accounts", Role::Admin),
    ("POST", "/settings/accounts", Role::Admin),
    ("POST", "/settings/accounts/no-such-name/role", Role::Admin),
    ("POST", "/settings/accounts/no-such-name/password", Role::Admin),
    ("POST", "/settings/accounts/no-such-name/disable", Role::Admin),
    ("POST", "/settings/accounts/no-such-name/enable", Role::Admin),
];

#[tokio::test]
async fn each_page_about_access_needs_the_role_of_admins_and_the_settings_that_of_viewers() {
    let f = Fixture::new().await;
    for role in Role::ALL {
        let token = f.token(role.as_str(), role.as_str()).await;
        let authorization = format!("Authorization: Bearer {token}");
        let headers = ["Host: localhost", &authorization];
        for (method, path, needed) in ROUTES {
            // A form with which nothing can be done.
            let body = if method == "POST" { "x=1" } else { "" };
            let answer = f.send_to(method, path, &headers, body).await;
            let status = answer.status;
            assert_eq!(status == 403, role < needed, "{method} {path} as {role:?}: {status}");
            assert!(method == "POST" || role < needed || status == 200, "{path}: {status}");
        }
        let page = f.send_to("GET", "/settings", &headers, "").await.expect(200);
        let page = page.as_str().unwrap();
        let leads = page.contains("href=\"/settings/accounts\"");
        assert_eq!(leads, role == Role::Admin, "as {role:?}");
        assert!(page.contains("<code>DATABASE_URL</code>"), "{page}");
        assert!(page.contains("which this server needs"), "{page}");
    }
}

/// An admin's form, sent from a page of this server.
async fn send(f: &Fixture, path: &str, form: &str) -> String {
    let headers = ["Host: localhost", "Sec-Fetch-Site: same-origin"];
    let answer = f.send_to("POST", path, &headers, form).await;
    let page = answer.body.as_str().unwrap_or_default().to_owned();
    assert!([200, 303].contains(&answer.status), "{path}: {} {page}", answer.status);
    page
}

#[tokio::test]
async fn an_admin_makes_an_account_changes_it_and_ends_it() {
    let f = Fixture::with_local_role(Some(Role::Admin)).await;
    let made = send(&f, "/settings/accounts", "name=ann&role=viewer&reason=new+here").await;
    let (_, password) = made.split_once("aria-label=\"Password\">").unwrap();
    let (password, _) = password.split_once('<').unwrap();
    assert_eq!(f.log_in("ann", password).await.status, 204);
    send(&f, "/settings/accounts/ann/role", "role=operator&seen_role=viewer&seen_jobs=all").await;
    // A password of the admin's choice is not shown again.
    let chosen = "correct horse battery";
    let form = "password=correct+horse+battery";
    let answered = send(&f, "/settings/accounts/ann/password", form).await;
    assert!(!answered.contains(chosen), "{answered}");
    assert_eq!(f.log_in("ann", password).await.status, 401);
    assert_eq!(f.log_in("ann", chosen).await.status, 204);
    send(&f, "/settings/accounts/ann/disable", "reason=left").await;
    assert_eq!(f.log_in("ann", chosen).await.status, 401);
    send(&f, "/settings/accounts/ann/enable", "").await;
    assert_eq!(f.log_in("ann", chosen).await.status, 204);
    let listed = f.console.json(&["accounts", "list"]).await;
    assert_eq!(listed["items"][0]["role"], "operator", "{listed}");
    assert_eq!(listed["items"][0]["created_by"], "local", "{listed}");
    let audit = f.console.json(&["audit", "list"]).await.to_string();
    assert!(audit.contains("new here") && audit.contains("left"), "{audit}");
    assert!(!audit.contains(chosen), "{audit}");
}
