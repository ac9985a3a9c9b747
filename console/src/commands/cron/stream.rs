//! `sexton cron next --stdin`: questions and answers as JSON lines.
//!
//! Every line gets exactly one answer, in order: `{"id","next":[…]}` or `{"id","error"}`. A line that
//! cannot be read is answered with an error and the next one is read; the `id` is given back as it
//! came, null where it could not be read. Answers are written out whenever no further question has
//! arrived, so that a program may ask and wait.

use std::io::{BufRead, BufReader, BufWriter, Read, Write};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};
use sexton_model::cron::{Dialect, Dst, Expression};
use sexton_model::zone::Zone;
use sexton_operations::cron::{DEFAULT_FIRINGS, MAX_FIRINGS};
use sexton_operations::instants::is_listed;

use super::{instant, parse_days, parse_dst, parse_instant, parse_zone};
use crate::failure::Failure;
use crate::show::ascii_controls;

/// The longest line that is looked into, in bytes; the rest of a longer one is passed over.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Answers until the input ends. It calls `now` where a question has no instant.
///
/// # Errors
///
/// The input cannot be read, or [`Failure::Closed`] when nobody reads the answers any more.
pub fn answer(
    input: impl Read,
    output: impl Write,
    now: impl Fn() -> DateTime<Utc>,
) -> Result<(), Failure> {
    let mut input = BufReader::new(input);
    let mut output = BufWriter::new(output);
    let mut line = Vec::new();
    while read_line(&mut input, &mut line)? {
        let answer = match question(&line) {
            Err((id, error)) => json!({"id": id, "error": error}),
            Ok(question) => match next(&question, &now) {
                Ok(next) => json!({"id": question.id, "next": next}),
                Err(error) => json!({"id": question.id, "error": error}),
            },
        };
        // The id is the asker's own text, and the answers may be looked at on a terminal.
        writeln!(output, "{}", ascii_controls(&answer.to_string()))?;
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
    Ok(output.flush()?)
}

/// Reads the next line without its end into `line`, one byte more than allowed at most; `false` at
/// the end of the input.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> Result<bool, Failure> {
    line.clear();
    loop {
        let buffer = match input.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                return Err(Failure::Failed(format!("standard input cannot be read: {error}")));
            }
        };
        if buffer.is_empty() {
            return Ok(!line.is_empty());
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        let room = (MAX_LINE_BYTES + 1).saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// The fields of a question beside its id.
const KNOWN_FIELDS: [&str; 8] = ["dialect", "expr", "tz", "dst", "days", "job", "from", "count"];

/// Fields that may also be called as the options may be.
const FIELD_ALIASES: [(&str, &str); 2] = [("zone", "tz"), ("salt", "job")];

struct Question {
    id: Value,
    fields: Map<String, Value>,
}

fn question(line: &[u8]) -> Result<Question, (Value, String)> {
    if line.len() > MAX_LINE_BYTES {
        let error = format!("the line is longer than {MAX_LINE_BYTES} bytes");
        return Err((Value::Null, error));
    }
    match serde_json::from_slice(line) {
        Ok(Value::Object(mut fields)) => {
            let id = fields.remove("id").unwrap_or(Value::Null);
            for (other, name) in FIELD_ALIASES {
                let Some(value) = fields.remove(other) else { continue };
                if fields.insert(name.to_owned(), value).is_some() {
                    return Err((
                        id,
                        format!("{other} is another name of {name}; write one of them"),
                    ));
                }
            }
            match fields.keys().find(|name| !KNOWN_FIELDS.contains(&name.as_str())) {
                None => Ok(Question { id, fields }),
                Some(name) => Err((id, format!("unknown field {:?}", short(name)))),
            }
        }
        Ok(_) => Err((Value::Null, "the line is not a JSON object".to_owned())),
        Err(error) => Err((Value::Null, format!("the line is not JSON: {error}"))),
    }
}

fn next(question: &Question, now: &impl Fn() -> DateTime<Utc>) -> Result<Vec<String>, String> {
    let dialect = match question.text("dialect")? {
        None => Dialect::Any,
        Some("unix5") => Dialect::Unix5,
        Some("seconds6") => Dialect::Seconds6,
        Some(other) => {
            return Err(format!(
                "dialect {:?} is not known; write unix5 or seconds6",
                short(other)
            ));
        }
    };
    let expression = question.text("expr")?.ok_or("expr is missing")?;
    let zone = match question.text("tz")? {
        None => Zone::UTC,
        Some(name) => parse_zone(name).map_err(|error| format!("tz: {error}"))?,
    };
    let dst = match question.text("dst")? {
        None => Dst::default(),
        Some(word) => parse_dst(word).map_err(|error| format!("dst: {error}"))?,
    };
    let days = question.text("days")?.map(parse_days).transpose();
    let days = days.map_err(|error| format!("days: {error}"))?;
    let name = question.text("job")?.unwrap_or_default();
    let from = match question.text("from")? {
        None => now(),
        Some(from) => parse_instant(from).map_err(|error| format!("from: {error}"))?,
    };
    let count = match question.fields.get("count") {
        None | Some(Value::Null) => DEFAULT_FIRINGS,
        Some(count) => count
            .as_u64()
            .and_then(|count| usize::try_from(count).ok())
            .filter(|count| (1..=MAX_FIRINGS).contains(count))
            .ok_or_else(|| format!("count: write a number from 1 to {MAX_FIRINGS}"))?,
    };
    let expression = Expression::parse_with_days(expression, dialect, name, days)
        .map_err(|error| error.to_string())?;
    Ok(expression
        .iter_after(from, zone, dst)
        .take_while(|at| is_listed(*at))
        .take(count)
        .map(instant)
        .collect())
}

impl Question {
    fn text(&self, name: &str) -> Result<Option<&str>, String> {
        match self.fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("{name} is not a text")),
        }
    }
}

fn short(text: &str) -> &str {
    sexton_model::ticket::truncate(text, 80)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(input: &str) -> Vec<Value> {
        let mut output = Vec::new();
        answer(input.as_bytes(), &mut output, || DateTime::UNIX_EPOCH).unwrap();
        let lines = String::from_utf8(output).unwrap();
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn every_line_has_its_answer_in_order() {
        let input = concat!(
            r#"{"id":1,"dialect":"unix5","expr":"0 0 1 1 *","tz":"UTC","from":"2025-06-01T00:00:00Z","count":2}"#,
            "\n",
            r#"{"id":"b","dialect":"seconds6","expr":"*/30 * * * * *","count":1}"#,
            "\nrubbish\n\n",
            r#"{"id":5,"dialect":"seconds6","expr":"* * * * *"}"#,
            "\n",
            r#"{"id":6,"expr":"0 8 * * *","tz":"Europe/Vienna","count":1}"#,
            "\n",
            r#"{"id":7,"expr":"0 0 30 2 *"}"#
        );
        let answers = answers(input);
        let next = json!(["2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"]);
        assert_eq!(answers[0], json!({"id": 1, "next": next}));
        assert_eq!(answers[1], json!({"id": "b", "next": ["1970-01-01T00:00:30Z"]}));
        assert!(answers[2]["error"].as_str().unwrap().contains("not JSON"));
        assert!(answers[3]["error"].as_str().unwrap().contains("not JSON"));
        assert_eq!(answers[4]["id"], 5);
        assert!(answers[4]["error"].as_str().unwrap().contains("6 fields"), "{}", answers[4]);
        assert_eq!(answers[5], json!({"id": 6, "next": ["1970-01-01T07:00:00Z"]}));
        assert_eq!(answers[6], json!({"id": 7, "next": []}));
        assert_eq!(answers.len(), 7);
    }

    #[test]
    fn the_zone_the_rule_and_the_name_of_a_question_are_followed() {
        let ask = |fields: &str| {
            let line = format!(
                r#"{{"expr":"30 2 * * *","tz":"Europe/Vienna","from":"2026-03-28T12:00:00Z","count":1{fields}}}"#
            );
            answers(&line)[0]["next"][0].as_str().unwrap().to_owned()
        };
        assert_eq!(ask(""), "2026-03-29T01:00:00Z");
        assert_eq!(ask(r#","dst":"wall""#), "2026-03-29T01:00:00Z");
        assert_eq!(ask(r#","dst":"skip""#), "2026-03-30T00:30:00Z");
        let thirteenth = |days: &str| {
            let line = format!(r#"{{"expr":"0 0 13 * FRI","count":1{days}}}"#);
            answers(&line)[0]["next"][0].clone()
        };
        assert_eq!(thirteenth(r#","days":"both""#), "1970-02-13T00:00:00Z");
        assert_eq!(thirteenth(r#","days":"either""#), "1970-01-02T00:00:00Z");
        assert_eq!(thirteenth(""), "1970-01-02T00:00:00Z");
        let minute = |name: &str| {
            let line = format!(r#"{{"expr":"H * * * *","count":1{name}}}"#);
            answers(&line)[0]["next"][0].as_str().unwrap()[14..16].to_owned()
        };
        assert_eq!(minute(r#","job":"billing.run""#), "05");
        assert_eq!(minute(r#","salt":"billing.run""#), "05");
        assert_eq!(minute(r#","zone":"Asia/Kathmandu","job":"reports.daily""#), "16");
    }

    #[test]
    fn a_line_without_end_is_cut_and_the_next_one_is_answered() {
        let input =
            format!("{}\n{}\n", "x".repeat(1_000_000), r#"{"id":2,"expr":"@daily","count":1}"#);
        let answers = answers(&input);
        assert!(answers[0]["error"].as_str().unwrap().contains("longer than"));
        assert_eq!(answers[1], json!({"id": 2, "next": ["1970-01-02T00:00:00Z"]}));
        assert_eq!(answers.len(), 2);
    }

    #[test]
    fn what_is_wrong_with_a_question_is_told_with_its_id() {
        for (line, part) in [
            (r#"{"id":1}"#, "expr is missing"),
            (r#"{"id":1,"expr":5}"#, "expr is not a text"),
            (r#"{"id":1,"expr":"@daily","count":0}"#, "count"),
            (r#"{"id":1,"expr":"@daily","from":"soon"}"#, "from"),
            (r#"{"id":1,"expr":"@daily","dialect":"quartz"}"#, "dialect"),
            (r#"{"id":1,"expr":"@daily","timezone":"UTC"}"#, "unknown field"),
            (r#"{"id":1,"expr":"@daily","tz":"UTC","zone":"UTC"}"#, "another name of tz"),
            (r#"{"id":1,"expr":"@daily","tz":"Europe/Viena"}"#, "did you mean Europe/Vienna?"),
            (r#"{"id":1,"expr":"@daily","dst":"sometimes"}"#, "vixie, skip, wall"),
            (r#"{"id":1,"expr":"@daily","days":"or"}"#, "days: write one of both, either"),
            (r#"{"id":1,"expr":"@daily","job":7}"#, "job is not a text"),
        ] {
            let answer = &answers(line)[0];
            assert_eq!(answer["id"], 1);
            assert!(answer["error"].as_str().unwrap().contains(part), "{answer}");
        }
    }
}
