//! Parses the broker's error about a queue or exchange that exists with other arguments.
//!
//! The texts, from RabbitMQ 3.10 to 4.x: `PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'q' in
//! vhost '/': received the value '100' of type 'long' but current is none`. The protocol cuts them at 255 bytes.

/// The parts of the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) argument: String,
    pub(crate) ours: String,
    pub(crate) theirs: String,
}

/// Finds the parts; `None` if the text is another error.
pub(crate) fn parse(text: &str) -> Option<Mismatch> {
    let (_, remaining) = text.split_once("inequivalent arg '")?;
    let (argument, remaining) = remaining.split_once('\'')?;
    let values = remaining.split_once(": received ").map_or("", |(_, values)| values);
    let (ours, theirs) = values.split_once(" but current is ").unwrap_or((values, ""));
    Some(Mismatch { argument: argument.to_owned(), ours: value(ours), theirs: value(theirs) })
}

/// `the value '100' of type 'long'`, `'100'` or `none`.
fn value(text: &str) -> String {
    let text = text.trim();
    match text.split_once('\'') {
        Some((_, quoted)) => quoted.split('\'').next().unwrap_or(quoted).to_owned(),
        None if text.is_empty() => "a value that the broker did not name".to_owned(),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_brokers_texts_are_understood() {
        let table = [
            (
                "PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'q' in vhost \
                 '/': received the value '100' of type 'long' but current is none",
                ("x-delivery-limit", "100", "none"),
            ),
            (
                "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': \
                 received none but current is the value 'quorum' of type 'longstr'",
                ("x-queue-type", "none", "quorum"),
            ),
            (
                "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'e' in vhost '/': \
                 received 'direct' but current is 'fanout'",
                ("type", "direct", "fanout"),
            ),
            (
                "PRECONDITION_FAILED - inequivalent arg 'x-overflow' for queue 'q' in vho",
                (
                    "x-overflow",
                    "a value that the broker did not name",
                    "a value that the broker did not name",
                ),
            ),
        ];
        for (text, (argument, ours, theirs)) in table {
            let found = parse(text).unwrap();
            assert_eq!((&*found.argument, &*found.ours, &*found.theirs), (argument, ours, theirs));
        }
        assert_eq!(parse("PRECONDITION_FAILED - unknown delivery tag 1"), None);
    }
}
