//! The sleep of a random time in front of a command, by which crontabs keep many hosts from beginning
//! at once. A job has `jitter` for it.
//!
//! It is taken out of a command only where the rest means the same without it: at the command's
//! beginning, or behind tests whose answer does not depend on the time, and joined to the rest by `&&` (at
//! the beginning also by `;`).

use std::time::Duration;

use super::super::shell::{End, Script, Simple, read};

/// What `$RANDOM` is less than.
const RANDOM_END: u64 = 32_768;
/// The longest that becomes a `jitter`.
const MAX_SLEEP: Duration = Duration::from_hours(24);

/// A command that sleeps at random.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct RandomSleep {
    /// It sleeps for less than that, or as long.
    pub(super) most: Duration,
    /// What sleeps, as it is written.
    pub(super) written: String,
    /// The command without it; `None` where that would mean something else.
    pub(super) rest: Option<String>,
    /// It asks the shell for `$RANDOM`, which not every `/bin/sh` knows.
    pub(super) by_shell: bool,
}

/// The first random sleep of a command.
pub(super) fn find(command: &str) -> Option<RandomSleep> {
    let script = read(command);
    let found = script.commands.iter().enumerate().find_map(|(index, simple)| {
        let (range, by_shell) = parse_sleep(simple)?;
        Some((index, range, by_shell))
    });
    let (index, range, by_shell) = found?;
    let simple = &script.commands[index];
    let written = command[simple.at.clone()].trim_end_matches(['&', ';', '\n', ' ', '\t']);
    let most = Duration::from_secs(range.most);
    let maps = range.least <= 1 && range.most > 1 && most <= MAX_SLEEP;
    let rest = (maps && is_removable(&script, index)).then(|| {
        let (before, after) = (&command[..simple.at.start], &command[simple.at.end..]);
        format!("{before}{}", after.trim_start())
    });
    let rest = rest.filter(|rest| !rest.trim().is_empty());
    Some(RandomSleep { most, written: written.to_owned(), rest, by_shell })
}

fn is_removable(script: &Script, index: usize) -> bool {
    let (before, simple) = (&script.commands[..index], &script.commands[index]);
    let after = &script.commands[index + 1..];
    if !script.is_whole || simple.nested || after.is_empty() {
        return false;
    }
    // What comes after a failed test would otherwise come later than it did.
    let in_one_list = after.iter().all(|simple| !simple.nested && simple.end != End::Then);
    match simple.end {
        End::And if before.is_empty() => true,
        End::Then => before.is_empty(),
        End::And => {
            before.iter().all(|simple| simple.end == End::And && simple.is_test()) && in_one_list
        }
        End::Other | End::Text => false,
    }
}

/// Seconds, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Range {
    least: u64,
    most: u64,
}

/// How long it sleeps at random, and whether by `$RANDOM`.
fn parse_sleep(simple: &Simple) -> Option<(Range, bool)> {
    let words: Vec<&str> = simple.words.iter().map(|word| word.text.as_str()).collect();
    let program = words.first()?.rsplit('/').next()?;
    match (program, &words[1..]) {
        ("sleep", [time]) => parse_sleep_argument(time),
        (perl, [option, code]) if perl.starts_with("perl") && option.ends_with(['e', 'E']) => {
            Some((parse_words(code)?, false))
        }
        ("ruby", ["-e", code]) => Some((parse_words(code)?, false)),
        (python, ["-c", code]) if python.starts_with("python") => Some((parse_calls(code)?, false)),
        ("php", ["-r", code]) => Some((parse_calls(code)?, false)),
        _ => None,
    }
}

/// The argument of `sleep`.
fn parse_sleep_argument(time: &str) -> Option<(Range, bool)> {
    let (time, unit) = match time.char_indices().next_back()? {
        (at, 's') => (&time[..at], 1),
        (at, 'm') => (&time[..at], 60),
        (at, 'h') => (&time[..at], 3_600),
        (at, 'd') => (&time[..at], 86_400),
        _ => (time, 1),
    };
    let inside = |open: &str, close: &str| time.strip_prefix(open)?.strip_suffix(close);
    let (range, by_shell) = if let Some(sum) = inside("$((", "))").or_else(|| inside("$[", "]")) {
        (parse_sum(&without_blanks(sum))?, sum.contains("RANDOM"))
    } else {
        let run = inside("$(", ")").or_else(|| inside("`", "`"))?;
        parse_output(run)?
    };
    let times = |seconds: u64| seconds.checked_mul(unit);
    Some((Range { least: times(range.least)?, most: times(range.most)? }, by_shell))
}

/// `RANDOM % 3600`, with or without a `+ 1`.
fn parse_sum(sum: &str) -> Option<Range> {
    let (sum, more) = match sum.strip_suffix("+1") {
        Some(sum) => (sum, 1),
        None => sum.strip_prefix("1+").map_or((sum, 0), |sum| (sum, 1)),
    };
    let bare = sum.strip_prefix('(').and_then(|sum| sum.strip_suffix(')'));
    let (number, end) = bare.unwrap_or(sum).rsplit_once('%')?;
    let end = parse_product(end)?;
    let drawn = match number {
        "RANDOM" | "$RANDOM" | "${RANDOM}" => RANDOM_END,
        device if device.starts_with("$(od") && device.contains("random") => {
            if device.contains("-N1") { 256 } else { u64::MAX }
        }
        _ => return None,
    };
    // Less than the end, or with one more up to it.
    (end > 0).then(|| Range { least: more, most: end.min(drawn) })
}

/// What a command inside of `$(…)` prints.
fn parse_output(command: &str) -> Option<(Range, bool)> {
    let script = read(command);
    let [simple] = &script.commands[..] else { return None };
    let words: Vec<&str> = simple.words.iter().map(|word| word.text.as_str()).collect();
    let (program, arguments) = words.split_first()?;
    match program.rsplit('/').next()? {
        "expr" => Some((parse_sum(&arguments.concat())?, true)),
        "shuf" => Some((parse_shuf(arguments)?, false)),
        "jot" => match arguments {
            ["-r", "1", least, most] => Some((parse_range(least, most)?, false)),
            _ => None,
        },
        _ => match arguments {
            ["-c" | "-r", code] => Some((parse_calls(code)?, false)),
            [option, code] if option.ends_with(['e', 'E']) => Some((parse_words(code)?, false)),
            _ => None,
        },
    }
}

/// `-i 0-3600 -n 1`, in any order and spelling.
fn parse_shuf(arguments: &[&str]) -> Option<Range> {
    let (mut found, mut one) = (None, false);
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let attached = |names: [&str; 2]| {
            let rest = names.iter().find_map(|name| argument.strip_prefix(name))?;
            Some(if rest.is_empty() { None } else { Some(rest.trim_start_matches('=')) })
        };
        if let Some(value) = attached(["--input-range", "-i"]) {
            let (least, most) = value.or_else(|| arguments.next().copied())?.split_once('-')?;
            found = Some(parse_range(least, most)?);
        } else if let Some(value) = attached(["--head-count", "-n"]) {
            one = value.or_else(|| arguments.next().copied())? == "1";
        } else {
            return None;
        }
    }
    found.filter(|_| one)
}

/// Perl and Ruby: `sleep int(rand(3600))` with or without each bracket, or the same with `print`.
fn parse_words(code: &str) -> Option<Range> {
    let bare: String =
        code.chars().filter(|c| !c.is_whitespace() && !matches!(c, '(' | ')' | ';')).collect();
    let bare = ["sleep", "print", "puts"].iter().find_map(|verb| bare.strip_prefix(verb))?;
    let end = bare.strip_prefix("int").unwrap_or(bare).strip_prefix("rand")?;
    Some(Range { least: 0, most: parse_product(end)? })
}

/// Python and PHP: one call that sleeps or prints, besides imports.
fn parse_calls(code: &str) -> Option<Range> {
    let code = without_blanks(code);
    let mut calls = code.split(';').filter(|part| {
        !part.is_empty() && !part.starts_with("import") && !part.starts_with("from")
    });
    let (call, None) = (calls.next()?, calls.next()) else { return None };
    let call = call.strip_prefix("time.").unwrap_or(call);
    let inside = ["sleep", "print", "echo"].iter().find_map(|verb| call.strip_prefix(verb))?;
    let bare = inside.strip_prefix('(').and_then(|inside| inside.strip_suffix(')'));
    let inside = bare.unwrap_or(inside);
    let inside = inside.strip_prefix("random.").unwrap_or(inside);
    let drawn =
        inside.strip_suffix("*random.random()").or_else(|| inside.strip_prefix("random()*"));
    if let Some(end) = drawn {
        return Some(Range { least: 0, most: parse_product(end)? });
    }
    let (function, bounds) = inside.strip_suffix(')')?.split_once('(')?;
    match (function, bounds.split_once(',')) {
        ("randint" | "uniform" | "randrange" | "rand" | "mt_rand" | "random_int", Some((a, b))) => {
            parse_range(a, b)
        }
        ("randrange", None) => Some(Range { least: 0, most: parse_product(bounds)? }),
        _ => None,
    }
}

fn parse_range(least: &str, most: &str) -> Option<Range> {
    let (least, most) = (least.trim().parse().ok()?, parse_product(most.trim())?);
    (least <= most).then_some(Range { least, most })
}

/// `3600` or `60*60`.
fn parse_product(text: &str) -> Option<u64> {
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if digits { text.parse::<u64>().ok() } else { None }
    };
    let bare = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    bare.split('*').try_fold(1_u64, |product, factor| product.checked_mul(number(factor)?))
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &str) -> (u64, Option<String>) {
        let sleep = find(command).unwrap_or_else(|| panic!("nothing sleeps in {command}"));
        (sleep.most.as_secs(), sleep.rest)
    }

    #[test]
    fn the_usual_random_sleeps_are_known_and_taken_out_of_the_command() {
        for (sleeps, most) in [
            ("perl -e 'sleep int(rand(43200))'", 43_200),
            ("/usr/bin/perl -e 'sleep rand 3600;'", 3_600),
            ("perl -le 'sleep rand 60*60'", 3_600),
            ("ruby -e 'sleep rand(900)'", 900),
            ("sleep $((RANDOM % 3600))", 3_600),
            ("/bin/sleep $(( $RANDOM % 60 ))m", 60 * 60),
            ("sleep $[ ( $RANDOM % 10 ) + 1 ]s", 10),
            ("sleep \"$((1 + RANDOM % 600))\"", 600),
            ("sleep $((RANDOM % 43200))", 32_768),
            ("sleep `expr $RANDOM % 90`", 90),
            ("sleep $(expr $RANDOM \\% 90)", 90),
            ("sleep $(shuf -i 0-3600 -n 1)", 3_600),
            ("sleep $(shuf -n1 -i0-90)m", 5_400),
            ("sleep $(shuf --input-range=0-59 --head-count=1)", 59),
            ("sleep $(jot -r 1 0 900)", 900),
            ("sleep $(perl -e 'print int(rand(300))')", 300),
            ("sleep $(( $(od -An -N2 -tu2 /dev/urandom) % 3600 ))", 3_600),
            ("python3 -c 'import random; import time; time.sleep(random.random() * 3600)'", 3_600),
            ("python -c 'from time import sleep; import random; sleep(random.randint(0, 90))'", 90),
            ("python3 -c 'import time, random; time.sleep(random.uniform(0,60*60))'", 3_600),
            ("sleep $(python3 -c 'import random; print(random.randrange(1800))')", 1_800),
            ("php -r 'sleep(rand(0,300));'", 300),
        ] {
            for (before, joint) in [("", "&&"), ("", ";"), ("test -x /b && [ -d $X ] && ", "&&")] {
                let command = format!("{before}{sleeps} {joint} /bin/b -q > /dev/null");
                let rest = format!("{before}/bin/b -q > /dev/null");
                assert_eq!(found(&command), (most, Some(rest)), "{command}");
            }
        }
        let certbot = r"test -x /usr/bin/certbot -a \! -d /run/systemd/system && perl -e 'sleep int(rand(43200))' && certbot -q renew";
        let rest = r"test -x /usr/bin/certbot -a \! -d /run/systemd/system && certbot -q renew";
        assert_eq!(found(certbot), (43_200, Some(rest.to_owned())));
        assert!(find("sleep $((RANDOM % 60)); a").unwrap().by_shell);
        assert!(!find(certbot).unwrap().by_shell);
    }

    #[test]
    fn where_the_rest_would_mean_something_else_the_sleep_stays() {
        let sleep = "sleep $((RANDOM % 60))";
        for command in [
            // Only if a test fails; whatever the test says; after work; beside the rest; as its input.
            format!("test -d /x || {sleep}; b"),
            format!("test -d /x && {sleep}; b"),
            format!("test -d /x && {sleep} && b; c"),
            format!("a && {sleep} && b"),
            format!("{sleep} & b"),
            format!("{sleep} | b"),
            // By a test that may turn out otherwise later.
            format!("[ $(date +%H) = 3 ] && {sleep} && b"),
            format!("( {sleep}; b )"),
            format!("if test -x /b; then {sleep}; b; fi"),
            format!("{sleep} && b 'c"),
            // Nothing is left; for too long; never for a short time.
            sleep.to_owned(),
            "sleep $(shuf -i 0-90000 -n 1); b".to_owned(),
            "sleep $(shuf -i 30-60 -n 1); b".to_owned(),
            "sleep $(shuf -i 1-90 -n 1)m; b".to_owned(),
        ] {
            assert_eq!(found(&command).1, None, "{command}");
        }
    }

    #[test]
    fn a_sleep_that_is_not_random_is_none() {
        for command in [
            "sleep 30; b",
            "sleep $DELAY; b",
            "sleep $(cat /x); b",
            "echo 'sleep $((RANDOM % 60))'",
            "sleep $((RANDOM)); b",
            "sleep $((RANDOM % 0)); b",
            "sleep $(shuf -i 0-9 -n 2); b",
            "perl -e 'sleep rand'; b",
            "python3 -c 'x(); time.sleep(random.random() * 3)'; b",
            "",
        ] {
            assert_eq!(find(command), None, "{command}");
        }
    }
}
