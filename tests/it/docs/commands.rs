//! The page of the commands, run: each command with its purpose and its output.
//!
//! docs/reference/commands.md is its own script. A heading names a command of the command line, and the paragraph
//! below it is the command's help. Blocks marked `console` run in order on one platform, with acts in comments between
//! them, as in the [runbook](super::operations); the act `lines N` shortens the outputs of the next block. Values that
//! differ each time are written as [`stable`] has them. With `COMMANDS_PAGE=write`, the test writes the page anew.

mod stable;

use std::fs;

use clap::{Command, CommandFactory as _};
use sexton_console::arguments::Arguments;
use stable::{stable, with_cuts};

use super::operations::Scene;
use super::{blocks, root, text};

const PAGE: &str = "docs/reference/commands.md";

/// The id of an execution on the page: in a command, it stands for the value of the variable `ID`.
const SHOWN_ID: &str = "01a20ddb";

/// The most words that the page may have for each command, on average.
const WORDS_PER_COMMAND: usize = 55;

/// A command of the command line: its words after `sexton`, its help, and whether it has no further commands.
struct Named {
    path: String,
    about: String,
    is_leaf: bool,
}

fn named(command: &Command, path: &str, found: &mut Vec<Named>) {
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        let path = format!("{path} {}", inner.get_name());
        let about = inner.get_about().map(ToString::to_string).unwrap_or_default();
        let is_leaf = !inner.has_subcommands();
        found.push(Named { path: path.clone(), about, is_leaf });
        named(inner, &path, found);
    }
}

fn all_named() -> Vec<Named> {
    let mut found = Vec::new();
    named(&Arguments::command(), "sexton", &mut found);
    found
}

/// The command that a heading names.
fn heading(line: &str) -> Option<&str> {
    line.trim_start_matches('#')
        .trim()
        .strip_prefix('`')?
        .strip_suffix('`')
        .filter(|_| line.starts_with("##"))
}

/// The page with the help and the outputs of now.
async fn rendered(page: &str, scene: &mut Scene) -> String {
    let commands = all_named();
    let mut lines = page.lines();
    let mut out: Vec<String> = Vec::new();
    let mut limit = usize::MAX;
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        if let Some(path) = heading(line) {
            let command = commands.iter().find(|command| command.path == path);
            let command = command.unwrap_or_else(|| panic!("{path} is no command"));
            assert_eq!(lines.next(), Some(""), "an empty line follows {line}");
            lines.next();
            out.extend([String::new(), format!("{}.", command.about)]);
        } else if line == "<!-- test:" {
            for act in lines.by_ref().take_while(|line| *line != "-->") {
                out.push(act.to_owned());
                match act.strip_prefix("lines ") {
                    Some(count) => limit = count.parse().unwrap(),
                    None => scene.act(act).await,
                }
            }
            out.push("-->".to_owned());
        } else if line == "```console" {
            for line in lines.by_ref().take_while(|line| *line != "```") {
                let Some(command) = line.strip_prefix("$ ") else { continue };
                out.push(line.to_owned());
                let output = scene.run(&command.replace(SHOWN_ID, "$ID")).await;
                if std::env::var_os("COMMANDS_PAGE").is_some() {
                    println!("$ {command}\n{output}");
                }
                out.extend(with_cuts(&stable(command, &output), limit));
            }
            out.push("```".to_owned());
            limit = usize::MAX;
        }
    }
    out.push(String::new());
    out.join("\n")
}

#[tokio::test]
async fn the_page_of_the_commands_has_the_help_and_the_output_of_each() {
    let page = text(PAGE);
    let mut scene = Scene::new().await;
    for (name, info) in [
        ("jobs.toml", "toml jobs"),
        ("crontab", "text crontab"),
        ("cronjob.yaml", "yaml"),
        ("ranges.csv", "csv ranges"),
        ("alerts.toml", "toml alerts"),
        ("checks.toml", "toml checks"),
    ] {
        let [content] = &blocks(&page, info)[..] else { panic!("one {name}") };
        scene.file(name, &format!("{content}\n"));
    }
    let now = rendered(&page, &mut scene).await;
    if std::env::var_os("COMMANDS_PAGE").is_some() {
        fs::write(root().join(PAGE), now).unwrap();
        return;
    }
    let differing: Vec<String> = (page.lines().zip(now.lines()))
        // Tables with empty cells have the widths of the run.
        .filter(|(shown, now)| !shown.split_whitespace().eq(now.split_whitespace()))
        .map(|(shown, now)| format!("  shown: {shown}\n  now:   {now}"))
        .take(10)
        .collect();
    let lengths = (page.lines().count(), now.lines().count());
    assert!(
        differing.is_empty() && lengths.0 == lengths.1,
        "{PAGE} ({} lines, now {}); COMMANDS_PAGE=write writes it anew:\n{}",
        lengths.0,
        lengths.1,
        differing.join("\n")
    );
}

#[test]
fn the_page_of_the_commands_shows_every_command_once() {
    let page = text(PAGE);
    let mut headings: Vec<&str> = page.lines().filter_map(heading).collect();
    headings.sort_unstable();
    let commands = all_named();
    let mut paths: Vec<&str> = commands.iter().map(|command| command.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(headings, paths, "each command has one heading");
    for command in commands.iter().filter(|command| command.is_leaf) {
        let (_, section) = page.split_once(&format!("`{}`\n", command.path)).unwrap();
        let section = section.split("\n##").next().unwrap_or_default();
        let run = format!("\n$ {}", command.path);
        assert!(section.contains(&run), "{} is not run under its heading", command.path);
    }
    let words = page.split_whitespace().count();
    let most = commands.iter().filter(|command| command.is_leaf).count() * WORDS_PER_COMMAND;
    assert!(words <= most, "{PAGE} has {words} words, more than {most}");
}
