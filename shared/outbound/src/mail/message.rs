//! Composes a mail, and refuses unsafe or invalid parts.

use std::error::Error;
use std::time::SystemTime;

use chrono::{DateTime, Utc};
use lettre::Message;
use lettre::message::header::{ContentType, Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, Mailboxes, MessageBuilder};
use sexton_model::quoting;
use uuid::Uuid;

/// Most recipients of one mail.
pub const RECIPIENTS_MAX: usize = 50;

/// Longest list of recipients, in bytes.
pub const TO_MAX_BYTES: usize = 8 * 1024;

/// Longest subject, in bytes.
pub const SUBJECT_MAX_BYTES: usize = 1_000;

/// Longest body, in bytes.
pub const BODY_MAX_BYTES: usize = 1024 * 1024;

/// The texts of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailText {
    /// The recipients, separated by commas; at most [`RECIPIENTS_MAX`], and [`TO_MAX_BYTES`].
    pub to: String,
    /// One line, at most [`SUBJECT_MAX_BYTES`].
    pub subject: String,
    /// Plain text, at most [`BODY_MAX_BYTES`].
    pub body: String,
}

/// Why a mail cannot be composed. The text names the part, and is for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidMail(String);

impl InvalidMail {
    /// Creates the error of a part that is longer than `max_bytes`.
    pub fn too_long(part: &str, max_bytes: usize) -> Self {
        Self(format!("`{part}` has more than {max_bytes} bytes"))
    }

    /// Creates the error of a part that is no mail address.
    pub fn invalid_address(part: &str) -> Self {
        Self(format!("`{part}` is no mail address"))
    }
}

/// The keys of the mails of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailKeys<'a> {
    /// The mail's key: its `Message-ID` is derived from it.
    pub key: &'a str,
    /// The key of the conversation's first mail, if that is another one: mail programs show both together.
    pub first: Option<&'a str>,
}

/// Composes a mail as [`compose`] does, as an answer to the first mail of its conversation. Its header `Auto-Submitted`
/// (RFC 3834) keeps other programs from answering it.
///
/// # Errors
///
/// As [`compose`].
pub fn compose_automatic(
    from: &Mailbox,
    text: MailText,
    date: DateTime<Utc>,
    keys: MailKeys<'_>,
) -> Result<Message, InvalidMail> {
    let mut mail = begin(from, &text, date, keys.key)?.header(AutoSubmitted);
    if let Some(first) = keys.first {
        let id = message_id(first, from.email.domain());
        mail = mail.in_reply_to(id.clone()).references(id);
    }
    finish(mail, text.body)
}

/// `Auto-Submitted: auto-generated`.
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

/// Composes a mail of plain text, dated `date`. Its `Message-ID` is derived from `key`: a recipient who gets
/// the mail twice, because a reply was lost, can recognise that.
///
/// # Errors
///
/// [`InvalidMail`]: invalid recipients, a text that is too long, a line break in a header.
pub fn compose(
    from: &Mailbox,
    text: MailText,
    date: DateTime<Utc>,
    key: &str,
) -> Result<Message, InvalidMail> {
    finish(begin(from, &text, date, key)?, text.body)
}

fn begin(
    from: &Mailbox,
    text: &MailText,
    date: DateTime<Utc>,
    key: &str,
) -> Result<MessageBuilder, InvalidMail> {
    let to = header_line("to", &text.to, TO_MAX_BYTES)?;
    let subject = header_line("subject", &text.subject, SUBJECT_MAX_BYTES)?;
    if text.body.len() > BODY_MAX_BYTES {
        return Err(InvalidMail::too_long("body", BODY_MAX_BYTES));
    }
    let mut mail = Message::builder()
        .from(from.clone())
        .date(SystemTime::from(date))
        .message_id(Some(message_id(key, from.email.domain())))
        .subject(subject)
        .header(ContentType::TEXT_PLAIN);
    for mailbox in recipients(to)? {
        mail = mail.to(mailbox);
    }
    Ok(mail)
}

fn finish(mail: MessageBuilder, body: String) -> Result<Message, InvalidMail> {
    mail.body(body).map_err(|error| InvalidMail(format!("the mail cannot be written: {error}")))
}

/// Checks a text for one header line. Characters that could begin another line are refused: the texts' author
/// must not set other headers.
fn header_line<'a>(part: &str, text: &'a str, max_bytes: usize) -> Result<&'a str, InvalidMail> {
    if text.len() > max_bytes {
        return Err(InvalidMail::too_long(part, max_bytes));
    }
    let text = text.trim();
    if text.chars().any(char::is_control) {
        return Err(InvalidMail(format!(
            "`{part}` holds a line break or another control character"
        )));
    }
    Ok(text)
}

/// Returns the same id for the same key, and a valid id for every key.
fn message_id(key: &str, domain: &str) -> String {
    let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, key.as_bytes());
    format!("<{}@{domain}>", id.simple())
}

fn recipients(to: &str) -> Result<Vec<Mailbox>, InvalidMail> {
    let wrong =
        || InvalidMail(format!("`to` is no list of mail addresses: {}", quoting::quoted(to)));
    let found: Vec<Mailbox> = to.parse::<Mailboxes>().map_err(|_| wrong())?.into();
    if found.is_empty() {
        return Err(wrong());
    }
    if found.len() > RECIPIENTS_MAX {
        let message = format!("`to` has {} recipients, more than {RECIPIENTS_MAX}", found.len());
        return Err(InvalidMail(message));
    }
    Ok(found)
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
            assert!(recipients(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_text_that_is_too_long_or_begins_another_header_is_refused_by_its_part() {
        let from: Mailbox = "sexton@example.org".parse().unwrap();
        let valid = MailText {
            to: "a@example.org".to_owned(),
            subject: " due\n".to_owned(),
            body: "Hello\r\n".to_owned(),
        };
        let composed = |text| compose(&from, text, DateTime::UNIX_EPOCH, "key");
        assert!(composed(valid.clone()).is_ok());
        for (part, wrong) in [
            (
                "`to`",
                MailText { to: "a@example.org\r\nBcc: b@example.org".to_owned(), ..valid.clone() },
            ),
            (
                "`subject`",
                MailText { subject: "due\r\nBcc: b@example.org".to_owned(), ..valid.clone() },
            ),
            ("`subject`", MailText { subject: "x".repeat(SUBJECT_MAX_BYTES + 1), ..valid.clone() }),
            ("`body`", MailText { body: "x".repeat(BODY_MAX_BYTES + 1), ..valid.clone() }),
        ] {
            let message = composed(wrong).unwrap_err().to_string();
            assert!(message.starts_with(part), "{message}");
        }
    }
}
