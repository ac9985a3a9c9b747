//! Goal: a schema is read whole or refused with the place of its problem, wherever it is written.

use serde_json::json;

use super::*;

fn schema(text: &str) -> Result<serde_json::Value, Vec<String>> {
    let text = format!("[tasks.charge]\ncommand = [\"tool\"]\n{text}\n");
    parse(&text).map(|catalogue| catalogue.get("charge").unwrap().params_schema.clone().unwrap())
}

#[test]
fn a_schema_stands_in_the_catalogue_or_beside_it() {
    let inline = r#"
        [tasks.charge.params_schema]
        type = "object"
        required = ["customer"]
        properties = { customer = { type = "integer", minimum = 1 }, rate = { maximum = 0.5 } }
    "#;
    let expected = json!({
        "type": "object",
        "required": ["customer"],
        "properties": {"customer": {"type": "integer", "minimum": 1}, "rate": {"maximum": 0.5}}
    });
    assert_eq!(schema(inline).unwrap(), expected);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("charge.json");
    fs::write(&file, expected.to_string()).unwrap();
    assert_eq!(schema(&format!("params_schema = {file:?}")).unwrap(), expected);
    let text = "[tasks.charge]\ncommand = [\"/bin/cat\"]\nparams_schema = \"charge.json\"\n";
    let catalogue = Catalogue::parse(text, folder.path(), None).unwrap();
    assert_eq!(catalogue.get("charge").unwrap().params_schema, Some(expected));
}

#[test]
fn what_is_no_schema_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        format!("params_schema = {path:?}")
    };
    for (text, part) in [
        ("params_schema = 7".to_owned(), "must be a table"),
        ("params_schema = \"none.json\"".to_owned(), "none.json cannot be read"),
        (file("a.json", "{\"type\": }"), "is no JSON: expected value at line 1 column 10"),
        (file("b.json", "[]"), "a schema is an object"),
        (
            file("c.json", &format!("{{\"title\":\"{}\"}}", "x".repeat(70_000))),
            "is larger than 65536",
        ),
        ("params_schema = { type = \"text\" }".to_owned(), "at \"/type\""),
        (
            "params_schema = { properties = { a = { pattern = \"(\" } } }".to_owned(),
            "/properties/a/pattern",
        ),
        (
            "params_schema = { properties = { a = { \"$ref\" = \"https://example.com/a\" } } }"
                .to_owned(),
            "refers to nothing outside",
        ),
        ("params_schema = { const = 2026-01-01 }".to_owned(), "holds a date"),
    ] {
        let problems = schema(&text).unwrap_err();
        let problem = &problems[0];
        assert!(problem.starts_with("line 3: task `charge`: `params_schema`: "), "{problem}");
        assert!(problem.contains(part), "{part}: {problem}");
    }
}

#[test]
fn all_problems_of_a_schema_are_reported_at_once() {
    let text = "params_schema = { type = \"text\", properties = { a = { minimum = \"1\" } } }";
    let problems = schema(text).unwrap_err().join("\n");
    assert!(
        problems.contains("\"/type\"") && problems.contains("/properties/a/minimum"),
        "{problems}"
    );
}
