//! Secrets: references in configurations, values only while they are used.
//!
//! A worker's catalogue and a channel's settings never hold a secret itself. They say where it is, `{ env = "NAME" }` or
//! `{ file = "path" }`, and the value is read when an attempt starts or a notification is sent. So the next one sees a
//! changed file, no secret expires while something waits, and none is stored.
//!
//! A value is never printed: [`Secret`] shows itself as `Secret(…)`, and errors name the reference alone.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, openat};
use tokio::sync::Semaphore;
use tokio::time::timeout;

pub use sexton_model::secret_ref::SecretRef;

/// Largest secret, in bytes.
pub const SECRET_MAX_BYTES: usize = 64 * 1024;

/// Time limit for reading a file: it may be on a file server that does not answer.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// A value in a configuration: a plain text or a reference to a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// The text itself.
    Plain(String),
    /// A secret, read when it is needed.
    Secret(SecretRef),
}

/// The value of a secret: not empty, UTF-8, without NUL.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Returns the value. Pass it only to the system that needs it, and never to code that logs or stores it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The error of a secret that cannot be read now. Says where it should be, and nothing of its content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the secret {reference} {why}")]
pub struct SecretMissing {
    /// Where it should be.
    pub reference: SecretRef,
    why: String,
}

/// Reads secrets: from the environment as it was at the process's start, and from files as they are now.
#[derive(Clone)]
pub struct SecretSource(Arc<Sources>);

struct Sources {
    environment: HashMap<OsString, OsString>,
    /// A semaphore for each file, so that one thread at a time reads it; at most one entry for each reference
    /// that was read.
    turns: Mutex<HashMap<PathBuf, Arc<Semaphore>>>,
}

impl SecretSource {
    /// Creates a source with these variables, normally [`std::env::vars_os`].
    pub fn new(environment: impl Iterator<Item = (OsString, OsString)>) -> Self {
        let turns = Mutex::default();
        Self(Arc::new(Sources { environment: environment.collect(), turns }))
    }

    /// Reads the secret, without one line end at the end of a file.
    ///
    /// # Errors
    ///
    /// [`SecretMissing`]; a later try may succeed.
    pub async fn read(&self, reference: &SecretRef) -> Result<Secret, SecretMissing> {
        let missing = |why: String| SecretMissing { reference: reference.clone(), why };
        let bytes = match reference {
            SecretRef::Env(name) => {
                let value = self.0.environment.get(&OsString::from(name));
                let value = value.ok_or_else(|| missing("is not set".to_owned()))?;
                value.as_encoded_bytes().to_vec()
            }
            SecretRef::File(path) => self.read_file(path).await.map_err(missing)?,
        };
        checked(bytes).map(Secret).map_err(|why| missing(why.to_owned()))
    }

    /// Reads a file on a separate thread, one at a time for each file: a disk that does not answer blocks one
    /// thread only, however many attempts need the file.
    async fn read_file(&self, path: &Path) -> Result<Vec<u8>, String> {
        let turn = Arc::clone(
            self.0
                .turns
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .entry(path.to_owned())
                .or_insert_with(|| Arc::new(Semaphore::new(1))),
        );
        let path = path.to_owned();
        let reading = async {
            let turn = turn.acquire_owned().await;
            let reading = tokio::task::spawn_blocking(move || {
                let read = read_now(&path);
                drop(turn);
                read
            });
            reading.await.unwrap_or_else(|_| Err("could not be read".to_owned()))
        };
        timeout(READ_LIMIT, reading)
            .await
            .unwrap_or_else(|_| Err(format!("could not be read within {} s", READ_LIMIT.as_secs())))
    }

    /// Returns the text of `value`, and adds a secret to `masks`, which the output recorder applies.
    ///
    /// # Errors
    ///
    /// [`SecretMissing`], as [`read`](Self::read).
    pub async fn text(
        &self,
        value: &Value,
        masks: &mut Vec<Secret>,
    ) -> Result<String, SecretMissing> {
        match value {
            Value::Plain(text) => Ok(text.clone()),
            Value::Secret(reference) => {
                let secret = self.read(reference).await?;
                let text = secret.0.clone();
                masks.push(secret);
                Ok(text)
            }
        }
    }
}

fn checked(bytes: Vec<u8>) -> Result<String, &'static str> {
    if bytes.len() > SECRET_MAX_BYTES {
        return Err("is longer than 64 KiB");
    }
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8")?;
    match text {
        text if text.is_empty() => Err("is empty"),
        text if text.contains('\0') => Err("holds a NUL"),
        text => Ok(text),
    }
}

fn read_now(path: &Path) -> Result<Vec<u8>, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    // Non-blocking: an open of a pipe without a writer would wait for ever.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(CWD, path, flags, Mode::empty());
    let file = std::fs::File::from(opened.map_err(|error| unreadable(error.into()))?);
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err("cannot be read: it is no file".to_owned());
    }
    let mut bytes = Vec::new();
    // Reading two bytes more than the largest secret and its line end shows whether the file is longer.
    file.take(SECRET_MAX_BYTES as u64 + 3).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
