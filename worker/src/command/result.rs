//! What a command hands back: a file in a folder that is made for the attempt and removed with it.

use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use sexton_model::result::{self, MAX_RESULT_BYTES};
use tokio::time::timeout;
use uuid::Uuid;

use super::spec::TaskUser;
use crate::executor::Outcome;
use crate::guard::TaskFolder;

/// The name of the file within the folder.
const FILE_NAME: &str = "result.json";

/// How long reading the result may take, and removing the folder: no attempt waits for a disk that
/// does not answer, nor for the last of what a task has heaped up.
const IO_TIMEOUT: Duration = Duration::from_secs(10);

/// The folder of one attempt. Dropped, it is removed with all that is in it.
pub(super) struct ResultFolder {
    folder: Arc<TaskFolder>,
    /// Whose the result must be.
    owner: Option<u32>,
    removed: bool,
}

/// Why a result cannot be taken: class and message.
type ResultRefusal = (&'static str, String);

impl ResultFolder {
    /// Makes the folder, in the system's folder for temporary files, for `user` alone.
    pub(super) fn make(user: Option<&TaskUser>) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("sexton-{}", Uuid::new_v4().simple()));
        let folder = TaskFolder::make(path, user.map(|user| (user.uid, user.gid)))?;
        Ok(Self { folder: Arc::new(folder), owner: user.map(|user| user.uid), removed: false })
    }

    /// Where the task may write its result.
    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join(FILE_NAME)
    }

    /// Reads what the task has written; `None` if it has written nothing. To be called when nothing of
    /// the task runs any more, and before its guard may end: who knows when the worker is run again.
    ///
    /// # Errors
    ///
    /// What the attempt ends with instead.
    pub(super) async fn read(&self) -> Result<Option<Value>, Outcome> {
        let (folder, owner) = (Arc::clone(&self.folder), self.owner);
        let reading = tokio::task::spawn_blocking(move || read_now(&folder, owner));
        let Ok(Ok(read)) = timeout(IO_TIMEOUT, reading).await else {
            let message = format!("the result could not be read within {} s", IO_TIMEOUT.as_secs());
            return Err(Outcome::Failed { class: "result_unreadable".to_owned(), message });
        };
        // Another attempt of the same task would write the same.
        read.map_err(|(class, message)| Outcome::Permanent { class: class.to_owned(), message })
    }

    /// Removes the folder and waits until it is gone, within a limit; past it, that goes on.
    pub(super) async fn remove(mut self) {
        self.removed = true;
        let folder = Arc::clone(&self.folder);
        // A panic in there would be said by the runtime.
        let _ = timeout(IO_TIMEOUT, tokio::task::spawn_blocking(move || remove_now(&folder))).await;
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
    let about = file.metadata().map_err(unreadable)?;
    if !about.is_file() {
        return Err(invalid("is no file"));
    }
    // A task that has other rights than the worker might name a file that it cannot read itself.
    if owner.is_some_and(|owner| owner != about.uid()) {
        return Err(invalid("is a file of another user"));
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

#[cfg(test)]
mod tests;
