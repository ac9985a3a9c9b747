//! `/jobs/{name}`: when a job fires, what became of its firings, what holds for it, and what people did.

use askama::Template;
use axum::extract::Path;
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;
use sexton_model::access::Role;
use sexton_model::job::is_reserved;
use sexton_model::zone::Zone;
use sexton_operations::error::{InvalidRequest, OperationError};
use sexton_operations::gaps::GapEntry;
use sexton_operations::instants;
use sexton_operations::jobs::details::{self, JobDetails};
use sexton_operations::jobs::policy::{self, PolicySheet};
use sexton_operations::jobs::revisions::{self, ChangedField, Revision};
use sexton_operations::ledger::{Answer, FiringRequest, explain};
use sexton_operations::secrets::mask_job;
use sexton_operations::text;
use sexton_store::Store;
use sexton_store::jobs::Job;

use super::schedule::ScheduleWords;
use super::strip::{self, Strip};
use super::upcoming::{UpcomingFiring, upcoming};
use crate::access::Viewer;
use crate::pages::shell::copy;
use crate::pages::shell::executions::{ExecutionRow, rows};
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::gaps::GapRow;
use crate::pages::shell::instant::in_address;
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::timeline::{TimelineEntry, entries, sentence};
use crate::pages::shell::visit::Visit;

/// Revisions that are shown.
const REVISIONS_SHOWN: i64 = 10;
/// Longest value of a changed field, in characters.
const MAX_VALUE_CHARS: usize = 200;

/// What was just done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Done {
    /// It was paused.
    Paused,
    /// It was resumed.
    Resumed,
    /// Firings were backfilled.
    Backfilled,
}

impl Done {
    /// The word in an address.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::Backfilled => "backfilled",
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::Paused => {
                "You have paused it. What runs goes on; nothing fires until it is resumed."
            }
            Self::Resumed => {
                "You have resumed it. It fires again from now on; what it missed is listed below and does not run."
            }
            Self::Backfilled => {
                "You have backfilled firings. Each has an execution now, and the strip shows how they go."
            }
        }
    }
}

/// The parameters in the address of a job.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct JobQuery {
    done: Option<Done>,
    /// The instant that is explained, as the person has written it.
    at: Option<String>,
    /// The strip ends before this instant; absent: now.
    before: Option<String>,
}

/// The explanation of an instant.
#[derive(Debug)]
struct Explanation {
    answer: Answer,
    timeline: Vec<TimelineEntry>,
}

#[derive(Debug, Template)]
#[template(path = "jobs/show.html")]
struct JobPage {
    frame: Frame,
    query: JobQuery,
    job: Job,
    details: JobDetails,
    schedule: ScheduleWords,
    strip: Strip,
    explained: Option<Result<Explanation, InvalidRequest>>,
    gaps: Vec<GapRow>,
    shows_job: bool,
    upcoming: Vec<UpcomingFiring>,
    rows: Vec<ExecutionRow>,
    rows_label: &'static str,
    policy: Option<PolicySheet>,
    revisions: Vec<Revision>,
    notice: Option<&'static str>,
    role: Role,
}

impl JobPage {
    fn is_deleted(&self) -> bool {
        self.job.deleted_at.is_some()
    }

    fn is_paused(&self) -> bool {
        self.job.status == "paused"
    }

    fn state(&self) -> &str {
        if self.is_deleted() { "deleted" } else { &self.job.status }
    }

    /// Jobs that the platform makes for tasks of other programs can be neither triggered nor backfilled.
    fn is_reserved(&self) -> bool {
        is_reserved(&self.job.name)
    }

    fn has_schedule(&self) -> bool {
        self.job.schedule_kind != "none"
    }

    fn path(&self, rest: &str) -> String {
        format!("/jobs/{}{rest}", self.job.name)
    }

    fn at_of(at: &DateTime<Utc>) -> String {
        in_address(*at)
    }

    fn command(&self, verb: &str) -> String {
        match verb {
            "pause" => copy::command(&["jobs", "pause", &self.job.name, "--reason", copy::REASON]),
            verb => copy::command(&["jobs", verb, &self.job.name]),
        }
    }

    fn request(&self, verb: &str) -> String {
        copy::request("POST", &self.path(&format!("/{verb}")), &json!({"reason": copy::REASON}))
    }

    fn sentence(why: &str) -> String {
        sentence(why)
    }

    fn labels(&self) -> Vec<String> {
        let labels = self.job.labels.as_object().into_iter().flatten();
        labels.map(|(name, value)| format!("{name}={}", plain(value))).collect()
    }

    fn has_params(&self) -> bool {
        self.job.params.as_object().is_none_or(|params| !params.is_empty())
    }

    /// Splits a statement at its backticks: whether each part is code, and the part.
    fn parts(statement: &str) -> Vec<(bool, String)> {
        let parts = statement.split('`').enumerate();
        parts.map(|(index, part)| (index % 2 == 1, text::lines(part))).collect()
    }

    fn change(change: &ChangedField) -> String {
        let value = |value| text::line(&plain(value), MAX_VALUE_CHARS);
        format!("{}: {} → {}", change.field, value(&change.from), value(&change.to))
    }

    fn heartbeat(&self) -> Option<String> {
        let last = self.details.last_heartbeat.as_ref()?;
        let sent = text::ago(last.created_at, self.frame.now);
        Some(match (last.state.as_str(), last.last_error.as_deref()) {
            ("sent", _) => format!("{} of {sent} arrived", last.event),
            (_, Some(error)) => {
                let error = text::line(error, MAX_VALUE_CHARS);
                format!(
                    "{} of {sent} has not arrived after {} tries: {error}",
                    last.event, last.tries
                )
            }
            (_, None) => format!("{} of {sent} waits to be sent", last.event),
        })
    }
}

/// A text without quotes; nothing as a word.
fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "nothing".to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Explains what a person has written; the inner error is one of that text.
async fn explain_at(
    store: &Store,
    job: &Job,
    at: &str,
    now: DateTime<Utc>,
) -> Result<Result<Explanation, InvalidRequest>, OperationError> {
    let request = FiringRequest { at: Some(at.trim()), ..FiringRequest::default() };
    let selector = match request.read(job, now) {
        Ok(selector) => selector,
        Err(invalid) => return Ok(Err(invalid)),
    };
    let answer = explain(store, job, selector, None).await?;
    let timeline = answer.firings.first().and_then(|firing| firing.timeline.as_deref());
    Ok(Ok(Explanation { timeline: entries(timeline.unwrap_or_default()), answer }))
}

async fn read(
    store: &Store,
    name: &str,
    query: JobQuery,
    frame: Frame,
) -> Result<JobPage, OperationError> {
    let now = frame.now;
    let mut details = details::show(store, name).await?;
    let is_deleted = details.job.deleted_at.is_some();
    let before = query.before.as_deref().map(|text| instants::parse(text, Zone::UTC, now));
    let before = before.transpose().map_err(|e| InvalidRequest::field("before", e.to_string()))?;
    let until = before.unwrap_or(now).min(details.job.deleted_at.unwrap_or(now));
    let strip = strip::read(store, &details.job, until).await?;
    let explained = match query.at.as_deref() {
        Some(at) => Some(explain_at(store, &details.job, at, now).await?),
        None => None,
    };
    // Before the masks: the schedule does not need what they hide, and is read from the row.
    let upcoming = if is_deleted { Vec::new() } else { upcoming(&details.job, now) };
    let revisions = revisions::list(store, &details.job, REVISIONS_SHOWN).await?;
    let policy =
        if is_deleted || is_reserved(name) { None } else { Some(policy::read(store, name).await?) };
    let executions = std::mem::take(&mut details.last_executions);
    let gaps = std::mem::take(&mut details.gaps).into_iter();
    let gaps = gaps.map(|gap| GapRow::new(GapEntry::new(name.to_owned(), is_deleted, gap)));
    mask_job(&mut details.job);
    Ok(JobPage {
        job: details.job.clone(),
        schedule: ScheduleWords::of(&details.job),
        strip,
        explained,
        gaps: gaps.collect(),
        shows_job: false,
        upcoming,
        rows: rows(store, executions, now).await?,
        rows_label: "Table of its last executions",
        policy,
        revisions,
        notice: query.done.map(Done::sentence),
        role: Role::Operator,
        details,
        query,
        frame,
    })
}

pub(super) async fn show(
    visit: Visit<Viewer>,
    Path(name): Path<String>,
    query: PageQuery<JobQuery>,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Jobs).await?;
    let page = read(visit.reads(), &name, query.values, frame).await;
    Ok(html(&page.map_err(|error| visit.refuse(error))?))
}
