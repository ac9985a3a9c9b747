//! A person changes a text in an editor of his.
//!
//! The text is in a file that only he can read, in the folder for temporary files. It is removed when all is
//! well; where what he has written cannot be used it stays, and the message names it.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use uuid::Uuid;

use crate::failure::Failure;

/// The longest text that is read back, in bytes.
const MAX_TEXT_BYTES: u64 = 4 * 1024 * 1024;

/// What a person has written; the file is removed when this is dropped, unless it is kept.
#[derive(Debug)]
pub struct EditedText {
    /// The text.
    pub text: String,
    file: Option<PathBuf>,
}

impl EditedText {
    /// Leaves the file where it is, and adds to `failure` where that is.
    pub fn keep_file(mut self, failure: Failure) -> Failure {
        match self.file.take() {
            Some(file) => with_path(failure, &file),
            None => failure,
        }
    }
}

impl Drop for EditedText {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // What cannot be removed is private, and the folder is emptied by the system.
            let _ = fs::remove_file(file);
        }
    }
}

/// Opens `text` in `$VISUAL` or `$EDITOR` (or `vi`), and waits until it is closed.
///
/// # Errors
///
/// [`Failure::Failed`] when there is no such editor, it ends with an error, or what it has left cannot be
/// read. What was written by then stays in the file, and the message names it.
pub fn edit(text: &str) -> Result<EditedText, Failure> {
    let path = std::env::temp_dir().join(format!("sexton-{}.json", Uuid::new_v4()));
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(
            |error| Failure::Failed(format!("{} cannot be written: {error}", path.display())),
        )?;
    let mut edited = EditedText { text: String::new(), file: Some(path.clone()) };
    file.write_all(text.as_bytes())?;
    drop(file);
    let editor = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.trim().is_empty()))
        .unwrap_or_else(|| "vi".to_owned());
    // A variable may hold arguments as well, so a shell takes it apart, as everywhere.
    let status =
        Command::new("sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(&path).status();
    let failed = match status {
        Ok(status) if status.success() => read(&path, &mut edited.text).err(),
        Ok(status) => Some(format!("the editor {editor:?} ended with {status}")),
        Err(error) => Some(format!("the editor {editor:?} cannot be started: {error}")),
    };
    match failed {
        Some(why) => Err(edited.keep_file(Failure::Failed(format!("{why}; nothing was done")))),
        None => Ok(edited),
    }
}

fn read(path: &Path, text: &mut String) -> Result<(), String> {
    // Opened anew: many editors write another file and give it this one's name.
    *text = read_limited(&|| File::open(path), "what was written")?;
    Ok(())
}

/// All of a text of at most 4 MiB, which `what` names in an error.
///
/// # Errors
///
/// Why it cannot be read, or that it is longer.
pub fn read_limited<R: Read>(
    open: &dyn Fn() -> std::io::Result<R>,
    what: &str,
) -> Result<String, String> {
    let read_failure = |error: std::io::Error| format!("{what} cannot be read: {error}");
    let mut text = String::new();
    open()
        .and_then(|from| from.take(MAX_TEXT_BYTES + 1).read_to_string(&mut text))
        .map_err(read_failure)?;
    if text.len() as u64 > MAX_TEXT_BYTES {
        return Err(format!("{what} is longer than {MAX_TEXT_BYTES} bytes"));
    }
    Ok(text)
}

fn with_path(failure: Failure, file: &Path) -> Failure {
    let place = format!("; what you wrote is in {}", file.display());
    match failure {
        Failure::NothingDone(text) => Failure::NothingDone(text + &place),
        Failure::Unconfirmed(text) => Failure::Unconfirmed(text + &place),
        Failure::Usage(text) => Failure::Usage(text + &place),
        Failure::NotFound(text) => Failure::NotFound(text + &place),
        Failure::Unreachable(text) => Failure::Unreachable(text + &place),
        Failure::Schema(text) => Failure::Schema(text + &place),
        other => Failure::Failed(other.to_string() + &place),
    }
}
