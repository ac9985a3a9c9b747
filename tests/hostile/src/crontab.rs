//! A crontab of a user or of the system.

use chrono::DateTime;
use sexton_console::import::crontab::{Options, import};
use sexton_model::zone::Zone;

use crate::imported;

pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    for system in [false, true] {
        let options = Options { system, zone: Zone::UTC, service: None };
        let read = || import(&text, &options, DateTime::UNIX_EPOCH);
        imported::check(&text, read);
    }
}
