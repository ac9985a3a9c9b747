//! How far a command that does one thing after the other has come.
//!
//! On standard error, and only where that is a terminal; a single thing has no progress. What is
//! drawn is removed again, so that it never mixes with answers or errors.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Redrawn at most so often in a second.
const REDRAWS_PER_SECOND: u8 = 10;

/// A bar; gone when it is dropped.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// None of `total` is done.
    pub fn new(total: usize) -> Self {
        Self::with_terminal(total, std::io::stderr().is_terminal())
    }

    /// None of a file's `total` bytes is read; 0: their number is not known.
    pub fn of_bytes(total: u64) -> Self {
        let bar = Self::with_terminal(usize::MAX, std::io::stderr().is_terminal());
        let template = "{wide_bar} {bytes} of {total_bytes}, {eta} left";
        bar.0.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.0.set_length(total);
        bar
    }

    fn with_terminal(total: usize, terminal: bool) -> Self {
        let target = if is_drawn(total, terminal) {
            ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_SECOND)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(Some(total as u64), target);
        let style = ProgressStyle::with_template("{wide_bar} {pos} of {len}, {eta} left");
        Self(bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())))
    }

    /// Writes a line to standard error, above the bar where there is one. The caller has made it safe.
    pub fn warn(&self, text: &str) {
        self.0.suspend(|| eprintln!("sexton: {text}"));
    }

    /// One more is done, or was tried.
    pub fn step(&self) {
        self.0.inc(1);
    }

    /// So many of so many are done.
    pub fn set(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

const fn is_drawn(total: usize, terminal: bool) -> bool {
    terminal && total > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_several_things_on_a_terminal_have_a_bar() {
        assert!(is_drawn(2, true));
        assert!(!is_drawn(1, true) && !is_drawn(2, false));
        assert!(ProgressStyle::with_template("{wide_bar} {pos} of {len}, {eta} left").is_ok());
    }

    #[test]
    fn every_step_counts_whether_it_is_drawn_or_not() {
        let progress = Progress::with_terminal(3, false);
        progress.step();
        progress.step();
        assert_eq!((progress.0.position(), progress.0.length()), (2, Some(3)));
        assert!(progress.0.is_hidden());
    }
}
