//! A manifest of Kubernetes.

use chrono::DateTime;
use sexton_console::import::kubernetes::import;

use crate::imported;

pub(crate) fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    imported::check(&text, || import(&text, None, DateTime::UNIX_EPOCH));
}
