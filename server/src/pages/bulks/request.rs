//! `/failed/bulk` and `/executions/bulk`: one action on all failures, or a cancel of all executions, that match a filter,
//! previewed first.

use askama::Template;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use sexton_model::bulk::BulkKind;
use sexton_operations::approvals::gate::{ApprovalDemand, Outcome};
use sexton_operations::bulks::request::BulkAction;
use sexton_operations::error::OperationError;
use sexton_store::bulk::Preview;
use sexton_store::status;

use super::form::{BulkQuery, List};
use crate::access::Operator;
use crate::pages::shell::copy;
use crate::pages::shell::form::Form;
use crate::pages::shell::frame::{Frame, html};
use crate::pages::shell::problems::Problems;
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Jobs and pools that a preview names.
const MAX_NAMED: usize = 10;

#[derive(Debug, Template)]
#[template(path = "bulks/request.html")]
struct BulkPage<'a> {
    frame: Frame,
    list: List,
    kind: BulkKind,
    counts: &'a Preview,
    query: &'a BulkQuery,
    /// The approvals that the bulk needs.
    demand: Option<ApprovalDemand>,
    /// What is wrong with what was typed, or why it was not done.
    problems: Problems,
}

impl BulkPage<'_> {
    fn title(&self) -> String {
        let noun = if self.counts.count == 1 { "execution" } else { "executions" };
        let more = if self.counts.more { "more than " } else { "" };
        let verb = match self.kind {
            BulkKind::Discard => "Discard",
            BulkKind::Restore => "Restore",
            BulkKind::Cancel => "Cancel",
            BulkKind::Requeue => "Requeue",
        };
        format!("{verb} {more}{} {noun}", self.counts.count)
    }

    fn is_requeue(&self) -> bool {
        self.kind == BulkKind::Requeue
    }

    fn is_cancel(&self) -> bool {
        self.kind == BulkKind::Cancel
    }

    fn needs_reason(&self) -> bool {
        self.kind == BulkKind::Discard
    }

    fn jobs(&self) -> &[(String, u64)] {
        &self.counts.jobs[..self.counts.jobs.len().min(MAX_NAMED)]
    }

    fn more_jobs(&self) -> usize {
        self.counts.jobs.len().saturating_sub(MAX_NAMED)
    }

    /// The conditions, each with its name and value.
    fn conditions(&self) -> Vec<(&'static str, &str)> {
        let query = self.query;
        let single = [
            ("job", &query.job),
            ("job_prefix", &query.job_prefix),
            ("task_type", &query.task_type),
            ("pool", &query.pool),
            ("error_class", &query.error_class),
            ("text", &query.text),
            ("group", &query.group),
            ("since", &query.since),
            ("until", &query.until),
            ("worker", &query.worker),
        ];
        let single = single.into_iter();
        single
            .filter_map(|(name, value)| value.as_deref().map(|value| (name, value)))
            .chain(query.label.iter().map(|value| ("label", value.as_str())))
            .chain(query.param.iter().map(|value| ("param", value.as_str())))
            .chain(query.state.iter().map(|state| ("state", state.as_str())))
            .collect()
    }

    /// The reason that was typed, or what stands for one; `None`: it may be left out.
    fn reason(&self) -> Option<&str> {
        // The command line skips verify tasks for a reason alone.
        let needs_reason = self.needs_reason() || self.skips_verify_tasks();
        self.query.reason.as_deref().or(needs_reason.then_some(copy::REASON))
    }

    fn skips_verify_tasks(&self) -> bool {
        self.is_requeue() && self.query.no_verify
    }

    /// Of the options, those that were typed, without the spaces around them.
    fn typed(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let options = [("canary", &self.query.canary), ("rate", &self.query.rate)];
        let options = options.into_iter();
        options.filter_map(|(name, value)| Some((name, value.as_deref()?.trim())))
    }

    fn command(&self) -> String {
        let group = if self.is_cancel() { "executions" } else { "failed" };
        let mut words = vec![group.to_owned(), self.kind.as_str().to_owned()];
        let conditions = self.conditions();
        for (name, value) in &conditions {
            let name = if *name == "param" { "params".to_owned() } else { name.replace('_', "-") };
            words.extend(copy::option(&name, value));
        }
        if self.query.muted {
            words.push("--muted".to_owned());
        }
        if conditions.is_empty() {
            words.push("--all".to_owned());
        }
        for (name, value) in self.typed() {
            words.extend(copy::option(name, value));
        }
        if self.skips_verify_tasks() {
            words.push("--no-verify".to_owned());
        }
        if let Some(reason) = self.reason() {
            words.extend(copy::option("reason", reason));
        }
        copy::command_of(&words)
    }

    fn request(&self) -> String {
        let mut filter = Map::new();
        let conditions = self.conditions();
        let is_of_all = conditions.is_empty();
        for (name, value) in conditions {
            if matches!(name, "label" | "param" | "state") {
                let list = filter.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut().into_iter().for_each(|list| list.push(value.into()));
            } else {
                filter.insert(name.to_owned(), value.into());
            }
        }
        // The API knows muted groups of failures alone.
        if self.query.muted && matches!(self.kind, BulkKind::Requeue | BulkKind::Discard) {
            filter.insert("muted".to_owned(), true.into());
        }
        let mut body = json!({
            "kind": self.kind.as_str(),
            "filter": filter,
            "previewed_at": self.counts.previewed_at,
            "reason": self.query.reason.as_deref().unwrap_or(copy::REASON),
        });
        for (name, value) in self.typed() {
            // What is no number is refused by the API as well.
            let number = value.parse::<u32>().ok().filter(|_| name == "canary");
            body[name] = number.map_or_else(|| value.into(), Value::from);
        }
        if self.skips_verify_tasks() {
            body["no_verify"] = true.into();
        }
        if is_of_all {
            body["all"] = true.into();
        }
        copy::request("POST", "/bulks", &body)
    }
}

pub(super) async fn preview_failed(
    visit: Visit<Operator>,
    query: PageQuery<BulkQuery>,
) -> Result<Response, Refusal> {
    show_preview(&visit, &query.values, List::Failed).await
}

pub(super) async fn preview_executions(
    visit: Visit<Operator>,
    query: PageQuery<BulkQuery>,
) -> Result<Response, Refusal> {
    show_preview(&visit, &query.values, List::Executions).await
}

async fn show_preview(
    visit: &Visit<Operator>,
    query: &BulkQuery,
    list: List,
) -> Result<Response, Refusal> {
    page(visit, (query, list), Problems::default(), None).await
}

/// Shows the form with what was typed into it, and counts what the bulk would act on up to `until`: the instant of an earlier preview, or now.
async fn page(
    visit: &Visit<Operator>,
    (query, list): (&BulkQuery, List),
    problems: Problems,
    until: Option<DateTime<Utc>>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(list.section()).await?;
    let kind = query.kind(list).map_err(|problem| visit.refuse(problem))?;
    let previewed = async {
        let now = until.unwrap_or(frame.now);
        let preview = query.preview(visit.reads(), kind, (now, until)).await?;
        let demand = preview.demand(visit.reads(), BulkAction::new(kind, None, None)).await?;
        Ok::<_, OperationError>((preview, demand))
    };
    let (preview, demand) = previewed.await.map_err(|error| visit.refuse(error))?;
    Ok(html(&BulkPage { frame, list, kind, counts: &preview.counts, query, demand, problems }))
}

pub(super) async fn create_failed(
    visit: Visit<Operator>,
    Form(query): Form<BulkQuery>,
) -> Result<Response, Refusal> {
    create(&visit, &query, List::Failed).await
}

pub(super) async fn create_executions(
    visit: Visit<Operator>,
    Form(query): Form<BulkQuery>,
) -> Result<Response, Refusal> {
    create(&visit, &query, List::Executions).await
}

async fn create(
    visit: &Visit<Operator>,
    query: &BulkQuery,
    list: List,
) -> Result<Response, Refusal> {
    let kind = query.kind(list).map_err(|problem| visit.refuse(problem))?;
    let checked = match query.check_options(kind) {
        Ok(checked) => checked,
        Err(problems) => {
            // The form is of the same executions as before.
            let answer = page(visit, (query, list), problems, query.previewed_at).await?;
            return Ok((StatusCode::BAD_REQUEST, answer).into_response());
        }
    };
    if query.as_command {
        return page(visit, (query, list), Problems::default(), query.previewed_at).await;
    }
    let store = visit.writes();
    let previewed = async {
        // An age such as 36h counts from the preview, so that the same executions are taken.
        let now = match query.previewed_at {
            Some(previewed_at) => previewed_at,
            None => status::clock(&store).await?,
        };
        query.preview(&store, kind, (now, query.previewed_at)).await
    };
    let preview = previewed.await.map_err(|error| visit.refuse(error))?;
    if let Some(seen) = query.count.filter(|seen| preview.has_grown(*seen, query.more)) {
        let mut problems = Problems::default();
        problems.push(format!(
            "Nothing was done: more match by now than the {seen} that you have seen. This page counts them anew."
        ));
        let answer = page(visit, (query, list), problems, None).await?;
        return Ok((StatusCode::CONFLICT, answer).into_response());
    }
    let action = checked.action(kind, query.reason.as_deref());
    let created = preview.create(&store, action, visit.actor()).await;
    let id = match created.map_err(|error| visit.refuse(error))? {
        Outcome::Done(id) => id,
        Outcome::Waits(request) => return Ok(visit.to_request(&request)),
    };
    Ok(Redirect::to(&visit.url(&format!("/bulks/{id}"))).into_response())
}
