//! What a setting is: its description and the rule its value obeys.

use super::rule::Rule;

/// A Sexton program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Program {
    /// `scheduler`.
    Scheduler,
    /// `worker`.
    Worker,
    /// `sexton`, the operators' command.
    Console,
}

impl Program {
    /// The name of its binary.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::Worker => "worker",
            Self::Console => "sexton",
        }
    }

    /// What it does, in one sentence.
    pub(crate) fn purpose(self) -> &'static str {
        match self {
            Self::Scheduler => {
                "Claims each firing of every active job once, however many schedulers run, and \
                 hands it to the workers."
            }
            Self::Worker => {
                "Runs the tasks of its pools, retries failed attempts and parks executions that \
                 have failed."
            }
            Self::Console => "Shows and steers the platform: jobs, executions, failed tasks.",
        }
    }
}

/// What holds when a variable is not set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fallback {
    /// The program does not start.
    Required,
    /// The thing is left out; the words say what that means.
    Without(&'static str),
    /// This text, read like a value from the environment.
    Text(&'static str),
    /// Found out at start, as the words say.
    Derived(&'static str),
}

/// The description of a setting; plain words, shown to people.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettingInfo {
    /// The environment variable.
    pub(crate) name: &'static str,
    /// What it decides, as full sentences.
    pub(crate) meaning: &'static str,
    /// What its number counts, or what kind of text it is.
    pub(crate) unit: &'static str,
    /// What holds without it.
    pub(crate) fallback: Fallback,
    /// What more and less of it cost, as full sentences.
    pub(crate) trade_off: &'static str,
    /// The programs that read it.
    pub(crate) programs: &'static [Program],
    /// Whether its value must never be shown.
    pub(crate) secret: bool,
}

/// A setting whose values obey `R`.
pub(crate) struct Setting<R> {
    pub(crate) about: SettingInfo,
    pub(crate) rule: R,
}

/// A setting of any type, for what only lists and explains them.
pub(crate) trait AnySetting: Sync {
    /// Its description.
    fn about(&self) -> &SettingInfo;
    /// What values are allowed, as a phrase.
    fn allowed(&self) -> String;
    /// Why `text` is not a value of it.
    #[cfg(test)]
    fn refusal(&self, text: &str) -> Option<String>;
}

impl<R: Rule + Sync> AnySetting for Setting<R> {
    fn about(&self) -> &SettingInfo {
        &self.about
    }

    fn allowed(&self) -> String {
        self.rule.allowed()
    }

    #[cfg(test)]
    fn refusal(&self, text: &str) -> Option<String> {
        self.rule.parse(text).err()
    }
}
