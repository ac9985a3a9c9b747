//! What a command hands back: a file in a folder that is made for the attempt and removed with it.

use std::fs::DirBuilder;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{DirBuilderExt, chown};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use serde_json::Value;
use sexton_model::result::{self, MAX_RESULT_BYTES};
use uuid::Uuid;

use super::spec::TaskUser;

/// The name of the file within the folder.
const FILE_NAME: &str = "result.json";

/// The folder of one attempt. Dropped, it is removed with all that is in it.
pub(super) struct ResultFolder(PathBuf);

/// Why a result cannot be taken: class and message.
type Refused = (&'static str, String);

impl ResultFolder {
    /// Makes the folder, in the system's folder for temporary files, for `user` alone.
    pub(super) fn make(user: Option<&TaskUser>) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("sexton-{}", Uuid::new_v4().simple()));
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = Self(path);
        if let Some(user) = user {
            chown(&folder.0, Some(user.uid), Some(user.gid))?;
        }
        Ok(folder)
    }

    /// Where the task may write its result.
    pub(super) fn file(&self) -> PathBuf {
        self.0.join(FILE_NAME)
    }

    /// Reads what the task has written; `None` if it has written nothing.
    ///
    /// # Errors
    ///
    /// What is wrong with it. Another attempt of the same task would write the same.
    pub(super) async fn read(&self) -> Result<Option<Value>, Refused> {
        let file = self.file();
        let reading = tokio::task::spawn_blocking(move || read_now(&file));
        reading.await.unwrap_or_else(|_| Err(invalid("could not be read")))
    }

    /// Removes the folder and waits until it is gone.
    pub(super) async fn remove(mut self) {
        let path = std::mem::take(&mut self.0);
        // A panic in there would be said by the runtime.
        let _ = tokio::task::spawn_blocking(move || remove_now(&path)).await;
    }
}

impl Drop for ResultFolder {
    fn drop(&mut self) {
        if self.0.as_os_str().is_empty() {
            return;
        }
        let path = std::mem::take(&mut self.0);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || remove_now(&path))),
            Err(_) => remove_now(&path),
        }
    }
}

fn remove_now(path: &Path) {
    match std::fs::remove_dir_all(path) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => tracing::warn!("a task's folder is left, {}: {error}", path.display()),
    }
}

fn invalid(what: &str) -> Refused {
    ("result_invalid", format!("the result {what}"))
}

fn read_now(path: &Path) -> Result<Option<Value>, Refused> {
    let unreadable = |error: io::Error| invalid(&format!("cannot be read: {error}"));
    // The task chose what is there: no link is followed, and no pipe is waited for.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => std::fs::File::from(file),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(unreadable(error.into())),
    };
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(invalid("is no file"));
    }
    let mut bytes = Vec::new();
    let read = file.take(MAX_RESULT_BYTES as u64 + 1).read_to_end(&mut bytes);
    match read.map_err(unreadable)? {
        0 => return Ok(None),
        count if count > MAX_RESULT_BYTES => {
            let said = format!("the result is longer than {MAX_RESULT_BYTES} bytes");
            return Err(("result_too_large", said));
        }
        _ => {}
    }
    let value =
        serde_json::from_slice(&bytes).map_err(|error| invalid(&format!("is no JSON: {error}")))?;
    result::check(&value).map_err(|error| invalid(&error.to_string()))?;
    Ok(Some(value))
}
