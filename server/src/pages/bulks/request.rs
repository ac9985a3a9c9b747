//! `/failed/bulk` and `/executions/bulk`: one action on all failures, or a cancel of all executions, that match a filter,
//! previewed first.

use askama::Template;
use axum::response::{IntoResponse as _, Redirect, Response};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use sexton_model::bulk::BulkKind;
use sexton_model::rate::Rate;
use sexton_model::state::State;
use sexton_operations::approvals::gate::{ApprovalDemand, Outcome};
use sexton_operations::bulks::request::{
    BulkAction, BulkPreview, Verifier, preview, preview_cancel,
};
use sexton_operations::error::OperationError;
use sexton_operations::filter::FailureScope;
use sexton_operations::selection::Selection;
use sexton_store::bulk::Preview;
use sexton_store::{Store, status};

use crate::access::Operator;
use crate::api::{filtered_query, problem_of_parameter};
use crate::pages::shell::copy;
use crate::pages::shell::form::Form;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;
use crate::problem::Problem;

/// Largest canary.
const MAX_CANARY: u32 = 1_000;
/// Jobs and pools that a preview names.
const MAX_NAMED: usize = 10;

filtered_query! {
    /// An action on many failures, and how it is done.
    pub(super) BulkQuery {
        /// `requeue`, `discard` or `restore` of failures; `cancel` of executions.
        kind: Option<String>,
        /// To cancel: only in these states. May be repeated.
        #[param(explode)]
        state: Vec<State>,
        /// Of failures: also those of muted groups.
        muted: bool,
        /// When the preview was made: what fails later is not touched.
        previewed_at: Option<DateTime<Utc>>,
        /// How many first; the others follow only when all of these have succeeded.
        canary: Option<u32>,
        /// How many per time, as in `10/m`.
        rate: Option<String>,
        /// Skip the verify tasks.
        no_verify: bool,
        /// For the audit.
        #[serde(deserialize_with = "crate::api::reason")]
        reason: Option<String>,
    }
}

/// The list whose filter selects the executions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum List {
    Failed,
    Executions,
}

impl List {
    const fn path(self) -> &'static str {
        match self {
            Self::Failed => "/failed",
            Self::Executions => "/executions",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Failed => "Failed",
            Self::Executions => "Executions",
        }
    }

    const fn section(self) -> Section {
        match self {
            Self::Failed => Section::Failed,
            Self::Executions => Section::Executions,
        }
    }

    const fn kinds_hint(self) -> &'static str {
        match self {
            Self::Failed => "write requeue, discard or restore",
            Self::Executions => "write cancel",
        }
    }
}

#[derive(Debug, Template)]
#[template(path = "bulks/request.html")]
struct BulkPage<'a> {
    frame: Frame,
    list: List,
    kind: BulkKind,
    counts: &'a Preview,
    query: &'a BulkQuery,
    /// What the bulk needs from other people.
    demand: Option<ApprovalDemand>,
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
        if self.needs_reason() {
            words.extend(copy::option("reason", copy::REASON));
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
            "reason": copy::REASON,
        });
        if is_of_all {
            body["all"] = true.into();
        }
        copy::request("POST", "/bulks", &body)
    }
}

impl BulkQuery {
    /// Returns the kind, if it and what goes with it fit the list.
    fn kind(&self, list: List) -> Result<BulkKind, Problem> {
        let kind = self.kind.as_deref().and_then(BulkKind::parse);
        let fits = |kind: &BulkKind| (*kind == BulkKind::Cancel) == (list == List::Executions);
        let kind =
            kind.filter(fits).ok_or_else(|| problem_of_parameter("kind", list.kinds_hint()))?;
        if kind != BulkKind::Cancel && !self.state.is_empty() {
            return Err(problem_of_parameter("state", "goes with a cancel"));
        }
        if self.state.iter().any(|state| !kind.acts_on(*state)) {
            return Err(problem_of_parameter("state", "must be pending, retrying or running"));
        }
        if kind == BulkKind::Cancel && self.muted {
            let detail = "goes with a requeue or discard: only failures have muted groups";
            return Err(problem_of_parameter("muted", detail));
        }
        if kind != BulkKind::Requeue && self.canary.is_some() {
            return Err(problem_of_parameter("canary", "goes with a requeue"));
        }
        Ok(kind)
    }

    /// Counts what the bulk would act on, up to `until`; an age such as 36h counts from `now`.
    async fn preview(
        &self,
        store: &Store,
        kind: BulkKind,
        (now, until): (DateTime<Utc>, Option<DateTime<Utc>>),
    ) -> Result<BulkPreview, OperationError> {
        if kind == BulkKind::Cancel {
            let filter = self.filter().read_executions(store, &self.state, now).await?;
            return preview_cancel(store, &Selection::Filter(Box::new(filter)), until).await;
        }
        let scope = FailureScope { discarded: kind == BulkKind::Restore, muted: self.muted };
        let filter = self.filter().read_failures(store, scope, now).await?;
        preview(store, &Selection::Filter(Box::new(filter)), until).await
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
    let frame = visit.frame(list.section()).await?;
    let kind = query.kind(list).map_err(|problem| visit.refuse(problem))?;
    let previewed = async {
        let preview = query.preview(visit.reads(), kind, (frame.now, None)).await?;
        let demand = preview.demand(visit.reads(), BulkAction::new(kind, None, None)).await?;
        Ok::<_, OperationError>((preview, demand))
    };
    let (preview, demand) = previewed.await.map_err(|error| visit.refuse(error))?;
    Ok(html(&BulkPage { frame, list, kind, counts: &preview.counts, query, demand }))
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
    let reason = query.reason.as_deref();
    if kind == BulkKind::Discard && reason.is_none() {
        return Err(
            visit.refuse(problem_of_parameter("reason", "is missing: say why they are given up"))
        );
    }
    if query.canary.is_some_and(|canary| !(1..=MAX_CANARY).contains(&canary)) {
        return Err(visit.refuse(problem_of_parameter("canary", "must be 1 to 1000")));
    }
    let rate = query.rate.as_deref().map(str::parse::<Rate>).transpose();
    let rate =
        rate.map_err(|error| visit.refuse(problem_of_parameter("rate", &error.to_string())))?;
    let verify = if query.no_verify { Verifier::Nobody } else { Verifier::Tasks };
    let action = BulkAction { kind, canary: query.canary, pool: None, verify, rate, reason };
    let created = async {
        let store = visit.writes();
        // An age such as 36h counts from the preview, so that the same executions are taken.
        let now = match query.previewed_at {
            Some(previewed_at) => previewed_at,
            None => status::clock(&store).await?,
        };
        let preview = query.preview(&store, kind, (now, query.previewed_at)).await?;
        preview.create(&store, action, visit.actor()).await
    };
    let id = match created.await.map_err(|error| visit.refuse(error))? {
        Outcome::Done(id) => id,
        Outcome::Waits(request) => return Ok(visit.to_request(&request)),
    };
    Ok(Redirect::to(&visit.url(&format!("/bulks/{id}"))).into_response())
}
