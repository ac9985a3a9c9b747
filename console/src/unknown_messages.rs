//! Messages of the failed queue that no row knows: which one is meant, how its bytes are shown, and
//! how it is written to files.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sexton_model::failures::mask_secrets;
use sexton_store::unknown_messages::{self, Overflow, UnknownMessage};
use sexton_store::{Store, StoreError};

use crate::failure::Failure;

/// The shortest beginning of an id that is looked up.
const MIN_ID_DIGITS: usize = 4;
/// All of one.
const ID_DIGITS: usize = 64;
/// Bytes of a line of the dump.
const DUMP_LINE_BYTES: usize = 16;

/// Finds the one message whose id begins with `text`.
///
/// # Errors
///
/// [`Failure::Usage`] if that cannot be an id, or stands for several; [`Failure::NotFound`].
pub async fn find(store: &Store, text: &str) -> Result<UnknownMessage, Failure> {
    let digits = text.len() <= ID_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !digits || text.len() < MIN_ID_DIGITS {
        let shown = crate::show::line(text, 80);
        return Err(Failure::Usage(format!(
            "{shown:?} is no id of a raw message: write at least {MIN_ID_DIGITS} of its 64 hexadecimal \
             digits, as `sexton failed raw list` shows them"
        )));
    }
    let mut found = unknown_messages::find(store, &text.to_ascii_lowercase()).await?;
    match found.len() {
        0 => Err(Failure::NotFound(format!(
            "there is no raw message {text}; `sexton failed raw list --all` shows all that are known"
        ))),
        1 => Ok(found.remove(0)),
        _ => Err(Failure::Usage(format!("{text} stands for several messages; write more digits"))),
    }
}

/// What is kept of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Content {
    /// The body, perhaps cut.
    pub body: Vec<u8>,
    /// The properties that Sexton keeps.
    pub properties: Value,
}

/// Reads what is kept of a message.
///
/// # Errors
///
/// [`Failure::NotFound`] when retention was faster.
pub async fn content(store: &Store, id: &str) -> Result<Content, Failure> {
    let stored: Option<(Vec<u8>, String)> = unknown_messages::content(store, id).await?;
    let (body, properties) = stored
        .ok_or_else(|| Failure::NotFound(format!("there is no raw message {id} any more")))?;
    let properties = serde_json::from_str(&properties).map_err(|_| {
        Failure::from(StoreError::Inconsistent {
            place: "unknown_messages.properties",
            value: crate::show::line(&properties, 80),
        })
    })?;
    Ok(Content { body, properties })
}

/// Where a message lies in its queue, in a word.
pub const fn state(message: &UnknownMessage) -> &'static str {
    match (message.gone_at.is_some(), message.discard_at.is_some(), message.restore_at.is_some()) {
        (_, _, true) => "restoring",
        (false, true, _) => "discarding",
        (true, true, _) => "discarded",
        (false, false, _) => "parked",
        (true, false, _) => "taken",
    }
}

/// The body without what looks like a secret, by the rule for params; `None`: it is no JSON, or holds
/// nothing of that kind, and can be shown as it is.
pub fn without_secrets(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    let mut decoded = value.clone();
    // Other programs may write their params as a text of JSON.
    if let Some(params) = decoded.get_mut("params_scheduler")
        && let Some(Ok(object @ Value::Object(_))) = params.as_str().map(serde_json::from_str)
        && mask_secrets(&object) != object
    {
        *params = object;
    }
    let shown = mask_secrets(&decoded);
    (shown != value).then(|| shown.to_string())
}

/// What is said of messages that there was no room for.
pub fn describe_overflow(overflow: &Overflow) -> String {
    let at_least = if overflow.at_least { "at least " } else { "" };
    format!(
        "{at_least}{} more messages of the failed queue ({} bytes) are nobody's, and there is no room to write \
         them down; they stay in the queue. Take out what is not wanted with an AMQP tool; what was written \
         down makes room when it has been gone for as long as retention keeps it",
        overflow.messages, overflow.bytes
    )
}

/// Hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        // Writing to a String cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// The first `max_bytes` bytes as offsets, hexadecimal digits and printable ASCII.
pub fn hex_dump(bytes: &[u8], max_bytes: usize) -> String {
    let mut text = String::new();
    for (number, line) in bytes[..bytes.len().min(max_bytes)].chunks(DUMP_LINE_BYTES).enumerate() {
        let mut digits = String::with_capacity(DUMP_LINE_BYTES * 3 + 1);
        for (at, byte) in line.iter().enumerate() {
            let gap = if at == DUMP_LINE_BYTES / 2 { "  " } else { " " };
            // Writing to a String cannot fail.
            let _ = write!(digits, "{gap}{byte:02x}");
        }
        let plain: String = line
            .iter()
            .map(|byte| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' })
            .collect();
        let offset = number * DUMP_LINE_BYTES;
        let width = DUMP_LINE_BYTES * 3 + 1;
        let _ = writeln!(text, "{offset:08x} {digits:<width$}  |{plain}|");
    }
    if bytes.len() > max_bytes {
        let _ = writeln!(text, "… and {} bytes more", bytes.len() - max_bytes);
    }
    text
}

/// Writes the body, byte for byte, to `path`, and what else is known to `<path>.json`. Neither may
/// exist. Returns the second path.
///
/// A crash in between leaves the first file without the second; the command again says that it exists.
///
/// # Errors
///
/// [`Failure::Failed`] with the path and the reason.
pub fn export(
    message: &UnknownMessage,
    content: &Content,
    path: &Path,
) -> Result<PathBuf, Failure> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".json");
    let beside = PathBuf::from(beside);
    if beside.exists() {
        return Err(write_failure(&beside, &"it exists already"));
    }
    write_new(path, &content.body)?;
    let document = json!({
        "id": message.id,
        "kind": message.kind,
        "reason": message.reason,
        "body_bytes": message.body_bytes,
        "kept_bytes": message.kept_bytes,
        "first_seen": message.first_seen,
        "properties": content.properties,
    });
    write_new(&beside, format!("{document:#}\n").as_bytes())?;
    Ok(beside)
}

fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|error| write_failure(path, &error))?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .map_err(|error| write_failure(path, &error))
}

fn write_failure(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::Failed(format!("{} cannot be written: {why}; nothing is lost", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_shows_every_byte_and_sends_none_to_the_terminal() {
        let dump = hex_dump(b"\x1b[31m{\"type\":\xff\x00}", 64);
        assert_eq!(
            dump,
            "00000000  1b 5b 33 31 6d 7b 22 74  79 70 65 22 3a ff 00 7d  |.[31m{\"type\":..}|\n"
        );
        let cut = hex_dump(&[b'a'; 40], 17);
        let lines: Vec<_> = cut.lines().collect();
        assert_eq!(lines.len(), 3, "{cut}");
        assert!(lines[1].starts_with("00000010  61 ") && lines[1].ends_with("  |a|"), "{cut}");
        assert_eq!(lines[2], "… and 23 bytes more");
        assert_eq!(hex_dump(b"", 16), "");
    }

    #[test]
    fn a_secret_is_hidden_also_where_params_are_a_text_of_json() {
        let shown = |body: &str| without_secrets(body.as_bytes());
        assert_eq!(shown(r#"{"type":"a","params_scheduler":"{\"n\":1}"}"#), None);
        for params in [r#"{"password":"x"}"#, r#""{\"password\":\"x\"}""#] {
            let body = format!(r#"{{"type":"a","params_scheduler":{params}}}"#);
            let decoded: Value =
                serde_json::from_str(&shown(&body).unwrap_or_default()).unwrap_or_default();
            assert_eq!(decoded["params_scheduler"]["password"], "***", "{params}");
        }
        assert_eq!(shown("password: x"), None, "it is no JSON");
    }
}
