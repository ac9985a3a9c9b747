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
//! A test process that is killed with SIGKILL runs no destructor, and a program cannot be told by the
//! kernel to die with its parent without code that Rust calls unsafe. So a shell waits at a pipe that
//! only this process holds open. At the pipe's end it kills whatever runs in `run/` and deletes the
//! folder. Processes are known by their working directory: unlike a number written down when they
//! were started, it cannot have become a stranger's.

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
        // From here on deleting it is the shell's task.
        Ok(Self { folder: folder.keep(), shell })
    }

    /// The programs' working directory.
    pub(super) fn run_folder(&self) -> PathBuf {
        self.folder.join("run")
    }

    /// For lock files.
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
        // The script gives up after ten seconds by itself.
        let _ = self.shell.wait();
    }
}
