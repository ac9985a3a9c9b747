//! Each form of the pages does what it says: it is read from the page on which it stands, filled in and sent, and what it did is looked for
//! in the answer, in the rows and in the audit.

mod executions;
mod failures;
mod form;
mod incidents;
mod jobs;
mod settings;

use std::collections::BTreeSet;

use sexton_model::access::Role;
use sqlx::AssertSqlSafe;

use self::form::Form;
use super::copied::OF_BROWSERS;
use super::{Answer, Fixture};
use crate::console::roles::role_for_sending;
use crate::console::routes::routes;

/// A reason that is sent.
const BECAUSE: (&str, &str) = ("reason", "it's due");

/// What becomes of a form.
#[derive(Clone, Copy)]
enum Outcome<'a> {
    /// The answer leads to an address; a star stands for an id that is new.
    LeadsTo(&'a str),
    /// The answer is a page with this text.
    Shows(&'a str),
}

/// A form, and what it does.
#[derive(Clone, Copy)]
struct Submission<'a> {
    route: &'static str,
    /// Stands for the part of the route in braces.
    part: &'a str,
    /// The address of the page with the form.
    page: &'a str,
    /// What somebody fills in, and the values of hidden fields that tell the form from others.
    values: &'a [(&'a str, &'a str)],
    outcome: Outcome<'a>,
    /// The actions that the audit has of it, with blanks between them.
    action: &'static str,
}

impl Submission<'_> {
    fn role(&self) -> Role {
        role_for_sending(self.route).unwrap_or_else(|| panic!("{} is for everybody", self.route))
    }

    fn path(&self) -> String {
        let mut path = self.route.to_owned();
        if let Some((from, to)) = path.find('{').zip(path.find('}')) {
            path.replace_range(from..=to, self.part);
        }
        path
    }

    fn reason(&self) -> Option<String> {
        let reason = self.values.iter().find(|(name, _)| *name == "reason");
        reason.map(|(_, reason)| (*reason).to_owned())
    }
}

/// Sends forms, each as somebody of the least role that it needs.
struct Walk {
    f: Fixture,
    /// The tokens of all roles; each has the name of its role.
    tokens: Vec<(Role, String)>,
    /// Routes of which no form has been sent yet.
    left: BTreeSet<String>,
}

impl Walk {
    async fn new() -> Self {
        let f = Fixture::new().await;
        let mut tokens = Vec::new();
        for role in Role::ALL {
            // Of another person than the one at the command line, whose requests they approve.
            let create = ["--json", "tokens", "create", role.as_str(), "--role", role.as_str()];
            let created = f.console.run_with(&create, &[("USER", "bob")], "").await.expect(0);
            tokens.push((role, created.json()["token"].as_str().unwrap().to_owned()));
        }
        let mut left: BTreeSet<String> = routes("post").into_iter().collect();
        left.retain(|route| !OF_BROWSERS.contains(&route.as_str()));
        Self { f, tokens, left }
    }

    async fn run(&self, command: &[&str]) {
        self.f.console.run(command).await.expect(0);
    }

    async fn send(&self, role: Role, method: &str, path: &str, body: &str) -> Answer {
        let (_, token) = self.tokens.iter().find(|(it, _)| *it == role).unwrap();
        let authorization = format!("Authorization: Bearer {token}");
        let headers = ["Host: localhost", "Sec-Fetch-Site: same-origin", &authorization];
        self.f.send_to(method, path, &headers, body).await
    }

    async fn get(&self, role: Role, path: &str) -> String {
        let answer = self.send(role, "GET", path, "").await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body.as_str().unwrap().to_owned()
    }

    /// The first column of a row, which is a text.
    async fn text(&self, query: &str) -> String {
        let query = sqlx::query_scalar(AssertSqlSafe(query.to_owned()));
        query.fetch_one(self.f.console.store().pool()).await.unwrap()
    }

    /// The state of an execution.
    async fn state(&self, id: &str) -> String {
        self.text(&format!("SELECT state FROM sexton.executions WHERE id = '{id}'")).await
    }

    async fn last_entry(&self) -> i64 {
        let last = "SELECT coalesce(max(id), 0) FROM sexton.operator_actions";
        sqlx::query_scalar(last).fetch_one(self.f.console.store().pool()).await.unwrap()
    }

    /// Opens the page, and sends its form.
    async fn submit(&mut self, submission: Submission<'_>) -> String {
        let page = self.get(submission.role(), submission.page).await;
        self.submit_of(&page, submission).await
    }

    /// Sends a form of a page. Returns the address to which the answer leads, or the page that it is.
    async fn submit_of(&mut self, page: &str, submission: Submission<'_>) -> String {
        let Submission { route, values, outcome, action, .. } = submission;
        let (role, path) = (submission.role(), submission.path());
        let form = Form::filled(page, &path, values);
        let last = self.last_entry().await;
        let answer = self.send(role, "POST", &path, &form.body()).await;
        let entries = "SELECT action, reason FROM sexton.operator_actions WHERE id > $1 AND actor = $2 ORDER BY id";
        let entries = sqlx::query_as(entries).bind(last).bind(format!("token {}", role.as_str()));
        let entries: Vec<(String, Option<String>)> =
            entries.fetch_all(self.f.console.store().pool()).await.unwrap();
        let found = match outcome {
            Outcome::LeadsTo(expected) => {
                assert_eq!(answer.status, 303, "{path}: {}", answer.body);
                let place = answer.header("location").unwrap_or_default().to_owned();
                assert!(is_address(expected, &place), "{path}: {place}");
                self.get(role, &place).await;
                place
            }
            Outcome::Shows(expected) => {
                assert_eq!(answer.status, 200, "{path}: {}", answer.body);
                let page = answer.body.as_str().unwrap().to_owned();
                assert!(page.contains(expected), "{path}: {page}");
                page
            }
        };
        let expected = action.split(' ').map(|action| (action.to_owned(), submission.reason()));
        assert_eq!(entries, expected.collect::<Vec<_>>(), "{path}");
        self.left.remove(route);
        found
    }
}

fn is_address(expected: &str, found: &str) -> bool {
    match expected.split_once('*') {
        Some((before, behind)) => found.starts_with(before) && found.ends_with(behind),
        None => found == expected,
    }
}

/// The id of the execution to which an answer leads.
fn id_of_execution(place: &str) -> String {
    let id = place.strip_prefix("/executions/").and_then(|it| it.split('?').next());
    id.unwrap_or_else(|| panic!("{place} is no execution's")).to_owned()
}

#[tokio::test]
async fn every_form_of_a_page_does_what_it_says_and_the_audit_has_it_once() {
    let mut walk = Walk::new().await;
    jobs::submit_all(&mut walk).await;
    executions::submit_all(&mut walk).await;
    failures::submit_all(&mut walk).await;
    incidents::submit_all(&mut walk).await;
    settings::submit_all(&mut walk).await;
    // The last one, since others would wait for an approval behind it.
    failures::submit_approvals(&mut walk).await;
    assert!(walk.left.is_empty(), "no form was sent to {:?}", walk.left);
}
