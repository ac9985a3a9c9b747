//! Finds the program of a command when the catalogue is loaded.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use sexton_model::quoting::escaped;

/// The most characters of a path that a problem repeats.
const MAX_PATH_CHARS: usize = 200;

/// The folders in which programs are searched.
pub(super) struct ProgramFinder {
    folder: PathBuf,
    search_path: Option<OsString>,
}

impl ProgramFinder {
    /// Creates a finder; `folder` is the catalogue's, `search_path` is the value of `PATH`.
    pub(super) fn new(folder: &Path, search_path: Option<OsString>) -> Self {
        Self { folder: folder.to_owned(), search_path }
    }

    /// Returns the catalogue's folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the absolute path of the program `name`.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be run, for people.
    pub(super) fn find(&self, name: &str) -> Result<PathBuf, String> {
        if name.is_empty() || name.contains('\0') {
            return Err("the program's name is empty or holds a NUL".to_owned());
        }
        if !name.contains('/') {
            return self.find_in_search_path(name);
        }
        // `join` keeps an absolute path as it is.
        let path = std::path::absolute(self.folder.join(name)).map_err(|error| {
            format!("the path of `{}` cannot be determined: {error}", escaped(name))
        })?;
        match executable(&path) {
            Ok(()) => Ok(path),
            Err(why) => Err(format!("the program {} {why}", shown(&path))),
        }
    }

    fn find_in_search_path(&self, name: &str) -> Result<PathBuf, String> {
        let search_path = self.search_path.clone().unwrap_or_default();
        std::env::split_paths(&search_path)
            // With a relative entry the result would depend on the worker's working directory.
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(name))
            .find(|path| executable(path).is_ok())
            .ok_or_else(|| {
                let name = escaped(name);
                format!("no program `{name}` in PATH: install it, or give its absolute path")
            })
    }
}

/// Escapes the path; keeps the end of a long one, which says more than its beginning.
fn shown(path: &Path) -> String {
    let text = path.display().to_string();
    let cut = text.char_indices().rev().nth(MAX_PATH_CHARS - 1).map_or(0, |(at, _)| at);
    let ellipsis = if cut > 0 { "…" } else { "" };
    let quoted = format!("{:?}", &text[cut..]);
    format!("{ellipsis}{}", &quoted[1..quoted.len() - 1])
}

fn executable(path: &Path) -> Result<(), String> {
    match path.metadata() {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Err("is not a file".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err("does not exist".to_owned());
        }
        Err(error) => return Err(format!("cannot be looked at: {error}")),
    }
    access(path, Access::EXEC_OK).map_err(|_| "is not executable by this user".to_owned())
}
