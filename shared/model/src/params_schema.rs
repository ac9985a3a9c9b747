//! Validates the params of a task type against its JSON Schema (draft 2020-12).
//!
//! A schema is self-contained: it refers to nothing outside of it, so that nothing is fetched and its meaning never
//! changes. A violation names the place and the schema's demand, never the value found there: params may hold
//! secrets.

use std::fmt;

use boon::{
    CompileError, Compiler, Draft, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError,
};
use serde_json::Value;

use crate::params::{RESERVED_NAME, check_value};

/// Maximum length of a schema as JSON, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// Maximum nesting of a schema, counting arrays and objects.
pub const MAX_SCHEMA_DEPTH: usize = 64;
/// Maximum number of violations in one report.
pub const MAX_VIOLATIONS: usize = 100;
/// Maximum length of a kept message, in characters.
const MAX_MESSAGE_CHARS: usize = 300;
/// The URL of a schema while it is parsed.
const SCHEMA_URL: &str = "schema:///params";

/// A problem of a schema, with its place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at {:?}: {what}", .at)]
pub struct SchemaProblem {
    /// JSON Pointer into the schema; empty: its top.
    pub at: String,
    /// The problem and the remedy.
    pub what: String,
}

/// A place at which params violate a schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// JSON Pointer into the params; empty: the params themselves.
    pub at: String,
    /// The schema's demand.
    pub what: String,
}

/// Checks that a schema can be used.
///
/// # Errors
///
/// All its problems, up to [`MAX_VIOLATIONS`].
pub fn check(schema: &Value) -> Result<(), Vec<SchemaProblem>> {
    compile(schema).map(drop)
}

/// A parsed schema that validates params.
pub struct SchemaValidator {
    schemas: Schemas,
    index: SchemaIndex,
}

impl fmt::Debug for SchemaValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checker").finish_non_exhaustive()
    }
}

impl SchemaValidator {
    /// Parses a schema.
    ///
    /// # Errors
    ///
    /// The schema's problems; if it was checked when it was published, it comes from another version.
    pub fn new(schema: &Value) -> Result<Self, Vec<SchemaProblem>> {
        let (schemas, index) = compile(schema)?;
        Ok(Self { schemas, index })
    }

    /// Returns the violations of `params`, at most [`MAX_VIOLATIONS`]; empty: they match.
    pub fn violations(&self, params: &Value) -> Vec<Violation> {
        let mut found = Vec::new();
        if let Err(error) = self.schemas.validate(params, self.index) {
            leaves(&error, &mut |at, kind| found.push(Violation { at, what: describe(kind) }));
        }
        // Two branches of a schema may demand the same.
        let mut distinct: Vec<Violation> = Vec::new();
        for violation in found {
            if !distinct.contains(&violation) && distinct.len() < MAX_VIOLATIONS {
                distinct.push(violation);
            }
        }
        distinct
    }
}

/// Fetches nothing.
struct NoLoader;

impl UrlLoader for NoLoader {
    fn load(&self, _: &str) -> Result<Value, Box<dyn std::error::Error>> {
        Err("a schema refers to nothing outside of it; put it under $defs".into())
    }
}

fn compile(schema: &Value) -> Result<(Schemas, SchemaIndex), Vec<SchemaProblem>> {
    let top = |what: String| vec![SchemaProblem { at: String::new(), what }];
    if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
        return Err(top("a schema is an object".to_owned()));
    }
    if check_value(schema, MAX_SCHEMA_DEPTH).is_err() {
        return Err(top(format!(
            "is nested more than {MAX_SCHEMA_DEPTH} levels deep, or holds the character U+0000 or the name {RESERVED_NAME}"
        )));
    }
    let bytes = serde_json::to_string(schema).map_or(0, |text| text.len());
    if bytes > MAX_SCHEMA_BYTES {
        return Err(top(format!("has {bytes} bytes as JSON, more than {MAX_SCHEMA_BYTES}")));
    }
    let mut compiler = Compiler::new();
    compiler.set_default_draft(Draft::V2020_12);
    compiler.enable_format_assertions();
    compiler.use_loader(Box::new(NoLoader));
    let mut schemas = Schemas::new();
    compiler.add_resource(SCHEMA_URL, schema.clone()).map_err(|error| problems(&error))?;
    let index = compiler.compile(SCHEMA_URL, &mut schemas).map_err(|error| problems(&error))?;
    Ok((schemas, index))
}

fn problems(error: &CompileError) -> Vec<SchemaProblem> {
    if let CompileError::ValidationError { src, .. } = error {
        let mut found = Vec::new();
        leaves(src, &mut |at, kind| {
            let problem = SchemaProblem { at, what: clip(&kind.to_string()) };
            if !found.contains(&problem) && found.len() < MAX_VIOLATIONS {
                found.push(problem);
            }
        });
        return found;
    }
    let what = clip(
        &format!("{error:#}").replace(&format!("{SCHEMA_URL}#"), "#").replace(SCHEMA_URL, "#"),
    );
    let at = match error {
        CompileError::InvalidRegex { url, .. } => place(url),
        CompileError::ParseIdError { loc } | CompileError::ParseAnchorError { loc } => place(loc),
        _ => String::new(),
    };
    vec![SchemaProblem { at, what }]
}

fn place(url: &str) -> String {
    url.split_once('#').map(|(_, pointer)| clip(pointer)).unwrap_or_default()
}

/// Visits the innermost causes: the outer ones add no information.
fn leaves(error: &ValidationError<'_, '_>, visit: &mut dyn FnMut(String, &ErrorKind<'_, '_>)) {
    if error.causes.is_empty() {
        visit(clip(&error.instance_location.to_string()), &error.kind);
    }
    for cause in &error.causes {
        leaves(cause, visit);
    }
}

/// Describes the demand, without the actual value.
fn describe(kind: &ErrorKind<'_, '_>) -> String {
    let text = match kind {
        ErrorKind::Format { want, .. } => format!("is no valid {want}"),
        ErrorKind::Pattern { want, .. } => format!("does not match the pattern {want:?}"),
        ErrorKind::Minimum { want, .. } => format!("must be {want} or more"),
        ErrorKind::Maximum { want, .. } => format!("must be {want} or less"),
        ErrorKind::ExclusiveMinimum { want, .. } => format!("must be more than {want}"),
        ErrorKind::ExclusiveMaximum { want, .. } => format!("must be less than {want}"),
        ErrorKind::MultipleOf { want, .. } => format!("must be a multiple of {want}"),
        ErrorKind::FalseSchema => "is not allowed".to_owned(),
        ErrorKind::ContentEncoding { want, .. } | ErrorKind::ContentMediaType { want, .. } => {
            format!("is no {want}")
        }
        // The other texts name types, counts, names of fields and parts of the schema.
        other => other.to_string(),
    };
    clip(&text)
}

fn clip(text: &str) -> String {
    text.chars().take(MAX_MESSAGE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn charge() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "required": ["customer", "amount"],
            "additionalProperties": false,
            "properties": {
                "customer": {"type": "integer", "minimum": 1},
                "amount": {"$ref": "#/$defs/amount"},
                "mail": {"type": "string", "format": "email"},
                "note": {"type": "string", "pattern": "^[a-z]*$"},
                "lines": {"type": "array", "items": {"$ref": "#/$defs/amount"}}
            },
            "$defs": {"amount": {"type": "object", "required": ["cents"], "properties": {"cents": {"minimum": 0}}}}
        })
    }

    fn places(params: &Value) -> Vec<(String, String)> {
        let found = SchemaValidator::new(&charge()).unwrap().violations(params);
        let mut found: Vec<_> =
            found.into_iter().map(|violation| (violation.at, violation.what)).collect();
        found.sort();
        found
    }

    #[test]
    fn what_fits_has_no_violation() {
        assert_eq!(places(&json!({"customer": 1, "amount": {"cents": 5}, "mail": "a@b.de"})), []);
    }

    #[test]
    fn every_violation_is_told_with_its_place_and_without_what_stands_there() {
        let params = json!({
            "customer": "s3cret-customer", "amount": {"cents": -4711}, "mail": "s3cret", "note": "S3CRET",
            "lines": [{"cents": 1}, {}], "further": 1
        });
        let found = places(&params);
        let at: Vec<_> = found.iter().map(|(at, _)| at.as_str()).collect();
        assert_eq!(at, ["", "/amount/cents", "/customer", "/lines/1", "/mail", "/note"]);
        assert!(found[0].1.contains("further") && found[3].1.contains("cents"), "{found:?}");
        assert_eq!(found[1].1, "must be 0 or more");
        let all = format!("{found:?}").to_lowercase();
        assert!(!all.contains("s3cret") && !all.contains("4711"), "{all}");
    }

    #[test]
    fn what_is_told_is_bounded() {
        let params = json!({"customer": 1, "amount": {"cents": 1}, "lines": vec![json!({}); 500]});
        assert_eq!(
            SchemaValidator::new(&charge()).unwrap().violations(&params).len(),
            MAX_VIOLATIONS
        );
    }

    #[test]
    fn a_schema_that_is_none_says_where() {
        for (schema, at) in [
            (json!({"type": "text"}), "/type"),
            (json!({"properties": {"a": {"minimum": "1"}}}), "/properties/a/minimum"),
            (json!({"properties": {"a": {"pattern": "("}}}), "/properties/a/pattern"),
            (json!([]), ""),
            (json!({"$ref": "#/$defs/none"}), ""),
        ] {
            let problems = check(&schema).unwrap_err();
            assert!(
                problems.iter().any(|violation| violation.at.starts_with(at)),
                "{schema}: {problems:?}"
            );
        }
    }

    #[test]
    fn nothing_outside_is_read() {
        let folder = std::env::temp_dir();
        for reference in [
            "https://example.com/schema.json",
            "other.json",
            &format!("file://{}/x", folder.display()),
        ] {
            let problems = check(&json!({"properties": {"a": {"$ref": reference}}})).unwrap_err();
            assert!(problems[0].what.contains("nothing outside"), "{reference}: {problems:?}");
        }
    }

    #[test]
    fn size_and_depth_are_bounded() {
        assert!(check(&json!({"description": "x".repeat(MAX_SCHEMA_BYTES)})).is_err());
        let deep = (0..MAX_SCHEMA_DEPTH).fold(json!({}), |inside, _| json!({"not": inside}));
        assert!(check(&deep).is_err());
    }
}
