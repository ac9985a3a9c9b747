//! The properties of a message: an allow-list in both directions.
//!
//! A republished message is built from these fields and nothing else. Copying a foreign `x-death`
//! makes the broker drop or hold the message in silence, a copied `CC` sends it elsewhere, a copied
//! `user_id` is refused, a copied `expiration` loses it.

use lapin::BasicProperties;
use lapin::types::{AMQPValue, FieldTable, ShortString};

use crate::frame_filter::{PropertiesFlaw, UNREADABLE_HEADER};
use crate::publish::PublishError;

/// Header: the number of the attempt that the ticket authorises.
pub const ATTEMPT_HEADER: &str = "sexton-attempt";
/// Header: the version of the body's layout.
pub const SCHEMA_HEADER: &str = "sexton-schema";
/// Header: the trace context, as the W3C writes it.
pub const TRACEPARENT_HEADER: &str = "traceparent";
/// Header: what the systems of that trace say, as the W3C writes it.
pub const TRACESTATE_HEADER: &str = "tracestate";
/// Header: how often a task of another program has waited in a delay queue because no worker offers its type.
pub const DELAYS_HEADER: &str = "sexton-delays";
/// Header of a parked copy: why it was parked.
pub const FAILED_REASON_HEADER: &str = "sexton-failed-reason";
/// Header of a parked copy: when, RFC 3339 UTC.
pub const FAILED_AT_HEADER: &str = "sexton-failed-at";

/// The `app_id` of everything that Sexton publishes.
pub const APP_ID: &str = "sexton";

/// Maximum length of a text in Sexton's headers, in bytes; a longer one is cut.
pub const MAX_HEADER_BYTES: usize = 1_024;

/// The longest short string of the protocol, in bytes.
const MAX_SHORT_BYTES: usize = 255;

const PERSISTENT: u8 = 2;

/// The properties of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties {
    /// The execution's id, or a foreign program's own key. 255 bytes at most.
    pub message_id: Option<String>,
    /// The task type (`type` on the wire). 255 bytes at most.
    pub kind: Option<String>,
    /// `application/json` for Sexton's own bodies. 255 bytes at most.
    pub content_type: Option<String>,
    /// When it was published, in seconds since 1970 UTC.
    pub timestamp_s: Option<u64>,
    /// How long it may wait in its queue, in milliseconds. Never read from a message.
    pub expiration_ms: Option<u64>,
    /// [`ATTEMPT_HEADER`].
    pub attempt: Option<i64>,
    /// [`SCHEMA_HEADER`].
    pub schema: Option<i64>,
    /// [`DELAYS_HEADER`].
    pub delays: Option<i64>,
    /// [`TRACEPARENT_HEADER`].
    pub traceparent: Option<String>,
    /// [`TRACESTATE_HEADER`].
    pub tracestate: Option<String>,
    /// [`FAILED_REASON_HEADER`].
    pub failed_reason: Option<String>,
    /// [`FAILED_AT_HEADER`].
    pub failed_at: Option<String>,
    /// Why all others are missing, if the client library could not have parsed them. It is written only alone, so that
    /// a copy that comes back reads like its original.
    pub flaw: Option<PropertiesFlaw>,
}

impl Properties {
    /// Reads the allowed properties of a received message. A header of an impossible type counts as absent, an
    /// integer written as text as an integer (management tools send such).
    pub fn read(from: &BasicProperties) -> Self {
        let headers = from.headers().as_ref();
        let header = |name: &str| headers.and_then(|table| table.inner().get(name));
        Self {
            message_id: short(from.message_id().as_ref()),
            kind: short(from.kind().as_ref()),
            content_type: short(from.content_type().as_ref()),
            timestamp_s: *from.timestamp(),
            expiration_ms: None,
            attempt: header(ATTEMPT_HEADER).and_then(integer),
            schema: header(SCHEMA_HEADER).and_then(integer),
            delays: header(DELAYS_HEADER).and_then(integer),
            traceparent: header(TRACEPARENT_HEADER).and_then(text),
            tracestate: header(TRACESTATE_HEADER).and_then(text),
            failed_reason: header(FAILED_REASON_HEADER).and_then(text),
            failed_at: header(FAILED_AT_HEADER).and_then(text),
            flaw: header(UNREADABLE_HEADER).and_then(text).map(|flaw| PropertiesFlaw::named(&flaw)),
        }
    }

    /// Returns the properties on the wire, persistent, with [`APP_ID`].
    ///
    /// # Errors
    ///
    /// [`PublishError::TooLarge`] if a field does not fit the protocol.
    pub fn write(&self) -> Result<BasicProperties, PublishError> {
        let mut properties = BasicProperties::default()
            .with_delivery_mode(PERSISTENT)
            .with_app_id(APP_ID.into())
            .with_headers(self.headers());
        if let Some(id) = &self.message_id {
            properties = properties.with_message_id(fit("message_id", id)?);
        }
        if let Some(kind) = &self.kind {
            properties = properties.with_type(fit("type", kind)?);
        }
        if let Some(content_type) = &self.content_type {
            properties = properties.with_content_type(fit("content_type", content_type)?);
        }
        if let Some(timestamp_s) = self.timestamp_s {
            properties = properties.with_timestamp(timestamp_s);
        }
        if let Some(expiration_ms) = self.expiration_ms {
            properties = properties.with_expiration(expiration_ms.to_string().into());
        }
        Ok(properties)
    }

    fn headers(&self) -> FieldTable {
        let mut table = FieldTable::default();
        let integers = [
            (ATTEMPT_HEADER, self.attempt),
            (SCHEMA_HEADER, self.schema),
            (DELAYS_HEADER, self.delays),
        ];
        for (name, value) in integers {
            if let Some(value) = value {
                table.insert(name.into(), AMQPValue::LongLongInt(value));
            }
        }
        let texts = [
            (TRACEPARENT_HEADER, &self.traceparent),
            (TRACESTATE_HEADER, &self.tracestate),
            (FAILED_REASON_HEADER, &self.failed_reason),
            (FAILED_AT_HEADER, &self.failed_at),
            (UNREADABLE_HEADER, &self.flaw.map(|flaw| flaw.as_str().to_owned())),
        ];
        for (name, value) in texts {
            if let Some(value) = value {
                let cut = &value[..value.floor_char_boundary(MAX_HEADER_BYTES)];
                table.insert(name.into(), AMQPValue::LongString(cut.into()));
            }
        }
        table
    }
}

/// Returns the reason with which the broker dead-lettered a message last (`delivery_limit`, `expired`, `rejected`,
/// `maxlen`), and the queue, if it did.
pub(crate) fn last_death(from: &BasicProperties) -> Option<(String, String)> {
    let headers = from.headers().as_ref()?;
    let AMQPValue::FieldArray(deaths) = headers.inner().get("x-death")? else { return None };
    // RabbitMQ lists the most recent death first.
    let AMQPValue::FieldTable(death) = deaths.as_slice().first()? else { return None };
    let of = |name: &str| death.inner().get(name).and_then(text);
    Some((of("reason")?, of("queue").unwrap_or_default()))
}

fn fit(what: &'static str, value: &str) -> Result<ShortString, PublishError> {
    ShortString::try_new(value).map_err(|_| PublishError::TooLarge {
        what,
        bytes: value.len(),
        limit: MAX_SHORT_BYTES,
    })
}

fn short(value: Option<&ShortString>) -> Option<String> {
    value.map(ToString::to_string)
}

fn text(value: &AMQPValue) -> Option<String> {
    match value {
        AMQPValue::LongString(text) => String::from_utf8(text.as_bytes().to_vec()).ok(),
        AMQPValue::ShortString(text) => Some(text.to_string()),
        _ => None,
    }
}

fn integer(value: &AMQPValue) -> Option<i64> {
    match value {
        AMQPValue::ShortShortInt(number) => Some((*number).into()),
        AMQPValue::ShortShortUInt(number) => Some((*number).into()),
        AMQPValue::ShortInt(number) => Some((*number).into()),
        AMQPValue::ShortUInt(number) => Some((*number).into()),
        AMQPValue::LongInt(number) => Some((*number).into()),
        AMQPValue::LongUInt(number) => Some((*number).into()),
        AMQPValue::LongLongInt(number) => Some(*number),
        other => text(other)?.trim().parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Properties {
        Properties {
            message_id: Some("0190-id".to_owned()),
            kind: Some("report".to_owned()),
            content_type: Some("application/json".to_owned()),
            timestamp_s: Some(1_700_000_000),
            expiration_ms: Some(1_500),
            attempt: Some(3),
            schema: Some(1),
            delays: Some(2),
            traceparent: Some("00-a-b-01".to_owned()),
            tracestate: Some("vendor=1".to_owned()),
            failed_reason: Some("not JSON".to_owned()),
            failed_at: Some("2025-01-01T00:00:00Z".to_owned()),
            flaw: None,
        }
    }

    #[test]
    fn what_is_written_is_read_again_but_for_the_expiration() {
        let written = full().write().unwrap();
        assert_eq!(*written.delivery_mode(), Some(2));
        assert_eq!(written.app_id().as_ref().map(ShortString::as_str), Some("sexton"));
        assert_eq!(written.expiration().as_ref().map(ShortString::as_str), Some("1500"));
        assert_eq!(Properties::read(&written), Properties { expiration_ms: None, ..full() });
    }

    #[test]
    fn a_flaw_is_read_again_from_a_copy() {
        for flaw in PropertiesFlaw::ALL {
            let flawed = Properties { flaw: Some(flaw), ..Properties::default() };
            assert_eq!(Properties::read(&flawed.write().unwrap()), flawed);
        }
    }

    #[test]
    fn nothing_outside_the_list_survives_a_republication() {
        let mut headers = FieldTable::default();
        for poison in ["x-death", "x-first-death-queue", "x-delivery-count", "CC", "BCC", "own"] {
            headers.insert(poison.into(), AMQPValue::LongString("poison".into()));
        }
        headers.insert(ATTEMPT_HEADER.into(), AMQPValue::LongInt(2));
        let foreign = BasicProperties::default()
            .with_headers(headers)
            .with_expiration("1".into())
            .with_user_id("guest".into())
            .with_priority(9)
            .with_reply_to("elsewhere".into());
        let again = Properties::read(&foreign).write().unwrap();
        let expected = Properties { attempt: Some(2), ..Properties::default() }.write().unwrap();
        assert_eq!(again, expected);
    }

    #[test]
    fn the_attempt_is_read_from_every_integer_a_client_may_send() {
        let values = [
            AMQPValue::ShortShortInt(7),
            AMQPValue::ShortShortUInt(7),
            AMQPValue::ShortInt(7),
            AMQPValue::ShortUInt(7),
            AMQPValue::LongInt(7),
            AMQPValue::LongUInt(7),
            AMQPValue::LongLongInt(7),
            AMQPValue::LongString("7".into()),
        ];
        assert!(values.iter().all(|value| integer(value) == Some(7)));
        for value in [AMQPValue::Void, AMQPValue::Boolean(true), AMQPValue::Double(7.0)] {
            assert_eq!(integer(&value), None);
        }
        assert_eq!(integer(&AMQPValue::LongString("seven".into())), None);
    }

    #[test]
    fn texts_that_do_not_fit_are_refused_or_cut() {
        let long = Properties { kind: Some("k".repeat(256)), ..Properties::default() };
        let refused = PublishError::TooLarge { what: "type", bytes: 256, limit: 255 };
        assert_eq!(long.write().unwrap_err(), refused);
        let reason = Properties { failed_reason: Some("ü".repeat(600)), ..Properties::default() };
        let cut = Properties::read(&reason.write().unwrap()).failed_reason.unwrap();
        assert_eq!(cut.len(), MAX_HEADER_BYTES);
    }
}
