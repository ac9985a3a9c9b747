//! What `make up` leaves behind for `make down` and for people: a folder under the target folder.
//!
//! ```text
//! target/sexton-up/
//!   lock         held by the holder as long as it lives; the kernel releases it; never deleted, so
//!                that nobody holds the lock of a file that others do not see
//!   state.json   whom to ask: URLs, process ids; appears when all programs are ready
//!   holder.log   what the holder logs, above all why it could not start
//! ```

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// A platform that was left running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) holder_pid: u32,
    pub(super) database_url: String,
    pub(super) amqp_url: String,
    pub(super) namespace: String,
    /// What PostgreSQL and RabbitMQ these are, in words.
    pub(super) servers: String,
    /// The address of the console.
    pub(super) console: String,
    /// Names, process ids, logs.
    pub(super) programs: Vec<(String, u32, PathBuf)>,
}

/// The folder.
#[derive(Debug, Clone)]
pub(super) struct StateFolder(PathBuf);

impl StateFolder {
    /// The one at `path`; `None`: in the target folder this program was built into, which cargo marks
    /// with a tag.
    pub(super) fn find(path: Option<PathBuf>) -> Result<Self> {
        if let Some(path) = path {
            return Ok(Self(std::path::absolute(path)?));
        }
        let program = std::env::current_exe().context("failed to find this program's own file")?;
        let tagged = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
        // Without the tag if something else made the folder before cargo: <target>/<profile>/<program>.
        let target = tagged.or_else(|| program.ancestors().nth(2));
        let target = target.context("this program is not in a target folder of cargo's")?;
        Ok(Self(target.join("sexton-up")))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the folder and takes its lock; `None`: a holder has it.
    pub(super) fn lock(&self) -> Result<Option<File>> {
        fs::create_dir_all(&self.0).with_context(|| format!("create {}", self.0.display()))?;
        let path = self.0.join("lock");
        let file = File::create(&path).with_context(|| format!("create {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).context("lock the state folder"),
        }
    }

    /// The holder's log.
    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.0.join("holder.log")).unwrap_or_default().trim().to_owned()
    }

    /// Writes the state, whole or not at all. It holds passwords: for its owner alone.
    pub(super) fn write(&self, state: &State) -> Result<()> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let draft = self.0.join("state.new");
        let file =
            File::options().create(true).write(true).truncate(true).mode(0o600).open(&draft)?;
        serde_json::to_writer_pretty(file, state)?;
        fs::rename(draft, self.0.join("state.json")).context("write state.json")
    }

    /// The state, if the platform is up.
    pub(super) fn read(&self) -> Option<State> {
        serde_json::from_slice(&fs::read(self.0.join("state.json")).ok()?).ok()
    }

    /// Deletes what a holder has left, and creates its log anew.
    pub(super) fn begin(&self) -> Result<File> {
        self.clear()?;
        File::create(self.0.join("holder.log")).context("create the holder's log")
    }

    /// Deletes what a holder has left.
    pub(super) fn clear(&self) -> Result<()> {
        for name in ["state.json", "state.new", "holder.log"] {
            let path = self.0.join(name);
            if let Err(error) = fs::remove_file(&path)
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(error).with_context(|| format!("delete {}", path.display()));
            }
        }
        Ok(())
    }
}
