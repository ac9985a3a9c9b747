//! Schedulers: jobs in the words of an older system, for its clients.
//!
//! Their requests become definitions of jobs, and everything else is as for those. What has no counterpart is refused.

use axum::Json;
use axum::http::header::{ETAG, LOCATION};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sexton_model::exact_json;
use sexton_model::job::{check_name, check_task_type};
use sexton_operations::digest::sha256_hex;
use sexton_operations::job_names;
use sexton_operations::jobs::apply::ExpectedJob;
use sexton_operations::jobs::definitions::read_definition;
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::Body;
use super::job_definitions::{WriteJob, problem_of_definition, write};
use crate::access::{Allowed, Editor};
use crate::problem::{Problem, ProblemPlace};

/// Before the names of jobs that are derived.
const NAME_PREFIX: &str = "schedulers.";
/// Digits of a hash in such a name.
const HASH_DIGITS: usize = 12;

/// How a scheduler fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SchedulerType {
    /// By a cron expression.
    Cron,
    /// Once.
    Date,
}

/// A scheduler of the older system.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateScheduler {
    /// How it fires.
    r#type: SchedulerType,
    /// The cron expression, in UTC.
    cron: Option<String>,
    /// When it fires once: an instant in RFC 3339, or a time in UTC.
    date_time: Option<String>,
    /// Params of the task: an object, or a text of JSON with one. Its `type` names the task type, and its `name` the job.
    #[schema(value_type = Object)]
    params_scheduler: Value,
    /// Whether it fires; otherwise it is created paused.
    #[serde(default = "yes")]
    #[schema(default = true)]
    active: bool,
    /// Of a cron expression: whether it fires more than once.
    #[serde(default = "yes")]
    #[schema(default = true)]
    stay_alive: bool,
    /// Becomes the label `user`.
    user: Option<Value>,
    /// Becomes the label `group`.
    group: Option<Value>,
    /// Becomes the label `language`.
    language: Option<String>,
}

const fn yes() -> bool {
    true
}

/// A scheduler that was created.
#[derive(Debug, Serialize, ToSchema)]
pub struct CreatedScheduler {
    /// The job's id.
    id: Uuid,
    /// The job's name.
    name: String,
    /// Whether it fires.
    active: bool,
}

/// Creates a job from a scheduler of the older system.
///
/// The same scheduler twice is a conflict: without a `name` in its params, the job's name comes from the task type and a hash of the
/// request.
#[utoipa::path(post, path = "/schedulers", tag = "jobs", operation_id = "create_scheduler", extensions(("x-role" = json!("editor"))),
    request_body = CreateScheduler,
    responses((status = 201, description = "The job.", body = CreatedScheduler,
               headers(("ETag" = String, description = "The job's revision, for `If-Match`."),
                       ("Location" = String, description = "Where the job is.")))))]
pub async fn create(
    allowed: Allowed<Editor>,
    Body(scheduler): Body<CreateScheduler>,
) -> Result<(StatusCode, [(HeaderName, HeaderValue); 2], Json<CreatedScheduler>), Problem> {
    let fields = scheduler.definition().map_err(Problem::several)?;
    let name = fields["name"].as_str().unwrap_or_default().to_owned();
    let files = read_definition(&fields)
        .map_err(|invalid| in_words_of_schedulers(problem_of_definition(invalid)))?;
    let written = write(&allowed, &files, ExpectedJob::Absent, WriteJob::default()).await;
    let (status, headers, _) = written.map_err(in_words_of_schedulers)?;
    let job = job_names::find(&allowed.writes(), &name).await?;
    debug_assert_eq!([&headers[0].0, &headers[1].0], [&ETAG, &LOCATION]);
    let answer = CreatedScheduler { id: job.id, name, active: job.status == "active" };
    Ok((status, headers, Json(answer)))
}

/// Names fields of a job's definition as those of a scheduler.
fn in_words_of_schedulers(mut problem: Problem) -> Problem {
    for place in &mut problem.errors {
        let Some(pointer) = &place.pointer else { continue };
        let renamed = match pointer.as_str() {
            "/schedule" => "/cron".to_owned(),
            "/at" => "/date_time".to_owned(),
            "/task" => "/params_scheduler/type".to_owned(),
            "/name" => "/params_scheduler/name".to_owned(),
            "/paused" => "/active".to_owned(),
            "/labels/user" => "/user".to_owned(),
            "/labels/group" => "/group".to_owned(),
            "/labels/language" => "/language".to_owned(),
            other => other.replacen("/params", "/params_scheduler", 1),
        };
        place.pointer = Some(renamed);
    }
    if problem.errors.is_empty() { problem } else { Problem::several(problem.errors) }
}

impl CreateScheduler {
    /// The definition of a job, or everything that has no counterpart.
    fn definition(&self) -> Result<Map<String, Value>, Vec<ProblemPlace>> {
        let mut places = Vec::new();
        let params = self.params().map_err(|place| places.push(place)).unwrap_or_default();
        let task = self.task(&params, &mut places);
        let name = self.name(&params, &task, &mut places);
        let mut fields = Map::new();
        self.when(&mut fields, &mut places);
        let mut labels = Map::new();
        for (label, value) in [("user", &self.user), ("group", &self.group)] {
            let text = match value {
                None | Some(Value::Null) => continue,
                Some(Value::String(text)) => text.clone(),
                Some(number @ Value::Number(_)) => number.to_string(),
                Some(_) => {
                    let at = format!("/{label}");
                    places.push(ProblemPlace::at(at, "must be a text or a number"));
                    continue;
                }
            };
            labels.insert(label.to_owned(), Value::from(text));
        }
        if let Some(language) = &self.language {
            labels.insert("language".to_owned(), Value::from(language.as_str()));
        }
        if !places.is_empty() {
            return Err(places);
        }
        fields.insert("name".to_owned(), Value::from(name));
        fields.insert("task".to_owned(), Value::from(task));
        fields.insert("params".to_owned(), Value::Object(params));
        fields.insert("paused".to_owned(), Value::from(!self.active));
        fields.insert("labels".to_owned(), Value::Object(labels));
        Ok(fields)
    }

    /// Its params, which may be a text of JSON.
    fn params(&self) -> Result<Map<String, Value>, ProblemPlace> {
        let at = |detail: String| ProblemPlace::at("/params_scheduler", detail);
        match &self.params_scheduler {
            Value::Object(params) => Ok(params.clone()),
            Value::String(text) => {
                exact_json::check(text.as_bytes()).map_err(|error| at(error.to_string()))?;
                match serde_json::from_str(text) {
                    Ok(Value::Object(params)) => Ok(params),
                    Ok(_) => Err(at("is a text of JSON, but not of an object".to_owned())),
                    Err(error) => Err(at(format!("is a text, but not of JSON: {error}"))),
                }
            }
            _ => Err(at("must be an object, or a text of JSON with one".to_owned())),
        }
    }

    fn task(&self, params: &Map<String, Value>, places: &mut Vec<ProblemPlace>) -> String {
        let at = "/params_scheduler/type";
        let Some(task) = params.get("type").and_then(Value::as_str) else {
            if self.params_scheduler.is_object() || !params.is_empty() {
                let detail = "is missing: it names the task type, which a worker's catalogue has";
                places.push(ProblemPlace::at(at, detail));
            }
            return String::new();
        };
        if let Err(error) = check_task_type(task) {
            places.push(ProblemPlace::at(at, error.to_string()));
        }
        task.to_owned()
    }

    fn name(
        &self,
        params: &Map<String, Value>,
        task: &str,
        places: &mut Vec<ProblemPlace>,
    ) -> String {
        let at = "/params_scheduler/name";
        match params.get("name") {
            None | Some(Value::Null) => {}
            Some(Value::String(name)) => {
                if let Err(error) = check_name(name) {
                    places.push(ProblemPlace::at(at, error.to_string()));
                }
                return name.clone();
            }
            Some(_) => places.push(ProblemPlace::at(at, "must be a text: it names the job")),
        }
        // Objects are written with their names in order, so the same scheduler has the same name.
        let same = json!([
            format!("{:?}", self.r#type),
            self.cron,
            self.date_time,
            params,
            self.user,
            self.group
        ]);
        let hash = sha256_hex(same.to_string().as_bytes());
        let room = sexton_model::job::MAX_NAME_BYTES - NAME_PREFIX.len() - HASH_DIGITS - 1;
        let task: String = task.chars().take(room).collect();
        format!("{NAME_PREFIX}{task}-{}", &hash[..HASH_DIGITS])
    }

    /// When it fires.
    fn when(&self, fields: &mut Map<String, Value>, places: &mut Vec<ProblemPlace>) {
        let (given, other) = match self.r#type {
            SchedulerType::Cron => (("cron", &self.cron), ("date_time", &self.date_time)),
            SchedulerType::Date => (("date_time", &self.date_time), ("cron", &self.cron)),
        };
        if other.1.is_some() {
            let detail = format!("goes with another type; this one needs {}", given.0);
            places.push(ProblemPlace::at(format!("/{}", other.0), detail));
        }
        let Some(text) = given.1 else {
            places.push(ProblemPlace::at(format!("/{}", given.0), "is missing for this type"));
            return;
        };
        let field = if self.r#type == SchedulerType::Cron { "schedule" } else { "at" };
        fields.insert(field.to_owned(), Value::from(text.as_str()));
        if self.r#type == SchedulerType::Cron && !self.stay_alive {
            fields.insert("max_runs".to_owned(), Value::from(1));
        }
    }
}
