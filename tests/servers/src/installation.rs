//! The system of a server's programs: this machine, or another system whose files are in a folder.
//!
//! The second lets one machine run another generation of servers: a *root* is a folder with a whole
//! distribution, programs and libraries, and programs run in it by chroot. Such a server differs
//! from others in nothing but its root. Its folder is inside the root, and the kernel shows the
//! working directory of its processes with its path from outside, so they are found, frozen and
//! killed like all others.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::ServersError;
use super::programs::{User, in_path, search_path};

/// Names the root from which private servers are started.
const VARIABLE: &str = "TEST_SERVERS_ROOT";

/// Where servers' folders are created, seen from inside of the root.
const FOLDERS: &str = "srv";

/// The system of a server's programs, and the user that they run as.
#[derive(Debug, Clone, Default)]
pub(super) struct Installation {
    /// The other system; `None` is this machine itself.
    pub(super) root: Option<Root>,
    /// An unprivileged user of that system; `None` is this process's own.
    pub(super) user: Option<User>,
}

/// A folder that holds another system.
#[derive(Debug, Clone)]
pub(super) struct Root {
    path: PathBuf,
    unshare: PathBuf,
}

impl Installation {
    /// This machine, as `user`.
    pub(super) fn here(user: Option<User>) -> Self {
        Self { root: None, user }
    }

    /// A command that runs `program`, with its path as the server sees it, in the folder `run`,
    /// with nothing but a search path in its environment.
    pub(super) fn command(&self, program: &Path, run: &Path) -> Command {
        let Some(root) = &self.root else {
            let mut command = Command::new(program);
            command.env_clear().env("PATH", search_path()).current_dir(run);
            if let Some(user) = self.user {
                command.uid(user.uid).gid(user.gid);
            }
            return command;
        };
        // It changes root, folder and user and becomes the program: no process in between, and no
        // moment in which the working directory is not `run`. Only the program sees its mounts,
        // which do not outlive it, so deleting the root deletes files of the root only.
        let mut command = Command::new(&root.unshare);
        command.args(["--mount", "--mount-proc"]);
        command.arg(argument("--root=", &root.path)).arg(argument("--wd=", &root.seen(run)));
        if let Some(user) = self.user {
            command.arg(format!("--setgid={}", user.gid)).arg(format!("--setuid={}", user.uid));
        }
        command.arg("--").arg(program);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").current_dir(run);
        command
    }

    /// A path of this machine as the server sees it.
    pub(super) fn seen(&self, path: &Path) -> PathBuf {
        self.root.as_ref().map_or_else(|| path.to_owned(), |root| root.seen(path))
    }
}

impl Root {
    /// The root that the environment names, if it does.
    ///
    /// # Errors
    ///
    /// [`ServersError::UnusableRoot`]: a named root is never replaced by something else.
    pub(super) fn named() -> Result<Option<Self>, ServersError> {
        let Some(folder) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) else {
            return Ok(None);
        };
        let folder = PathBuf::from(folder);
        let refused = |reason: &str| ServersError::UnusableRoot {
            variable: VARIABLE,
            folder: folder.clone(),
            reason: reason.to_owned(),
        };
        let path = folder.canonicalize().map_err(|error| refused(&error.to_string()))?;
        if !path.join("etc/passwd").is_file() {
            return Err(refused("it holds no system (there is no etc/passwd)"));
        }
        if !rustix::process::geteuid().is_root() {
            return Err(refused("running programs in it needs root"));
        }
        let unshare = in_path("unshare").ok_or_else(|| {
            refused("running programs in it needs the program unshare (util-linux 2.35 or later)")
        })?;
        Ok(Some(Self { path, unshare }))
    }

    /// The error that this root lacks `program`.
    pub(super) fn lacks(&self, program: &'static str) -> ServersError {
        ServersError::UnusableRoot {
            variable: VARIABLE,
            folder: self.path.clone(),
            reason: format!("{program} is not installed in it"),
        }
    }

    /// A path inside of the root, from outside.
    pub(super) fn path(&self, inside: &str) -> PathBuf {
        self.path.join(inside)
    }

    /// A path of this machine, from inside the root. A path outside the root stays unchanged.
    pub(super) fn seen(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.path).map_or_else(|_| path.to_owned(), |p| Path::new("/").join(p))
    }

    /// Where servers' folders are created, from outside; created if it does not exist.
    pub(super) fn folders(&self) -> PathBuf {
        let folders = self.path(FOLDERS);
        // A failure here prevents the servers' folders too, and is reported there.
        fs::create_dir_all(&folders).ok();
        folders
    }
}

fn argument(name: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(name);
    argument.push(path);
    argument
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_seen_without_the_root_and_others_stay() {
        let root = Root { path: "/next/trixie".into(), unshare: PathBuf::new() };
        let place = Installation { root: Some(root), user: None };
        assert_eq!(place.seen(Path::new("/next/trixie/srv/a/run")), Path::new("/srv/a/run"));
        assert_eq!(place.seen(Path::new("/next/trixie2/a")), Path::new("/next/trixie2/a"));
        assert_eq!(Installation::here(None).seen(Path::new("/srv/a")), Path::new("/srv/a"));
    }
}
