//! The runbook, run: the test of a section runs its commands and compares their answers with the page.
//!
//! Each section of docs/operations/runbook.md gets a platform of its own. Blocks marked `console` run in order: a
//! line that begins with `$ ` is a command, the lines below it are its answer, standard output first. In answers,
//! `<id>`, `<time>`, `<n>` and `<any>` stand for values that differ each time, a line `…` stands for any lines, and
//! several blanks count as one. Acts stand in comments, which readers do not see: `<!-- test: … -->` holds them, one
//! a line, and `<!-- setup: NAME -->` runs those that `operations/setups.txt` lists under the name. With `RUNBOOK=1`
//! and `--nocapture`, the tests print all answers, for the page.

mod answer_template;
mod scenarios;

use std::collections::{BTreeSet, HashMap};

pub(super) use answer_template::BARS;
use answer_template::differs;
pub(super) use scenarios::Scene;

use super::text;

const RUNBOOK: &str = "docs/operations/runbook.md";

/// Commands that are shown in one run, at least: an empty runbook would pass, too.
const MIN_COMMANDS: usize = 20;

/// The acts of each setup: a name in brackets, then one act a line.
const SETUPS: &str = "tests/it/docs/operations/setups.txt";

fn setups() -> HashMap<String, Vec<String>> {
    let mut setups: HashMap<_, Vec<_>> = HashMap::new();
    let mut name = String::new();
    for line in text(SETUPS).lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(heading) => heading.clone_into(&mut name),
            None => setups.entry(name.clone()).or_default().push(line.to_owned()),
        }
    }
    setups
}

/// A part of a section, in order.
#[derive(Debug)]
pub(super) enum Step {
    Act(String),
    Command { line: String, answer: Vec<String> },
}

#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) steps: Vec<Step>,
}

/// The name in a comment that runs a setup.
fn setup_name(line: &str) -> Option<&str> {
    line.strip_prefix("<!-- setup: ")?.strip_suffix(" -->")
}

/// The sections of a page that begin with `## `.
pub(super) fn sections(document: &str) -> Vec<Section> {
    let setups = setups();
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
            prose => {
                let Some(name) = setup_name(prose) else { continue };
                let acts = setups.get(name).unwrap_or_else(|| panic!("no setup {name}"));
                section.steps.extend(acts.iter().cloned().map(Step::Act));
            }
        }
    }
    sections
}

/// Runs a section of a page on a platform of its own.
pub(super) async fn run_section(page: &str, title: &str) {
    run_sections(page, &[title]).await;
}

/// Runs sections of a page in this order on one platform.
pub(super) async fn run_sections(page: &str, titles: &[&str]) {
    let (sections, mut scene) = (sections(&text(page)), Scene::new().await);
    for title in titles {
        let section = sections.iter().find(|section| section.title == *title);
        let section = section.unwrap_or_else(|| panic!("{page} has no section {title:?}"));
        run_steps(title, &section.steps, &mut scene).await;
    }
}

/// Runs the steps in order.
///
/// # Panics
///
/// If a command answers something else than what is shown; all of those are in the message.
pub(super) async fn run_steps(title: &str, steps: &[Step], scene: &mut Scene) {
    let mut wrong = Vec::new();
    for step in steps {
        match step {
            Step::Act(act) => scene.act(act).await,
            Step::Command { line, answer } => {
                let output = scene.run(line).await;
                if std::env::var_os("RUNBOOK").is_some() {
                    println!("[{title}]\n$ {line}\n{output}");
                }
                if let Some(difference) = differs(answer, &output) {
                    wrong.push(format!("$ {line}\n{output}\n--- {difference}"));
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
            run_section(RUNBOOK, $title).await;
        })*

        const RUN: &[&str] = &[$($title),*];
    };
}

runbook! {
    the_first_look "A first look";
    a_failed_task_is_run_again_safely "A task failed: run it again without charging twice";
    many_that_failed_alike_are_run_again "Many tasks failed with one error";
    nothing_runs "Executions are pending and nothing runs";
    the_broker_is_away "RabbitMQ is down or was restarted";
    a_worker_is_silent "A worker is silent";
    an_unknown_message "Unknown messages in the failed queue";
    catch_up_is_held "Catch-up is held: a restored backup or a clock jump";
    a_database_that_takes_no_writes "PostgreSQL takes no writes";
    a_migration_that_is_missing "A migration failed or is missing";
    a_deploy_is_rolled_back "Roll back a deploy";
}

#[test]
fn every_section_of_the_runbook_runs() {
    let document = text(RUNBOOK);
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
    let others = [super::tutorial::PAGE, super::incidents::PAGE, super::alerts::PAGE].map(text);
    let lines = document.lines().chain(others.iter().flat_map(|page| page.lines()));
    let named: BTreeSet<&str> = lines.filter_map(setup_name).collect();
    let setups = setups();
    let listed = setups.keys().map(String::as_str).collect();
    assert_eq!(named, listed, "the four pages run every setup");
}
