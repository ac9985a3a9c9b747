//! Reads values that may be secrets: a text, or a reference to a secret.

use std::path::Path;

use sexton_model::secret_ref::is_variable;
use toml::Spanned;
use toml::de::DeValue;

use super::fields::{Fields, Notes};
use sexton_outbound::secret::{SecretRef, Value};

/// Longest path of a file, in bytes.
const PATH_MAX_BYTES: usize = 4_000;

/// Reads the value of the key `name`; a relative path is resolved from `folder`. Whether the secret can be read
/// is checked when an attempt starts.
pub(super) fn read(
    value: &Spanned<DeValue<'_>>,
    name: &str,
    folder: &Path,
    notes: &mut Notes<'_>,
) -> Option<Value> {
    if let Some(text) = value.get_ref().as_str() {
        return Some(Value::Plain(text.to_owned()));
    }
    match reference(value, folder) {
        Ok(reference) => Some(Value::Secret(reference)),
        Err(problem) => {
            notes.problem(Some(value.span()), Some(name), problem);
            None
        }
    }
}

fn reference(value: &Spanned<DeValue<'_>>, folder: &Path) -> Result<SecretRef, String> {
    let shape = "must be a string, { env = \"NAME\" } or { file = \"path\" }";
    let table = value.get_ref().as_table().ok_or(shape)?;
    let fields = Fields::new(table, "");
    let entries: Vec<_> = fields.entries().take(2).collect();
    let [(key, inner)] = entries[..] else { return Err(shape.to_owned()) };
    let text = inner.get_ref().as_str().ok_or(shape)?;
    match key.get_ref().as_ref() {
        "env" if is_variable(text) => Ok(SecretRef::Env(text.to_owned())),
        // The message does not repeat the text: it may be the secret itself.
        "env" => Err("`env` holds no name of a variable; the secret itself is not to stand here, \
                      only the name of the variable that holds it"
            .to_owned()),
        "file" if text.is_empty() || text.len() > PATH_MAX_BYTES || text.contains('\0') => {
            Err("`file` holds no path of a file".to_owned())
        }
        "file" => std::path::absolute(folder.join(text))
            .map(SecretRef::File)
            .map_err(|error| format!("the path in `file` cannot be determined: {error}")),
        _ => Err(shape.to_owned()),
    }
}
