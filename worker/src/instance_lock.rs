//! The instance lock: how a restarted worker knows that its predecessor is dead.
//!
//! Each worker tries to lock a file named after its instance. The kernel releases the lock when the last
//! process that holds it has ended: the worker *and* the guards of its tasks, to which it passes the lock
//! together with the task. A guard outlives everything of its task. So a worker that gets the lock knows that
//! everything of its predecessor has ended, and ends the predecessor's attempts as lost at once instead of
//! waiting for their leases.
//!
//! A task does not hold this lock, so it cannot release it. If a guard is killed together with its worker, the
//! task runs unguarded; therefore all child processes of a worker inherit a shared lock of a second file,
//! beside the first, and a successor waits for that one, too. A task can release the second lock, which has no
//! effect while its worker or its guard lives.
//!
//! The lock's id combines the first file's content, device and inode with the host's boot id, so that copies of
//! the file (cloned machines, container images) are different locks. A worker without a lock still has the
//! leases.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use uuid::Uuid;

/// The open lock file of a worker, which its guards hold as well. Any holder keeps the lock that the worker
/// has, or will have.
pub(crate) type InstanceLockFile = Arc<File>;

/// The instance lock, held or not.
#[derive(Debug)]
pub(crate) struct InstanceLock {
    lock: InstanceLockFile,
    /// Inherited by all child processes, which can neither read nor write it.
    inherited: File,
    id: Uuid,
}

impl InstanceLock {
    /// Opens (or creates) the lock files of `instance` in `folder`.
    ///
    /// # Errors
    ///
    /// The folder cannot be used; the worker then runs without an instance lock.
    pub(crate) fn open(folder: &Path, namespace: &str, instance: &str) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path = |ending| folder.join(format!("{namespace}-{instance}.{ending}"));
        let mut file = opening().read(true).append(true).open(path("lock"))?;
        let mut content = String::new();
        // A worker writes a short file, but another program may have written more.
        (&mut file).take(64).read_to_string(&mut content)?;
        if content.trim().is_empty() {
            content = Uuid::new_v4().to_string();
            // Two workers that start at once append one after the other; from the next start on both read the
            // same. Until then neither finds a predecessor, so both wait for leases.
            writeln!(file, "{content}")?;
        }
        let meta = file.metadata()?;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let name = format!("{}|{}|{}|{}", boot.trim(), meta.dev(), meta.ino(), content.trim());
        // A writable descriptor creates the file; children inherit a read-only one.
        drop(opening().append(true).open(path("tasks"))?);
        let inherited = File::open(path("tasks"))?;
        fcntl_setfd(&inherited, FdFlags::empty())?;
        let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes());
        Ok(Self { lock: Arc::new(file), inherited, id })
    }

    /// Takes the lock if no process holds it; it stays held until this process and all its children have ended,
    /// including those started before.
    pub(crate) fn take(&self) -> io::Result<bool> {
        // Only the holder of the first lock tries the second: so no other worker can get between the two.
        Ok(locked(&self.lock, FlockOperation::NonBlockingLockExclusive)?
            && locked(&self.inherited, FlockOperation::NonBlockingLockExclusive)?
            && locked(&self.inherited, FlockOperation::NonBlockingLockShared)?)
    }

    /// Returns the lock file, for the guards of this worker's tasks.
    pub(crate) fn lock(&self) -> InstanceLockFile {
        Arc::clone(&self.lock)
    }

    /// Returns the id under which the lock is recorded.
    pub(crate) const fn id(&self) -> Uuid {
        self.id
    }
}

fn opening() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600);
    options
}

fn locked(file: &File, operation: FlockOperation) -> io::Result<bool> {
    match flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    /// Waits until the lock is taken: a process that another test has just started inherits what this one has open.
    fn taken(lock: &InstanceLock) {
        let began = Instant::now();
        while !lock.take().unwrap() {
            assert!(began.elapsed() < Duration::from_secs(30), "the lock is still held");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn an_instance_lock_has_one_worker_and_is_free_after_its_death() {
        let folder = tempfile::tempdir().unwrap();
        let first = InstanceLock::open(folder.path(), "n", "a").unwrap();
        let second = InstanceLock::open(folder.path(), "n", "a").unwrap();
        assert_eq!(first.id(), second.id());
        assert!(first.take().unwrap());
        assert!(!second.take().unwrap());
        drop(first);
        taken(&second);
    }

    #[test]
    fn a_task_without_its_guard_holds_the_instance_lock_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let first = InstanceLock::open(folder.path(), "n", "a").unwrap();
        assert!(first.take().unwrap());
        let mut left = std::process::Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        drop(first);
        let second = InstanceLock::open(folder.path(), "n", "a").unwrap();
        assert!(!second.take().unwrap());
        left.kill().unwrap();
        left.wait().unwrap();
        taken(&second);
    }

    #[test]
    fn a_guard_that_started_before_the_instance_lock_holds_it_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let first = InstanceLock::open(folder.path(), "n", "a").unwrap();
        let of_its_guard = first.lock().try_clone().unwrap();
        assert!(first.take().unwrap());
        drop(first);
        let second = InstanceLock::open(folder.path(), "n", "a").unwrap();
        assert!(!second.take().unwrap());
        drop(of_its_guard);
        taken(&second);
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
