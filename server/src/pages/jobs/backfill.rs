//! `/jobs/{name}/backfill`: past firings that have no execution get one, after a preview.

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use sexton_model::access::Role;
use sexton_model::rate::Rate;
use sexton_operations::approvals::gate::{ApprovalDemand, Outcome};
use sexton_operations::error::{InvalidRequest, OperationError};
use sexton_operations::job_names;
use sexton_operations::jobs::backfill::{BackfillRange, BackfillRequest, Totals};
use sexton_operations::text;
use sexton_store::backfill::BackfilledFiring;
use sexton_store::jobs::Job;

use super::actions::done;
use super::show::Done;
use crate::access::{Operator, Permission, Viewer};
use crate::pages::shell::copy;
use crate::pages::shell::form::Form;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::instant::in_address;
use crate::pages::shell::problems::Problems;
use crate::pages::shell::query::PageQuery;
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;

/// Firings that a preview lists.
const MAX_SHOWN: usize = 50;

/// What to backfill, as the person has written it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct BackfillForm {
    /// Absent: nothing is requested yet.
    since: Option<String>,
    until: Option<String>,
    rate: Option<String>,
    overlap: bool,
    #[serde(deserialize_with = "crate::api::reason")]
    reason: Option<String>,
}

impl BackfillForm {
    fn rate(&self) -> Option<&str> {
        self.rate.as_deref().map(str::trim).filter(|rate| !rate.is_empty())
    }

    fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or(copy::REASON)
    }

    /// Reads it for a job.
    fn read<'a>(
        &'a self,
        job: &'a Job,
        frame: &Frame,
    ) -> Result<BackfillRange<'a>, OperationError> {
        let given = |text: &'a Option<String>| {
            text.as_deref().map(str::trim).filter(|text| !text.is_empty())
        };
        let rate = self.rate().map(str::parse::<Rate>).transpose();
        let request = BackfillRequest {
            job: &job.name,
            since: given(&self.since).unwrap_or_default(),
            until: given(&self.until),
            zone: None,
            rate: rate.as_ref().ok().copied().flatten(),
            allow_overlap: self.overlap,
            reason: self.reason.as_deref(),
        };
        let range = request.read(job, frame.now);
        let rate = rate.map_err(|error| InvalidRequest::field("rate", format!(": {error}")));
        match (range, rate) {
            (Ok(range), Ok(_)) => Ok(range),
            (Err(problem), Ok(_)) | (Ok(_), Err(problem)) => Err(problem.into()),
            (Err(first), Err(second)) => {
                Err(InvalidRequest::Several(vec![first.into(), second.into()]).into())
            }
        }
    }
}

/// A preview, and the range that it is of: an end of "now" must not move between preview and confirmation.
#[derive(Debug)]
struct Preview {
    totals: Totals,
    since: String,
    until: String,
    /// The approvals that the backfill needs.
    demand: Option<ApprovalDemand>,
}

#[derive(Debug, Template)]
#[template(path = "jobs/backfill.html")]
struct BackfillPage {
    frame: Frame,
    job: Job,
    form: BackfillForm,
    preview: Option<Preview>,
    problems: Problems,
    role: Role,
}

impl BackfillPage {
    fn path(&self) -> String {
        format!("/jobs/{}/backfill", self.job.name)
    }

    fn shown(preview: &Preview) -> &[BackfilledFiring] {
        let listed = &preview.totals.listed;
        &listed[..listed.len().min(MAX_SHOWN)]
    }

    fn left_out(preview: &Preview) -> u64 {
        preview.totals.firing_count().saturating_sub(MAX_SHOWN as u64)
    }

    /// Over how long they become due.
    fn spread(preview: &Preview) -> String {
        match (preview.totals.first_due_at, preview.totals.last_due_at) {
            (Some(first), Some(last)) if last > first => {
                let ms = (last - first).num_milliseconds();
                format!("the last one due {} after the first", text::duration(ms))
            }
            _ => "all due at once".to_owned(),
        }
    }

    fn command(&self, preview: &Preview) -> String {
        let mut words = vec!["jobs".to_owned(), "backfill".to_owned(), self.job.name.clone()];
        let overlap = self.form.overlap.then_some("allow");
        let options = [
            ("since", Some(preview.since.as_str())),
            ("until", Some(preview.until.as_str())),
            ("rate", self.form.rate()),
            ("overlap", overlap),
            ("reason", Some(self.form.reason())),
        ];
        for (name, value) in options {
            words.extend(value.map(|value| copy::option(name, value)).unwrap_or_default());
        }
        copy::command_of(&words)
    }

    fn request(&self, preview: &Preview) -> String {
        let Preview { since, until, .. } = preview;
        let mut body = json!({"since": since, "until": until, "reason": self.form.reason()});
        if let Some(rate) = self.form.rate() {
            body["rate"] = rate.into();
        }
        if self.form.overlap {
            body["allow_overlap"] = true.into();
        }
        copy::request("POST", &format!("/jobs/{}/backfills", self.job.name), &body)
    }
}

async fn page<P: Permission>(
    visit: &Visit<P>,
    name: &str,
    form: BackfillForm,
    problems: Problems,
) -> Result<Response, Refusal> {
    let frame = visit.frame(Section::Jobs).await?;
    let job = job_names::find(visit.reads(), name).await.map_err(|error| visit.refuse(error))?;
    let mut page = BackfillPage { frame, job, form, preview: None, problems, role: Role::Operator };
    // A preview locks the job for a moment, as a backfill does.
    let is_wanted = page.form.since.is_some() && page.frame.may(page.role);
    if is_wanted && page.problems.is_empty() {
        match preview_of(visit, &page).await {
            Ok(preview) => page.preview = Some(preview),
            Err(error @ OperationError::Invalid(_)) => page.problems = error.into(),
            Err(error) => return Err(visit.refuse(error)),
        }
    }
    let has_problems = !page.problems.is_empty();
    let mut response = html(&page);
    if has_problems {
        *response.status_mut() = StatusCode::BAD_REQUEST;
    }
    Ok(response)
}

async fn preview_of<P: Permission>(
    visit: &Visit<P>,
    page: &BackfillPage,
) -> Result<Preview, OperationError> {
    let range = page.form.read(&page.job, &page.frame)?;
    let totals = range.preview(visit.reads(), visit.actor()).await?;
    let demand = range.demand(visit.reads(), &totals).await?;
    Ok(Preview { demand, totals, since: in_address(range.since), until: in_address(range.until) })
}

pub(super) async fn preview(
    visit: Visit<Viewer>,
    Path(name): Path<String>,
    query: PageQuery<BackfillForm>,
) -> Result<Response, Refusal> {
    page(&visit, &name, query.values, Problems::default()).await
}

pub(super) async fn run(
    visit: Visit<Operator>,
    Path(name): Path<String>,
    Form(form): Form<BackfillForm>,
) -> Result<Response, Refusal> {
    let store = visit.writes();
    let frame = visit.frame(Section::Jobs).await?;
    let ran = async {
        let job = job_names::find(&store, &name).await?;
        form.read(&job, &frame)?.run(&store, visit.actor()).await
    };
    match ran.await {
        Ok(Outcome::Waits(request)) => Ok(visit.to_request(&request)),
        Ok(Outcome::Done(_)) => Ok(done(&visit, &name, Done::Backfilled)),
        Err(error @ OperationError::Invalid(_)) => {
            page(&visit, &name, form, Problems::from(error)).await
        }
        Err(error) => Err(visit.refuse(error)),
    }
}
