//! A setting: its description and the rule for its value.

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
    /// `sexton serve`, which accepts pings.
    Server,
}

impl Program {
    /// How many there are.
    pub(crate) const NUMBER: usize = 4;

    /// Returns the name of its binary.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::Worker => "worker",
            Self::Console => "sexton",
            Self::Server => "sexton serve",
        }
    }

    /// Returns its purpose, in one sentence.
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
            Self::Server => "Accepts pings of jobs that run elsewhere.",
            Self::Console => "Shows and steers the platform: jobs, executions, failed tasks.",
        }
    }
}

/// The behaviour without the variable.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fallback {
    /// The program does not start.
    Required,
    /// The feature is off; the text says what that means.
    Without(&'static str),
    /// The default, parsed like a value from the environment.
    Text(&'static str),
    /// The program computes it at its start, as the text says.
    Derived(&'static str),
}

/// The description of a setting, in plain words for people.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettingInfo {
    /// The environment variable.
    pub(crate) name: &'static str,
    /// The setting's meaning, in full sentences.
    pub(crate) meaning: &'static str,
    /// The unit of its number, or the kind of its text.
    pub(crate) unit: &'static str,
    /// The behaviour without it.
    pub(crate) fallback: Fallback,
    /// The costs of more and of less, in full sentences.
    pub(crate) trade_off: &'static str,
    /// The programs that read it.
    pub(crate) programs: &'static [Program],
    /// Whether its value must never be shown.
    pub(crate) secret: bool,
}

/// A setting whose values follow the rule `R`.
pub(crate) struct Setting<R> {
    pub(crate) about: SettingInfo,
    pub(crate) rule: R,
}

/// A setting of any type, for lists and help texts.
pub(crate) trait AnySetting: Sync {
    /// Returns its description.
    fn about(&self) -> &SettingInfo;
    /// Returns the allowed values, as a phrase.
    fn allowed(&self) -> String;
    /// Returns why `text` is not a value of it.
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
