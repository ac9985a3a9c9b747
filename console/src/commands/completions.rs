//! `sexton completions`: scripts with which shells complete the command line.

use clap::{Args, ValueEnum};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use serde_json::json;

use crate::failure::Failure;
use crate::session::Session;

/// The variable with the shell's name in which the scripts ask for candidates.
pub const VARIABLE: &str = "SEXTON_COMPLETE";
/// The program's name, as people type it and as the scripts start it.
const PROGRAM: &str = "sexton";

/// Which script to print.
#[derive(Clone, Copy, Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Shell {
    /// Load it with: source <(sexton completions bash)
    Bash,
    /// Load it after compinit with: source <(sexton completions zsh)
    Zsh,
    /// Load it with: sexton completions fish | source
    Fish,
}

/// Prints the script.
///
/// # Errors
///
/// [`Failure`].
pub fn run(arguments: Completions, session: &Session) -> Result<(), Failure> {
    let (name, completer): (_, &dyn EnvCompleter) = match arguments.shell {
        Shell::Bash => ("bash", &Bash),
        Shell::Zsh => ("zsh", &Zsh),
        Shell::Fish => ("fish", &Fish),
    };
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    let script = String::from_utf8_lossy(&script);
    if session.out.is_json() {
        return session.out.document(&json!({"shell": name, "script": script}));
    }
    session.out.print(script.trim_end())
}
