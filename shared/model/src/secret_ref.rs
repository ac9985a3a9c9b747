//! References to secrets. A value of a secret is never part of the model.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Longest name of a variable, in bytes.
const VARIABLE_MAX_BYTES: usize = 200;

/// Where a secret is. As JSON and as TOML `{ env = "NAME" }` or `{ file = "/path" }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretRef {
    /// In this variable of the process's environment.
    Env(String),
    /// In this file, an absolute path.
    File(PathBuf),
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "of the variable {name}"),
            Self::File(path) => write!(f, "in the file {}", path.display()),
        }
    }
}

/// Returns whether a variable can have this name.
pub fn is_variable(name: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    (1..=VARIABLE_MAX_BYTES).contains(&name.len())
        && name.starts_with(begins)
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
