//! The runbook, run: each command that it shows is run in the situation that it is about, and answers what
//! it says.
//!
//! A section of docs/operations/runbook.md is a platform of its own. In it, blocks marked `console` are run in
//! order: a line that begins with `$ ` is a command, what follows is its answer, standard output first. In
//! answers, `<id>`, `<time>`, `<n>` and `<any>` stand for what differs each time, a line `…` for any lines,
//! and blanks count as one. What has to happen before stands in comments, which readers do not see:
//! `<!-- test: … -->`, one act a line. With `RUNBOOK=1` and `--nocapture`, answers are printed, for the page.

mod answer_template;
mod scenarios;

use answer_template::differs;
use scenarios::Scene;

use super::text;

/// Commands that are shown in one run, at least: an empty runbook would pass, too.
const MIN_COMMANDS: usize = 20;

/// What stands in a section, in order.
#[derive(Debug)]
enum Step {
    Act(String),
    Command { line: String, answer: Vec<String> },
}

#[derive(Debug)]
struct Section {
    title: String,
    steps: Vec<Step>,
}

fn sections(document: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let (mut in_block, mut in_comment) = (false, false);
    for line in document.lines() {
        if !in_block && let Some(title) = line.strip_prefix("## ") {
            sections.push(Section { title: title.to_owned(), steps: Vec::new() });
        }
        let Some(section) = sections.last_mut() else { continue };
        match line {
            "```console" => in_block = true,
            "```" => in_block = false,
            "<!-- test:" => in_comment = true,
            "-->" => in_comment = false,
            act if in_comment => section.steps.push(Step::Act(act.to_owned())),
            shown if in_block => match (shown.strip_prefix("$ "), section.steps.last_mut()) {
                (Some(line), _) => {
                    let (line, answer) = (line.to_owned(), Vec::new());
                    section.steps.push(Step::Command { line, answer });
                }
                (None, Some(Step::Command { answer, .. })) => answer.push(shown.to_owned()),
                (None, _) => panic!("an answer without a command: {shown}"),
            },
            _ => {}
        }
    }
    sections
}

async fn run(title: &str) {
    let document = text("docs/operations/runbook.md");
    let section = sections(&document).into_iter().find(|section| section.title == title);
    let section = section.unwrap_or_else(|| panic!("the runbook has no section {title:?}"));
    let mut scene = Scene::new().await;
    let mut wrong = Vec::new();
    for step in &section.steps {
        match step {
            Step::Act(act) => scene.act(act).await,
            Step::Command { line, answer } => {
                let said = scene.command(line).await;
                if std::env::var_os("RUNBOOK").is_some() {
                    println!("[{title}]\n$ {line}\n{said}");
                }
                if let Some(difference) = differs(answer, &said) {
                    wrong.push(format!("$ {line}\n{said}\n--- {difference}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{title}: other answers\n{}", wrong.join("\n\n"));
}

/// One test a section, so that they run side by side and fail by name.
macro_rules! runbook {
    ($($test:ident $title:literal;)*) => {
        $(#[tokio::test]
        async fn $test() {
            run($title).await;
        })*

        const RUN: &[&str] = &[$($title),*];
    };
}

runbook! {
    the_first_look "A first look";
    a_billing_task_is_run_again_safely "A billing task failed: run it again without charging twice";
    many_that_failed_alike_are_run_again "Many failed alike: run them again, a few first";
    a_queue_that_is_stuck "Nothing runs: a queue is stuck";
    the_broker_is_away "The broker was restarted, or is away";
    a_worker_is_silent "A worker is silent";
    a_message_that_nobody_can_read "A message that nobody can read";
    a_restored_backup "A backup was restored, or the clock jumped";
    a_database_that_takes_no_writes "The database takes no writes: a full disk";
    a_migration_that_is_missing "A migration failed, or was forgotten";
    the_way_back "The way back from a deploy";
}

#[test]
fn every_section_of_the_runbook_runs() {
    let document = text("docs/operations/runbook.md");
    let sections = sections(&document);
    let run: Vec<_> = sections
        .iter()
        .filter(|section| !section.steps.is_empty())
        .map(|section| section.title.as_str())
        .collect();
    assert_eq!(run, RUN);
    let commands = sections.iter().flat_map(|section| &section.steps);
    let commands = commands.filter(|step| matches!(step, Step::Command { .. })).count();
    assert!(commands >= MIN_COMMANDS, "only {commands} commands are shown");
}
