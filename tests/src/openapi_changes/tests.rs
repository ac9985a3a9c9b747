use serde_json::json;

use super::*;

/// A description with one route, which has a bit of everything.
fn example() -> Value {
    json!({
        "paths": {
            "/jobs": {"get": {
                "x-role": "viewer",
                "parameters": [
                    {"name": "state", "in": "query", "required": false, "schema": {"$ref": "#/components/schemas/State"}},
                ],
                "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Page"}}}}},
            }},
            "/jobs/{name}/trigger": {"post": {
                "x-role": "operator",
                "requestBody": {"required": true, "content": {"application/json": {"schema": {
                    "type": "object", "properties": {"key": {"type": ["string", "null"]}, "mode": {"enum": ["one", "all"]}},
                }}}},
                "responses": {"204": {}},
            }},
        },
        "components": {"schemas": {
            "State": {"type": "string", "enum": ["open", "done"]},
            "Page": {"type": "object", "required": ["items"], "properties": {
                "items": {"type": "array", "items": {"allOf": [
                    {"$ref": "#/components/schemas/Job"},
                    {"type": "object", "properties": {"last": {"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Job"}]}}},
                ]}},
            }},
            "Job": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "state": {"$ref": "#/components/schemas/State"},
            }},
        }},
    })
}

/// What is found when `pointer` is changed.
fn found(pointer: &str, change: impl Fn(&mut Value)) -> Vec<String> {
    let (published, mut current) = (example(), example());
    change(current.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")));
    breaking_changes(&published, &current)
}

fn remove(name: &str) -> impl Fn(&mut Value) {
    move |value| drop(value.as_object_mut().unwrap().remove(name).unwrap())
}

const GET: &str = "/paths/~1jobs/get";
const POST: &str = "/paths/~1jobs~1{name}~1trigger/post";
const BODY: &str =
    "/paths/~1jobs~1{name}~1trigger/post/requestBody/content/application~1json/schema";

#[test]
fn each_kind_of_breaking_change_is_found() {
    assert_eq!(breaking_changes(&example(), &example()), Vec::<String>::new());
    assert_eq!(found("/paths", remove("/jobs")), ["GET /jobs: the route is gone"]);
    assert_eq!(
        found(GET, |get| get["x-role"] = json!("operator")),
        ["GET /jobs: it needs a higher role"]
    );
    assert_eq!(
        found(GET, |get| get["parameters"] = json!([])),
        ["GET /jobs ?state: the parameter is gone"]
    );
    assert_eq!(
        found(GET, |get| get["parameters"][0]["required"] = json!(true)),
        ["GET /jobs ?state: it is required now"]
    );
    let zone = json!({"name": "zone", "in": "query", "required": true, "schema": {}});
    assert_eq!(
        found(GET, |get| get["parameters"].as_array_mut().unwrap().push(zone.clone())),
        ["GET /jobs ?zone: a new parameter is required"]
    );
    assert_eq!(
        found("/components/schemas/State/enum", |words| *words = json!(["open"])),
        ["GET /jobs ?state: it may no longer be done"]
    );
    assert_eq!(
        found(&format!("{BODY}/properties/mode/enum"), |words| *words = json!(["one"])),
        ["POST /jobs/{name}/trigger body.mode: it may no longer be all"]
    );
    assert_eq!(
        found(&format!("{POST}/responses"), remove("204")),
        ["POST /jobs/{name}/trigger 204: the status is gone"]
    );
}

#[test]
fn changes_of_documents_are_found_at_any_depth() {
    let item = "GET /jobs 200.items[]";
    assert_eq!(
        found("/components/schemas/Job/properties", remove("name")),
        [format!("{item}.last.name: the field is gone"), format!("{item}.name: the field is gone")]
    );
    assert_eq!(
        found("/components/schemas/Page", remove("required")),
        ["GET /jobs 200.items: the answer may leave it out now"]
    );
    let types = |change: &str| {
        format!("{item}.{change}name: the type {{\"string\"}} has become {{\"integer\"}}")
    };
    assert_eq!(
        found("/components/schemas/Job/properties/name", |name| name["type"] = json!("integer")),
        [types("last."), types("")]
    );
    assert_eq!(
        found(BODY, |body| body["required"] = json!(["key"])),
        ["POST /jobs/{name}/trigger body.key: it is required now"]
    );
    assert_eq!(
        found(&format!("{BODY}/properties"), remove("key")),
        ["POST /jobs/{name}/trigger body.key: the field is gone"]
    );
    assert_eq!(
        found(&format!("{BODY}/properties/key"), |key| key["type"] = json!("string")),
        [
            "POST /jobs/{name}/trigger body.key: the type {\"null\", \"string\"} has become {\"string\"}"
        ]
    );
}

#[test]
fn narrower_bounds_of_what_is_sent_are_found() {
    let key = format!("{BODY}/properties/key");
    let place = "POST /jobs/{name}/trigger body.key";
    let mut published = example();
    published.pointer_mut(&key).unwrap()["maxLength"] = json!(100);
    let with = |name: &str, value: Value| {
        let mut current = published.clone();
        current.pointer_mut(&key).unwrap()[name] = value;
        breaking_changes(&published, &current)
    };
    assert_eq!(with("maxLength", json!(10)), [format!("{place}: maxLength was 100, and is 10")]);
    assert_eq!(with("minLength", json!(1)), [format!("{place}: minLength was null, and is 1")]);
    assert_eq!(with("pattern", json!("^a")), [format!("{place}: it must have another form")]);
    assert_eq!(with("maxLength", json!(1_000)), Vec::<String>::new());
    let optional = |body: &mut Value| body["required"] = json!(false);
    let (mut published, current) = (example(), example());
    optional(published.pointer_mut(&format!("{POST}/requestBody")).unwrap());
    let found = breaking_changes(&published, &current);
    assert_eq!(found, ["POST /jobs/{name}/trigger body: it is required now"]);
    let in_example = |pointer: &str, change: fn(&mut Value)| self::found(pointer, change);
    // What an answer may be has become less: nobody notices.
    let shorter = |name: &mut Value| name["maxLength"] = json!(10);
    let found = in_example("/components/schemas/Job/properties/name", shorter);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn what_only_adds_breaks_nobody() {
    let nothing = Vec::<String>::new();
    let job = "/components/schemas/Job/properties";
    assert_eq!(found(job, |fields| fields["zone"] = json!({"type": "string"})), nothing);
    assert_eq!(
        found("/components/schemas/Job", |job| job["required"] = json!(["name", "state"])),
        nothing
    );
    assert_eq!(
        found("/components/schemas/State/enum", |words| *words = json!(["open", "done", "new"])),
        nothing
    );
    assert_eq!(found(GET, |get| get["responses"]["201"] = json!({})), nothing);
    let zone = json!({"name": "zone", "in": "query", "required": false, "schema": {}});
    assert_eq!(
        found(GET, |get| get["parameters"].as_array_mut().unwrap().push(zone.clone())),
        nothing
    );
    assert_eq!(found("/paths", |paths| paths["/new"] = json!({"get": {}})), nothing);
    assert_eq!(found(GET, |get| drop(get.as_object_mut().unwrap().remove("x-role"))), nothing);
}
