//! Names for jobs of what has none: from what runs, valid, unique, and the same at every import.

use std::collections::HashSet;

use sexton_model::job::is_reserved;

/// The most bytes of a name's part that comes from the file; task types have less room than names.
const MAX_WORD_BYTES: usize = 60;
/// Words in front of what runs.
const WRAPPERS: [&str; 10] =
    ["sudo", "nice", "ionice", "nohup", "exec", "env", "chronic", "time", "command", "-"];
/// Programs whose first argument is what runs.
const INTERPRETERS: [&str; 9] =
    ["sh", "bash", "dash", "zsh", "python", "python3", "perl", "php", "ruby"];
/// Commands in front of `&&` and `;` that only prepare.
const PREPARING: [&str; 8] = ["cd", "[", "test", ".", "source", "sleep", "export", "umask"];
const EXTENSIONS: [&str; 6] = [".sh", ".py", ".pl", ".rb", ".php", ".js"];

/// Gives each name once.
#[derive(Default)]
pub(super) struct Names {
    used: HashSet<String>,
    /// How often each was asked for, so that many of one name cost no search.
    asked: std::collections::HashMap<String, usize>,
}

impl Names {
    /// `service.word`, with `-2`, `-3` … behind it if it is used already.
    pub(super) fn unique(&mut self, service: &str, word: &str) -> String {
        let service = part(service, "import");
        let mut name = format!("{service}.{}", part(word, "job"));
        if is_reserved(&name) {
            name = format!("import.{name}");
        }
        let asked = self.asked.entry(name.clone()).or_insert(0);
        loop {
            *asked += 1;
            let unique = if *asked == 1 { name.clone() } else { format!("{name}-{asked}") };
            if self.used.insert(unique.clone()) {
                return unique;
            }
        }
    }
}

/// The text in the alphabet of names; `otherwise` if nothing is left of it.
fn part(text: &str, otherwise: &str) -> String {
    let mut part = String::new();
    for character in text.chars() {
        if part.len() == MAX_WORD_BYTES {
            break;
        }
        match character {
            c if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') => part.push(c),
            _ if part.ends_with('-') => {}
            _ => part.push('-'),
        }
    }
    let part = part.trim_matches(['-', '.', '_']);
    if part.is_empty() { otherwise.to_owned() } else { part.to_owned() }
}

/// The word that tells what a command of a shell runs: `backup` for
/// `cd /srv && FULL=1 nice /usr/local/bin/backup.sh --all`.
pub(super) fn word_of(command: &str) -> String {
    let segments = command.split(['&', ';', '|', '\n']);
    let words = segments.map(|segment| {
        segment
            .split_whitespace()
            .map(|word| word.trim_matches(['(', ')', '{', '}', '"', '\'']))
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
    });
    let runs = words
        .map(|words| without_wrappers(&words))
        .find(|words| words.first().is_some_and(|word| !PREPARING.contains(word)));
    let runs = runs.unwrap_or_default();
    let base = |word: &str| word.rsplit('/').next().unwrap_or(word).to_owned();
    let program = runs.first().map_or_else(String::new, |word| base(word));
    let script = runs.iter().skip(1).find(|word| !word.starts_with('-'));
    let word = match script {
        Some(script) if INTERPRETERS.contains(&program.as_str()) => base(script),
        _ => program,
    };
    let plain = EXTENSIONS.iter().find_map(|extension| word.strip_suffix(extension));
    plain.unwrap_or(&word).to_owned()
}

fn without_wrappers<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let assigns = |word: &str| {
        word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    let (mut behind, mut named) = (false, false);
    let rest = words.iter().skip_while(|word| {
        let wrapper = WRAPPERS.contains(word);
        // Options of the wrapper, and what belongs to them: a number, or whose rights it takes.
        let option =
            behind && (named || word.starts_with('-') || word.chars().all(|c| c.is_ascii_digit()));
        named = behind && matches!(**word, "-u" | "-g");
        behind |= wrapper;
        wrapper || option || assigns(word)
    });
    rest.copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_called_after_what_it_runs() {
        for (command, word) in [
            ("/usr/local/bin/backup.sh --all", "backup"),
            ("cd /srv && FULL=1 nice -n 10 /usr/local/bin/backup.sh --all", "backup"),
            ("python3 -u /opt/report.py daily", "report"),
            ("test -x /usr/sbin/anacron || ( cd / && run-parts /etc/cron.daily )", "run-parts"),
            ("[ -d /var ] && find /var -delete", "find"),
            ("sudo -u www php artisan schedule:run", "artisan"),
            ("", ""),
            ("&& ;", ""),
        ] {
            assert_eq!(word_of(command), word, "{command}");
        }
    }

    #[test]
    fn names_are_valid_and_unique_and_the_same_at_every_import() {
        let asked = ["a", "a", "a-2", "a", "", "ä ö", "x/y z", &"long".repeat(50)];
        let names = || {
            let mut names = Names::default();
            asked.iter().map(|word| names.unique("cron", word)).collect::<Vec<_>>()
        };
        let given = names();
        assert_eq!(
            given[..6],
            ["cron.a", "cron.a-2", "cron.a-2-2", "cron.a-3", "cron.job", "cron.job-2"]
        );
        assert_eq!(given, names());
        for name in given.iter().chain([&Names::default().unique("foreign", "x")]) {
            assert_eq!(sexton_model::job::check_name(name), Ok(()), "{name}");
            assert_eq!(sexton_model::job::check_task_type(name), Ok(()), "{name}");
        }
    }
}
