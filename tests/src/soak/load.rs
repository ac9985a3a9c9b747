//! What is fed: jobs of every temper, one firing of each in each second.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};

/// The task types, with the command of each.
const TASKS: [(&str, &str); 6] = [
    ("steady", r#"["/bin/true"]"#),
    // Fails at each odd attempt: a retry, and again after a requeue.
    ("flaky", r#"["/bin/sh", "-c", "[ $((SEXTON_ATTEMPT % 2)) = 0 ] || exit 75"]"#),
    // More output than is kept.
    ("chatty", r#"["/usr/bin/seq", "1", "20000"]"#),
    ("slow", r#"["/bin/sleep", "2"]"#),
    ("failing", r#"["/bin/sh", "-c", "echo no luck >&2; exit 1"]"#),
    ("hopeless", r#"["/bin/sh", "-c", "exit 65"]"#),
];

/// The share of each task type, in twentieths; what is left is steady.
const MIX: [(&str, usize); 5] =
    [("flaky", 2), ("chatty", 1), ("slow", 1), ("failing", 1), ("hopeless", 1)];

/// Every temper is among so many jobs.
pub(super) const MIXED: usize = 20;

/// The task catalogue.
pub(super) fn catalogue() -> String {
    TASKS.iter().fold(String::new(), |mut text, (name, command)| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "[tasks.{name}]\ncommand = {command}");
        text
    })
}

/// The task type of the job with this number.
fn temper(number: usize) -> &'static str {
    let mut place = number % MIXED;
    for (name, share) in MIX {
        if place < share {
            return name;
        }
        place -= share;
    }
    "steady"
}

/// A jobs file of so many jobs, each of which fires once a second.
pub(super) fn jobs(count: usize) -> String {
    (0..count).map(|number| job("soak", number, "every = \"1s\"")).collect()
}

/// A jobs file of so many jobs of the same mix that are due once, at `due`.
pub(super) fn backlog(count: usize, due: DateTime<Utc>) -> String {
    let due = due.format("%Y-%m-%dT%H:%M:%SZ");
    (0..count).map(|number| job("drain", number, &format!("at = \"{due}\""))).collect()
}

fn job(kind: &str, number: usize, schedule: &str) -> String {
    let task = temper(number);
    format!(
        "[[job]]\nname = \"{kind}.{number}\"\ntask = \"{task}\"\n{schedule}\n\
         params = {{ customer = {number}, note = \"{}\" }}\n\
         retry = {{ max_retries = 1, delay = \"1s\" }}\n",
        "x".repeat(200)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_type_is_in_the_mix_and_most_is_steady() {
        for (task, _) in TASKS {
            assert!((0..MIXED).any(|number| temper(number) == task), "{task} is never run");
        }
        let steady = (0..MIXED).filter(|number| temper(*number) == "steady").count();
        assert!(steady > MIXED / 2);
    }
}
