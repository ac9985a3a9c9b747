//! The folder in which a platform's programs run, and the shell that outlives the harness to end them.
//!
//! ```text
//! <temporary folder>/sexton-platform-…/
//!   run/     working directory of the programs and their tasks, and of nobody else
//!   state/   lock files of the workers
//!   logs/    what each program says
//!   *.toml   jobs files and catalogues
//! ```
//!
//! A test process that is killed with SIGKILL runs no destructor, and only code that Rust calls
//! unsafe could ask the kernel to end a program with its parent. So a shell waits at a pipe that
//! only this process holds open. At the pipe's end it kills everything that runs in `run/` and
//! deletes the folder. It recognises processes by their working directory: unlike a recorded
//! process id, it cannot have become another program's.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SCRIPT: &str = include_str!("lifeline.sh");

/// A folder and the shell that guards it. Dropping it kills what runs there, deletes the folder, and
/// waits for both.
#[derive(Debug)]
pub(super) struct Lifeline {
    folder: PathBuf,
    shell: Child,
}

impl Lifeline {
    /// Creates the folder and starts the shell.
    pub(super) fn create() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("sexton-platform-").tempdir()?;
        for part in ["run", "state", "logs"] {
            std::fs::create_dir(folder.path().join(part))?;
        }
        let shell = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "sexton-platform-lifeline"])
            .arg(folder.path())
            .current_dir("/")
            .stdin(Stdio::piped())
            // Not the harness's output: a reader of that pipe would wait for the shell.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C goes to the terminal's foreground group; the shell must live to see its effect.
            .process_group(0)
            .spawn()?;
        // From here on the shell deletes the folder.
        Ok(Self { folder: folder.keep(), shell })
    }

    /// The programs' working directory.
    pub(super) fn run_folder(&self) -> PathBuf {
        self.folder.join("run")
    }

    /// The folder of the lock files.
    pub(super) fn state_folder(&self) -> PathBuf {
        self.folder.join("state")
    }

    /// The log called `name`.
    pub(super) fn log_file(&self, name: &str) -> PathBuf {
        self.folder.join("logs").join(Path::new(name).with_added_extension("log"))
    }

    /// A file beside these folders.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Lifeline {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        // The script ends by itself after ten seconds.
        let _ = self.shell.wait();
    }
}
