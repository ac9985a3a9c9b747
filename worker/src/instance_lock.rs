//! The seat: how a restarted worker knows that its predecessor is dead.
//!
//! Each worker tries to lock a file that bears its instance's name. The kernel releases the lock when
//! the last process that holds it is gone: the worker *and* the guards of the tasks it started, to
//! which it hands the lock together with the task. A guard outlives everything of its task. So whoever
//! gets the lock knows that everything of the one before has ended, and may end its attempts as lost at
//! once instead of waiting for their leases.
//!
//! A task does not have this lock, so it cannot release it. Should a guard be killed together with its
//! worker, the task is on its own; therefore whatever a worker starts inherits a shared lock of a second
//! file, beside the first, and a successor waits for that one, too. A task can release the second lock;
//! as long as its worker or its guard lives, nothing follows from it.
//!
//! A seat is named by the first file's content, device and inode and the host's boot, so that copies of a
//! file (cloned machines, container images) are different seats. A worker without a seat is no worse
//! off than the leases.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use uuid::Uuid;

/// What a worker's guards hold of its seat: the lock file, as the worker has opened it. Whatever holds it
/// keeps the lock that the worker has, or will have.
pub(crate) type InstanceLockFile = Arc<File>;

/// A seat that may be free or taken.
#[derive(Debug)]
pub(crate) struct InstanceLock {
    lock: InstanceLockFile,
    /// Inherited by whatever this process starts, which can read nothing in it and write nothing to it.
    inherited: File,
    id: Uuid,
}

impl InstanceLock {
    /// Opens (or creates) the lock files of `instance` in `folder`.
    ///
    /// # Errors
    ///
    /// The folder cannot be used; the worker then runs without a seat.
    pub(crate) fn open(folder: &Path, namespace: &str, instance: &str) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = |ending| folder.join(format!("{namespace}-{instance}.{ending}"));
        let mut file = opening().read(true).append(true).open(path("lock"))?;
        let mut content = String::new();
        // Never long, but somebody else may have put something there.
        (&mut file).take(64).read_to_string(&mut content)?;
        if content.trim().is_empty() {
            content = Uuid::new_v4().to_string();
            // Two that start at once append one after the other; from the next start on both read
            // the same. Until then neither finds a predecessor, which costs only patience.
            writeln!(file, "{content}")?;
        }
        let meta = file.metadata()?;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let name = format!("{}|{}|{}|{}", boot.trim(), meta.dev(), meta.ino(), content.trim());
        // Created by a descriptor that may write, and inherited as one that may not.
        drop(opening().append(true).open(path("tasks"))?);
        let inherited = File::open(path("tasks"))?;
        fcntl_setfd(&inherited, FdFlags::empty())?;
        let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes());
        Ok(Self { lock: Arc::new(file), inherited, id })
    }

    /// Takes the seat if nobody sits in it; kept until this process and all it started are gone, also what
    /// it started before.
    pub(crate) fn take(&self) -> io::Result<bool> {
        // The second only by whoever has the first: so nobody can come between its two locks.
        Ok(locked(&self.lock, FlockOperation::NonBlockingLockExclusive)?
            && locked(&self.inherited, FlockOperation::NonBlockingLockExclusive)?
            && locked(&self.inherited, FlockOperation::NonBlockingLockShared)?)
    }

    /// What the guards of this worker's tasks hold.
    pub(crate) fn lock(&self) -> InstanceLockFile {
        Arc::clone(&self.lock)
    }

    /// The name under which the seat is recorded.
    pub(crate) const fn id(&self) -> Uuid {
        self.id
    }
}

fn opening() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    options
}

fn locked(file: &File, how: FlockOperation) -> io::Result<bool> {
    match flock(file, how) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_one_worker_s_and_free_when_that_one_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let first = InstanceLock::open(folder.path(), "n", "a").unwrap();
        let second = InstanceLock::open(folder.path(), "n", "a").unwrap();
        assert_eq!(first.id(), second.id());
        assert!(first.take().unwrap());
        assert!(!second.take().unwrap());
        drop(first);
        assert!(second.take().unwrap());
    }

    #[test]
    fn what_was_left_behind_without_its_guard_keeps_the_seat_until_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let first = InstanceLock::open(folder.path(), "n", "a").unwrap();
        assert!(first.take().unwrap());
        let mut left = std::process::Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        drop(first);
        let second = InstanceLock::open(folder.path(), "n", "a").unwrap();
        assert!(!second.take().unwrap());
        left.kill().unwrap();
        left.wait().unwrap();
        assert!(second.take().unwrap());
    }

    #[test]
    fn a_guard_that_was_started_before_the_seat_was_taken_keeps_it_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let first = InstanceLock::open(folder.path(), "n", "a").unwrap();
        let of_its_guard = first.lock().try_clone().unwrap();
        assert!(first.take().unwrap());
        drop(first);
        let second = InstanceLock::open(folder.path(), "n", "a").unwrap();
        assert!(!second.take().unwrap());
        drop(of_its_guard);
        assert!(second.take().unwrap());
    }

    #[test]
    fn other_instances_and_copied_files_are_other_seats() {
        let folder = tempfile::tempdir().unwrap();
        let first = InstanceLock::open(folder.path(), "n", "a").unwrap();
        let other = InstanceLock::open(folder.path(), "n", "b").unwrap();
        assert_ne!(first.id(), other.id());
        std::fs::copy(folder.path().join("n-a.lock"), folder.path().join("n-c.lock")).unwrap();
        assert_ne!(first.id(), InstanceLock::open(folder.path(), "n", "c").unwrap().id());
    }
}
