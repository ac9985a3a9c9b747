//! A job's definition as JSON: the fields of a jobs file.
//!
//! It becomes the text of a jobs file and is parsed as one, so that both have the same fields, limits and problems.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use sexton_model::jobs_file::Problem;

use super::files::JobsFiles;
use crate::error::InvalidRequest;

/// Reads one job. A field that is `null` counts as absent, except in params.
///
/// # Errors
///
/// [`InvalidRequest::JobsFile`] with every problem; the `field` of each has dots for nested ones.
pub fn read_definition(fields: &Map<String, Value>) -> Result<JobsFiles, InvalidRequest> {
    let mut writer = Writer { text: "[[job]]\n".to_owned(), problems: Vec::new() };
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        writer.key(name);
        writer.value(value, &mut vec![name]);
        writer.text.push('\n');
    }
    let Writer { text, mut problems } = writer;
    match JobsFiles::read(&[(String::new(), text)]) {
        Ok(files) if problems.is_empty() => Ok(files),
        Ok(_) => Err(InvalidRequest::JobsFile(problems)),
        Err(InvalidRequest::JobsFile(found)) => {
            // The text has lines that nobody wrote.
            problems.extend(found.into_iter().map(|problem| Problem { line: None, ..problem }));
            Err(InvalidRequest::JobsFile(problems))
        }
        Err(other) => Err(other),
    }
}

struct Writer {
    text: String,
    problems: Vec<Problem>,
}

impl Writer {
    fn key(&mut self, name: &str) {
        self.string(name);
        self.text.push_str(" = ");
    }

    /// A string of JSON is one of TOML, except that TOML has no DEL.
    fn string(&mut self, text: &str) {
        let quoted = Value::from(text).to_string().replace('\u{7f}', "\\u007f");
        self.text.push_str(&quoted);
    }

    fn value<'a>(&mut self, value: &'a Value, path: &mut Vec<&'a str>) {
        match value {
            Value::Null => {
                self.problem(path, "is null, which no job can keep; leave the field out");
                self.text.push_str("\"\"");
            }
            Value::String(text) => self.string(text),
            Value::Bool(_) | Value::Number(_) => {
                let _ = write!(self.text, "{value}");
            }
            Value::Array(values) => {
                self.text.push('[');
                for value in values {
                    self.value(value, path);
                    self.text.push_str(", ");
                }
                self.text.push(']');
            }
            Value::Object(fields) => {
                let keeps_null = path.first().is_some_and(|name| *name == "params");
                let kept = fields.iter().filter(|(_, value)| keeps_null || !value.is_null());
                self.text.push_str("{ ");
                for (index, (name, value)) in kept.enumerate() {
                    if index > 0 {
                        self.text.push_str(", ");
                    }
                    self.key(name);
                    path.push(name);
                    self.value(value, path);
                    path.pop();
                }
                self.text.push_str(" }");
            }
        }
    }

    fn problem(&mut self, path: &[&str], message: &str) {
        self.problems.push(Problem {
            file: String::new(),
            line: None,
            job: None,
            field: Some(path.join(".")),
            message: message.to_owned(),
            unlisted: 0,
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sexton_model::job::Schedule;

    use super::*;

    fn read(fields: Value) -> Result<JobsFiles, InvalidRequest> {
        let Value::Object(fields) = fields else { unreachable!("it is an object") };
        read_definition(&fields)
    }

    #[test]
    fn json_and_a_jobs_file_mean_the_same() {
        let made = read(json!({
            "name": "a.b", "schedule": "0 2 * * *", "task": "work", "pool": null, "timezone": "Europe/Berlin",
            "params": {"a \"b\"": "\u{7f}\n\\", "numbers": [1, -2.5, 9_007_199_254_740_993_u64], "on": true, "e": {}},
            "retry": {"max_retries": 2, "delay": null}, "labels": {"team": "billing"},
        }))
        .unwrap();
        let text = "[[job]]\nname = \"a.b\"\nschedule = \"0 2 * * *\"\ntask = \"work\"\ntimezone = \"Europe/Berlin\"\n\
                    retry = { max_retries = 2 }\nlabels = { team = \"billing\" }\n\
                    [job.params]\n\"a \\\"b\\\"\" = \"\\u007f\\n\\\\\"\nnumbers = [1, -2.5, 9007199254740993]\non = true\ne = {}\n";
        let written = JobsFiles::read(&[("jobs.toml".to_owned(), text.to_owned())]).unwrap();
        assert_eq!(made.specs, written.specs);
        assert!(matches!(made.specs[0].schedule, Schedule::Cron { .. }));
    }

    #[test]
    fn every_problem_names_its_field_and_no_line() {
        let refused = read(json!({
            "name": "a b", "schedule": "99 * * * *", "task": "work", "params": {"order": {"id": null}},
            "retry": {"max_retries": -1}, "colour": "red",
        }));
        let Err(InvalidRequest::JobsFile(problems)) = refused else { panic!("{refused:?}") };
        let mut fields: Vec<_> =
            problems.iter().map(|problem| problem.field.as_deref().unwrap()).collect();
        fields.sort_unstable();
        assert_eq!(fields, ["colour", "name", "params.order.id", "retry.max_retries", "schedule"]);
        assert!(problems.iter().all(|problem| problem.line.is_none()));
    }
}
