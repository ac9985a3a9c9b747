//! Reads the result of a command: a file in a folder that exists for the attempt only.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sexton_model::exact_json;
use sexton_model::result::{self, MAX_RESULT_BYTES};
use tokio::time::timeout;
use uuid::Uuid;

use super::spec::TaskUser;
use crate::executor::Outcome;
use crate::guard::TaskFolder;

/// The name of the file within the folder.
const FILE_NAME: &str = "result.json";

/// Time limit for reading the result and for removing the folder: no attempt waits for a disk that does not
/// answer, nor for the removal of all that a task has piled up.
const IO_TIMEOUT: Duration = Duration::from_secs(10);

/// The folder of one attempt, and of the next one if the first leaves it empty. Dropping it removes it with its
/// contents.
#[derive(Debug)]
pub(super) struct ResultFolder {
    folder: Arc<TaskFolder>,
    /// User and group; the user must own the result.
    owner: Option<(u32, u32)>,
    removed: bool,
}

/// Why a result is refused: class and message.
type ResultRefusal = (&'static str, String);

impl ResultFolder {
    /// Creates the folder, in the system's folder for temporary files, for `user` alone.
    pub(super) fn make(user: Option<&TaskUser>) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("sexton-{}", Uuid::new_v4().simple()));
        let owner = user.map(|user| (user.uid, user.gid));
        let folder = TaskFolder::make(path, owner)?;
        Ok(Self { folder: Arc::new(folder), owner, removed: false })
    }

    /// Returns whether it can serve a task of this user: it was made for that user and is as it was made.
    pub(super) fn is_for(&self, user: Option<&TaskUser>) -> bool {
        self.owner == user.map(|user| (user.uid, user.gid)) && self.folder.is_untouched()
    }

    /// Returns the path to which the task may write its result.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join(FILE_NAME)
    }

    /// Reads the task's result if it is `wanted`, and removes the folder, within a time limit; after the limit the
    /// removal continues. `None` if the task has written none. Call it when nothing of the task runs any more.
    ///
    /// # Errors
    ///
    /// The outcome that the attempt has instead.
    pub(super) async fn close(mut self, wanted: bool) -> Result<Option<Value>, Outcome> {
        self.removed = true;
        let (folder, owner) = (Arc::clone(&self.folder), self.owner.map(|(user, _)| user));
        let closing = tokio::task::spawn_blocking(move || {
            let read = if wanted { read_now(&folder, owner) } else { Ok(None) };
            remove_now(&folder);
            read
        });
        let Ok(Ok(read)) = timeout(IO_TIMEOUT, closing).await else {
            if !wanted {
                return Ok(None);
            }
            let message = format!("the result could not be read within {} s", IO_TIMEOUT.as_secs());
            return Err(Outcome::Failed { class: "result_unreadable".to_owned(), message });
        };
        // Another attempt of the same task would write the same result.
        read.map_err(|(class, message)| Outcome::Permanent { class: class.to_owned(), message })
    }
}

impl Drop for ResultFolder {
    fn drop(&mut self) {
        if self.removed {
            return;
        }
        let folder = Arc::clone(&self.folder);
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || remove_now(&folder))),
            Err(_) => remove_now(&folder),
        }
    }
}

fn remove_now(folder: &TaskFolder) {
    if let Err(error) = folder.remove() {
        tracing::warn!("a task's folder is left, {}: {error}", folder.path().display());
    }
}

fn invalid(what: &str) -> ResultRefusal {
    ("result_invalid", format!("the result {what}"))
}

fn read_now(folder: &TaskFolder, owner: Option<u32>) -> Result<Option<Value>, ResultRefusal> {
    let unreadable = |error: io::Error| invalid(&format!("cannot be read: {error}"));
    let Some(file) = folder.file(FILE_NAME).map_err(unreadable)? else { return Ok(None) };
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(invalid("is no file"));
    }
    // A task with other rights than the worker could link to a file that it cannot read itself.
    if owner.is_some_and(|owner| owner != metadata.uid()) {
        return Err(invalid("is a file of another user"));
    }
    let mut bytes = Vec::new();
    let read = file.take(MAX_RESULT_BYTES as u64 + 1).read_to_end(&mut bytes);
    match read.map_err(unreadable)? {
        0 => return Ok(None),
        count if count > MAX_RESULT_BYTES => {
            let message = format!("the result is longer than {MAX_RESULT_BYTES} bytes");
            return Err(("result_too_large", message));
        }
        _ => {}
    }
    exact_json::check(&bytes).map_err(|error| invalid(&format!("is not exact: {error}")))?;
    let value =
        serde_json::from_slice(&bytes).map_err(|error| invalid(&format!("is no JSON: {error}")))?;
    result::check(&value).map_err(|error| invalid(&error.to_string()))?;
    Ok(Some(value))
}

#[cfg(test)]
mod tests;
