//! The seat: how a restarted worker knows that its predecessor is dead.
//!
//! Each worker tries to lock a file that bears its instance's name. The kernel releases the lock when
//! the last process that holds it is gone: the worker *and* the guards and tasks it started, which
//! inherit it. So whoever gets the lock knows that everything of the one before has ended, and may end
//! its attempts as lost at once instead of waiting for their leases.
//!
//! A seat is named by the file's content, device and inode and the host's boot, so that copies of a
//! file (cloned machines, container images) are different seats. A worker without a seat is no worse
//! off than the leases.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};
use uuid::Uuid;

/// A seat that may be free or taken.
#[derive(Debug)]
pub(crate) struct Seat {
    file: File,
    id: Uuid,
}

impl Seat {
    /// Opens (or creates) the lock file of `instance` in `folder`.
    ///
    /// # Errors
    ///
    /// The folder cannot be used; the worker then runs without a seat.
    pub(crate) fn open(folder: &Path, namespace: &str, instance: &str) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let path: PathBuf = folder.join(format!("{namespace}-{instance}.lock"));
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(path)?;
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
        Ok(Self { file, id: Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes()) })
    }

    /// Takes the seat if nobody sits in it; kept until this process and all it started are gone.
    pub(crate) fn take(&self) -> io::Result<bool> {
        match flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                // Inherited by what this process starts: see the module's text.
                fcntl_setfd(&self.file, FdFlags::empty())?;
                Ok(true)
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The name under which the seat is recorded.
    pub(crate) const fn id(&self) -> Uuid {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seat_is_one_worker_s_and_free_when_that_one_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let first = Seat::open(folder.path(), "n", "a").unwrap();
        let second = Seat::open(folder.path(), "n", "a").unwrap();
        assert_eq!(first.id(), second.id());
        assert!(first.take().unwrap());
        assert!(!second.take().unwrap());
        drop(first);
        assert!(second.take().unwrap());
    }

    #[test]
    fn other_instances_and_copied_files_are_other_seats() {
        let folder = tempfile::tempdir().unwrap();
        let first = Seat::open(folder.path(), "n", "a").unwrap();
        let other = Seat::open(folder.path(), "n", "b").unwrap();
        assert_ne!(first.id(), other.id());
        std::fs::copy(folder.path().join("n-a.lock"), folder.path().join("n-c.lock")).unwrap();
        assert_ne!(first.id(), Seat::open(folder.path(), "n", "c").unwrap().id());
    }
}
