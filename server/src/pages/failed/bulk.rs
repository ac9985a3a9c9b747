//! `/failed/bulk`: one action on all failures that match a filter, previewed first.

use askama::Template;
use axum::response::{IntoResponse as _, Redirect, Response};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sexton_model::bulk::BulkKind;
use sexton_model::failures::FailureFilter;
use sexton_model::rate::Rate;
use sexton_operations::bulks::request::{self, BulkAction, Verifier};
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

/// Largest canary.
const MAX_CANARY: u32 = 1_000;
/// Jobs and pools that a preview names.
const MAX_NAMED: usize = 10;

filtered_query! {
    /// An action on many failures, and how it is done.
    pub(super) BulkQuery {
        /// `requeue`, `discard` or `restore`.
        kind: Option<String>,
        /// Also those of muted groups.
        muted: bool,
        /// When the preview was made: what fails later is not touched.
        previewed_at: Option<DateTime<Utc>>,
        /// How many first; the others follow only when all of these have ended well.
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

#[derive(Debug, Template)]
#[template(path = "failed/bulk.html")]
struct BulkPage<'a> {
    frame: Frame,
    kind: BulkKind,
    counts: &'a Preview,
    query: &'a BulkQuery,
}

impl BulkPage<'_> {
    fn title(&self) -> String {
        let noun = if self.counts.count == 1 { "execution" } else { "executions" };
        let more = if self.counts.more { "more than " } else { "" };
        let verb = match self.kind {
            BulkKind::Discard => "Discard",
            BulkKind::Restore => "Restore",
            _ => "Requeue",
        };
        format!("{verb} {more}{} {noun}", self.counts.count)
    }

    fn is_requeue(&self) -> bool {
        self.kind == BulkKind::Requeue
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
            .collect()
    }

    fn command(&self) -> String {
        let mut words = vec!["failed".to_owned(), self.kind.as_str().to_owned()];
        for (name, value) in self.conditions() {
            words.extend([format!("--{}", name.replace('_', "-")), value.to_owned()]);
        }
        if self.query.muted {
            words.push("--muted".to_owned());
        }
        if words.len() == 2 {
            words.push("--all".to_owned());
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        copy::command(&words)
    }

    fn request(&self) -> String {
        let mut filter = Map::new();
        for (name, value) in self.conditions() {
            if matches!(name, "label" | "param") {
                let list = filter.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut().into_iter().for_each(|list| list.push(value.into()));
            } else {
                filter.insert(name.to_owned(), value.into());
            }
        }
        let body = serde_json::json!({"kind": self.kind.as_str(), "filter": filter});
        copy::request("POST", "/bulks:preview", &body)
    }
}

impl BulkQuery {
    fn kind(&self) -> Result<BulkKind, crate::problem::Problem> {
        let kind = self.kind.as_deref().and_then(BulkKind::parse);
        let kind = kind.filter(|kind| *kind != BulkKind::Cancel);
        kind.ok_or_else(|| problem_of_parameter("kind", "write requeue, discard or restore"))
    }

    async fn select(
        &self,
        store: &Store,
        kind: BulkKind,
        now: DateTime<Utc>,
    ) -> Result<Selection<FailureFilter>, OperationError> {
        let scope = FailureScope { discarded: kind == BulkKind::Restore, muted: self.muted };
        let filter = self.filter().read_failures(store, scope, now).await?;
        Ok(Selection::Filter(Box::new(filter)))
    }
}

pub(super) async fn preview(
    visit: Visit<Operator>,
    query: PageQuery<BulkQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Failed).await?;
    let query = &query.values;
    let kind = query.kind().map_err(|problem| visit.refuse(problem))?;
    let previewed = async {
        let selection = query.select(visit.reads(), kind, frame.now).await?;
        request::preview(visit.reads(), &selection, None).await
    };
    let preview = previewed.await.map_err(|error| visit.refuse(error))?;
    Ok(html(&BulkPage { frame, kind, counts: &preview.counts, query }))
}

pub(super) async fn create(
    visit: Visit<Operator>,
    Form(query): Form<BulkQuery>,
) -> Result<Response, Refusal> {
    let kind = query.kind().map_err(|problem| visit.refuse(problem))?;
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
        // An age such as 36h counts from the preview, so that the same failures are taken.
        let now = match query.previewed_at {
            Some(previewed_at) => previewed_at,
            None => status::clock(&store).await?,
        };
        let selection = query.select(&store, kind, now).await?;
        let preview = request::preview(&store, &selection, query.previewed_at).await?;
        preview.create(&store, action, visit.actor()).await
    };
    let id = created.await.map_err(|error| visit.refuse(error))?;
    Ok(Redirect::to(&visit.url(&format!("/bulks/{id}"))).into_response())
}
