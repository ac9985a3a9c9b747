//! A message of Slack, by an incoming webhook.

use serde_json::{Value, json};
use sexton_model::notification::Message;

use super::Delivery;
use super::text::{cut, facts};

/// Longest text of a header block, in characters.
const MAX_HEADER_CHARS: usize = 150;
/// Longest text of a section, in characters.
const MAX_SECTION_CHARS: usize = 3_000;
/// Longest text of a context, in characters.
const MAX_CONTEXT_CHARS: usize = 2_000;

/// Returns the body: a text for notifications on a telephone, and blocks.
pub fn body(delivery: &Delivery) -> Value {
    let title = delivery.title();
    let mut blocks = vec![json!({
        "type": "header",
        // A header is plain text, in which nothing is markup.
        "text": {"type": "plain_text", "text": cut(&title, MAX_HEADER_CHARS), "emoji": false},
    })];
    let text = match delivery {
        Delivery::Single(message) => message.text().to_owned(),
        Delivery::Digest(digest) => digest.text(),
        Delivery::Batch(messages) => {
            messages.first().map(Message::text).unwrap_or_default().to_owned()
        }
    };
    if !text.trim().is_empty() {
        let text = escaped(text.trim(), MAX_SECTION_CHARS);
        blocks.push(json!({"type": "section", "text": {"type": "mrkdwn", "text": text}}));
    }
    if let Delivery::Single(message) = delivery {
        let facts = facts(message);
        let lines = facts.iter().map(|(name, value)| format!("{name}: {value}"));
        let lines = lines.collect::<Vec<_>>().join("\n");
        if !lines.is_empty() {
            let text = escaped(&lines, MAX_CONTEXT_CHARS);
            let element = json!({"type": "mrkdwn", "text": text});
            blocks.push(json!({"type": "context", "elements": [element]}));
        }
    }
    json!({"text": escaped(&title, MAX_SECTION_CHARS), "blocks": blocks})
}

/// Escapes what Slack reads as markup, and cuts the result, but not within an escape.
fn escaped(text: &str, max: usize) -> String {
    let mut out = String::new();
    let mut length = 0;
    for c in text.chars() {
        let escape = match c {
            '&' => "&amp;",
            '<' => "&lt;",
            '>' => "&gt;",
            _ => "",
        };
        let wide = escape.len().max(1);
        if length + wide >= max {
            out.push('…');
            break;
        }
        length += wide;
        if escape.is_empty() {
            out.push(c);
        } else {
            out.push_str(escape);
        }
    }
    out
}
