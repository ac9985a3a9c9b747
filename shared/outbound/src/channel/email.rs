//! A mail.
//!
//! The `Message-ID` is derived from the notification's id, so a second copy has the same. The mails of one incident answer its
//! first one, so mail programs show them as one conversation.

use chrono::{DateTime, Utc};
use sexton_model::channel::Email;
use sexton_model::notification::Message;

use super::Delivery;
use super::text::{cut, plain};
use crate::mail::{self, InvalidMail, MailKeys, MailText, Mailbox, compose_automatic};

/// Longest subject, in characters.
const MAX_SUBJECT_CHARS: usize = 200;
/// Longest body, in characters.
const MAX_BODY_CHARS: usize = 20_000;

/// Composes the mail.
///
/// # Errors
///
/// [`InvalidMail`]: an address of the settings is none.
pub fn compose(
    settings: &Email,
    delivery: &Delivery,
    now: DateTime<Utc>,
) -> Result<mail::Message, InvalidMail> {
    let from: Mailbox = settings.from.parse().map_err(|_| InvalidMail::invalid_address("from"))?;
    let body = match delivery {
        Delivery::Single(message) => plain(message),
        Delivery::Digest(digest) => digest.text(),
        Delivery::Batch(messages) => messages.first().map(plain).unwrap_or_default(),
    };
    let text = MailText {
        to: settings.to.join(", "),
        subject: cut(&format!("[Sexton] {}", subject(delivery)), MAX_SUBJECT_CHARS),
        body: cut(&body, MAX_BODY_CHARS),
    };
    let first = delivery.messages().first().and_then(|message| message.thread);
    let (key, first) = (delivery.id().to_string(), first.map(|id| id.to_string()));
    compose_automatic(&from, text, now, MailKeys { key: &key, first: first.as_deref() })
}

fn subject(delivery: &Delivery) -> String {
    delivery.messages().first().map_or_else(|| delivery.title(), Message::title)
}
