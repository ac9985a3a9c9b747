//! What an incident says about a group that an operator resolved and that failed again.

use std::fmt::Write as _;

use chrono::{DateTime, SecondsFormat, Utc};

use crate::fingerprint::pattern;

/// Digits of the fingerprint in a name; lists show as many.
const NAME_DIGITS: usize = 8;
/// The first words of the error in a name, in characters.
const NAME_WORDS_CHARS: usize = 80;
/// The error in a text, in characters.
const ERROR_CHARS: usize = 300;

/// A resolved group with new failures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReopenedGroup {
    /// Its fingerprint.
    pub fingerprint: String,
    /// New failures of it.
    pub again: i64,
    /// Number of its failed executions.
    pub standing: i64,
    /// Number of their jobs.
    pub jobs: i64,
    /// The first names of these.
    pub names: Vec<String>,
    /// Who resolved it.
    pub decided_by: Option<String>,
    /// When.
    pub decided_at: DateTime<Utc>,
    /// Class of the error; empty: none.
    pub error_class: String,
    /// Message of the last failure; empty: none.
    pub message: String,
}

impl ReopenedGroup {
    /// Returns the group's name for people: the beginning of the fingerprint, and the first words of the error.
    pub fn name(&self) -> String {
        let digits: String = self.fingerprint.chars().take(NAME_DIGITS).collect();
        let words: String = pattern(&self.message).chars().take(NAME_WORDS_CHARS).collect();
        match (words.is_empty(), self.error_class.is_empty()) {
            (false, _) => format!("{digits} {words}"),
            (true, false) => format!("{digits} {}", self.error_class),
            (true, true) => digits,
        }
    }

    /// Returns what happened, in words.
    pub fn describe(&self) -> String {
        let line = self.message.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let error: String = line.trim().chars().take(ERROR_CHARS).collect();
        let again = counted(self.again, "execution");
        let by = self.decided_by.as_deref().unwrap_or("an operator");
        let at = self.decided_at.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        let class = &self.error_class;
        let mut text = format!("{again} failed since {by} resolved the group at {at}: ");
        text.push_str(&[class, error.as_str()].join(": "));
        let (standing, jobs) = (self.standing, counted(self.jobs, "job"));
        let more = if self.jobs > self.names.len() as i64 { ", …" } else { "" };
        // Writing to a String cannot fail.
        let _ = write!(text, "\nfailed now: {standing} of {jobs}: {}{more}", self.names.join(", "));
        text
    }
}

fn counted(count: i64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group() -> ReopenedGroup {
        ReopenedGroup {
            fingerprint: "ab6a884712345678".to_owned(),
            again: 2,
            standing: 3,
            jobs: 2,
            names: vec!["ads.bill".to_owned(), "shop.charge".to_owned()],
            decided_by: Some("ann".to_owned()),
            decided_at: DateTime::from_timestamp(1_800_000_000, 0).unwrap(),
            error_class: "exit_1".to_owned(),
            message: "\ncard 4891 declined\nat line 7".to_owned(),
        }
    }

    #[test]
    fn it_says_what_failed_again_how_often_and_of_which_jobs() {
        assert_eq!(group().name(), "ab6a8847 card <n> declined");
        assert_eq!(
            group().describe(),
            "2 executions failed since ann resolved the group at 2027-01-15T08:00:00Z: exit_1: card 4891 declined\n\
             failed now: 3 of 2 jobs: ads.bill, shop.charge"
        );
        let many = ReopenedGroup { again: 1, jobs: 9, ..group() };
        assert!(many.describe().starts_with("1 execution failed since ann"), "{}", many.describe());
        assert!(many.describe().ends_with("of 9 jobs: ads.bill, shop.charge, …"));
    }

    #[test]
    fn a_group_without_a_message_is_called_by_its_class() {
        let group = ReopenedGroup { message: String::new(), ..group() };
        assert_eq!(group.name(), "ab6a8847 exit_1");
        let group = ReopenedGroup { error_class: String::new(), ..group };
        assert_eq!(group.name(), "ab6a8847");
    }
}
