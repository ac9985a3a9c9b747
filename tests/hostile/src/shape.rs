//! What JSON must look like to be kept.

use serde_json::Value;
use sexton_model::job::MAX_PARAMS_DEPTH;

/// Panics unless jsonb can hold the value, and every reader of the platform can read it again with a
/// few levels around it.
pub(crate) fn storable(value: &Value) {
    assert!(depth(value) <= MAX_PARAMS_DEPTH, "nested {} levels deep", depth(value));
    assert!(!holds_nul(value), "holds a NUL, which jsonb cannot keep");
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(holds_nul),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| name.contains('\0') || holds_nul(value))
        }
        _ => false,
    }
}
