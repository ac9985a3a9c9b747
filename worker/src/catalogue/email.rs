//! `email = { smtp = "…", … }`: a mail.

use std::path::Path;
use std::time::Duration;

use sexton_model::target_url::smtp_server;
use sexton_outbound::mail::Mailbox;

use super::fields::{Fields, Notes};
use super::value;
use crate::executor::email::{EmailTask, check_template};
use sexton_outbound::secret::{SecretRef, Value};

/// Longest text about a mail in the catalogue, in bytes.
pub const EMAIL_TEXT_MAX_BYTES: usize = 64 * 1024;

const TIMEOUT_MIN: Duration = Duration::from_millis(100);
/// The default timeout of a mail.
pub const EMAIL_TIMEOUT_DEFAULT: Duration = Duration::from_mins(1);

const KEYS: [&str; 8] = ["smtp", "from", "to", "subject", "body", "user", "password", "timeout"];

/// Reads a mail; notes every problem. `None` if something is missing.
pub(super) fn read(fields: Fields<'_>, folder: &Path, notes: &mut Notes<'_>) -> Option<EmailTask> {
    let section = fields.table("email", "email.", notes)?;
    section.check_keys(&KEYS, notes);
    for key in ["smtp", "from", "to", "subject", "body"] {
        if !section.has(key) {
            fields.report("email", format!("needs `{key}`"), notes);
        }
    }
    let server = section.text("smtp", 500, notes).and_then(|text| match smtp_server(text) {
        Ok(server) => Some(server),
        Err(message) => {
            section.report("smtp", message, notes);
            None
        }
    });
    let from = section.text("from", 500, notes).and_then(|text| {
        let from: Option<Mailbox> = text.parse().ok().filter(|_| text.is_ascii());
        if from.is_none() {
            section.report(
                "from",
                "must be a mail address such as \"Sexton <sexton@example.org>\"",
                notes,
            );
        }
        from
    });
    let mut template = |key| {
        let text = section.text(key, EMAIL_TEXT_MAX_BYTES, notes)?;
        match check_template(text) {
            Ok(()) => Some(text.to_owned()),
            Err(message) => {
                section.report(key, message, notes);
                None
            }
        }
    };
    let (to, subject, body) = (template("to"), template("subject"), template("body"));
    let credentials = credentials(section, folder, notes);
    let timeout = section.span("timeout", TIMEOUT_MIN..=super::TIMEOUT_MAX, notes);
    Some(EmailTask {
        server: server?,
        from: from?,
        to: to?,
        subject: subject?,
        body: body?,
        credentials,
        timeout: timeout.unwrap_or(EMAIL_TIMEOUT_DEFAULT),
    })
}

fn credentials(
    section: Fields<'_>,
    folder: &Path,
    notes: &mut Notes<'_>,
) -> Option<(String, SecretRef)> {
    let user = section.text("user", 500, notes);
    let password = section.get("password").and_then(|found| {
        match value::read(found, &section.name("password"), folder, notes) {
            Some(Value::Secret(reference)) => Some(reference),
            Some(Value::Plain(_)) => {
                let message = "must be a secret, { env = \"NAME\" } or { file = \"path\" }";
                section.report("password", message, notes);
                None
            }
            None => None,
        }
    });
    for (key, other) in [("user", "password"), ("password", "user")] {
        if section.has(key) && !section.has(other) {
            section.report(key, format!("is of no use without `{other}`"), notes);
        }
    }
    Some((user?.to_owned(), password?))
}
