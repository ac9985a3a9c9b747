//! A disk that does not answer, as a network disk may.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// A file system whose server never answers: opening a file in it blocks until this value is dropped.
#[derive(Debug)]
pub struct HangingDisk {
    folder: tempfile::TempDir,
    /// The server's end of it.
    _server: File,
}

impl HangingDisk {
    /// Mounts such a disk; prints a notice and returns `None` where this process may not mount.
    pub fn mount() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = File::options().read(true).write(true).open("/dev/fuse").and_then(|server| {
            let fd = server.as_raw_fd();
            let data = format!("fd={fd},rootmode=40000,user_id=0,group_id=0\0");
            let data = std::ffi::CStr::from_bytes_with_nul(data.as_bytes()).ok();
            let flags = MountFlags::NOSUID | MountFlags::NODEV;
            mount("hanging", folder.path(), "fuse", flags, data)?;
            Ok(server)
        });
        match mounted {
            Ok(server) => Some(Self { folder, _server: server }),
            Err(error) => {
                eprintln!("nothing is tested: no disk that hangs can be mounted here: {error}");
                None
            }
        }
    }

    /// A file on it.
    pub fn file(&self) -> PathBuf {
        self.path().join("file")
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for HangingDisk {
    fn drop(&mut self) {
        // Closing the server's end, right after this, releases blocked processes.
        let _ = unmount(self.path(), UnmountFlags::DETACH);
    }
}
