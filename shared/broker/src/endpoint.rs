//! The broker's address and credentials.
//!
//! The password never leaves this type: neither `Debug` nor `Display` nor an error contains it.

use std::fmt;
use std::str::FromStr;

use lapin::uri::{AMQPScheme, AMQPUri};

/// Seconds between heartbeats unless the URL sets another number. A dead host (no reset on the wire) is noticed after
/// about two of them, and its unacknowledged messages are delivered to others.
const HEARTBEAT_S: u16 = 15;

/// The frame size that this crate negotiates unless the URL names one. The client library keeps 64 frames of
/// buffer per connection: 8 MiB with the broker's own default of 128 KiB, 1 MiB with this. RabbitMQ
/// 4.1 refuses less than 8 KiB.
const FRAME_MAX_BYTES: u32 = 16 * 1024;

/// A checked AMQP URL: `amqp://user:password@host:port/vhost`, or `amqps://…`.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    uri: AMQPUri,
}

/// A text that is not an AMQP URL. The text itself is not repeated: it may contain a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "AMQP_URL is not valid ({reason}): write amqp://user:password@host:5672/vhost, with %2f for \
     the vhost `/` and special characters percent-encoded"
)]
pub struct EndpointError {
    reason: &'static str,
}

impl Endpoint {
    /// Checks a URL and fills in defaults (heartbeat, frame size).
    ///
    /// # Errors
    ///
    /// [`EndpointError`], without the URL.
    pub fn parse(url: &str) -> Result<Self, EndpointError> {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        if !matches!(scheme, Some("amqp" | "amqps")) {
            return Err(EndpointError { reason: "it must start with amqp:// or amqps://" });
        }
        let mut uri: AMQPUri =
            url.parse().map_err(|_| EndpointError { reason: "it cannot be read" })?;
        uri.query.heartbeat.get_or_insert(HEARTBEAT_S);
        uri.query.frame_max.get_or_insert(FRAME_MAX_BYTES);
        Ok(Self { uri })
    }

    pub(crate) fn uri(&self) -> AMQPUri {
        self.uri.clone()
    }

    /// Returns host and port.
    pub(crate) fn address(&self) -> (&str, u16) {
        (&self.uri.authority.host, self.uri.authority.port)
    }

    /// Returns whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.uri.scheme == AMQPScheme::AMQPS
    }

    /// Returns the host, for messages.
    pub fn host(&self) -> &str {
        &self.uri.authority.host
    }

    /// Returns the user's name, for messages.
    pub fn user(&self) -> &str {
        &self.uri.authority.userinfo.username
    }

    /// Returns the virtual host, for messages.
    pub fn vhost(&self) -> &str {
        &self.uri.vhost
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = &self.uri.authority;
        write!(f, "{}://{}:{}", self.uri.scheme, authority.host, authority.port)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(url: &str) -> Result<Self, Self::Err> {
        Self::parse(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_completed_but_not_overruled() {
        let plain = Endpoint::parse("amqp://u:secret@example.org/%2f").unwrap().uri();
        assert_eq!((plain.query.heartbeat, plain.query.frame_max), (Some(15), Some(16_384)));
        let uri = Endpoint::parse("amqp://h/%2f?heartbeat=60&frame_max=131072").unwrap().uri();
        assert_eq!((uri.query.heartbeat, uri.query.frame_max), (Some(60), Some(131_072)));
    }

    #[test]
    fn the_password_is_never_shown() {
        let endpoint = Endpoint::parse("amqp://user:hunter2@example.org:5673/prod").unwrap();
        assert_eq!(endpoint.to_string(), "amqp://example.org:5673");
        assert!(!format!("{endpoint:?}").contains("hunter2"));
        for url in ["http://u:hunter2@h", "amqp:u:hunter2", "hunter2", "amqp://u:hunter2@h:port/"] {
            let error = Endpoint::parse(url).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
            assert!(error.to_string().contains("AMQP_URL"));
        }
    }
}
