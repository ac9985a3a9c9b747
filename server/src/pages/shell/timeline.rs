//! The events of an execution, as sentences for a page.

use chrono::{DateTime, Utc};
use sexton_operations::ledger::timeline::Event;
use sexton_operations::text;

/// Longest detail of an event, in characters: errors are longer, and have their own place.
const MAX_DETAIL_CHARS: usize = 500;
/// Longest sentence, in characters: an error that it quotes is shown whole elsewhere.
const MAX_SENTENCE_CHARS: usize = 250;

/// An event in words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::pages) struct TimelineEntry {
    pub(in crate::pages) at: DateTime<Utc>,
    /// `good`, `bad`, `person` or `plain`: how it is marked.
    pub(in crate::pages) tone: &'static str,
    pub(in crate::pages) sentence: String,
    /// An error, a reason; empty if nothing is to be added.
    pub(in crate::pages) detail: String,
}

/// Puts events into words, in their order.
pub(in crate::pages) fn entries(events: &[Event]) -> Vec<TimelineEntry> {
    events.iter().map(entry).collect()
}

fn entry(event: &Event) -> TimelineEntry {
    let by = text::line(event.by.as_deref().unwrap_or("somebody"), 200);
    let attempt = event.attempt.map_or_else(|| "an attempt".to_owned(), |n| format!("attempt {n}"));
    let detail = text::line(event.detail.as_deref().unwrap_or_default(), MAX_DETAIL_CHARS);
    let made = |tone, sentence: String, detail: String| TimelineEntry {
        at: event.at,
        tone,
        sentence,
        detail,
    };
    match event.event.as_str() {
        "claimed" => made("plain", format!("Claimed by {by}"), detail),
        "published" => made("plain", format!("Message for {attempt} published"), detail),
        "opened" => made("plain", format!("Worker {by} began {attempt}"), detail),
        "ended" => {
            let (outcome, rest) = detail.split_once(", ").unwrap_or((&detail, ""));
            let tone = if outcome == "succeeded" { "good" } else { "bad" };
            made(tone, format!("{} ended: {outcome}", capital(&attempt)), rest.to_owned())
        }
        "ended_late" => made(
            "bad",
            format!("{} reported after it had been given up", capital(&attempt)),
            detail,
        ),
        "finished" => {
            let (state, rest) = detail.split_once(": ").unwrap_or((&detail, ""));
            let tone = if state == "succeeded" { "good" } else { "bad" };
            let sentence = match state {
                "failed" => "Parked as failed: it waits for a decision".to_owned(),
                other => format!("Ended as {other}"),
            };
            made(tone, sentence, rest.to_owned())
        }
        "next_attempt" => made("plain", format!("{} is due", capital(&attempt)), detail),
        action => made("person", format!("{by}: {}", text::line(action, 60)), detail),
    }
}

/// Makes a sentence of the ledger's words, cut where it quotes a long error.
pub(in crate::pages) fn sentence(why: &str) -> String {
    let why = text::line(why, MAX_SENTENCE_CHARS);
    // One that was cut ends with a mark of its own.
    let end = if why.ends_with('…') { "" } else { "." };
    format!("{}{end}", capital(&why))
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    let first = rest.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(event: &str, detail: &str) -> TimelineEntry {
        entry(&Event {
            at: DateTime::UNIX_EPOCH,
            event: event.to_owned(),
            attempt: Some(2),
            by: Some("worker-1".to_owned()),
            detail: Some(detail.to_owned()),
        })
    }

    #[test]
    fn an_end_is_split_into_its_outcome_and_its_error() {
        let ended = event("ended", "failed, exit_75: no answer, no reply");
        assert_eq!(ended.sentence, "Attempt 2 ended: failed");
        assert_eq!((ended.tone, ended.detail.as_str()), ("bad", "exit_75: no answer, no reply"));
        let ended = event("ended", "succeeded");
        assert_eq!((ended.tone, ended.detail.as_str()), ("good", ""));
        let skipped = event("finished", "skipped: overlap");
        assert_eq!(skipped.sentence, "Ended as skipped");
        assert_eq!(skipped.detail, "overlap");
    }

    #[test]
    fn a_sentence_begins_with_a_capital_and_has_one_end() {
        assert_eq!(sentence("it ran"), "It ran.");
        assert_eq!(sentence(""), ".");
        assert!(sentence(&"x".repeat(1_000)).ends_with("x…"));
    }

    #[test]
    fn what_a_person_did_names_the_person_and_escapes_the_reason() {
        let requeue = event("requeue", "\u{1b}[31mbank is back");
        assert_eq!(requeue.sentence, "worker-1: requeue");
        assert_eq!(requeue.detail, "\\u{1b}[31mbank is back");
    }
}
