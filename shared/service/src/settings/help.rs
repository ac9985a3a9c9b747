//! The settings as text: for `--help`, and as the page `docs/reference/settings.md`.

use std::fmt::Write as _;

use super::setting::{AnySetting, Fallback, Program, SettingInfo};
use super::table::GROUPS;

/// Columns of the help text, as on the narrowest usual terminal.
const WIDTH: usize = 80;

/// What `--help` prints: purpose, usage, and every setting the program reads.
pub fn help(program: Program) -> String {
    let mut text = format!("{} {}\n", program.name(), env!("CARGO_PKG_VERSION"));
    wrap(&mut text, "", program.purpose());
    let usage = match program {
        Program::Console => "\nEnvironment:\n",
        Program::Scheduler | Program::Worker => {
            "\nUsage: PROGRAM            run until SIGTERM or SIGINT; a second one hurries\n       \
             PROGRAM --help     print this text\n       PROGRAM --version  print the version\n\n\
             Configured by these environment variables; an empty one counts as not set.\n\
             Exit status: 0 stopped as asked, 1 something broke, 2 wrong settings.\n"
        }
    };
    text.push_str(&usage.replace("PROGRAM", program.name()));
    for (heading, settings) in GROUPS {
        let mut read = settings.iter().filter(|it| it.about().programs.contains(&program));
        let mut next = read.next();
        if next.is_some() {
            let _ = write!(text, "\n{heading}\n");
        }
        while let Some(setting) = next {
            describe(&mut text, *setting);
            next = read.next();
        }
    }
    text
}

/// The page `docs/reference/settings.md`.
pub fn markdown() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n| setting | unit | default | read by |\n|---|---|---|---|\n");
    for setting in GROUPS.iter().flat_map(|(_, settings)| settings.iter()) {
        let about = setting.about();
        let (name, unit) = (about.name, about.unit);
        let _ = writeln!(
            page,
            "| [`{name}`](#{}) | {unit} | {} | {} |",
            name.to_lowercase(),
            short_default(about),
            readers(about)
        );
    }
    for (heading, settings) in GROUPS {
        let _ = write!(page, "\n## {heading}\n");
        for setting in *settings {
            let about = setting.about();
            let secret = if about.secret { " Secret: it is never shown or logged." } else { "" };
            let _ = write!(
                page,
                "\n### {}\n\n{}{secret}\n\n- Unit: {}. Allowed: {}.\n- Default: {}.\n- Read by: \
                 {}.\n- {}\n",
                about.name,
                about.meaning,
                about.unit,
                escape_markdown(&setting.allowed()),
                long_default(about),
                readers(about),
                about.trade_off
            );
        }
    }
    page
}

const INTRODUCTION: &str = "\
# Configuration

<!-- Made from the settings table by `cargo run -p sexton-service --example configuration > \
docs/reference/settings.md`; a test holds this page against it. -->

Every Sexton program is configured by environment variables. (What runs and when is said elsewhere: \
in the jobs files given to `sexton jobs apply` and in the task catalogue.) `scheduler --help` and \
`worker --help` print the same texts as this page.

- All problems are reported together, one line each, with the name, the reason and what is \
allowed; the program then ends with status 2 before it has connected anywhere.
- A variable that begins with `SEXTON_`, `CRON_` or `WORKER_` and is no setting is a problem too, \
so a misspelt name is never ignored. Left alone are the `SEXTON_…` variables that a worker gives \
its tasks, and the service addresses that Kubernetes adds (`…_SERVICE_HOST`, `…_PORT`).
- A variable with an empty value counts as not set.
- Passwords are shown nowhere: not in messages, not in logs.
- A changed setting takes effect at the next start.
";

fn describe(text: &mut String, setting: &dyn AnySetting) {
    let about = setting.about();
    let _ = writeln!(text, "\n  {}", about.name);
    wrap(text, "      ", about.meaning);
    wrap(text, "      ", &format!("Default: {}.", long_default(about).replace('`', "")));
    wrap(text, "      ", &format!("Unit: {}. Allowed: {}.", about.unit, setting.allowed()));
    wrap(text, "      ", about.trade_off);
}

fn short_default(about: &SettingInfo) -> String {
    match about.fallback {
        Fallback::Required => "required".to_owned(),
        Fallback::Without(_) => "none".to_owned(),
        Fallback::Text(text) => format!("`{text}`"),
        Fallback::Derived("the host name") => "the host name".to_owned(),
        Fallback::Derived(_) => "see below".to_owned(),
    }
}

fn long_default(about: &SettingInfo) -> String {
    match about.fallback {
        Fallback::Required if about.programs.contains(&Program::Console) => {
            "none, it must be set (for `sexton`: only where a command needs it)".to_owned()
        }
        Fallback::Required => "none, it must be set".to_owned(),
        Fallback::Without(consequence) => format!("none: {consequence}"),
        Fallback::Text(text) => format!("`{text}`"),
        Fallback::Derived(words) => words.to_owned(),
    }
}

fn readers(about: &SettingInfo) -> String {
    let names: Vec<_> = about.programs.iter().map(|it| format!("`{}`", it.name())).collect();
    names.join(", ")
}

/// Keeps what Markdown would take for a link or an HTML tag as it is.
fn escape_markdown(text: &str) -> String {
    text.replace('[', "\\[").replace(']', "\\]")
}

/// Appends `words` in lines of at most [`WIDTH`] columns that begin with `indent`.
fn wrap(text: &mut String, indent: &str, words: &str) {
    let mut column = 0;
    for word in words.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > WIDTH {
            text.push('\n');
            column = 0;
        }
        if column == 0 {
            text.push_str(indent);
            column = indent.len();
        } else {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_the_documentation_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/settings.md");
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == markdown(),
            "docs/reference/settings.md is not what the settings table says; make it anew with\n  \
             cargo run -p sexton-service --example configuration > docs/reference/settings.md"
        );
    }

    #[test]
    fn help_tells_each_program_its_own_settings_and_fits_the_terminal() {
        for (program, has, has_not) in [
            (Program::Scheduler, "RETENTION_DAYS", "WORKER_SLOTS"),
            (Program::Worker, "WORKER_SLOTS", "RETENTION_DAYS"),
            (Program::Console, "DATABASE_URL", "HEALTH_ADDR"),
        ] {
            let text = help(program);
            assert!(text.contains(&format!("\n  {has}\n")), "{text}");
            assert!(!text.contains(has_not), "{text}");
            let long = text.lines().find(|line| line.chars().count() > WIDTH);
            assert_eq!(long, None);
        }
    }
}
