//! What a command of a shell runs, in a word: the program behind guards, wrappers and interpreters.

use super::shell::{self, Simple};

/// Commands that only look, or prepare what comes behind them.
const PREPARING_COMMANDS: [&str; 25] = [
    "[", "[[", "test", "which", "type", "hash", ":", "true", "false", "cd", ".", "source",
    "export", "umask", "set", "unset", "shopt", "ulimit", "trap", "exit", "return", "sleep",
    "echo", "printf", "local",
];
/// Commands whose last words are another command: their options that take a value of their own, and
/// how many words stand before the command.
const WRAPPERS: [(&str, &[&str], usize); 28] = [
    ("sudo", &["-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "-r", "-t"], 0),
    ("doas", &["-u", "-C"], 0),
    ("runuser", &["-u", "-g", "-G"], 0),
    ("setpriv", &[], 0),
    ("chpst", &["-u", "-U", "-b", "-e", "-n", "-l", "-L", "-m", "-d", "-o", "-p", "-f", "-c"], 0),
    ("nice", &["-n", "--adjustment"], 0),
    ("ionice", &["-c", "-n", "--class", "--classdata"], 0),
    ("chrt", &[], 1),
    ("taskset", &[], 1),
    ("nohup", &[], 0),
    ("setsid", &[], 0),
    ("exec", &["-a"], 0),
    ("eval", &[], 0),
    ("command", &[], 0),
    ("builtin", &[], 0),
    ("env", &["-u", "-C", "--unset", "--chdir"], 0),
    ("time", &["-f", "-o"], 0),
    ("timeout", &["-k", "-s"], 1),
    ("stdbuf", &["-i", "-o", "-e"], 0),
    ("flock", &["-w", "-E", "--timeout"], 1),
    ("lckdo", &["-W"], 1),
    ("setlock", &[], 1),
    ("run-one", &[], 0),
    ("chronic", &[], 0),
    ("cronic", &[], 0),
    ("systemd-cat", &["-t", "-p"], 0),
    ("xvfb-run", &["-s", "-n", "-e", "-f"], 0),
    ("unbuffer", &[], 0),
];
/// Programs whose first argument tells what runs, and their options that take a value.
const INTERPRETERS: [(&str, &[&str]); 16] = [
    ("python", &["-W", "-X"]),
    ("pypy", &["-W", "-X"]),
    ("perl", &[]),
    ("php", &["-d", "-c", "-z"]),
    ("ruby", &["-I", "-r"]),
    ("node", &["-r", "--require"]),
    ("java", &["-cp", "-classpath", "--class-path"]),
    ("Rscript", &[]),
    ("lua", &[]),
    ("tclsh", &[]),
    ("run-parts", &["-a", "-u"]),
    ("invoke-rc.d", &[]),
    ("service", &[]),
    ("bundle", &[]),
    ("poetry", &[]),
    ("npx", &[]),
];
const SHELLS: [&str; 6] = ["sh", "bash", "dash", "zsh", "ksh", "ash"];
/// Words that stand between an interpreter and what it runs.
const SUBCOMMANDS: [&str; 2] = ["exec", "run"];
const EXTENSIONS: [&str; 9] =
    [".sh", ".bash", ".py", ".pl", ".rb", ".php", ".js", ".jar", ".service"];
/// How deep commands within commands (`sh -c '…'`) are read.
const MAX_DEPTH: usize = 3;

/// What a command runs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct RunProgram {
    /// The program or script, without folder and ending; empty if that is not clear.
    pub(super) word: String,
    /// Its arguments, separated by blanks.
    pub(super) arguments: String,
}

/// What the command runs: `backup` with `--all` for
/// `cd /srv && FULL=1 nice /usr/local/bin/backup.sh --all`.
pub(super) fn run_program(command: &str) -> RunProgram {
    find_program(command, MAX_DEPTH)
}

fn find_program(command: &str, depth: usize) -> RunProgram {
    let script = shell::read(command);
    let all = script.commands.iter().map(words);
    let mut prepares = None;
    for words in all {
        let mut words = &words[..];
        let found = loop {
            words = without_assignments(words);
            let Some((program, arguments)) = words.split_first() else { break None };
            let program = base(program);
            if let Some(inner) = inner_command(program, arguments) {
                if depth == 0 {
                    break Some(program_name(program, arguments));
                }
                break Some(find_program(inner, depth - 1))
                    .filter(|run_program| !run_program.word.is_empty());
            }
            match unwrapped(program, arguments) {
                // `command -v` only looks.
                Some([first, ..]) if program == "command" && matches!(*first, "-v" | "-V") => {
                    break None;
                }
                Some(rest) => words = rest,
                None => break Some(program_name(program, arguments)),
            }
        };
        match found {
            Some(run_program) if !prepares_only(&run_program, words) => return run_program,
            // Where nothing else runs, the last of them is what it is there for.
            Some(run_program)
                if !matches!(
                    run_program.word.as_str(),
                    "" | "[" | "[[" | ":" | "exit" | "return"
                ) =>
            {
                prepares = Some(run_program);
            }
            _ => {}
        }
    }
    prepares.unwrap_or_default()
}

fn words(simple: &Simple) -> Vec<&str> {
    simple.words.iter().map(|word| word.text.as_str()).collect()
}

/// Whether nothing but a guard, a change of folder or a sleep runs.
fn prepares_only(run_program: &RunProgram, words: &[&str]) -> bool {
    let code = |code: &str| code.contains("sleep");
    let sleeps = matches!(words, [_, "-e" | "-le" | "-c" | "-r", text] if code(text));
    let program = words.first().map_or("", |word| base(word));
    run_program.word.is_empty() || PREPARING_COMMANDS.contains(&program) || sleeps
}

fn without_assignments<'w, 't>(words: &'w [&'t str]) -> &'w [&'t str] {
    let assigns = |word: &&&str| {
        word.split_once('=').is_some_and(|(name, _)| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    };
    &words[words.iter().take_while(assigns).count()..]
}

/// The text behind `-c` of a shell, of `su` and of `flock`.
fn inner_command<'t>(program: &str, arguments: &[&'t str]) -> Option<&'t str> {
    let takes = |word: &str| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        letters.ends_with('c') && letters.bytes().all(|byte| byte.is_ascii_lowercase())
    };
    if !SHELLS.contains(&program) && !matches!(program, "su" | "runuser" | "flock") {
        return None;
    }
    let at = arguments.iter().position(|word| takes(word) || *word == "--command")?;
    // The script of a shell may have a -c of its own.
    let script = |word: &&str| !word.starts_with(['-', '+']);
    let shell = SHELLS.contains(&program);
    if shell && arguments[..at].iter().any(script) { None } else { arguments.get(at + 1).copied() }
}

/// What a wrapper runs; `None` if this is none.
fn unwrapped<'w, 't>(program: &str, arguments: &'w [&'t str]) -> Option<&'w [&'t str]> {
    let (_, valued, before) = WRAPPERS.iter().find(|(name, ..)| *name == program)?;
    if program == "command" && arguments.first().is_some_and(|word| matches!(*word, "-v" | "-V")) {
        return Some(arguments);
    }
    let mut rest = arguments;
    while let Some((first, others)) = rest.split_first() {
        rest = match *first {
            "--" => {
                rest = others;
                break;
            }
            option if valued.contains(&option) => others.get(1..).unwrap_or_default(),
            option if option.starts_with('-') => others,
            _ => break,
        };
    }
    rest = rest.get(*before..).unwrap_or_default();
    // The number of `nice 10`, and the options of `ionice -c3 -p`, are no programs.
    let number = |word: &&&str| word.bytes().all(|byte| byte.is_ascii_digit());
    Some(&rest[rest.iter().take_while(number).count()..])
}

/// The name of a program, or of the script that it runs.
fn program_name(program: &str, arguments: &[&str]) -> RunProgram {
    let family = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let shell: &[&str] = &[];
    let valued = INTERPRETERS.iter().find(|(name, _)| *name == program || *name == family);
    let valued = valued.map(|(_, valued)| *valued);
    let valued = valued.or_else(|| SHELLS.contains(&program).then_some(shell));
    let script = valued.and_then(|valued| script(valued, arguments));
    let (word, arguments) = script.unwrap_or((program, arguments));
    let plain = EXTENSIONS.iter().find_map(|extension| word.strip_suffix(extension));
    let word = plain.filter(|plain| !plain.is_empty()).unwrap_or(word);
    RunProgram { word: word.to_owned(), arguments: arguments.join(" ") }
}

/// What an interpreter runs, and the arguments of that.
fn script<'w, 't>(valued: &[&str], arguments: &'w [&'t str]) -> Option<(&'t str, &'w [&'t str])> {
    let mut rest = arguments;
    while let Some((first, others)) = rest.split_first() {
        match *first {
            "-m" | "-jar" | "-f" => {
                return others.split_first().map(|(name, more)| (base(name), more));
            }
            "-e" | "-E" | "-c" | "-r" | "-le" if !valued.contains(first) => return None,
            option if valued.contains(&option) => rest = others.get(1..).unwrap_or_default(),
            word if word.starts_with('-') || SUBCOMMANDS.contains(&word) => rest = others,
            word => return Some((base(word), others)),
        }
    }
    None
}

/// The last part of a path.
fn base(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_called_after_what_it_runs() {
        for (command, word, arguments) in [
            ("/usr/local/bin/backup.sh --all", "backup", "--all"),
            ("cd /srv && FULL=1 nice -n 10 /usr/local/bin/backup.sh --all", "backup", "--all"),
            ("python3 -u /opt/report.py daily", "report", "daily"),
            ("/usr/bin/python3.11 -m shop.reports", "shop.reports", ""),
            ("java -Xmx1g -jar /opt/etl.jar run", "etl", "run"),
            ("php -d memory_limit=1G /srv/bin/console app:mail", "console", "app:mail"),
            (
                "test -x /usr/sbin/anacron || ( cd / && run-parts --report /etc/cron.daily )",
                "cron.daily",
                "",
            ),
            ("[ -d /var ] && find /var -delete", "find", "/var -delete"),
            ("sudo -u www php artisan schedule:run", "artisan", "schedule:run"),
            ("sudo -u www -- /bin/x", "x", ""),
            ("su - shop -c 'cd /srv; ./sync.rb'", "sync", ""),
            ("bash -lc 'source ~/.profile; exec nightly'", "nightly", ""),
            ("bash /opt/x.sh -c y", "x", "-c y"),
            ("flock -n /run/x.lock /opt/sync.sh", "sync", ""),
            ("flock -n /run/x.lock -c '/opt/sync.sh a'", "sync", "a"),
            ("timeout -k 5 30m /opt/sync", "sync", ""),
            ("nice -n10 ionice -c3 /opt/sync", "sync", ""),
            ("command -v debian-sa1 > /dev/null && debian-sa1 60 2", "debian-sa1", "60 2"),
            ("perl -e 'sleep int(rand(43200))' && certbot -q renew", "certbot", "-q renew"),
            ("if [ -x /a ]; then nice -n10 /usr/sbin/logcheck; fi", "logcheck", ""),
            (
                "[ -x /i ] && if [ ! -d /r ]; then /usr/sbin/invoke-rc.d anacron start; fi",
                "anacron",
                "start",
            ),
            (
                "test -x /t && { [ -r \"$D\" ] && . \"$D\" ; nice -n$N /usr/sbin/tigercron -q ; }",
                "tigercron",
                "-q",
            ),
            (
                "d=$(sed -n p x | tail -1); d=${d:-/v}; if [ -d \"$d\" ]; then find $d; fi",
                "find",
                "$d",
            ),
            (
                "php /p.php 2>&1 >/dev/null | if [ -f /usr/bin/ts ] ; then ts ; else tee ; fi",
                "p",
                "",
            ),
            ("echo hello; exit 0", "echo", "hello"),
            ("cd / && /bin/true", "true", ""),
            ("[ -x /a ]", "", ""),
            ("sh -c \"sh -c 'sh -c \\\"sh -c x\\\"'\"", "sh", "-c x"),
            ("\"/opt/my tool.sh\" x", "my tool", "x"),
            ("bundle exec rake db:clean", "rake", "db:clean"),
            ("", "", ""),
            ("&& ;", "", ""),
            ("sudo", "", ""),
        ] {
            let expected = RunProgram { word: word.to_owned(), arguments: arguments.to_owned() };
            assert_eq!(run_program(command), expected, "{command}");
        }
    }
}
