//! The folder of one attempt, accessed through a descriptor.
//!
//! The task knows the path and may put something else there: every read and removal goes through the
//! descriptor, which was opened before the task could do anything.

use std::ffi::CStr;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, Stat, fstat, lstat, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::path::Arg;
use uuid::Uuid;
use uuid::fmt::Simple;

/// The most entries of a task's folder that are removed; the others stay.
const MAX_ENTRIES: u32 = 200_000;

/// The most nested folders that are open at once.
const MAX_DEPTH: u32 = 32;

/// A folder that a task may write to.
#[derive(Debug)]
pub(crate) struct TaskFolder {
    path: PathBuf,
    folder: OwnedFd,
    /// What the folder was when it was opened.
    opened: Stat,
}

impl TaskFolder {
    /// Creates the folder at `path`, for this process's user or for `owner` (user and group) alone.
    pub(crate) fn make(path: PathBuf, owner: Option<(u32, u32)>) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(&path)?;
        let mut folder = Self::open(path)?;
        if let Some((uid, gid)) = owner {
            fchown(&folder.folder, Some(uid), Some(gid))?;
            folder.opened = fstat(&folder.folder)?;
        }
        Ok(folder)
    }

    /// Opens the folder at `path`. Call it before its task runs.
    pub(super) fn open(path: PathBuf) -> io::Result<Self> {
        let folder = open_folder(CWD, &path)?;
        let opened = fstat(&folder)?;
        Ok(Self { path, folder, opened })
    }

    /// Returns whether the folder is empty, at its path, and what it was when it was opened. Call it when nothing of
    /// its task runs any more.
    pub(crate) fn is_untouched(&self) -> bool {
        let identity =
            |stat: &Stat| (stat.st_dev, stat.st_ino, stat.st_mode, stat.st_uid, stat.st_gid);
        let is_same = |stat: Stat| identity(&stat) == identity(&self.opened);
        fstat(&self.folder).is_ok_and(is_same)
            && lstat(&self.path).is_ok_and(is_same)
            && self.is_empty()
    }

    fn is_empty(&self) -> bool {
        let Ok(folder) = Dir::read_from(&self.folder) else { return false };
        // An error is no proof that nothing follows.
        folder
            .into_iter()
            .all(|entry| entry.is_ok_and(|entry| [c".", c".."].contains(&entry.file_name())))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file `name`, for reading; `None` if it does not exist.
    ///
    /// The task chose what is there: no link is followed, and the open does not wait for a pipe's writer.
    pub(crate) fn file(&self, name: &str) -> io::Result<Option<File>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match openat(&self.folder, name, flags, Mode::empty()) {
            Ok(file) => Ok(Some(File::from(file))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the folder with its contents, up to a limit; a missing folder counts as removed.
    ///
    /// # Errors
    ///
    /// The first entry that could not be removed.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let failed = Removal::new(&self.folder).run();
        match unlinkat(CWD, &self.path, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed.unwrap_or_else(|| error.into())),
        }
    }
}

fn open_folder(at: impl AsFd, name: impl Arg) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

/// Removes the contents of a folder. What is nested deeper than [`MAX_DEPTH`] is moved up for the next round,
/// so that no depth exhausts the descriptors or the stack.
struct Removal<'f> {
    top: &'f OwnedFd,
    /// Part of the names of moved entries, which a task cannot have guessed.
    run: Simple,
    moved: u32,
    /// How many more entries may be visited.
    left: u32,
    /// Whether this round has changed anything.
    progress: bool,
    failed: Option<io::Error>,
}

impl<'f> Removal<'f> {
    fn new(top: &'f OwnedFd) -> Self {
        let run = Uuid::new_v4().simple();
        Self { top, run, moved: 0, left: MAX_ENTRIES, progress: true, failed: None }
    }

    /// Removes everything; returns the first error.
    fn run(mut self) -> Option<io::Error> {
        while self.left > 0 && std::mem::take(&mut self.progress) {
            if let Err(error) = Dir::read_from(self.top).map(|top| self.clear(top, 0)) {
                self.failed.get_or_insert(error.into());
            }
        }
        if self.left == 0 {
            let message = format!("more than {MAX_ENTRIES} things were in it");
            self.failed = Some(io::Error::other(message));
        }
        self.failed
    }

    fn clear(&mut self, mut folder: Dir, depth: u32) {
        while let Some(Ok(entry)) = folder.read() {
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            let Some(left) = self.left.checked_sub(1) else { return };
            self.left = left;
            match folder.fd().and_then(|folder| self.one(folder, name, depth)) {
                Ok(()) => self.progress = true,
                Err(error) => {
                    self.failed.get_or_insert(error.into());
                }
            }
        }
    }

    fn one(&mut self, at: BorrowedFd<'_>, name: &CStr, depth: u32) -> rustix::io::Result<()> {
        if remove_entry(at, name)? {
            return Ok(());
        }
        if depth == MAX_DEPTH {
            self.moved += 1;
            return renameat(at, name, self.top, format!("{}-{}", self.run, self.moved));
        }
        self.clear(Dir::new(open_folder(at, name)?)?, depth + 1);
        unlinkat(at, name, AtFlags::REMOVEDIR)
    }
}

/// Removes a file or an empty folder; `false`: it is a folder with contents.
fn remove_entry(at: BorrowedFd<'_>, name: &CStr) -> rustix::io::Result<bool> {
    match unlinkat(at, name, AtFlags::empty()) {
        // The error for a folder differs between file systems.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Ok(()) | Err(Errno::NOENT) => return Ok(true),
        Err(error) => return Err(error),
    }
    match unlinkat(at, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(error) => Err(error),
    }
}
