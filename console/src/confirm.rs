//! Asking before what is hard to take back.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};

use crate::failure::Failure;

/// The longest answer that is read, in bytes.
const MAX_ANSWER_BYTES: u64 = 64;

/// Asks on the terminal whether to go on with `what`; `yes` answers beforehand. Without a terminal
/// it does not wait for anybody.
///
/// # Errors
///
/// [`Failure::Unconfirmed`] unless the answer is yes.
pub fn confirm(what: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let (stdin, mut stderr) = (std::io::stdin(), std::io::stderr());
    if !stdin.is_terminal() || !stderr.is_terminal() {
        let message = format!("{what}: add --yes to confirm; nothing was done");
        return Err(Failure::Unconfirmed(message));
    }
    write!(stderr, "{what}. Go on? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.lock().take(MAX_ANSWER_BYTES).read_line(&mut answer)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::Unconfirmed("not confirmed; nothing was done".to_owned())),
    }
}
