//! The description of the API.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use sexton_server::api::description;
use sexton_tests::openapi_changes::breaking_changes;

use super::answers::with_member;
use crate::console::REQUIRED;
use crate::console::fixture::Rows;

/// Relative to the tests' folder.
const FILE: &str = "../server/openapi.json";

/// `OPENAPI=write` writes the file.
#[test]
fn the_committed_description_is_that_of_the_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let made = format!("{}\n", description().to_pretty_json().unwrap());
    if std::env::var_os("OPENAPI").is_some_and(|value| value == "write") {
        std::fs::write(&file, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == made,
        "the API has changed: see what that means for its users, then write server/openapi.json anew with OPENAPI=write"
    );
}

/// Relative to the tests' folder: the description that clients rely on.
const PUBLISHED: &str = "../server/openapi-published.json";
/// Operations that nobody relies on yet, as `get /path`. A release publishes them, and empties this.
const UNPUBLISHED: [&str; 0] = [];

/// Each operation, as `get /path`.
fn operations(description: &Value) -> BTreeSet<String> {
    let paths = description["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &Value)| {
        let methods: Vec<String> = item.as_object().unwrap().keys().cloned().collect();
        methods.into_iter().map(move |method| format!("{method} {path}")).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

#[test]
fn no_client_of_the_published_description_is_broken() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(PUBLISHED);
    let published: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let current = serde_json::to_value(description()).unwrap();
    let (all, known) = (operations(&current), operations(&published));
    let new: Vec<&str> = all.difference(&known).map(String::as_str).collect();
    assert_eq!(
        new, UNPUBLISHED,
        "name these in UNPUBLISHED; a release copies server/openapi.json to {PUBLISHED}"
    );
    let found = breaking_changes(&published, &current);
    assert!(
        found.is_empty(),
        "clients break: keep what they use, or say it in the changelog and copy server/openapi.json there at the release:\n{}",
        found.join("\n")
    );
}

#[test]
fn every_operation_says_what_it_does_and_what_it_answers() {
    let description: Value = serde_json::to_value(description()).unwrap();
    assert_eq!(description["openapi"], "3.1.0");
    for (path, item) in description["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let about = format!("{method} {path}");
            let summary = operation["summary"].as_str().unwrap_or_default();
            assert!(summary.ends_with('.'), "{about}: {summary:?}");
            assert!(operation["operationId"].is_string(), "{about}");
            let problem = &operation["responses"]["default"]["content"]["application/problem+json"];
            assert_eq!(problem["schema"]["$ref"], "#/components/schemas/Problem", "{about}");
            let succeeds =
                operation["responses"].as_object().unwrap().keys().any(|it| it.starts_with('2'));
            assert!(succeeds, "{about}");
        }
    }
}

/// Runs a script of `clients/openapi`; `None`: its language is missing here.
async fn script(name: &str, arguments: &[&str]) -> Option<String> {
    let script = format!("{}/clients/openapi/{name}", env!("CARGO_MANIFEST_DIR"));
    let arguments: Vec<String> = arguments.iter().map(|&it| it.to_owned()).collect();
    let running = tokio::task::spawn_blocking(move || {
        Command::new("sh").arg(script).args(arguments).stdin(Stdio::null()).output().unwrap()
    });
    let output = running.await.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.code() == Some(77) && std::env::var_os(REQUIRED).is_none() {
        sexton_tests::untested::report_untested(&format!("the description of the API: {printed}"));
        return None;
    }
    assert!(output.status.success(), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    Some(printed)
}

/// By the rules of a tool that somebody else wrote, from npm.
#[tokio::test]
async fn a_linter_of_descriptions_finds_nothing() {
    if let Some(printed) = script("lint.sh", &[]).await {
        assert!(!printed.contains("warning"), "{printed}");
    }
}

/// Returns the description with a row that is there as the example of each path's parameter, so that routes of rows succeed, too.
async fn with_examples(rows: &Rows) -> Value {
    let description = rows.f.send("GET", "/openapi.json", &["Host: x"], "").await;
    let mut description = description.expect(200);
    for (path, item) in description["paths"].as_object_mut().unwrap() {
        let template = path.strip_prefix("/api/v1").unwrap();
        // Each test of a channel that exists would wait for a scheduler.
        if template == "/channels/{name}/test" {
            continue;
        }
        let member = with_member(rows, template);
        let member = template.split('/').zip(member.split('/')).find(|(one, other)| one != other);
        let Some((_, member)) = member else { continue };
        for operation in item.as_object_mut().unwrap().values_mut() {
            let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
            for parameter in parameters.into_iter().flatten().filter(|it| it["in"] == "path") {
                parameter["example"] = if parameter["schema"]["type"] == "integer" {
                    member.parse::<i64>().unwrap().into()
                } else {
                    member.into()
                };
            }
        }
    }
    description
}

/// What the description allows, and much that it does not, sent by a tool that somebody else wrote, from PyPI.
#[tokio::test]
async fn every_answer_is_part_of_the_description_and_none_is_a_fault_of_the_server() {
    let rows = Rows::new(None).await;
    let f = &rows.f;
    let token = f.token("fuzz", "admin").await;
    // Otherwise what is to be done would only wait for approvals.
    f.ask(&token, "DELETE", "/approval-rules/all", "").await.expect(204);
    let file = f.console.file("openapi.json", &with_examples(&rows).await.to_string());
    if let Some(printed) = script("fuzz.sh", &[&file, &f.site(), &token]).await {
        assert!(printed.contains("generated"), "{printed}");
        assert!(!printed.contains("Authentication failed"), "{printed}");
        println!("{printed}");
    }
    // It has changed much, and the platform's rows are still readable.
    f.get(&f.token("after", "admin").await, "/failures").await.expect(200);
}
