//! The tutorial, run: its commands, in order, on one platform, with the files that it shows.
//!
//! It shows answers as they once were. An id, an instant, a span of time or a row of bars, one an
//! hour, matches any other; everything else must be as shown. The steps between the commands are in
//! comments, as in the [runbook](super::operations).

use super::operations::{BARS, Scene, Step, run_steps, sections};
use super::{blocks, text};

pub(super) const PAGE: &str = "docs/tutorial/first-job.md";

/// Units of the spans of time that the commands show.
const UNITS: [&str; 5] = ["ms", "s", "m", "h", "d"];

#[tokio::test]
async fn the_commands_of_the_tutorial_answer_as_it_shows() {
    let page = text(PAGE);
    let steps: Vec<Step> = sections(&page)
        .into_iter()
        .flat_map(|section| section.steps)
        .map(|step| match step {
            Step::Command { line, answer } => {
                let answer = answer.iter().map(|line| with_placeholders(line)).collect();
                Step::Command { line, answer }
            }
            act @ Step::Act(_) => act,
        })
        .collect();
    let commands = steps.iter().filter(|step| matches!(step, Step::Command { .. })).count();
    assert!(commands >= 14, "only {commands} commands are shown");
    let mut scene = Scene::new().await;
    for (name, info) in [("tasks.toml", "toml tasks"), ("jobs.toml", "toml jobs")] {
        let [content] = &blocks(&page, info)[..] else { panic!("one {name}") };
        scene.file(name, content);
    }
    run_steps("tutorial", &steps, &mut scene).await;
}

/// A shown line as a template with placeholders.
fn with_placeholders(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let mut template: Vec<String> = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let is_span = word.parse::<f64>().is_ok()
            && words.peek().is_some_and(|unit| UNITS.contains(&unit.trim_end_matches([')', '.'])));
        if is_span {
            words.next();
            words.next_if_eq(&"ago");
            if template.last().is_some_and(|before| before == "in") {
                template.pop();
            }
            template.push("<any>".to_owned());
        } else {
            template.push(placeholder(word));
        }
    }
    template.join(" ")
}

fn placeholder(word: &str) -> String {
    // Of an execution, whole or shortened: the digits of its time begin alike for years.
    let is_uuid = word.len() >= 8
        && word.starts_with("01")
        && word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    let is_clock =
        word.contains(':') && word.bytes().all(|b| b.is_ascii_digit() || b":.".contains(&b));
    // 2026-11-24T14:00:40Z, also after a prefix, as in a key.
    let instant = word.find("20").filter(|at| word[*at..].contains('T') && word.ends_with('Z'));
    match instant {
        _ if is_uuid => "<id>".to_owned(),
        _ if word.chars().all(|c| BARS.contains(c)) => "<bars>".to_owned(),
        Some(at) => format!("{}<any>", &word[..at]),
        // A cell without a value may have one by now; `<n>` occurs in the pattern of a failure group.
        None if is_clock || word.contains('@') || word == "-" || word.starts_with('<') => {
            "<any>".to_owned()
        }
        None => word.to_owned(),
    }
}

#[test]
fn ids_instants_and_spans_of_a_shown_answer_may_differ_and_nothing_else() {
    let shown = "01a20ddb-d340-7542-92b7-3cf6e02be5f1 failed 6.4 s ago at 14:00:42.281 by root@vm";
    assert_eq!(with_placeholders(shown), "<id> failed <any> at <any> by <any>");
    let shown = "3 executions in 9 s of 2 jobs";
    assert_eq!(with_placeholders(shown), "3 executions <any> of 2 jobs");
    let shown = "3 20 s ago ·····▃█ exit_1";
    assert_eq!(with_placeholders(shown), "3 <any> <bars> exit_1");
    let shown = "every-2026-11-24T14:00:40Z 28 s ago 37 ms - exit code <n>:";
    assert_eq!(with_placeholders(shown), "every-<any> <any> <any> <any> exit code <any>");
}
