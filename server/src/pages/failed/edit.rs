//! `/failed/{id}/edit`: other params or another pool for a failed execution; the changes are shown before they are made.

use askama::Template;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sexton_model::failures::{MASK, mask_secrets};
use sexton_model::id::AttemptNumber;
use sexton_model::pool::PoolName;
use sexton_operations::approvals::gate::{ApprovalDemand, Outcome};
use sexton_operations::bulks::verified_requeue::{EditOutcome, edit_and_requeue};
use sexton_operations::digest::sha256_hex;
use sexton_operations::failed::edit::{EditOptions, EditTarget, read_params};
use sexton_operations::failed::masked::{masked_places, merge_patch, restore_masked};
use sexton_store::executions::Execution;
use uuid::Uuid;

use super::show::Done;
use crate::access::Editor;
use crate::pages::shell::copy;
use crate::pages::shell::form::Form;
use crate::pages::shell::frame::{Frame, Section, html};
use crate::pages::shell::problems::{PARAMS, Problems};
use crate::pages::shell::refusal::Refusal;
use crate::pages::shell::visit::Visit;
use crate::problem::Problem;

/// Changes shown; more are counted.
const MAX_SHOWN: usize = 50;

/// The fields of the form.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct EditForm {
    attempt: i32,
    params: String,
    pool: Option<String>,
    #[serde(deserialize_with = "crate::api::reason")]
    reason: Option<String>,
    /// Leave the execution failed.
    stay_failed: bool,
    /// Make the changes, instead of showing them.
    apply: bool,
    /// The digest of what the page showed.
    shown: Option<String>,
}

impl EditForm {
    fn reason(&self) -> &str {
        self.reason.as_deref().unwrap_or(copy::REASON)
    }
}

/// A change, with the values, masked.
#[derive(Debug)]
struct ShownChange {
    place: String,
    before: Option<Value>,
    after: Option<Value>,
}

#[derive(Debug, Template)]
#[template(path = "failed/edit.html")]
struct EditPage {
    frame: Frame,
    id: Uuid,
    job: String,
    pool: String,
    form: EditForm,
    /// Its present params, masked.
    before: Value,
    problems: Problems,
    notes: Vec<String>,
    changes: Vec<ShownChange>,
    more_changes: usize,
    /// The digest of what it shows.
    shown: String,
    /// The approvals that the edit needs.
    demand: Option<ApprovalDemand>,
}

impl EditPage {
    fn is_ready(&self) -> bool {
        self.problems.is_empty() && (!self.changes.is_empty() || self.form.pool.is_some())
    }

    fn value(&self, value: &Value) -> String {
        self.frame.cell(&value.to_string())
    }

    fn command(&self) -> String {
        let (attempt, text) = (self.form.attempt.to_string(), self.form.params.trim());
        let mut words = vec!["failed".to_owned(), "edit".to_owned(), self.id.to_string()];
        // On the command line a mask is no secret that stays.
        let params = if self.has_masks() { "@params.json" } else { text };
        words.extend(copy::option("params", params));
        if let Some(pool) = self.form.pool.as_deref() {
            words.extend(copy::option("pool", pool));
        }
        if self.form.stay_failed {
            words.push("--no-requeue".to_owned());
        }
        words.extend(copy::option("attempt", &attempt));
        words.extend(copy::option("reason", self.form.reason()));
        copy::command_of(&words)
    }

    fn request(&self) -> String {
        let EditForm { attempt, params, pool, stay_failed, .. } = &self.form;
        let mut body = json!({"attempt": attempt, "reason": self.form.reason()});
        if let Some(patch) = self.patch() {
            body["merge"] = patch.into();
        } else {
            // What the page refuses stays a text, which the API refuses as well.
            body["params"] = self.params().unwrap_or_else(|| Value::from(params.as_str()));
        }
        if let Some(pool) = pool {
            body["pool"] = pool.as_str().into();
        }
        if *stay_failed {
            body["requeue"] = false.into();
        }
        copy::request("POST", &format!("/failures/{}/edit", self.id), &body)
    }

    /// The params of the form; `None`: they are no JSON object that can be stored.
    fn params(&self) -> Option<Value> {
        read_params(&self.form.params).ok()
    }

    /// The params as changes that leave the masked secrets as they are; `None`: none is masked, or a patch cannot say the changes.
    fn patch(&self) -> Option<Map<String, Value>> {
        let before = self.before.as_object().filter(|_| self.has_masks())?;
        merge_patch(before, self.params()?.as_object()?)
    }

    fn has_masks(&self) -> bool {
        self.form.params.contains(MASK)
    }
}

const OPTIONS: EditOptions<'static> =
    EditOptions { pool: None, is_pool_forced: false, attempt: None, requeue: true, verify: true };

pub(super) async fn show(visit: Visit<Editor>, Path(id): Path<Uuid>) -> Result<Response, Refusal> {
    let found = EditTarget::find(visit.reads(), &id.to_string(), OPTIONS).await;
    let row = found.map_err(|error| visit.refuse(error))?.row;
    let frame = visit.frame(Section::Failed).await?;
    let params = frame.json(&mask_secrets(&row.params));
    let form = EditForm { attempt: row.attempt, params, ..EditForm::default() };
    Ok(html(&EditPage::new(frame, &row, form)))
}

pub(super) async fn change(
    visit: Visit<Editor>,
    Path(id): Path<Uuid>,
    Form(form): Form<EditForm>,
) -> Result<Response, Refusal> {
    let pool = form.pool.as_deref().map(str::parse::<PoolName>).transpose();
    let attempt = AttemptNumber::new(form.attempt);
    let requeue = !form.stay_failed;
    let (pool, problem) = match pool {
        Ok(pool) => (pool, None),
        Err(error) => (None, Some(error)),
    };
    let options = EditOptions { pool: pool.as_ref(), attempt, requeue, ..OPTIONS };
    let store = visit.writes();
    let target = EditTarget::find(&store, &id.to_string(), options).await;
    let target = target.map_err(|error| visit.refuse(error))?;
    let frame = visit.frame(Section::Failed).await?;
    let mut page = EditPage::new(frame, &target.row, form);
    if let Some(problem) = problem {
        page.problems.push_of("pool", format!("pool: {problem}"));
    }
    let Some(params) = page.read(&target) else { return Ok(page.refused()) };
    let difference = match target.compare(&params) {
        Ok(difference) => difference,
        Err(nothing) => {
            page.problems.push(nothing.to_string());
            return Ok(page.refused());
        }
    };
    page.show_changes(&target, &params, &difference.params);
    let is_applied = page.form.apply && page.form.shown.as_ref() == Some(&page.shown);
    let demand = target.demand(&store, &params, &difference).await;
    page.demand = demand.map_err(|error| visit.refuse(error))?;
    let schemas = target.schemas(&store, &difference).await;
    let schemas = schemas.map_err(|error| visit.refuse(error))?;
    page.notes = schemas.notes();
    for mismatch in schemas.mismatches(&params) {
        page.problems.push_of(PARAMS, mismatch.describe());
    }
    if page.form.apply && page.form.reason.is_none() {
        page.problems.push_of("reason", "Say why, for those who read the audit.");
    }
    if !page.problems.is_empty() {
        return Ok(page.refused());
    }
    let Some(reason) = page.form.reason.as_deref().filter(|_| is_applied) else {
        if page.form.apply {
            page.notes.push("Nothing is changed yet. This is what changes now.".to_owned());
        }
        return Ok(html(&page));
    };
    let by = (visit.actor(), reason);
    match edit_and_requeue(&store, &target, &params, &difference, by).await {
        Ok(Outcome::Waits(request)) => Ok(visit.to_request(&request)),
        Ok(Outcome::Done(outcome)) => {
            let done = done(outcome, requeue);
            let address = format!("/failed/{id}?done={}", done.word());
            Ok(Redirect::to(&visit.url(&address)).into_response())
        }
        Err(error) => {
            // What was typed is not lost.
            let Problem { status, detail, .. } = Problem::from(error);
            page.problems.push(detail);
            let mut answer = page.refused();
            *answer.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
            Ok(answer)
        }
    }
}

const fn done(outcome: EditOutcome, requeue: bool) -> Done {
    match outcome {
        EditOutcome::Done if requeue => Done::Requeued,
        EditOutcome::Done => Done::Edited,
        EditOutcome::Verifying(_) => Done::Verifying,
    }
}

impl EditPage {
    fn new(frame: Frame, row: &Execution, form: EditForm) -> Self {
        Self {
            frame,
            id: row.id,
            job: row.job_name.clone(),
            pool: row.pool.clone(),
            form,
            before: mask_secrets(&row.params),
            problems: Problems::default(),
            notes: Vec::new(),
            changes: Vec::new(),
            more_changes: 0,
            shown: String::new(),
            demand: None,
        }
    }

    /// Returns the digest of the edit that the form says, and of the params that it would change.
    fn digest(&self, before: &Value) -> String {
        let EditForm { params, pool, stay_failed, .. } = &self.form;
        // A browser sends the line breaks of a field as CR LF, and drops one at its beginning.
        let params = params.replace("\r\n", "\n");
        sha256_hex(json!([before, params.trim(), pool, stay_failed]).to_string().as_bytes())
    }

    /// Reads the params, with the stored values where the text has masks; `None`: a problem is noted.
    fn read(&mut self, target: &EditTarget<'_>) -> Option<Value> {
        let params = match read_params(&self.form.params) {
            Ok(params) => params,
            Err(error) => {
                self.problems.push_of(PARAMS, error.to_string());
                return None;
            }
        };
        let params = restore_masked(&target.row.params, &params);
        let strays = masked_places(&target.row.params, &params);
        if strays.is_empty() {
            return Some(params);
        }
        for place in strays {
            let text = format!("{place}: *** stands for no value here; write the secret itself");
            self.problems.push_of(PARAMS, text);
        }
        None
    }

    fn show_changes(
        &mut self,
        target: &EditTarget<'_>,
        params: &Value,
        changes: &[sexton_operations::failed::changes::Change],
    ) {
        let (before, after) = (mask_secrets(&target.row.params), mask_secrets(params));
        let shown = changes.iter().take(MAX_SHOWN).map(|change| ShownChange {
            place: if change.pointer.is_empty() { "/".to_owned() } else { change.pointer.clone() },
            before: before.pointer(&change.pointer).cloned(),
            after: after.pointer(&change.pointer).cloned(),
        });
        self.changes = shown.collect();
        self.more_changes = changes.len().saturating_sub(MAX_SHOWN);
        self.shown = self.digest(&before);
    }

    fn refused(&self) -> Response {
        (StatusCode::BAD_REQUEST, html(self)).into_response()
    }
}
