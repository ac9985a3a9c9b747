//! A server's clock that a test can set while the server is at work.
//!
//! The server's processes read the time through libfaketime, which looks into a file each time how far it is off.
//! Monotonic time, by which timeouts are measured, is the machine's own: a clock that is set is not a time that
//! passes.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::error::ServersError;
use super::faketime::faketime_library;
use super::folder::Folder;

/// Beside the server's run folder.
const FILE: &str = "clock";
/// The next content of that file, until it takes its place.
const NEXT: &str = "clock.next";

/// How far a server's clock is off, as its processes read it.
#[derive(Debug)]
pub(super) struct Clock {
    file: PathBuf,
    next: PathBuf,
    environment: Vec<(&'static str, OsString)>,
}

impl Clock {
    /// One that shows the right time, for a server in `folder`.
    pub(super) async fn create(folder: &Folder) -> Result<Self, ServersError> {
        let library = faketime_library().await?;
        // Beside the server: its processes may see another system's files, and of those this folder's.
        let copy = folder.file("libfaketime.so.1");
        fs::copy(&library, &copy).map_err(ServersError::file("copy", &library))?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))
            .map_err(ServersError::file("open up", &copy))?;
        let (file, next) = (folder.file(FILE), folder.file(NEXT));
        let environment = vec![
            ("LD_PRELOAD", folder.seen(&copy).into()),
            ("FAKETIME_TIMESTAMP_FILE", folder.seen(&file).into()),
            ("FAKETIME_NO_CACHE", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
            // Of both names, one for each release that is about.
            ("DONT_FAKE_MONOTONIC", "1".into()),
            ("NO_FAKE_STAT", "1".into()),
        ];
        let clock = Self { file, next, environment };
        clock.set(0)?;
        Ok(clock)
    }

    /// What its processes are started with.
    pub(super) fn environment(&self) -> Vec<(&'static str, OsString)> {
        self.environment.clone()
    }

    /// From now on it is so many seconds ahead, or behind.
    pub(super) fn set(&self, seconds: i64) -> Result<(), ServersError> {
        // A reader of the file finds the old content or the new one, never an empty file.
        fs::write(&self.next, format!("{seconds:+}\n"))
            .map_err(ServersError::file("write", &self.next))?;
        fs::set_permissions(&self.next, fs::Permissions::from_mode(0o644))
            .map_err(ServersError::file("open up", &self.next))?;
        fs::rename(&self.next, &self.file).map_err(ServersError::file("rename", &self.next))
    }

    pub(super) fn none_in_a_container() -> ServersError {
        refused("a container's clock cannot be set: install PostgreSQL's programs")
    }

    pub(super) fn not_its_own() -> ServersError {
        refused("the server was started without a clock of its own")
    }
}

fn refused(reason: &str) -> ServersError {
    ServersError::Program { action: "set a server's clock".to_owned(), reason: reason.to_owned() }
}
