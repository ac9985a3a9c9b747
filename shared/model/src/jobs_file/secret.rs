//! Parses a reference to a secret.

use std::path::PathBuf;

use toml::de::DeValue;

use crate::secret_ref::{SecretRef, is_variable};

/// Longest path of a file, in bytes.
const MAX_PATH_BYTES: usize = 4_000;

/// Parses `{ env = "NAME" }` or `{ file = "/path" }`. The messages do not repeat a text, which may be the secret.
pub(crate) fn secret_reference(value: &DeValue<'_>) -> Result<SecretRef, &'static str> {
    let shape = "must be { env = \"NAME\" } or { file = \"/path\" }";
    if value.as_str().is_some() {
        return Err(
            "is a secret, which must not stand in the file; put it into a variable or a file of the schedulers, and \
             write { env = \"NAME\" } or { file = \"/path\" }",
        );
    }
    let table = value.as_table().ok_or(shape)?;
    let entries: Vec<_> = table.iter().take(2).collect();
    let [(key, inner)] = entries[..] else { return Err(shape) };
    let text = inner.get_ref().as_str().ok_or(shape)?;
    match key.get_ref().as_ref() {
        "env" if is_variable(text) => Ok(SecretRef::Env(text.to_owned())),
        "env" => {
            Err("holds no name of a variable in `env`; the secret itself must not stand there")
        }
        "file" if text.len() > MAX_PATH_BYTES || text.contains('\0') || !text.starts_with('/') => {
            Err("holds no absolute path of a file in `file`")
        }
        "file" => Ok(SecretRef::File(PathBuf::from(text))),
        _ => Err(shape),
    }
}
