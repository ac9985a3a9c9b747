//! Compares answers with the committed description of the API.

use std::collections::HashMap;
use std::error::Error;
use std::sync::LazyLock;

use boon::{Compiler, Draft, Format, SchemaIndex, Schemas};
use chrono::DateTime;
use serde_json::{Value, json};

use super::Answer;

/// Below it is what the description describes.
const BASE_PATH: &str = "/api/v1/";
/// The route of the description, which does not describe itself.
const DOCUMENT: &str = "/api/v1/openapi.json";
/// The URL of the schemas while they are parsed.
const SCHEMAS_URL: &str = "schema:///description";
/// Statuses of requests that reach no operation, each with its reason.
const OF_NO_OPERATION: [(u16, &str); 2] =
    [(404, "no route has the path"), (405, "the route has no such method")];

/// Parsed once, since each answer of each test is compared.
static DESCRIPTION: LazyLock<Description> =
    LazyLock::new(|| Description::parse(include_str!("../../../server/openapi.json")));

/// A description of the API.
struct Description {
    paths: Value,
    schemas: Schemas,
    /// Where each of `schemas` is, by its reference.
    indexes: HashMap<String, SchemaIndex>,
    /// The content of each refusal.
    problem: Value,
}

/// The parts of an answer that are described.
struct Parts<'a> {
    status: u16,
    /// Without its parameters.
    content_type: Option<&'a str>,
    body: &'a Value,
}

/// Compares an answer to a request with the description; the path is that behind the base path of the server. Returns whether a schema
/// judged the body: an answer of another path, or without JSON, has none.
///
/// # Panics
///
/// The answer is not as described.
pub(super) fn check(method: &str, path: &str, answer: &Answer) -> bool {
    let content_type = answer.header("content-type");
    let content_type = content_type.map(|it| it.split(';').next().unwrap_or(it).trim());
    let parts = Parts { status: answer.status, content_type, body: &answer.body };
    DESCRIPTION.check(method, path, &parts).unwrap_or_else(|problem| {
        panic!(
            "{method} {path} answers {}, unlike in server/openapi.json: {problem}\n{}",
            answer.status, answer.body
        )
    })
}

/// Whether a path of the description, as in `/jobs/{name}`, is that of a request.
pub(super) fn is_path(template: &str, path: &str) -> bool {
    let (template, path) = (template.split('/'), path.split('/'));
    let is_segment = |(described, sent): (&str, &str)| {
        let is_parameter = described.starts_with('{') && described.ends_with('}');
        described == sent || (is_parameter && !sent.is_empty())
    };
    template.clone().count() == path.clone().count() && template.zip(path).all(is_segment)
}

fn check_instant(value: &Value) -> Result<(), Box<dyn Error>> {
    if let Some(text) = value.as_str() {
        DateTime::parse_from_rfc3339(text)?;
    }
    Ok(())
}

impl Description {
    fn parse(text: &str) -> Self {
        // A place that JSON Schema knows, so that each schema is itself checked only once.
        let text = text.replace("#/components/schemas/", "#/$defs/");
        let document: Value = serde_json::from_str(&text).unwrap();
        let definitions = &document["components"]["schemas"];
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.enable_format_assertions();
        compiler.register_format(Format { name: "date-time", func: check_instant });
        compiler.add_resource(SCHEMAS_URL, json!({"$defs": definitions})).unwrap();
        let mut schemas = Schemas::new();
        let mut indexes = HashMap::new();
        for name in definitions.as_object().unwrap().keys() {
            let reference = format!("#/$defs/{name}");
            let schema = compiler.compile(&format!("{SCHEMAS_URL}{reference}"), &mut schemas);
            let index = schema.unwrap_or_else(|error| panic!("{name}: {error:#}"));
            indexes.insert(reference, index);
        }
        let problem = json!({"application/problem+json": {"schema": {"$ref": "#/$defs/Problem"}}});
        Self { paths: document["paths"].clone(), schemas, indexes, problem }
    }

    fn check(&self, method: &str, path: &str, answer: &Parts<'_>) -> Result<bool, String> {
        let path = path.split('?').next().unwrap_or(path);
        if !path.starts_with(BASE_PATH) || path == DOCUMENT {
            return Ok(false);
        }
        let content = match self.operation(method, path) {
            Some(operation) => &response(operation, answer.status)?["content"],
            None if OF_NO_OPERATION.iter().any(|(it, _)| *it == answer.status) => &self.problem,
            None => return Err("there is no such operation".to_owned()),
        };
        let Some(content_type) = answer.content_type else {
            let is_empty = content.is_null() && answer.body.is_null();
            return if is_empty { Ok(false) } else { Err("it has no content type".to_owned()) };
        };
        let described = &content[content_type];
        if described.is_null() {
            return Err(format!("its content type is {content_type}"));
        }
        if !matches!(content_type, "application/json" | "application/problem+json") {
            return Ok(false);
        }
        let reference = described["schema"]["$ref"].as_str();
        let index = reference.and_then(|it| self.indexes.get(it));
        let index = index.ok_or_else(|| "it has no schema among the components".to_owned())?;
        let validated = self.schemas.validate(answer.body, *index);
        validated.map(|()| true).map_err(|error| error.to_string())
    }

    /// Finds the operation of a request. Of two paths the one with fewer parameters has it, as the router decides.
    fn operation(&self, method: &str, path: &str) -> Option<&Value> {
        let paths = self.paths.as_object().unwrap();
        let found = paths.iter().filter(|(template, _)| is_path(template, path));
        let (_, item) = found.min_by_key(|(template, _)| template.matches('{').count())?;
        item.get(method.to_lowercase())
    }
}

/// Finds the description of an answer with this status. The default is that of refusals, and stands for no other success.
fn response(operation: &Value, status: u16) -> Result<&Value, String> {
    let responses = &operation["responses"];
    let default = if status >= 400 { responses.get("default") } else { None };
    let found = responses.get(status.to_string()).or(default);
    found.ok_or_else(|| "the status is not described".to_owned())
}

/// Compares an answer with JSON.
fn check_json(request: &str, status: u16, body: &Value) -> Result<bool, String> {
    let (method, path) = request.split_once(' ').unwrap();
    let content_type = if status < 400 { "application/json" } else { "application/problem+json" };
    let answer = Parts { status, content_type: Some(content_type), body };
    DESCRIPTION.check(method, path, &answer)
}

#[test]
fn a_missing_field_and_a_wrong_type_are_refused_with_their_place() {
    let count = "GET /api/v1/failures:count?job=shop.mail";
    assert_eq!(check_json(count, 200, &json!({"value": 7, "exact": true})), Ok(true));
    let missing = check_json(count, 200, &json!({"value": 7})).unwrap_err();
    assert!(missing.contains("at '': missing properties 'exact'"), "{missing}");
    let wrong = check_json(count, 200, &json!({"value": "7", "exact": true})).unwrap_err();
    assert!(wrong.contains("at '/value'"), "{wrong}");
    let token = json!({"id": "a", "name": "ci", "role": "viewer", "created_by": "ann",
        "created_at": "2024-03-01T01:00:00Z"});
    let mut tokens = json!({"items": [token]});
    assert_eq!(check_json("GET /api/v1/tokens", 200, &tokens), Ok(true));
    tokens["items"][0]["created_at"] = json!("yesterday");
    let wrong = check_json("GET /api/v1/tokens", 200, &tokens).unwrap_err();
    assert!(wrong.contains("at '/items/0/created_at'"), "{wrong}");
}

#[test]
fn a_refusal_is_a_problem_on_described_routes_and_on_others() {
    let mut problem =
        json!({"status": 404, "code": "not_found", "title": "Not Found", "detail": "no such job"});
    for request in ["GET /api/v1/jobs/a", "GET /api/v1/nothing", "POST /api/v1/nothing?a=b"] {
        assert_eq!(check_json(request, 404, &problem), Ok(true), "{request}");
    }
    assert_eq!(check_json("PUT /api/v1/jobs", 405, &problem), Ok(true));
    check_json("PUT /api/v1/jobs", 400, &problem).unwrap_err();
    problem.as_object_mut().unwrap().remove("detail");
    for request in ["GET /api/v1/jobs/a", "GET /api/v1/nothing"] {
        check_json(request, 404, &problem).unwrap_err();
    }
}

#[test]
fn a_status_or_a_content_type_that_is_not_described_is_refused() {
    let undescribed = check_json("GET /api/v1/failures:count", 202, &json!({})).unwrap_err();
    assert_eq!(undescribed, "the status is not described");
    let check = |request: &str, status: u16, content_type: Option<&str>, body: Value| {
        let (method, path) = request.split_once(' ').unwrap();
        DESCRIPTION.check(method, path, &Parts { status, content_type, body: &body })
    };
    let lines = Some("application/x-ndjson");
    assert_eq!(check("GET /api/v1/audit/export", 200, lines, json!("{}\n")), Ok(false));
    assert_eq!(check("POST /api/v1/session", 204, None, Value::Null), Ok(false));
    // Beside the API nothing is described.
    assert_eq!(check("GET /jobs", 200, Some("text/html"), json!("<p>")), Ok(false));
    let page = Some("text/html");
    check("GET /api/v1/jobs", 200, page, json!("<p>")).unwrap_err();
    check("GET /api/v1/jobs", 200, None, Value::Null).unwrap_err();
    check("POST /api/v1/session", 204, page, json!("<p>")).unwrap_err();
}

#[test]
fn an_operation_is_found_by_its_method_and_the_path_with_the_fewest_parameters() {
    let id = |request: &str| {
        let (method, path) = request.split_once(' ').unwrap();
        DESCRIPTION.operation(method, path)?["operationId"].as_str()
    };
    for (request, expected) in [
        ("GET /api/v1/jobs", Some("list_jobs")),
        ("GET /api/v1/jobs/shop.mail", Some("show_job")),
        ("GET /api/v1/jobs/shop%2Fmail", Some("show_job")),
        ("PUT /api/v1/jobs/shop.mail", Some("replace_job")),
        ("POST /api/v1/jobs:trigger", Some("trigger_jobs")),
        ("POST /api/v1/jobs/shop.mail/trigger", Some("trigger_job")),
        ("POST /api/v1/accounts/end-sessions", Some("end_sessions")),
        ("POST /api/v1/jobs/shop.mail", None),
        ("GET /api/v1/jobs/", None),
        ("GET /api/v1/nothing", None),
    ] {
        assert_eq!(id(request), expected, "{request}");
    }
}
