//! The folder that holds everything of one private server, and the sweep of folders left behind.
//!
//! ```text
//! target/servers/sexton-server-postgres-3f0c…/   or in `TEST_SERVERS_FOLDER`, the temporary folder, a root's `srv`
//!   lock         held as long as the owner lives; the kernel releases it, however the owner ends
//!   server.log   what the server says
//!   run/         working directory and data of the server, and of nobody else
//! ```
//!
//! The owner's end stops the server through its [`Guard`]. Only if that was killed too does a folder
//! stay, its lock free; [`sweep`] then ends the processes that still run in it and deletes it.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use uuid::Uuid;

use super::error::ServersError;
use super::guard::Guard;
use super::installation::{Installation, Root};
use super::processes;
use super::programs::User;

/// The prefix of every folder's name. The temporary folder also holds other folders of this
/// platform, which the sweep must leave.
const NAME_PREFIX: &str = "sexton-server-";

/// Names the folder for the servers of a run. `make test` names one in memory: on a disk, creating the files of a
/// database for each test took 8 % of its processor time.
const FOLDER_VARIABLE: &str = "TEST_SERVERS_FOLDER";

/// Where `make test` puts servers, so where one may be left although the variable is not set any more.
const MEMORY_FOLDER: &str = "/dev/shm";

/// How many bytes from the end of a log are shown.
const LOG_TAIL_BYTES: usize = 3_000;

/// One private server's folder, locked by this process.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    name: String,
    place: Installation,
    guard: Guard,
    _lock: File,
}

/// How the guard ends a server in a folder.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ending<'a> {
    /// The signal that ends it at once, without `SIG`.
    pub(super) signal: &'a str,
    /// A command that removes its container, with `{name}` for the folder's name.
    pub(super) removal: &'a [String],
}

impl Folder {
    /// Creates a folder for a server of this `kind` (lower case), which the user of `place` must be able
    /// to reach, and starts its guard.
    pub(super) fn create(
        kind: &str,
        place: Installation,
        ending: Ending<'_>,
    ) -> Result<Self, ServersError> {
        let name = format!("{NAME_PREFIX}{kind}-{}", &Uuid::new_v4().simple().to_string()[..12]);
        let is_container = !ending.removal.is_empty();
        let path = create_in_first(&bases(&place, is_container)?, &name)?;
        // Searchable, so that the server's user reaches its own folder inside; not listable.
        fs::set_permissions(&path, Permissions::from_mode(0o711))
            .map_err(ServersError::file("open up", &path))?;
        let lock = lock(&path)?;
        let removal: Vec<_> = ending.removal.iter().map(|a| a.replace("{name}", &name)).collect();
        let guard = Guard::watch(&path, ending.signal, &removal)?;
        let folder = Self { path, name, place, guard, _lock: lock };
        folder.create_run()?;
        Ok(folder)
    }

    /// The folder's name, which no other server has: good for a node or a container project.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A file or folder beside the run folder.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// That path, as the server sees it.
    pub(super) fn seen(&self, path: &Path) -> PathBuf {
        self.place.seen(path)
    }

    /// A command that runs `program` as part of the server.
    pub(super) fn command(&self, program: &Path) -> Command {
        self.place.command(program, &self.run())
    }

    /// The server's working directory, by which its processes are known.
    pub(super) fn run(&self) -> PathBuf {
        self.path.join("run")
    }

    /// Creates the empty run folder, for the server's user alone.
    pub(super) fn create_run(&self) -> Result<(), ServersError> {
        let run = self.run();
        fs::create_dir(&run).map_err(ServersError::file("create", &run))?;
        fs::set_permissions(&run, Permissions::from_mode(0o700))
            .map_err(ServersError::file("close", &run))?;
        give_to(&run, self.place.user)
    }

    /// Copies the run folder to one beside it, or that one back; the target must not be there. Owners stay.
    pub(super) fn copy(from: &Path, to: &Path) -> Result<(), ServersError> {
        let mut copy = Command::new("cp");
        let done = copy.arg("-a").arg(from).arg(to).status();
        let status = done.map_err(ServersError::file("copy", from))?;
        if status.success() {
            return Ok(());
        }
        let action = format!("copy {} to {}", from.display(), to.display());
        Err(ServersError::Program { action, reason: format!("cp ended with {status}") })
    }

    /// Deletes the run folder with everything the server knew.
    pub(super) fn delete_run(&self) -> Result<(), ServersError> {
        let run = self.run();
        fs::remove_dir_all(&run).map_err(ServersError::file("delete", &run))
    }

    /// Writes a file beside the run folder, readable by the server's user alone.
    pub(super) fn write(&self, name: &str, content: &str) -> Result<PathBuf, ServersError> {
        let path = self.file(name);
        fs::write(&path, content).map_err(ServersError::file("write", &path))?;
        fs::set_permissions(&path, Permissions::from_mode(0o600))
            .map_err(ServersError::file("close", &path))?;
        give_to(&path, self.place.user)?;
        Ok(path)
    }

    /// The log, opened for appending.
    pub(super) fn log(&self) -> Result<File, ServersError> {
        let path = self.file("server.log");
        File::options()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(ServersError::file("open", &path))
    }

    /// The end of the log, for an error message.
    pub(super) fn log_tail(&self) -> String {
        let log = fs::read(self.file("server.log")).unwrap_or_default();
        let start = log.len().saturating_sub(LOG_TAIL_BYTES);
        String::from_utf8_lossy(&log[start..]).trim().to_owned()
    }

    /// Ends whatever still runs in the folder and deletes it.
    pub(super) async fn end(self) -> Result<(), ServersError> {
        self.guard.end().await
    }
}

/// Deletes the folders whose owner and guard are both gone, after ending what still runs in them.
/// Errors are not reported: a leftover of another user is that user's to sweep.
pub(super) async fn sweep() {
    let target = target_folder().map(|target| target.join("servers"));
    let root = Root::named().ok().flatten().map(|root| root.folders());
    let others = [std::env::temp_dir(), MEMORY_FOLDER.into()];
    for base in target.into_iter().chain(root).chain(named_folder()).chain(others) {
        sweep_in(&base).await;
    }
}

async fn sweep_in(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        // By the name first: whatever else is there is not looked at, and may be a disk that hangs.
        let is_ours = entry.file_name().to_string_lossy().starts_with(NAME_PREFIX)
            && entry.metadata().is_ok_and(|m| m.is_dir() && m.uid() == own_uid());
        if !is_ours {
            continue;
        }
        let Ok(lock) = File::open(entry.path().join("lock")) else { continue };
        if lock.try_lock().is_ok() {
            processes::kill_all(&entry.path().join("run")).await.ok();
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

/// Takes the folder's lock. The file appears under its name only once locked, so that a sweep in
/// another process never finds it free while its owner lives.
fn lock(folder: &Path) -> Result<File, ServersError> {
    let (unlocked, locked) = (folder.join("lock.new"), folder.join("lock"));
    let file = File::create(&unlocked).map_err(ServersError::file("create", &unlocked))?;
    file.lock().map_err(ServersError::file("lock", &unlocked))?;
    fs::rename(&unlocked, &locked).map_err(ServersError::file("rename", &unlocked))?;
    Ok(file)
}

/// Where folders may be created: inside of the root, if the place has one; else in the named folder; else under the
/// build's target folder, if the user reaches it, and in the temporary folder. A container has its data elsewhere, and
/// its engine may not see the named folder.
fn bases(place: &Installation, is_container: bool) -> Result<Vec<PathBuf>, ServersError> {
    if let Some(root) = &place.root {
        return Ok(vec![root.folders()]);
    }
    if let Some(named) = named_folder().filter(|_| !is_container) {
        fs::create_dir_all(&named).map_err(ServersError::file("create", &named))?;
        if !is_reachable(&named, place.user) {
            let refused = std::io::ErrorKind::PermissionDenied.into();
            return Err(ServersError::file("reach, as the server's user,", &named)(refused));
        }
        return Ok(vec![named]);
    }
    let target = target_folder().map(|target| target.join("servers"));
    let target =
        target.filter(|base| fs::create_dir_all(base).is_ok() && is_reachable(base, place.user));
    Ok(target.into_iter().chain([std::env::temp_dir()]).collect())
}

/// Creates a folder in the first base that lets this process: the target folder may be another user's.
fn create_in_first(bases: &[PathBuf], name: &str) -> Result<PathBuf, ServersError> {
    let mut outcome = Err(std::io::ErrorKind::NotFound.into());
    let mut path = PathBuf::new();
    for base in bases {
        path = base.join(name);
        outcome = fs::create_dir(&path);
        if outcome.is_ok() {
            break;
        }
    }
    outcome.map_err(ServersError::file("create", &path))?;
    Ok(path)
}

fn named_folder() -> Option<PathBuf> {
    let named = std::env::var_os(FOLDER_VARIABLE).filter(|name| !name.is_empty())?;
    // Servers have another working directory than their owner.
    std::path::absolute(named).ok()
}

/// The target folder this program was built into, which cargo marks with a tag.
fn target_folder() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let tagged = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file())?;
    tagged.canonicalize().ok()
}

/// Whether `user` may search `folder` and everything above it. Without a user: this process's own,
/// who got here.
fn is_reachable(folder: &Path, user: Option<User>) -> bool {
    let Some(user) = user else { return true };
    folder.ancestors().all(|folder| {
        folder.metadata().is_ok_and(|m| {
            let search_bit = match (m.uid() == user.uid, m.gid() == user.gid) {
                (true, _) => 0o100,
                (false, true) => 0o010,
                (false, false) => 0o001,
            };
            m.mode() & search_bit != 0
        })
    })
}

fn give_to(path: &Path, user: Option<User>) -> Result<(), ServersError> {
    let Some(User { uid, gid }) = user else { return Ok(()) };
    chown(path, Some(uid), Some(gid)).map_err(ServersError::file("give away", path))
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn leftovers_of_a_killed_owner_and_guard_are_removed() {
        // A base of its own: in a shared one, another sweep may hold the lock at this moment.
        let base = tempfile::tempdir().unwrap();
        let left = base.path().join(format!("{NAME_PREFIX}left"));
        let run = left.join("run");
        fs::create_dir_all(&run).unwrap();
        let mut server =
            std::process::Command::new("sleep").arg("600").current_dir(&run).spawn().unwrap();
        fs::write(left.join("lock"), "").unwrap();
        sweep_in(base.path()).await;
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&server.wait().unwrap()), Some(9));
        assert!(!left.exists());
    }

    #[tokio::test]
    async fn a_folder_in_use_is_not_swept_and_its_end_deletes_it() {
        let ending = Ending { signal: "TERM", removal: &[] };
        let folder = Folder::create("unit", Installation::default(), ending).unwrap();
        let path = folder.file("");
        let mut server = std::process::Command::new("sleep")
            .arg("600")
            .current_dir(folder.run())
            .spawn()
            .unwrap();
        sweep().await;
        assert_eq!(server.try_wait().unwrap(), None);
        folder.end().await.unwrap();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&server.wait().unwrap()),
            Some(15)
        );
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_below_a_closed_one_is_not_reachable() {
        let top = tempfile::tempdir().unwrap();
        let below = top.path().join("below");
        fs::create_dir(&below).unwrap();
        let stranger = User { uid: own_uid() + 1, gid: u32::MAX - 1 };
        fs::set_permissions(top.path(), Permissions::from_mode(0o711)).unwrap();
        fs::set_permissions(&below, Permissions::from_mode(0o711)).unwrap();
        assert!(is_reachable(&below, Some(stranger)));
        fs::set_permissions(top.path(), Permissions::from_mode(0o700)).unwrap();
        assert!(!is_reachable(&below, Some(stranger)));
        assert!(is_reachable(&below, None));
    }
}
