//! Channels: where notifications go, and how.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::secret_ref::SecretRef;
use crate::text_enum::text_enum;

/// The protocol of a channel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelKind {
    /// An HTTP request by Standard Webhooks.
    Webhook,
    /// A mail over SMTP.
    Email,
    /// An incoming webhook of Slack, or of a program that takes the same.
    Slack,
    /// The Events API of PagerDuty, version 2.
    Pagerduty,
    /// The API of Alertmanager, version 2.
    Alertmanager,
}

text_enum!(ChannelKind {
    Webhook => "webhook", Email => "email", Slack => "slack", Pagerduty => "pagerduty",
    Alertmanager => "alertmanager",
});

impl ChannelKind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Webhook, Self::Email, Self::Slack, Self::Pagerduty, Self::Alertmanager];

    /// Returns whether many messages are joined to one digest. An alert of the others is a state that each incident has for
    /// itself.
    pub const fn has_digests(self) -> bool {
        matches!(self, Self::Webhook | Self::Email | Self::Slack)
    }
}

/// A channel of the alerts file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    /// Unique, and valid by [`is_channel_name`].
    pub name: String,
    /// Where it leads.
    pub settings: ChannelSettings,
}

/// The settings of a channel, with references to its secrets.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "config")]
pub enum ChannelSettings {
    /// An HTTP request.
    Webhook(Webhook),
    /// A mail.
    Email(Email),
    /// A message in a chat.
    Slack(Slack),
    /// An event for PagerDuty.
    Pagerduty(Pagerduty),
    /// An alert for Alertmanager.
    Alertmanager(Alertmanager),
}

/// A webhook.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Webhook {
    /// Where requests go.
    pub url: String,
    /// The key of their signatures; `None`: they are not signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretRef>,
    /// Whether the host may have an address that is not public.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allow_private: bool,
}

/// A mail.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Email {
    /// The mail server's URL.
    pub smtp: String,
    /// The sender.
    pub from: String,
    /// The recipients.
    pub to: Vec<String>,
    /// The user at the mail server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The user's password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<SecretRef>,
}

/// A chat.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Slack {
    /// The incoming webhook's URL, which is all that a sender needs, and therefore a secret.
    pub url: SecretRef,
    /// Whether the host may have an address that is not public.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allow_private: bool,
}

/// A service of PagerDuty.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Pagerduty {
    /// The key of the service's integration.
    pub routing_key: SecretRef,
    /// Where events go; `None`: [`PAGERDUTY_URL`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Whether the host may have an address that is not public.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allow_private: bool,
}

/// An Alertmanager.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Alertmanager {
    /// Its base URL, without `/api/v2`.
    pub url: String,
    /// The whole value of the `Authorization` header; `None`: none is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization: Option<SecretRef>,
    /// Whether the host may have an address that is not public.
    #[serde(default, skip_serializing_if = "is_false")]
    pub allow_private: bool,
}

/// Where PagerDuty takes events.
pub const PAGERDUTY_URL: &str = "https://events.pagerduty.com/v2/enqueue";

// The signature is serde's.
#[expect(clippy::trivially_copy_pass_by_ref)]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl ChannelSettings {
    /// Returns the protocol.
    pub const fn kind(&self) -> ChannelKind {
        match self {
            Self::Webhook(_) => ChannelKind::Webhook,
            Self::Email(_) => ChannelKind::Email,
            Self::Slack(_) => ChannelKind::Slack,
            Self::Pagerduty(_) => ChannelKind::Pagerduty,
            Self::Alertmanager(_) => ChannelKind::Alertmanager,
        }
    }

    /// Returns the settings without the kind, as the file has them.
    pub fn config(&self) -> Value {
        let value = match self {
            Self::Webhook(settings) => serde_json::to_value(settings),
            Self::Email(settings) => serde_json::to_value(settings),
            Self::Slack(settings) => serde_json::to_value(settings),
            Self::Pagerduty(settings) => serde_json::to_value(settings),
            Self::Alertmanager(settings) => serde_json::to_value(settings),
        };
        // Texts, lists and booleans always have a document; a path that is not UTF-8 is refused by the file's parser.
        value.unwrap_or_default()
    }

    /// The inverse of [`Self::config`].
    ///
    /// # Errors
    ///
    /// What is wrong with the document.
    pub fn read(kind: ChannelKind, config: Value) -> Result<Self, serde_json::Error> {
        Ok(match kind {
            ChannelKind::Webhook => Self::Webhook(serde_json::from_value(config)?),
            ChannelKind::Email => Self::Email(serde_json::from_value(config)?),
            ChannelKind::Slack => Self::Slack(serde_json::from_value(config)?),
            ChannelKind::Pagerduty => Self::Pagerduty(serde_json::from_value(config)?),
            ChannelKind::Alertmanager => Self::Alertmanager(serde_json::from_value(config)?),
        })
    }

    /// Returns the references to its secrets.
    pub fn secrets(&self) -> Vec<&SecretRef> {
        match self {
            Self::Webhook(webhook) => webhook.secret.iter().collect(),
            Self::Email(email) => email.password.iter().collect(),
            Self::Slack(slack) => vec![&slack.url],
            Self::Pagerduty(pagerduty) => vec![&pagerduty.routing_key],
            Self::Alertmanager(alertmanager) => alertmanager.authorization.iter().collect(),
        }
    }
}

/// Returns whether a channel can have this name: a letter, and up to 62 letters, digits and hyphens, all lower case.
pub fn is_channel_name(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}
