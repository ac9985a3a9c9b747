//! The schema of a handler's params, as its program declares it.

use serde_json::Value;
use sexton_model::params_schema::check;

/// A JSON Schema of the params of a handler: a text, as a file holds it, or a value.
///
/// ```
/// use sexton_worker::handler::ParamsSchema;
///
/// let text = ParamsSchema::from(r#"{"type": "object", "required": ["account"]}"#);
/// let value = ParamsSchema::from(serde_json::json!({"type": "object"}));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ParamsSchema(SchemaSource);

#[derive(Clone, Debug, PartialEq)]
enum SchemaSource {
    Text(String),
    Value(Value),
}

impl From<&str> for ParamsSchema {
    fn from(text: &str) -> Self {
        Self(SchemaSource::Text(text.to_owned()))
    }
}

impl From<String> for ParamsSchema {
    fn from(text: String) -> Self {
        Self(SchemaSource::Text(text))
    }
}

impl From<Value> for ParamsSchema {
    fn from(value: Value) -> Self {
        Self(SchemaSource::Value(value))
    }
}

impl ParamsSchema {
    /// Parses the schema.
    ///
    /// # Errors
    ///
    /// All problems of the schema, each with its place.
    pub(crate) fn read(&self) -> Result<Value, Vec<String>> {
        let schema = match &self.0 {
            SchemaSource::Text(text) => {
                serde_json::from_str(text).map_err(|error| vec![format!("is no JSON: {error}")])?
            }
            SchemaSource::Value(value) => value.clone(),
        };
        match check(&schema) {
            Ok(()) => Ok(schema),
            Err(problems) => {
                Err(problems.iter().map(|it| format!("is no JSON Schema: {it}")).collect())
            }
        }
    }
}
