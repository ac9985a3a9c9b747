//! `/settings/accounts`: accounts and their roles. A password that the server makes is shown once, in the answer to its form.

use askama::Template;
use axum::extract::Path;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use sexton_model::access::Role;
use sexton_model::job_scope::{Grant, ScopeChange};
use sexton_operations::accounts::{self, Account};
use sexton_operations::passwords::Password;

use crate::access::Admin;
use crate::api::{ReasonBody, grant, job_scope};
use crate::pages::shell::copy;
use crate::pages::shell::form::Form;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Which accounts to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AccountsQuery {
    /// Also those that are disabled.
    all: bool,
}

/// A password that was made, with the name of its account.
type MadePassword = Option<(String, Password)>;

#[derive(Debug, Template)]
#[template(path = "settings/accounts.html")]
struct AccountsPage {
    frame: Frame,
    query: AccountsQuery,
    accounts: Vec<Account>,
    made: MadePassword,
    role: Role,
}

impl AccountsPage {
    fn roles(&self) -> [Role; 4] {
        Role::ALL
    }

    fn state(&self, account: &Account) -> &'static str {
        if account.disabled_at.is_some() { "disabled" } else { "active" }
    }

    fn path(&self, account: &Account, action: &str) -> String {
        format!("/settings/accounts/{}/{action}", account.name)
    }

    fn create_command(&self) -> String {
        copy::command(&["accounts", "create", "ann", "--role", "operator", "--generate"])
    }

    fn create_request(&self) -> String {
        let body = json!({"name": "ann", "role": "operator", "password": "…"});
        copy::request("POST", "/accounts", &body)
    }

    fn command(&self, account: &Account, action: &str, rest: &[&str]) -> String {
        copy::command(&[&["accounts", action, &account.name], rest].concat())
    }

    fn request(&self, account: &Account, action: &str, body: &Value) -> String {
        copy::request("POST", &format!("/accounts/{}/{action}", account.name), body)
    }

    fn seen_jobs<'a>(&self, account: &'a Account) -> &'a str {
        account.only_jobs.as_deref().unwrap_or(ALL_JOBS)
    }

    fn role_command(&self, account: &Account) -> String {
        self.command(account, "set-role", &["operator"])
    }

    fn role_request(&self, account: &Account) -> String {
        self.request(account, "role", &json!({"role": "operator"}))
    }

    fn password_command(&self, account: &Account) -> String {
        self.command(account, "set-password", &["--generate"])
    }

    fn password_request(&self, account: &Account) -> String {
        self.request(account, "password", &json!({"password": "…"}))
    }

    fn change_command(&self, account: &Account, action: &str) -> String {
        self.command(account, action, &[])
    }

    fn change_request(&self, account: &Account, action: &str) -> String {
        self.request(account, action, &json!({"reason": copy::REASON}))
    }
}

pub(super) async fn list(
    visit: Visit<Admin>,
    query: PageQuery<AccountsQuery>,
) -> Result<Response, Refusal> {
    let query = query.values;
    let listed = accounts::list(visit.reads()).await;
    let mut accounts = listed.map_err(|error| visit.refuse(error))?;
    if !query.all {
        accounts.retain(|account| account.disabled_at.is_none());
    }
    let frame = visit.frame(Section::Settings).await?;
    Ok(html(&AccountsPage { frame, query, accounts, made: None, role: Role::Admin }))
}

/// An account to be created.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccountForm {
    name: String,
    role: Role,
    /// Absent: it may change all jobs.
    only_jobs: Option<String>,
    /// Absent: the server makes one.
    password: Option<Password>,
    #[serde(default, deserialize_with = "crate::api::reason")]
    reason: Option<String>,
}

pub(super) async fn create(
    visit: Visit<Admin>,
    Form(form): Form<AccountForm>,
) -> Result<Response, Refusal> {
    let AccountForm { name, role, only_jobs, password, reason } = form;
    let grant = grant(role, only_jobs.as_deref()).map_err(|problem| visit.refuse(problem))?;
    let (name, reason) = (name.trim(), reason.as_deref());
    let frame = visit.frame(Section::Settings).await?;
    let (password, made) = choose(&visit, name, password)?;
    let store = visit.writes();
    let created = accounts::create(&store, name, grant, &password, visit.actor(), reason).await;
    created.map_err(|error| visit.refuse(error))?;
    Ok(answer(&visit, frame, made))
}

/// Another role.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RoleForm {
    role: Role,
    /// Absent: it may change all jobs.
    only_jobs: Option<String>,
    /// What the page showed in `only_jobs`, or [`ALL_JOBS`].
    seen_jobs: String,
    /// The role that the page showed.
    seen_role: Role,
    #[serde(default, deserialize_with = "crate::api::reason")]
    reason: Option<String>,
}

/// Stands for no restriction, where an empty field would count as absent. No restriction is written so.
const ALL_JOBS: &str = "all";

pub(super) async fn set_role(
    visit: Visit<Admin>,
    Path(name): Path<String>,
    Form(RoleForm { role, only_jobs, seen_jobs, seen_role, reason }): Form<RoleForm>,
) -> Result<Response, Refusal> {
    let read = |text: Option<&str>| job_scope(text).map_err(|problem| visit.refuse(problem));
    // An empty field removes the restriction, but only the one that the page showed.
    let to = read(only_jobs.as_deref())?;
    let seen_jobs = read(Some(seen_jobs.as_str()).filter(|seen| *seen != ALL_JOBS))?;
    let seen = Grant { role: seen_role, only_jobs: seen_jobs };
    let change = (role, &ScopeChange::Replace { seen, to });
    let (store, reason) = (visit.writes(), reason.as_deref());
    let set = accounts::set_role(&store, &name, change, visit.actor(), reason).await;
    set.map_err(|error| visit.refuse(error))?;
    Ok(to_list(&visit))
}

/// Another password.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PasswordForm {
    /// Absent: the server makes one.
    password: Option<Password>,
    #[serde(default, deserialize_with = "crate::api::reason")]
    reason: Option<String>,
}

pub(super) async fn set_password(
    visit: Visit<Admin>,
    Path(name): Path<String>,
    Form(PasswordForm { password, reason }): Form<PasswordForm>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Settings).await?;
    let (password, made) = choose(&visit, &name, password)?;
    let (store, reason) = (visit.writes(), reason.as_deref());
    let set = accounts::set_password(&store, &name, &password, visit.actor(), reason).await;
    set.map_err(|error| visit.refuse(error))?;
    Ok(answer(&visit, frame, made))
}

pub(super) async fn disable(
    visit: Visit<Admin>,
    Path(name): Path<String>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    let (store, reason) = (visit.writes(), reason.as_deref());
    let disabled = accounts::disable(&store, &name, visit.actor(), reason).await;
    disabled.map_err(|error| visit.refuse(error))?;
    Ok(to_list(&visit))
}

pub(super) async fn enable(
    visit: Visit<Admin>,
    Path(name): Path<String>,
    Form(ReasonBody { reason }): Form<ReasonBody>,
) -> Result<Response, Refusal> {
    let (store, reason) = (visit.writes(), reason.as_deref());
    let enabled = accounts::enable(&store, &name, visit.actor(), reason).await;
    enabled.map_err(|error| visit.refuse(error))?;
    Ok(to_list(&visit))
}

/// Returns the password of a form, or a random one, which is to be shown.
fn choose(
    visit: &Visit<Admin>,
    name: &str,
    given: Option<Password>,
) -> Result<(Password, MadePassword), Refusal> {
    if let Some(password) = given {
        return Ok((password, None));
    }
    let made = Password::generate().map_err(|error| visit.refuse(error))?;
    Ok((made.clone(), Some((name.to_owned(), made))))
}

/// A password that was made is stored nowhere, so the answer shows it, and nothing that may fail comes before.
fn answer(visit: &Visit<Admin>, frame: Frame, made: MadePassword) -> Response {
    if made.is_none() {
        return to_list(visit);
    }
    let query = AccountsQuery::default();
    html(&AccountsPage { frame, query, accounts: Vec::new(), made, role: Role::Admin })
}

fn to_list(visit: &Visit<Admin>) -> Response {
    Redirect::to(&visit.url("/settings/accounts")).into_response()
}
