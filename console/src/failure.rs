//! How a command fails: one variant for each exit status.
//!
//! Every message says what to do next. It is written once, by `main`.

mod remedies;

use serde_json::{Value, json};
use sexton_model::alerts_file::AlertsProblem;
use sexton_model::jobs_file::Problem;
use sexton_model::lock_key::ranges_file::RangeProblem;
use sexton_operations::connect::ConnectError;
use sexton_service::settings::SettingsErrors;
use sexton_store::StoreError;

use crate::exit::Exit;

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Nothing else fits.
    #[error("{0}")]
    Failed(String),
    /// A jobs file, or its content, cannot be applied.
    #[error("{}", problems(.0))]
    Problems(Vec<Problem>),
    /// A file of ranges, or its content, cannot be imported.
    #[error("{}", range_problems(.0))]
    RangeProblems(Vec<RangeProblem>),
    /// An alerts file cannot be applied.
    #[error("{}", alerts_problems(.0))]
    AlertsProblems(Vec<AlertsProblem>),
    /// Arguments that the parser cannot judge.
    #[error("{0}")]
    Usage(String),
    /// Settings.
    #[error(transparent)]
    Settings(#[from] SettingsErrors),
    /// Nothing of that name.
    #[error("{0}")]
    NotFound(String),
    /// It is so already, or no longer possible.
    #[error("{0}")]
    NothingDone(String),
    /// The database is away.
    #[error("{0}")]
    Unreachable(String),
    /// The schema does not fit.
    #[error("{0}")]
    Schema(String),
    /// Nobody said yes.
    #[error("{0}")]
    Unconfirmed(String),
    /// Some of it was not done; the answer on standard output says of each whether it was.
    #[error("{message}")]
    Reported {
        /// The status of the process.
        exit: Exit,
        /// Why, for people.
        message: String,
    },
    /// The reader of the output has closed it, so no message can reach it.
    #[error("the output was closed")]
    Closed,
}

impl Failure {
    /// The status of the process.
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Failed(_)
            | Self::Problems(_)
            | Self::RangeProblems(_)
            | Self::AlertsProblems(_) => Exit::Failed,
            Self::Usage(_) | Self::Settings(_) => Exit::Usage,
            Self::NotFound(_) => Exit::NotFound,
            Self::NothingDone(_) => Exit::NothingDone,
            Self::Unreachable(_) => Exit::Unreachable,
            Self::Schema(_) => Exit::Schema,
            Self::Unconfirmed(_) => Exit::Unconfirmed,
            Self::Reported { exit, .. } => *exit,
            // As with every tool in a pipe: `sexton … | head` is no failure.
            Self::Closed => Exit::Done,
        }
    }

    /// The one document of `--json`.
    pub fn document(&self) -> Value {
        let mut document = json!({
            "error": self.to_string(),
            "exit_status": self.exit().code(),
        });
        if let Self::Problems(all) = self {
            let list = all.iter().map(|p| {
                json!({
                    "file": p.file, "line": p.line, "job": p.job, "field": p.field,
                    "message": p.message,
                })
            });
            document["problems"] = list.collect();
        }
        if let Self::RangeProblems(all) = self {
            let list = all.iter().map(|p| {
                json!({
                    "file": p.file, "line": p.line, "column": p.column, "field": p.field,
                    "message": p.message,
                })
            });
            document["problems"] = list.collect();
        }
        if let Self::AlertsProblems(all) = self {
            let list = all.iter().map(|p| {
                json!({
                    "file": p.file, "line": p.line, "place": p.place, "field": p.field,
                    "message": p.message,
                })
            });
            document["problems"] = list.collect();
        }
        document
    }
}

fn alerts_problems(all: &[AlertsProblem]) -> String {
    format!("{}; nothing was applied", listed(all))
}

fn problems(all: &[Problem]) -> String {
    format!("{}; nothing was applied", listed(all))
}

fn range_problems(all: &[RangeProblem]) -> String {
    format!("{}; nothing was imported", listed(all))
}

/// The problems, one a line, and their number.
fn listed(all: &[impl ToString]) -> String {
    let lines: Vec<String> = all.iter().map(ToString::to_string).collect();
    let count = all.len();
    let noun = if count == 1 { "problem" } else { "problems" };
    format!("{}\n{count} {noun}", lines.join("\n"))
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let text = error.to_string();
        match error {
            StoreError::Unavailable(_)
            | StoreError::Refused(_)
            | StoreError::SettingsNotApplied(_) => Self::Unreachable(text),
            StoreError::Schema(_) | StoreError::Unsuitable(_) => Self::Schema(text),
            StoreError::TooSlow(_)
            | StoreError::InUse(_)
            | StoreError::Data(_)
            | StoreError::Inconsistent { .. }
            | StoreError::Forbidden(_)
            | StoreError::OutOfScope(_)
            | StoreError::Statement(_) => Self::Failed(text),
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let text = error.to_string();
        match error {
            ConnectError::Settings(errors) => Self::Settings(errors),
            ConnectError::Unreachable(_) => Self::Unreachable(text),
            ConnectError::Schema(_) => Self::Schema(text),
            ConnectError::Store(error) => error.into(),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Self::Closed
        } else {
            Self::Failed(format!("the output cannot be written: {error}"))
        }
    }
}
