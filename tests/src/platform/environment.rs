//! What a program finds in its environment.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What programs need of the environment that the harness itself has.
const INHERITED_VARIABLES: [&str; 4] = ["PATH", "HOME", "TMPDIR", "USER"];

/// Variables of a program that is to be started, and nothing else.
#[derive(Debug, Clone)]
pub(super) struct Environment(Vec<(OsString, OsString)>);

impl Environment {
    /// A search path, a home, a folder for temporary files, a user.
    pub(super) fn minimal() -> Self {
        let inherited = |name: &&str| Some((OsString::from(name), std::env::var_os(name)?));
        Self(INHERITED_VARIABLES.iter().filter_map(inherited).collect())
    }

    /// With one more.
    pub(super) fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.set(name, value);
        self
    }

    /// Adds or replaces one.
    pub(super) fn set(&mut self, name: &str, value: impl AsRef<OsStr>) {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.into(), value.as_ref().to_owned()));
    }

    /// Adds or replaces several.
    pub(super) fn extend(&mut self, variables: &[(&str, &str)]) {
        for (name, value) in variables {
            self.set(name, value);
        }
    }

    /// With what a scheduler or worker called `name` needs: its own health port, a lock folder.
    pub(super) fn of_service(self, name: &str, state_folder: &Path) -> Self {
        self.with("SEXTON_INSTANCE", name)
            .with("SEXTON_STATE_DIR", state_folder)
            .with("HEALTH_ADDR", "127.0.0.1:0")
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.0.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}
