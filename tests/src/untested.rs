//! What could not be tested on this machine.

use std::io::Write as _;

/// Writes to standard error what could not be tested here.
pub fn report_untested(what: &str) {
    // Not by a macro, whose output is shown for failed tests only. Where nobody reads it, the test still passes.
    let _ = std::io::stderr().write_all(format!("NOT TESTED: {what}\n").as_bytes());
}
