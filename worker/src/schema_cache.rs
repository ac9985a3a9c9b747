//! Validates the params of foreign tasks against the schemas of the workers that offer the type.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use sexton_model::params_schema::SchemaValidator;
use sexton_store::offers::OfferedSchema;

/// The most compiled schemas that are kept.
const MAX_COMPILED: usize = 64;
/// The most mismatches that a reason lists; it has room for 1,024 bytes.
const MAX_REPORTED_MISMATCHES: usize = 20;

/// Compiled schemas, for the next message of the same type. At most [`MAX_COMPILED`].
#[derive(Default)]
pub(crate) struct SchemaCache(Mutex<Vec<(Value, Arc<SchemaValidator>)>>);

impl SchemaCache {
    /// Compiles a schema, or returns it from the cache. `None`: a newer version wrote it, and this one cannot
    /// read it.
    fn get(&self, schema: &Value) -> Option<Arc<SchemaValidator>> {
        let mut compiled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, checker)) = compiled.iter().find(|(known, _)| known == schema) {
            return Some(Arc::clone(checker));
        }
        let checker = Arc::new(SchemaValidator::new(schema).ok()?);
        if compiled.len() >= MAX_COMPILED {
            compiled.remove(0);
        }
        compiled.push((schema.clone(), Arc::clone(&checker)));
        Some(checker)
    }

    /// Lists every place at which `params` do not fit a schema in use, with the workers that require it where
    /// they disagree; `None`: they fit. The list never contains values of the params.
    pub(crate) fn mismatches(&self, params: &Value, in_use: &[OfferedSchema]) -> Option<String> {
        let several = in_use.len() > 1;
        let mut reported = Vec::new();
        for OfferedSchema { schema, workers } in in_use {
            let Some(checker) = schema.as_ref().and_then(|schema| self.get(schema)) else {
                continue;
            };
            for found in checker.violations(params) {
                let at = if found.at.is_empty() { "/" } else { &found.at };
                let by =
                    if several { format!(" (by {})", workers.join(", ")) } else { String::new() };
                reported.push(format!("{at}: {}{by}", found.what));
            }
        }
        if reported.is_empty() {
            return None;
        }
        let more = reported.len().saturating_sub(MAX_REPORTED_MISMATCHES);
        reported.truncate(MAX_REPORTED_MISMATCHES);
        if more > 0 {
            reported.push(format!("and {more} more"));
        }
        Some(reported.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(schema: Option<Value>, worker: &str) -> OfferedSchema {
        OfferedSchema { schema, workers: vec![worker.to_owned()] }
    }

    #[test]
    fn params_are_validated_by_every_schema_in_use_and_all_problems_are_reported_at_once() {
        let checkers = SchemaCache::default();
        let charge = of(Some(json!({"required": ["customer", "cents"]})), "w1");
        let newer = of(Some(json!({"properties": {"customer": {"type": "integer"}}})), "w2");
        assert_eq!(checkers.mismatches(&json!({}), &[]), None);
        assert_eq!(checkers.mismatches(&json!({}), &[of(None, "w1")]), None);
        let one = checkers.mismatches(&json!({}), std::slice::from_ref(&charge)).unwrap();
        assert!(one.starts_with("/: ") && one.contains("customer"), "{one}");
        let params = json!({"customer": "s3cret"});
        let both = checkers.mismatches(&params, &[charge, newer]).unwrap();
        assert!(both.contains("cents") && both.contains("(by w1); /customer: "), "{both}");
        assert!(both.ends_with("(by w2)") && !both.contains("s3cret"), "{both}");
    }

    #[test]
    fn compiled_schemas_and_reported_mismatches_are_bounded() {
        let checkers = SchemaCache::default();
        for least in 0..200 {
            let schema = json!({"properties": {"a": {"minimum": least}}});
            assert!(checkers.get(&schema).is_some());
        }
        assert_eq!(checkers.0.lock().unwrap().len(), MAX_COMPILED);
        let required: Vec<String> = (0..60).map(|n| format!("p{n}")).collect();
        let each: Vec<Value> = required.iter().map(|name| json!({"required": [name]})).collect();
        let reported = checkers.mismatches(&json!({}), &[of(Some(json!({"allOf": each})), "w")]);
        assert!(reported.unwrap().ends_with("; and 40 more"));
    }
}
