//! `/set-up`: the first account, by the code in the server's log.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use sexton_operations::passwords::Password;

use super::{Stranger, in_status};
use crate::access::session;
use crate::access::set_up::{SetUpRefusal, create_admin, is_open};
use crate::pages::shell::form::Form;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Site;
use crate::problem::{Problem, ProblemCode};

/// Where the page is.
pub(super) const PATH: &str = "/set-up";

/// The first account.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetUpForm {
    code: String,
    name: String,
    password: Password,
}

#[derive(Debug, Template)]
#[template(path = "log_in/set_up.html")]
struct SetUpPage {
    frame: Frame,
    name: String,
    problem: Option<String>,
}

fn page(site: &Site, name: &str, problem: Option<String>) -> Response {
    let frame = Frame::of_nobody(site, Section::Other);
    html(&SetUpPage { frame, name: name.to_owned(), problem })
}

fn refuse(site: &Site, problem: Problem) -> Refusal {
    Refusal::new(problem, site, format!("{}{PATH}", site.base))
}

fn over(site: &Site) -> Refusal {
    let text = SetUpRefusal::Over.to_string();
    refuse(site, Problem::new(StatusCode::NOT_FOUND, ProblemCode::NotFound, text))
}

pub(super) async fn show(State(site): State<Site>, _: Stranger) -> Result<Response, Refusal> {
    let is_open = is_open(&site.backend).await;
    let is_open = is_open.map_err(|error| refuse(&site, error.into()).of_reading(true));
    if !is_open? {
        return Err(over(&site));
    }
    Ok(page(&site, "", None))
}

pub(super) async fn create(
    State(site): State<Site>,
    Stranger(client): Stranger,
    headers: HeaderMap,
    Form(SetUpForm { code, name, password }): Form<SetUpForm>,
) -> Result<Response, Refusal> {
    let (backend, name) = (&site.backend, name.trim());
    let again = |status, text: String| (status, page(&site, name, Some(text))).into_response();
    if let Err(refusal) = create_admin(backend, &client, &code, name, &password).await {
        let text = refusal.to_string();
        return match refusal {
            SetUpRefusal::Over => Err(over(&site)),
            SetUpRefusal::WrongCode => Ok(again(StatusCode::FORBIDDEN, text)),
            SetUpRefusal::LogIn(refusal) => Ok(in_status(refusal, page(&site, name, Some(text)))),
            SetUpRefusal::Failed(problem) => Ok(in_status(problem, page(&site, name, Some(text)))),
        };
    }
    match session::log_in(backend, &client, &headers, (name, &password)).await {
        Ok(cookie) => Ok((cookie, Redirect::to(&format!("{}/", site.base))).into_response()),
        // The account is there; the page of the log-in says what is wrong.
        Err(_) => Ok(Redirect::to(&format!("{}/log-in", site.base)).into_response()),
    }
}
