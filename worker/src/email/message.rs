//! The mail of one attempt: templates filled in, and what must not be in a mail refused.

use std::io::{self, Write};
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use lettre::Message;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Mailboxes};
use minijinja::value::Serde;
use minijinja::{Environment, ErrorKind, UndefinedBehavior, context};
use sexton_model::quoting;
use uuid::Uuid;

use super::EmailTask;
use crate::executor::TaskRun;

/// Most recipients of one mail.
pub const RECIPIENTS_MAX: usize = 50;

/// Longest recipients' line, in bytes.
const TO_MAX_BYTES: usize = 8 * 1024;

/// Longest subject, in bytes.
pub const SUBJECT_MAX_BYTES: usize = 1_000;

/// Longest body, in bytes.
pub const BODY_MAX_BYTES: usize = 1024 * 1024;

/// The most steps of a template.
const TEMPLATE_FUEL: u64 = 1_000_000;

/// What task and params do not allow to be sent; class and message.
pub(super) type MailRefusal = (&'static str, String);

/// Checks the syntax of a template.
///
/// # Errors
///
/// What is wrong with it, for people.
pub(crate) fn check_template(text: &str) -> Result<(), String> {
    match environment().template_from_str(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("is no template: {}", describe(&error))),
    }
}

/// The mail of `task`, dated `now`.
pub(super) fn message(
    spec: &EmailTask,
    task: &TaskRun,
    now: DateTime<Utc>,
) -> Result<Message, MailRefusal> {
    let to = line("to", &spec.to, TO_MAX_BYTES, task)?;
    let subject = line("subject", &spec.subject, SUBJECT_MAX_BYTES, task)?;
    let body = rendered("body", &spec.body, BODY_MAX_BYTES, task)?;
    let mut mail = Message::builder()
        .from(spec.from.clone())
        .date(SystemTime::from(now))
        .message_id(Some(message_id(&task.idempotency_key, spec.from.email.domain())))
        .subject(subject)
        .header(ContentType::TEXT_PLAIN);
    for mailbox in recipients(&to)? {
        mail = mail.to(mailbox);
    }
    mail.body(body).map_err(|error| invalid(format!("the mail cannot be written: {error}")))
}

fn invalid(message: String) -> MailRefusal {
    ("email_invalid", message)
}

/// The same for each attempt, and a valid id whatever the key holds.
fn message_id(key: &str, domain: &str) -> String {
    let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, key.as_bytes());
    format!("<{}@{domain}>", id.simple())
}

fn recipients(to: &str) -> Result<Vec<Mailbox>, MailRefusal> {
    let wrong = || invalid(format!("`to` is no list of mail addresses: {}", quoting::quoted(to)));
    let found: Vec<Mailbox> = to.parse::<Mailboxes>().map_err(|_| wrong())?.into();
    if found.is_empty() {
        return Err(wrong());
    }
    if found.len() > RECIPIENTS_MAX {
        let said = format!("`to` has {} recipients, more than {RECIPIENTS_MAX}", found.len());
        return Err(invalid(said));
    }
    Ok(found)
}

/// A template that becomes one line of the head. What could begin another line is refused: whoever
/// sets the params has no say about the other headers.
fn line(what: &str, template: &str, max: usize, task: &TaskRun) -> Result<String, MailRefusal> {
    let text = rendered(what, template, max, task)?.trim().to_owned();
    if text.chars().any(char::is_control) {
        return Err(invalid(format!("`{what}` holds a line break or another control character")));
    }
    Ok(text)
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(TEMPLATE_FUEL));
    environment
}

fn rendered(what: &str, template: &str, max: usize, task: &TaskRun) -> Result<String, MailRefusal> {
    let environment = environment();
    let values = context! {
        params => Serde(&task.params),
        job => task.job.as_str(),
        target => task.target.as_deref(),
        execution_key => task.execution_key.as_str(),
        scheduled_for => task.scheduled_for.to_rfc3339(),
        idempotency_key => task.idempotency_key.as_str(),
    };
    let mut out = BoundedBuffer { bytes: Vec::new(), max };
    let result = environment
        .template_from_str(template)
        .and_then(|template| template.render_captured_to(values, &mut out).map(drop));
    match result {
        Ok(()) => Ok(String::from_utf8_lossy(&out.bytes).into_owned()),
        Err(error) if error.kind() == ErrorKind::WriteFailure => {
            Err(invalid(format!("`{what}` has more than {max} bytes")))
        }
        Err(error) => {
            Err(("email_template", format!("`{what}` cannot be filled in: {}", describe(&error))))
        }
    }
}

fn describe(error: &minijinja::Error) -> String {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("{detail} (line {line})"),
        None => detail,
    }
}

/// Takes in so many bytes and no more.
struct BoundedBuffer {
    bytes: Vec<u8>,
    max: usize,
}

impl Write for BoundedBuffer {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + piece.len() > self.max {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_id_is_the_same_for_the_same_key_and_valid_for_any() {
        let id = message_id("a b\r\n<c>@ü", "example.org");
        assert_eq!(id, message_id("a b\r\n<c>@ü", "example.org"));
        assert_ne!(id, message_id("a b", "example.org"));
        let local = id.strip_prefix('<').and_then(|id| id.strip_suffix("@example.org>")).unwrap();
        assert!(local.len() == 32 && local.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    }

    #[test]
    fn recipients_are_read_whole_or_not_at_all() {
        let found = recipients("a@example.org, Zoë Doe <zoe@example.org>").unwrap();
        assert_eq!(found.len(), 2);
        let many = vec!["a@example.org"; RECIPIENTS_MAX + 1].join(",");
        for wrong in
            ["", "nobody", "a@example.org b", "a@example.org, b@", "<a@b.org>c", many.as_str()]
        {
            assert_eq!(recipients(wrong).unwrap_err().0, "email_invalid", "{wrong}");
        }
    }
}
