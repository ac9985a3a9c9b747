//! Reads a password: without an echo on a terminal, or from standard input.

use std::io::{IsTerminal as _, Read, Stdin, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use sexton_model::access::MAX_PASSWORD_BYTES;
use sexton_operations::passwords::Password;

use crate::failure::Failure;

const INTERRUPT: u8 = 3;
const END_OF_INPUT: u8 = 4;
const BACKSPACE: u8 = 8;
const KILL_LINE: u8 = 21;
const DELETE: u8 = 127;

/// Reads a password for the account `name`: on a terminal typed twice, otherwise the only line of standard input.
///
/// # Errors
///
/// [`Failure::Usage`]: it cannot be read, or the two differ; [`Failure::Unconfirmed`]: the person broke it off.
pub fn read(name: &str) -> Result<Password, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return from_pipe(stdin.lock());
    }
    let first = prompt(&stdin, &format!("Password of {name}: "))?;
    let again = prompt(&stdin, "The same again: ")?;
    if first != again {
        return Err(Failure::Usage("the two passwords differ; nothing was done".to_owned()));
    }
    Ok(Password::new(first))
}

fn from_pipe(input: impl Read) -> Result<Password, Failure> {
    let mut text = String::new();
    // One byte more than is allowed shows that there is more.
    let limit = MAX_PASSWORD_BYTES as u64 + 3;
    input.take(limit).read_to_string(&mut text).map_err(|error| {
        Failure::Usage(format!("standard input cannot be read as a password: {error}"))
    })?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() {
        let hint = "standard input has no password; write it there, or let --generate make one";
        return Err(Failure::Usage(hint.to_owned()));
    }
    Ok(Password::new(line.to_owned()))
}

fn prompt(stdin: &Stdin, question: &str) -> Result<String, Failure> {
    let mut stderr = std::io::stderr();
    write!(stderr, "{question}")?;
    stderr.flush()?;
    let silent = Silent::begin(stdin)?;
    let typed = read_line(stdin.lock());
    drop(silent);
    // The line end that the person typed was not shown either.
    writeln!(stderr)?;
    typed
}

/// Reads what is typed until the end of the line. The terminal neither edits the line nor ends the process meanwhile.
fn read_line(mut input: impl Read) -> Result<String, Failure> {
    let mut typed = Vec::new();
    let mut byte = [0];
    loop {
        if input.read(&mut byte)? == 0 {
            break;
        }
        match byte[0] {
            b'\n' | b'\r' | END_OF_INPUT => break,
            INTERRUPT => {
                return Err(Failure::Unconfirmed("broken off; nothing was done".to_owned()));
            }
            BACKSPACE | DELETE => {
                // A character of several bytes ends with those that begin none.
                while typed.pop().is_some_and(|last| last & 0xC0 == 0x80) {}
            }
            KILL_LINE => typed.clear(),
            other if typed.len() <= MAX_PASSWORD_BYTES => typed.push(other),
            _ => {}
        }
    }
    String::from_utf8(typed).map_err(|_| Failure::Usage("the password is not UTF-8".to_owned()))
}

/// A terminal that shows nothing of what is typed, until this is dropped.
struct Silent<'a> {
    stdin: &'a Stdin,
    before: Termios,
}

impl<'a> Silent<'a> {
    fn begin(stdin: &'a Stdin) -> Result<Self, Failure> {
        let set = || {
            let before = tcgetattr(stdin)?;
            let mut silent = before.clone();
            // Without signals, too: a process that ends here would leave the terminal silent.
            silent.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
            tcsetattr(stdin, OptionalActions::Flush, &silent)?;
            Ok::<_, rustix::io::Errno>(before)
        };
        let before = set().map_err(|error| {
            Failure::Usage(format!("the terminal cannot hide what is typed: {error}"))
        })?;
        Ok(Self { stdin, before })
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing any more.
        let _ = tcsetattr(self.stdin, OptionalActions::Now, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_typed_with_corrections() {
        let line = |bytes: &[u8]| read_line(bytes).unwrap();
        assert_eq!(line(b"correct\nrest"), "correct");
        assert_eq!(line("höx\u{7f}\u{7f}\u{7f}mm\r".as_bytes()), "mm");
        assert_eq!(line("ü\u{8}a".as_bytes()), "a");
        assert_eq!(line(b"wrong\x15right\x04"), "right");
        assert_eq!(line(&[b'a'; 5_000]).len(), MAX_PASSWORD_BYTES + 1);
        assert!(matches!(read_line(&b"secr\x03"[..]), Err(Failure::Unconfirmed(_))));
        assert!(matches!(read_line(&[0xFF, b'\n'][..]), Err(Failure::Usage(_))));
    }

    #[test]
    fn a_pipe_has_one_line() {
        let piped = |text: &str| from_pipe(text.as_bytes()).map(|it| it.expose().to_owned());
        for text in ["correct horse", "correct horse\n", "correct horse\r\n"] {
            assert_eq!(piped(text).unwrap(), "correct horse");
        }
        assert_eq!(piped("two\nlines\n").unwrap(), "two\nlines", "refused later, as a whole");
        assert!(matches!(piped(""), Err(Failure::Usage(_))));
        assert!(piped(&"a".repeat(5_000)).unwrap().len() > MAX_PASSWORD_BYTES);
    }
}
