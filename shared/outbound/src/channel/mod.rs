//! Notifications in the form of each kind of channel, and their sending.
//!
//! Each submodule makes the body of a request, or a mail, of values alone. [`send`](mod@send) reads the channel's secrets, sends
//! the body and says whether it was accepted.

pub mod alertmanager;
pub mod email;
pub mod pagerduty;
pub mod send;
pub mod slack;
mod text;
pub mod webhook;

use sexton_model::notification::{Digest, Message};
use uuid::Uuid;

/// What is sent to a channel at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// One message.
    Single(Box<Message>),
    /// Many messages as one, to a channel whose kind has digests.
    Digest(Digest),
    /// The messages of different incidents, each for itself, to an Alertmanager.
    Batch(Vec<Message>),
}

impl Delivery {
    /// Returns the id by which a receiver recognises a repetition.
    pub fn id(&self) -> Uuid {
        match self {
            Self::Single(message) => message.id,
            Self::Digest(digest) => digest.id,
            Self::Batch(messages) => messages.first().map_or(Uuid::nil(), |message| message.id),
        }
    }

    fn title(&self) -> String {
        match self {
            Self::Single(message) => message.title(),
            Self::Digest(digest) => digest.title(),
            Self::Batch(messages) => messages.first().map(Message::title).unwrap_or_default(),
        }
    }

    fn messages(&self) -> &[Message] {
        match self {
            Self::Single(message) => std::slice::from_ref(message),
            Self::Digest(_) => &[],
            Self::Batch(messages) => messages,
        }
    }
}

#[cfg(test)]
mod tests;
