//! Names for jobs: valid, unique, and the same at every import.
//!
//! Entries that would be called the same are distinguished by what they are (their arguments, their
//! schedule), not by their number, and the first keeps its name. So an entry that is added below others
//! changes no name, and one that is added above another of its name changes these two at most.

use std::collections::{HashMap, HashSet};

use sexton_model::job::{MAX_TASK_TYPE_BYTES, is_reserved};

/// The most bytes of a name's part that comes from the file.
const MAX_WORD_BYTES: usize = 40;
/// The most bytes of what distinguishes two of one name.
const MAX_MARK_BYTES: usize = 24;
/// Leaves room for a number behind a mark: a task type bears the name, too.
const MAX_BASE_BYTES: usize = MAX_TASK_TYPE_BYTES - MAX_MARK_BYTES - 8;

/// What an entry is called after.
#[derive(Clone, Copy, Default)]
pub(super) struct NameHints<'t> {
    /// The first parts of the name; each is left out where what follows says it already.
    pub(super) before: [Option<&'t str>; 2],
    /// The last one.
    pub(super) word: &'t str,
    /// What distinguishes it from others of this name, the best first.
    pub(super) marks: &'t [&'t str],
}

/// Gives each name once.
#[derive(Default)]
pub(super) struct Names {
    used: HashSet<String>,
    /// The marks that entries of one name have, its first one among them.
    marks: HashSet<(String, usize, String)>,
    /// How often each was requested, so that many of one name cost no search.
    requested: HashMap<String, usize>,
}

impl Names {
    /// `file.program`; where that is used, `file.program-arguments`, and at last `file.program-2`.
    pub(super) fn unique(&mut self, hints: NameHints<'_>) -> String {
        let base = base(&hints);
        let mut candidates = vec![base.clone()];
        for (rank, mark) in hints.marks.iter().enumerate() {
            let mark = part(mark, MAX_MARK_BYTES);
            // What others of this name have too, would say that they have not.
            let is_new = self.marks.insert((base.clone(), rank, mark.clone()));
            if is_new && !mark.is_empty() {
                candidates.push(format!("{base}-{mark}"));
            }
        }
        if let Some(name) = candidates.into_iter().find(|name| !self.used.contains(name)) {
            self.used.insert(name.clone());
            return name;
        }
        let requested = self.requested.entry(base.clone()).or_insert(1);
        loop {
            *requested += 1;
            let numbered = format!("{base}-{requested}");
            if self.used.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

fn base(hints: &NameHints<'_>) -> String {
    let mut base = match part(hints.word, MAX_WORD_BYTES) {
        word if word.is_empty() => "job".to_owned(),
        word => word,
    };
    for before in hints.before.iter().rev().flatten() {
        let before = part(before, MAX_WORD_BYTES);
        let is_repeated = base
            .strip_prefix(&before)
            .is_some_and(|rest| matches!(rest.chars().next(), None | Some('.')));
        if !is_repeated && !before.is_empty() {
            base = format!("{before}.{base}");
        }
    }
    if is_reserved(&base) {
        base = format!("import.{base}");
    }
    part(&base, MAX_BASE_BYTES)
}

/// The text in the alphabet of names.
fn part(text: &str, max_bytes: usize) -> String {
    let mut part = String::new();
    for character in text.chars() {
        if part.len() == max_bytes {
            break;
        }
        match character {
            c if c.is_ascii_alphanumeric() || matches!(c, '_' | '.') => part.push(c),
            _ if part.is_empty() || part.ends_with('-') => {}
            _ => part.push('-'),
        }
    }
    part.trim_matches(['-', '.', '_']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints<'t>(word: &'t str, marks: &'t [&'t str]) -> NameHints<'t> {
        NameHints { before: [None, Some("cron")], word, marks }
    }

    #[test]
    fn names_are_valid_and_unique_and_the_same_at_every_import() {
        let requested = ["a", "a", "a-2", "a", "", "ä ö", "x/y z", &"long".repeat(50), "_._"];
        let names = || {
            let mut names = Names::default();
            requested.iter().map(|word| names.unique(hints(word, &[]))).collect::<Vec<_>>()
        };
        let given = names();
        assert_eq!(
            given[..6],
            ["cron.a", "cron.a-2", "cron.a-2-2", "cron.a-3", "cron.job", "cron.job-2"]
        );
        assert_eq!(given, names());
        let long = "long".repeat(50);
        let longest =
            NameHints { before: [Some(&long), Some(&long)], word: &long, marks: &[&long] };
        let mut names = Names::default();
        let mut given: Vec<_> =
            given.into_iter().chain([names.unique(longest), names.unique(longest)]).collect();
        for word in ["foreign", "foreign.x", "verify.x"] {
            given.push(Names::default().unique(NameHints { word, ..NameHints::default() }));
        }
        for name in &given {
            assert_eq!(sexton_model::job::check_name(name), Ok(()), "{name}");
            assert_eq!(sexton_model::job::check_task_type(name), Ok(()), "{name}");
            assert!(!is_reserved(name), "{name}");
        }
    }

    #[test]
    fn what_a_name_says_already_is_not_said_again() {
        let name = |service, file, word| {
            let before = [service, Some(file)];
            Names::default().unique(NameHints { before, word, marks: &[] })
        };
        assert_eq!(name(None, "certbot", "certbot"), "certbot");
        assert_eq!(name(None, "php", "sessionclean"), "php.sessionclean");
        assert_eq!(name(None, "cron", "cron.daily"), "cron.daily");
        assert_eq!(name(Some("host7"), "certbot", "certbot"), "host7.certbot");
        assert_eq!(name(Some("host7"), "php", "phpquery"), "host7.php.phpquery");
    }

    #[test]
    fn entries_of_one_name_are_distinguished_by_what_they_are_and_keep_their_names_when_others_are_added()
     {
        let marks: [&[&str]; 5] = [
            &["1 1", "5-55/10 * * * *"],
            &["60 2", "59 23 * * *"],
            &["60 2", "@daily"],
            &["60 2", "@daily"],
            &["", "0 8 * * *"],
        ];
        let names = |marks: &[&[&str]]| {
            let mut names = Names::default();
            marks.iter().map(|marks| names.unique(hints("sa1", marks))).collect::<Vec<_>>()
        };
        let given = names(&marks);
        assert_eq!(
            given,
            ["cron.sa1", "cron.sa1-60-2", "cron.sa1-daily", "cron.sa1-2", "cron.sa1-0-8"]
        );
        for count in 0..marks.len() {
            assert_eq!(names(&marks[..count]), given[..count]);
        }
    }
}
