//! The body of a request that brings a file.

use serde::Deserialize;
use utoipa::ToSchema;

/// A file, to be applied or imported: all of it or, on any problem, nothing.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRequest {
    /// The file, as the command line reads it.
    pub text: String,
    /// Its name, for problems; at most 255 bytes.
    #[serde(default, deserialize_with = "super::file_name")]
    pub file: Option<String>,
    /// Only say what would change.
    #[serde(default)]
    pub dry_run: bool,
    /// Reason, recorded in the audit.
    #[serde(default, deserialize_with = "super::reason")]
    pub reason: Option<String>,
}

impl FileRequest {
    /// Its name, or another one if it has none.
    pub(super) fn name_or<'a>(&'a self, default: &'a str) -> &'a str {
        self.file.as_deref().unwrap_or(default)
    }
}
