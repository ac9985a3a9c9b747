//! The demo's output: one line an event, aligned, coloured on a terminal only.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

/// Widths of the columns: a time, a verb, a job's name, an execution's id.
const TIME_WIDTH: usize = 8;
const VERB_WIDTH: usize = 9;
const JOB_WIDTH: usize = 11;
const ID_WIDTH: usize = 36;

/// The most lines of a command's answer that are shown.
const MAX_QUOTE_LINES: usize = 40;

/// The kind of a line, shown as its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// The demo's own actions.
    Plain,
    /// Normal progress.
    Busy,
    /// A success.
    Good,
    /// A failure that will be retried.
    Warning,
    /// A loss or a final failure.
    Bad,
    /// An operator's action.
    Operator,
}

/// Writes to standard output, with the time since it was created.
#[derive(Debug)]
pub(super) struct Output {
    has_color: bool,
    /// The terminal's width.
    columns: Option<usize>,
    start: Instant,
}

impl Output {
    /// Colour where standard output is a terminal and `NO_COLOR` is not set.
    pub(super) fn new() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let stdout = std::io::stdout();
        let size = rustix::termios::tcgetwinsize(&stdout).ok();
        Self {
            has_color: stdout.is_terminal() && !refused,
            columns: size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0),
            start: Instant::now(),
        }
    }

    /// The time since the demo began.
    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// A line about the demo itself.
    pub(super) fn say(&self, verb: &str, tone: Tone, text: &str) {
        let time = self.time(self.elapsed());
        let indent = TIME_WIDTH + 2 + VERB_WIDTH + 2;
        let text = wrapped(&plain(text), indent, self.columns.unwrap_or(usize::MAX));
        write(&format!("{time}  {}  {text}", self.verb(verb, tone)));
    }

    /// A line about an execution, at the time at which its row says that it happened.
    pub(super) fn print_event(
        &self,
        at: Duration,
        verb: &str,
        tone: Tone,
        (job, id): (&str, Uuid),
        text: &str,
    ) {
        let (time, verb) = (self.time(at), self.verb(verb, tone));
        let id = self.painted("2", &id.to_string());
        let text = plain(text);
        // Where the terminal is too narrow for one line, the text gets a second one.
        let width =
            TIME_WIDTH + 2 + VERB_WIDTH + 2 + JOB_WIDTH + 2 + ID_WIDTH + 2 + text.chars().count();
        let gap = if self.columns.is_some_and(|columns| columns < width) {
            format!("\n{:1$}", "", TIME_WIDTH + 2)
        } else {
            "  ".to_owned()
        };
        write(&format!("{time}  {verb}  {job:<JOB_WIDTH$}  {id}{gap}{text}"));
    }

    /// A heading.
    pub(super) fn head(&self, text: &str) {
        write(&format!("\n{}", self.painted("1", text)));
    }

    /// Prints a command's answer, indented.
    pub(super) fn quote(&self, text: &str) {
        let bar = self.painted("2", "│");
        let lines: Vec<_> = text.trim_end().lines().collect();
        for line in lines.iter().take(MAX_QUOTE_LINES) {
            write(&format!("            {bar} {}", plain(line)));
        }
        if lines.len() > MAX_QUOTE_LINES {
            write(&format!("            {bar} … {} more lines", lines.len() - MAX_QUOTE_LINES));
        }
    }

    /// Whether tables may be coloured.
    pub(super) fn has_color(&self) -> bool {
        self.has_color
    }

    fn time(&self, at: Duration) -> String {
        self.painted("2", &format!("{:6.1} s", at.as_secs_f64()))
    }

    fn verb(&self, verb: &str, tone: Tone) -> String {
        let code = match tone {
            Tone::Plain => "1",
            Tone::Busy => "36",
            Tone::Good => "32",
            Tone::Warning => "33",
            Tone::Bad => "31",
            Tone::Operator => "35",
        };
        self.painted(code, &format!("{verb:<VERB_WIDTH$}"))
    }

    fn painted(&self, code: &str, text: &str) -> String {
        if self.has_color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// Breaks a text between words, so that all its lines fit into `columns` after an indent.
fn wrapped(text: &str, indent: usize, columns: usize) -> String {
    let mut out = String::new();
    let mut column = indent;
    for word in text.split(' ') {
        let width = word.chars().count();
        if column > indent && column.saturating_add(1 + width) > columns {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += width;
    }
    out
}

/// Writes lines as they are.
pub(super) fn write(text: &str) {
    // A reader that has closed the pipe wants no more; the exit status still counts.
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// The text without control characters: a task may write anything into its error.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_broken_between_words_under_its_beginning() {
        assert_eq!(wrapped("one two three", 4, 12), "one two\n    three");
        assert_eq!(wrapped("one two three", 4, usize::MAX), "one two three");
        assert_eq!(
            wrapped("a-word-longer-than-the-line b", 4, 12),
            "a-word-longer-than-the-line\n    b"
        );
        assert_eq!(wrapped("", 4, 12), "");
    }

    #[test]
    fn task_output_cannot_control_the_terminal() {
        assert_eq!(plain("out of\x1b[31m paper\n"), "out of [31m paper ");
    }
}
