//! What pages offer to copy: each action of a page as a command and as a request, which the command line and the API accept.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Parser as _;
use serde_json::{Value, json};
use sexton_console::arguments::Arguments;
use sexton_model::access::Role;
use tokio::process::Command;
use url::form_urlencoded::byte_serialize;

use super::Fixture;
use super::approvals::{discard, people, rule};
use super::described::is_path;
use crate::console::fixture::arrange;
use crate::console::routes::routes;

/// Forms that only a browser needs: the command line and programs log in otherwise, and the first account is made by `accounts create`.
pub(super) const OF_BROWSERS: [&str; 3] = ["/log-in", "/log-out", "/set-up"];
/// Prints the arguments of the command that it stands for.
const PRINT: &str = "() { printf '%s\\0' \"$@\"; }; ";
const TEMPLATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/templates");
const LOCAL: [&str; 2] = ["Host: localhost", "Sec-Fetch-Site: same-origin"];

/// A text of a page as the browser shows it.
fn unescaped(text: &str) -> String {
    let pairs = [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&#38;", "&")];
    assert!(!text.contains("&quot;"), "it is escaped in another way: {text}");
    pairs.iter().fold(text.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
}

/// The texts that a page has under a label.
fn labelled(page: &str, label: &str) -> Vec<String> {
    let begin = format!("aria-label=\"{label}\">");
    let texts = page.split(&begin).skip(1);
    texts.map(|rest| unescaped(rest.split("</pre>").next().unwrap())).collect()
}

/// The arguments that a shell makes of a line.
async fn arguments(program: &str, line: &str) -> Vec<String> {
    let script = format!("{program}{PRINT}{line}");
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(&script);
    shell.env("SEXTON_URL", "https://sexton.example").env("SEXTON_TOKEN", "t");
    let output = shell.output().await.unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout).unwrap();
    printed.trim_end_matches('\0').split('\0').map(str::to_owned).collect()
}

async fn check_command(line: &str) {
    assert!(line.starts_with("sexton "), "{line}");
    let words = arguments("sexton", line).await;
    let all = ["sexton".to_owned()].into_iter().chain(words);
    if let Err(error) = Arguments::try_parse_from(all) {
        panic!("{line}\n{error}");
    }
}

/// A request, as curl would send it.
#[derive(Debug)]
struct Request {
    method: String,
    path: String,
    body: Option<Value>,
}

async fn read_request(text: &str) -> Request {
    assert!(text.starts_with("curl "), "{text}");
    let words = arguments("curl", text).await;
    let after = |option: &str| {
        let at = words.iter().position(|word| word == option)?;
        words.get(at + 1).cloned()
    };
    assert!(words.contains(&"Authorization: Bearer t".to_owned()), "{text}");
    let url = words.last().unwrap();
    let path = url.strip_prefix("https://sexton.example").unwrap_or_else(|| panic!("{text}"));
    let body = after("-d").map(|body| serde_json::from_str(&body).unwrap());
    Request { method: after("-X").unwrap().to_lowercase(), path: path.to_owned(), body }
}

/// The schema behind references, and behind a field that may be `null`.
fn resolved<'a>(description: &'a Value, schema: &'a Value) -> &'a Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let found = description.pointer(reference.strip_prefix('#').unwrap());
        return resolved(description, found.unwrap_or_else(|| panic!("{reference}")));
    }
    let choices = ["oneOf", "anyOf"].iter().filter_map(|word| schema[*word].as_array()).flatten();
    let mut others = choices.filter(|choice| choice["type"] != "null");
    others.next().map_or(schema, |choice| resolved(description, choice))
}

/// Finds required fields that are missing, and fields that nobody knows.
fn check_body(description: &Value, schema: &Value, body: &Value, about: &str) {
    let (schema, Some(fields)) = (resolved(description, schema), body.as_object()) else { return };
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(fields.contains_key(name.as_str().unwrap()), "{about}: {name} is missing");
    }
    let Some(properties) = schema["properties"].as_object() else { return };
    for (name, value) in fields {
        let known = properties.get(name).unwrap_or_else(|| panic!("{about}: {name} is unknown"));
        check_body(description, known, value, about);
    }
}

fn check_request(description: &Value, request: &Request) {
    let about = format!("{request:?}");
    let paths = description["paths"].as_object().unwrap();
    let is_route = |template: &str, item: &Value| {
        is_path(template, &request.path) && !item[&request.method].is_null()
    };
    let found = paths
        .iter()
        .filter(|(template, item)| is_route(template, item))
        .min_by_key(|(template, _)| template.matches('{').count());
    let (_, item) = found.unwrap_or_else(|| panic!("{about}: no such route"));
    let schema = &item[&request.method]["requestBody"]["content"]["application/json"]["schema"];
    if schema.is_null() {
        assert!(request.body.is_none(), "{about}: the route has no body");
        return;
    }
    let body = request.body.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    assert!(body.is_object(), "{about}");
    check_body(description, schema, &body, &about);
}

/// The paths of the forms of a page that have no command, or no request, between them and the next form.
fn bare_forms(page: &str) -> Vec<&str> {
    let forms = page.split("method=\"post\"").skip(1);
    let labels = ["aria-label=\"Command\"", "aria-label=\"Request\""];
    let bare = forms.filter(|form| !labels.iter().all(|label| form.contains(label)));
    bare.map(path_of_form).collect()
}

/// The path to which a form is sent, of the text behind its method.
fn path_of_form(form: &str) -> &str {
    form.split_once("action=\"").unwrap().1.split('"').next().unwrap()
}

/// The labels of the buttons of `action` in a template, and of those in the folders below.
fn labels_of_templates(folder: &Path, labels: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            labels_of_templates(&path, labels);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for call in text.split("call m::action(").skip(1) {
            // A label that is a variable is of a decision about a group.
            let label = call.split(", ").nth(2).unwrap();
            let label = label.strip_prefix('"').map(|label| label.trim_end_matches('"'));
            labels.extend(label.map(str::to_owned));
        }
    }
}

/// Rows of each kind. Returns the pages that show them.
async fn pages(f: &Fixture) -> Vec<String> {
    let values = arrange(f).await;
    let value = |name: &str| values.iter().find(|(it, _)| *it == name).unwrap().1.as_str();
    let run = async |command: &[&str]| drop(f.console.run(command).await.expect(0));
    let (failed, waiting) = (f.console.failed().await, f.console.trigger("shop.charge").await);
    f.console.incident("other", "low", "open", 30).await;
    let incidents = f.console.items(&["incidents", "list"]).await;
    let incident = |index: usize| incidents[index]["id"].as_str().unwrap();
    run(&["incidents", "silence", incident(1), "--for", "2h", "--reason", "x"]).await;
    let groups = f.console.items(&["groups", "list"]).await;
    let group = groups[0]["fingerprint"].as_str().unwrap();
    sqlx::raw_sql(
        "INSERT INTO sexton.lock_rows (name, lock_until, locked_at, locked_by)
            VALUES ('-it''s a \"row\"/1', timezone('utc', now()) + interval '1 hour', timezone('utc', now()), 'h1:7:x');
        INSERT INTO sexton.bulks (kind, selector, previewed_at, actor, state, created_at)
            VALUES ('requeue', '{\"filter\": {}}', now(), 'ann', 'running', now())",
    )
    .execute(f.console.store().pool())
    .await
    .unwrap();
    let [ann, ..] = people(f).await;
    run(&["accounts", "disable", "eve"]).await;
    f.token("ci", "viewer").await;
    rule(f, &[]).await;
    discard(f, &ann, failed).await;
    let all = "/ /jobs /jobs/shop.mail /jobs/shop.charge /jobs/shop.charge/trigger
        /jobs/billing.invoices/backfill?since=70d&rate=10/m&overlap=true
        /firings /executions /failed /failed/groups /bulks /bulks/1 /bulks/2 /approvals /approvals/1 /incidents /monitors /checks
        /checks/backup /checks/paused /channels /workers /audit /flows /locks /settings /settings/tokens /settings/accounts?all=true /me
        /jobs:trigger?key=a /jobs:trigger?contains=shop.&status=active&key=-b /failed/bulk?kind=requeue /failed/bulk?kind=discard&muted=true /failed/bulk?kind=restore
        /executions/bulk?kind=cancel /executions/bulk?kind=cancel&job=shop.charge&state=pending
        /failed/bulk?kind=discard&job_prefix=shop.&param=customer%3D4891&since=2d&text=card";
    let of_rows = [
        format!("/failed/{failed}"),
        format!("/failed/{failed}/edit"),
        format!("/failed/{}", value("discarded")),
        format!("/failed/groups/{group}"),
        format!("/executions/{waiting}"),
        format!("/executions/{}", value("discarded")),
        format!("/flows/{}", value("flow")),
        format!("/incidents/{}", incident(0)),
        format!("/incidents/{}", incident(1)),
    ];
    all.split_whitespace().map(str::to_owned).chain(of_rows).collect()
}

async fn check_page(description: &Value, page: &str, about: &str) {
    let mut bare = bare_forms(page);
    bare.retain(|path| !OF_BROWSERS.contains(path));
    assert!(bare.is_empty(), "{about}: no command, or no request, for {bare:?}");
    for command in labelled(page, "Command") {
        check_command(&command).await;
    }
    for request in labelled(page, "Request") {
        check_request(description, &read_request(&request).await);
    }
}

/// Sends a form. Returns the words of the command, and the body of the request, that its page has then.
async fn send_form(f: &Fixture, path: &str, form: &str) -> (Vec<String>, Value) {
    let description = f.send("GET", "/openapi.json", &["Host: x"], "").await.expect(200);
    let answer = f.send_to("POST", path, &LOCAL, form).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    let page = answer.body.as_str().unwrap();
    check_page(&description, page, path).await;
    let (command, request) = (labelled(page, "Command"), labelled(page, "Request"));
    let words = arguments("sexton", &command[0]).await;
    (words, read_request(&request[0]).await.body.unwrap())
}

#[tokio::test]
async fn each_action_of_a_page_can_be_copied_as_a_command_and_as_a_request() {
    let f = Fixture::with_local_role(Some(Role::Admin)).await;
    let description = f.send("GET", "/openapi.json", &["Host: x"], "").await.expect(200);
    let mut labels = BTreeSet::new();
    labels_of_templates(Path::new(TEMPLATES), &mut labels);
    assert!(labels.len() > 20, "{labels:?}");
    let mut unseen = routes("post");
    unseen.retain(|route| !OF_BROWSERS.contains(&route.as_str()));
    for path in pages(&f).await {
        let answer = f.send_to("GET", &path, &LOCAL, "").await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let page = answer.body.as_str().unwrap();
        check_page(&description, page, &path).await;
        if path.contains("/bulk?") || path.contains("/backfill?") {
            assert_eq!(labelled(page, "Request").len(), 1, "{path}: it has nothing to do");
        }
        for form in page.split("method=\"post\"").skip(1) {
            unseen.retain(|route| !is_path(route, path_of_form(form)));
        }
        labels.retain(|label| !page.contains(&format!("class=\"button\">{label}</summary>")));
    }
    assert!(labels.is_empty(), "no page has shown {labels:?}");
    assert!(unseen.is_empty(), "no page has shown a form of {unseen:?}");
    let locks = f.send_to("GET", "/locks", &LOCAL, "").await.expect(200);
    assert_eq!(labelled(locks.as_str().unwrap(), "Command").len(), 1);
}

#[tokio::test]
async fn what_was_typed_into_a_form_is_what_can_be_copied() {
    let f = Fixture::with_local_role(Some(Role::Admin)).await;
    // {"note": "it's"}, because of -x.
    let form = "params=%7B%22note%22%3A+%22it%27s%22%7D&reason=-x&as_command=true";
    let (words, body) = send_form(&f, "/jobs/shop.charge/trigger", form).await;
    let params = r#"{"note": "it's"}"#;
    assert_eq!(words, ["jobs", "trigger", "shop.charge", "--params", params, "--reason=-x"]);
    assert_eq!(body, json!({"params": {"note": "it's"}, "reason": "-x"}));
    let executions = f.console.items(&["executions", "list"]).await;
    assert_eq!(executions.as_array().unwrap().len(), 0, "it was not run: {executions}");

    let params = r#"{"api_token": "hunter2", "customer": 7}"#;
    let run = ["jobs", "trigger", "shop.charge", "--params", params];
    let id = f.console.json(&run).await["id"].as_str().unwrap().parse().unwrap();
    f.console.fail(f.console.open(id, 1).await, "card declined", None).await;
    let edit = format!("/failed/{id}/edit");
    // The secret masked, another customer.
    let form = "attempt=2&params=%7B%22api_token%22%3A+%22***%22%2C+%22customer%22%3A+8%7D&stay_failed=true&reason=typo";
    let (words, body) = send_form(&f, &edit, form).await;
    assert_eq!(words[3..5], ["--params", "@params.json"], "a mask is no secret: {words:?}");
    assert!(words.contains(&"--no-requeue".to_owned()), "{words:?}");
    let merge = json!({"customer": 8});
    let expected = json!({"attempt": 2, "merge": merge, "reason": "typo", "requeue": false});
    assert_eq!(body, expected);
    let token = f.token("edit", "editor").await;
    f.ask(&token, "POST", &format!("/failures/{id}/edit"), &body.to_string()).await.expect(200);
    let row = sexton_store::executions::find(f.console.store(), id.get()).await.unwrap().unwrap();
    assert_eq!(row.params, json!({"api_token": "hunter2", "customer": 8}));
}

#[tokio::test]
async fn what_was_typed_into_the_form_of_a_bulk_is_what_can_be_copied() {
    let f = Fixture::with_local_role(Some(Role::Admin)).await;
    let token = f.token("ann", "operator").await;
    f.console.failed().await;
    f.console.trigger("shop.mail").await;
    for (form, words, mut expected) in [
        (
            "/failed/bulk?kind=requeue&no_verify=true",
            "failed requeue --all --no-verify --reason …",
            json!({"kind": "requeue", "filter": {}, "all": true, "no_verify": true, "reason": "…"}),
        ),
        (
            "/failed/bulk?kind=requeue&job=shop.charge&canary=+1&rate=9%2Fm+&no_verify=true&reason=it%27s",
            "failed requeue --job shop.charge --canary 1 --rate 9/m --no-verify --reason it's",
            json!({"kind": "requeue", "filter": {"job": "shop.charge"}, "canary": 1, "rate": "9/m", "no_verify": true, "reason": "it's"}),
        ),
        (
            "/executions/bulk?kind=cancel&job=shop.mail&state=pending&rate=1%2Fs&reason=-x",
            "executions cancel --job shop.mail --state pending --rate 1/s --reason=-x",
            json!({"kind": "cancel", "filter": {"job": "shop.mail", "state": ["pending"]}, "rate": "1/s", "reason": "-x"}),
        ),
    ] {
        let (path, typed) = form.split_once('?').unwrap();
        let typed = format!("{typed}&as_command=true");
        let (copied, body) = send_form(&f, path, &typed).await;
        assert_eq!(copied.join(" "), words);
        expected["previewed_at"] = body["previewed_at"].clone();
        assert_eq!(body, expected);
        assert_eq!(f.console.items(&["bulks", "list"]).await, json!([]), "nothing was done");
        f.ask(&token, "POST", "/bulks:preview", &body.to_string()).await.expect(200);
    }
}

#[tokio::test]
async fn an_edit_is_copied_as_changes_only_where_secrets_are_masked_and_changes_can_say_it() {
    let f = Fixture::with_local_role(Some(Role::Admin)).await;
    let token = f.token("edit", "editor").await;
    let id = f.console.failed().await;
    let edit = format!("/failed/{id}/edit");
    let copied = async |params: &Value| {
        let params: String = byte_serialize(params.to_string().as_bytes()).collect();
        let form = format!("attempt=2&params={params}&stay_failed=true&reason=x");
        let answer = f.send_to("POST", &edit, &LOCAL, &form).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let page = answer.body.as_str().unwrap().to_owned();
        let request = read_request(&labelled(&page, "Request")[0]).await;
        (page, request.body.unwrap())
    };
    let send = async |body: &Value, status: u16| {
        let path = format!("/failures/{id}/edit");
        f.ask(&token, "POST", &path, &body.to_string()).await.expect(status)
    };
    let logins = |password: &str, user: &str| json!([{"password": password, "user": user}]);
    let params = json!({"api_token": "new", "note": null, "logins": logins("p", "a")});
    let (page, body) = copied(&params).await;
    assert!(!page.contains("The page masks secrets"), "{page}");
    assert_eq!((&body["params"], &body["merge"]), (&params, &Value::Null));
    send(&body, 200).await;

    let mut masked = json!({"api_token": "***", "note": null, "logins": logins("***", "b")});
    let (page, mut body) = copied(&masked).await;
    assert!(page.contains("Write them into the request, too"), "{page}");
    assert_eq!((&body["params"], &body["merge"]), (&masked, &Value::Null));
    send(&body, 400).await;
    body["params"]["api_token"] = "new".into();
    body["params"]["logins"][0]["password"] = "p".into();
    send(&body, 200).await;

    masked["note"] = "x".into();
    let (page, body) = copied(&masked).await;
    assert!(page.contains("The request leaves them as they are."), "{page}");
    assert_eq!((&body["params"], &body["merge"]), (&Value::Null, &json!({"note": "x"})));
    send(&body, 200).await;
    let row = sexton_store::executions::find(f.console.store(), id.get()).await.unwrap().unwrap();
    let expected = json!({"api_token": "new", "note": "x", "logins": logins("p", "b")});
    assert_eq!(row.params, expected);
}

#[tokio::test]
async fn what_is_wrong_with_params_stands_beside_their_field() {
    let f = Fixture::with_local_role(Some(Role::Admin)).await;
    let failed = f.console.failed().await;
    let described = "aria-invalid=\"true\" aria-describedby=\"params-problems\"";
    let connected = [described, " id=\"params-problems\""];
    let edit = format!("/failed/{failed}/edit");
    let forms =
        [("/jobs/shop.charge/trigger", "params=%5B1"), (edit.as_str(), "attempt=2&params=%5B1")];
    for (path, form) in forms {
        let page = f.send_to("POST", path, &LOCAL, form).await.expect(400);
        let page = page.as_str().unwrap();
        assert!(connected.iter().all(|text| page.matches(text).count() == 1), "{path}: {page}");
        let page = f.send_to("GET", path, &LOCAL, "").await.expect(200);
        assert!(!page.as_str().unwrap().contains("aria-invalid"), "{path}");
    }
    let path = "/jobs/billing.invoices/backfill?since=nonsense&rate=x";
    let page = f.send_to("GET", path, &LOCAL, "").await.expect(400);
    for field in ["since", "rate"] {
        let described = format!("aria-describedby=\"{field}-problems\"");
        assert!(page.as_str().unwrap().contains(&described), "{field}: {page}");
    }
}
