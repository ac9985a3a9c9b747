//! The forms about tokens and accounts.

use super::{BECAUSE, Outcome, Submission, Walk};

/// The text that a page shows once, under a label.
fn shown_once(page: &str, label: &str) -> String {
    let begin = format!("aria-label=\"{label}\">");
    let text = page.split(&begin).nth(1).and_then(|it| it.split("</pre>").next());
    text.unwrap_or_else(|| panic!("no {label}: {page}")).to_owned()
}

async fn create_and_revoke_token(walk: &mut Walk) {
    let create = Submission {
        route: "/settings/tokens",
        part: "",
        page: "/settings/tokens",
        values: &[
            ("name", "ci"),
            ("role", "operator"),
            ("only_jobs", "shop.*"),
            ("valid_for", "2h"),
            BECAUSE,
        ],
        outcome: Outcome::Shows("The token ci"),
        action: "create_token",
    };
    let page = walk.submit(create).await;
    let token = shown_once(&page, "Token");
    let me = walk.f.get(&token, "/me").await.expect(200);
    assert_eq!((&me["role"], &me["only_jobs"]), (&"operator".into(), &"shop.*".into()), "{me}");
    let row = "SELECT (expires_at - now() BETWEEN '110 min' AND '120 min')::text FROM sexton.tokens WHERE name = 'ci'";
    assert_eq!(walk.text(row).await, "true");
    let revoke = Submission {
        route: "/settings/tokens/{name}/revoke",
        part: "ci",
        page: "/settings/tokens",
        values: &[BECAUSE],
        outcome: Outcome::LeadsTo("/settings/tokens"),
        action: "revoke_token",
    };
    walk.submit(revoke).await;
    walk.f.get(&token, "/me").await.expect(401);
}

async fn create_account(walk: &mut Walk) -> String {
    let create = Submission {
        route: "/settings/accounts",
        part: "",
        page: "/settings/accounts",
        values: &[("name", "zoe"), ("role", "operator"), BECAUSE],
        outcome: Outcome::Shows("The password of zoe"),
        action: "create_account",
    };
    let page = walk.submit(create).await;
    shown_once(&page, "Password")
}

async fn change_account(walk: &mut Walk) {
    let made = create_account(walk).await;
    assert_eq!(walk.f.log_in("zoe", &made).await.status, 204);
    let row = "SELECT concat_ws(' ', role, only_jobs) FROM sexton.accounts WHERE name = 'zoe'";
    assert_eq!(walk.text(row).await, "operator");
    let password = "correct horse battery";
    let role = [("role", "editor"), ("only_jobs", "billing.*"), BECAUSE];
    let password_values = [("password", password), BECAUSE];
    let because = [BECAUSE];
    let steps: [(&str, &[_], _, _, _); 4] = [
        ("/settings/accounts/{name}/role", &role, "set_account_role", &*made, 204),
        (
            "/settings/accounts/{name}/password",
            &password_values,
            "set_account_password",
            password,
            204,
        ),
        ("/settings/accounts/{name}/disable", &because, "disable_account", password, 401),
        ("/settings/accounts/{name}/enable", &because, "enable_account", password, 204),
    ];
    for (route, values, action, password, logged_in) in steps {
        let submission = Submission {
            route,
            part: "zoe",
            page: "/settings/accounts?all=true",
            values,
            outcome: Outcome::LeadsTo("/settings/accounts"),
            action,
        };
        walk.submit(submission).await;
        assert_eq!(walk.f.log_in("zoe", password).await.status, logged_in, "after {action}");
    }
    assert_eq!(walk.text(row).await, "editor billing.*");
    assert_eq!(walk.f.log_in("zoe", &made).await.status, 401, "it was replaced");
}

pub(super) async fn submit_all(walk: &mut Walk) {
    create_and_revoke_token(walk).await;
    change_account(walk).await;
}
