//! Questions about cron expressions as JSON lines, and the answers.

use chrono::DateTime;
use serde_json::Value;
use sexton_console::commands::cron::stream::answer;
use sexton_console::show::ascii_controls;

use crate::error_text;

const MAX_ERROR_BYTES: usize = 500;

pub(crate) fn run(input: &[u8]) {
    let mut written = Vec::new();
    answer(input, &mut written, || DateTime::UNIX_EPOCH).expect("a buffer can be written");
    let written = String::from_utf8(written).expect("answers are text");
    let answers: Vec<&str> = written.split_terminator('\n').collect();
    let question: Vec<&[u8]> = questions(input);
    assert_eq!(answers.len(), question.len(), "one answer for each line");
    for (line, question) in answers.into_iter().zip(question) {
        check(line, question);
    }
}

/// The lines; what follows the last line break is one only if there is something.
fn questions(input: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = input.split(|byte| *byte == b'\n').collect();
    lines.pop_if(|last| last.is_empty());
    lines
}

fn check(line: &str, line_bytes: &[u8]) {
    assert!(!line.chars().any(error_text::is_terminal_control), "{line:?} would act on a terminal");
    let answer: Value = serde_json::from_str(line).expect("an answer is JSON");
    let fields = answer.as_object().expect("an answer is an object");
    assert_eq!(fields.len(), 2, "an id, and one of the two: {line}");
    // Safe to show, and the same value all the same.
    let shown = ascii_controls(line);
    assert_eq!(serde_json::from_str::<Value>(&shown).ok().as_ref(), Some(&answer));
    if let Some(error) = fields.get("error") {
        error_text::check(error.as_str().expect("an error is text"), MAX_ERROR_BYTES);
    } else {
        let next = fields["next"].as_array().expect("the firings are a list");
        assert!(next.len() <= 1_000);
    }
    // The id is given back as it came.
    if let Ok(Value::Object(question)) = serde_json::from_slice(line_bytes) {
        assert_eq!(fields["id"], *question.get("id").unwrap_or(&Value::Null));
    }
}
