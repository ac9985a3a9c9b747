//! Exit statuses: part of the documented interface, so that scripts can tell cases apart.

use std::fmt::Write as _;
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Exit {
    /// It succeeded.
    Done = 0,
    /// It failed for a reason that has no status of its own.
    Failed = 1,
    /// Arguments or settings are wrong.
    Usage = 2,
    /// The named object does not exist.
    NotFound = 3,
    /// There was nothing to do: the state is so already, or another operator was faster.
    NothingDone = 4,
    /// The database does not answer or refuses the connection.
    Unreachable = 5,
    /// The database's schema is missing or older than this program.
    Schema = 6,
    /// It was not confirmed.
    Unconfirmed = 7,
    /// There are findings.
    Findings = 8,
    /// Only a part was done.
    Partly = 9,
    /// There are warnings, and nothing worse.
    Warnings = 10,
    /// It waits for the approval of another person.
    Waits = 11,
}

impl Exit {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Done,
        Self::Failed,
        Self::Usage,
        Self::NotFound,
        Self::NothingDone,
        Self::Unreachable,
        Self::Schema,
        Self::Unconfirmed,
        Self::Findings,
        Self::Partly,
        Self::Warnings,
        Self::Waits,
    ];

    /// The number.
    pub const fn code(self) -> u8 {
        self as u8
    }

    const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "it failed; the message says why",
            Self::Usage => "wrong arguments or settings",
            Self::NotFound => "the named object does not exist",
            Self::NothingDone => "nothing done: it is so already, or another operator was faster",
            Self::Unreachable => "the database does not answer or refuses the connection",
            Self::Schema => "the database's schema is missing or old: run `sexton migrate`",
            Self::Unconfirmed => "not confirmed: answer yes, or give --yes",
            Self::Findings => {
                "`jobs lint`, `cron lint`, `keys check` or `audit verify` has findings, or `doctor` has one that is an error"
            }
            Self::Partly => "only a part was done or converted; the answer says which",
            Self::Warnings => "`doctor` has warnings, or `status --check` has",
            Self::Waits => "it waits for the approval of another person",
        }
    }

    /// The list for `--help`.
    pub fn help() -> String {
        let mut text = String::from("Exit status:\n");
        for exit in Self::ALL {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {}  {}", exit.code(), exit.meaning());
        }
        text
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
