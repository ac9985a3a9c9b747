//! Errors of the database, one variant per reaction.

use sqlx::error::DatabaseError;

use crate::connection::session_settings::SettingsNotApplied;

/// An error of the store; each variant needs another reaction.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be reached or is going down. Whether the last statement took effect is unknown. Try again
    /// until the database answers.
    #[error("the database does not answer: {0}; check DATABASE_URL and that PostgreSQL runs")]
    Unavailable(#[source] sqlx::Error),
    /// The server refuses these credentials or this database. A retry helps only after somebody has changed
    /// something.
    #[error(
        "the database refuses the connection: {0}; check user, password and database in DATABASE_URL"
    )]
    Refused(#[source] sqlx::Error),
    /// A connection lacks settings on which the protocol's promises rest. Change how the program connects.
    #[error("the connection to the database is refused: {0}")]
    SettingsNotApplied(String),
    /// The server ended the statement at its time limit and rolled it back. A loop tries again; a person narrows the
    /// query.
    #[error("the question took the database too long; narrow it with --job or --since ({0})")]
    TooSlow(#[source] sqlx::Error),
    /// A migration waited too long, and several times, for a table that others read or write, and was rolled back.
    #[error(
        "a table that the migration changes is in use ({0}); see pg_stat_activity for who reads it for \
         long (a backup, a report), and run `sexton migrate` again: it goes on where it stopped"
    )]
    InUse(#[source] sqlx::Error),
    /// Other programs' objects are where Sexton's tables belong. Nothing was changed. Give Sexton another place.
    #[error("this database has no place for Sexton's tables, and nothing was changed: {0}")]
    Unsuitable(String),
    /// The server refuses a value (SQLSTATE 22 or 23). Nothing of the batch was written. Try the rows one by one and
    /// sanitise the culprit.
    #[error("the database refuses a value: {0}")]
    Data(#[source] sqlx::Error),
    /// The schema is older or newer than this program.
    #[error(
        "the database's schema does not fit this program: {0}; run `sexton migrate` of this version"
    )]
    Schema(String),
    /// A row holds what no version of this program writes.
    #[error("unexpected value in {place}: {value}")]
    Inconsistent {
        /// `table.column`.
        place: &'static str,
        /// The value found, shortened.
        value: String,
    },
    /// The log-in lacks a privilege (42501). Somebody has to grant it a role.
    #[error(
        "the log-in of DATABASE_URL lacks a privilege: {}; make it a member of the role that has it: sexton_viewer \
         to look, sexton_operator to act, sexton_service for schedulers and workers, sexton_owner to migrate (`sexton \
         migrate --grant` sets them up)",
        message_of(.0)
    )]
    Forbidden(#[source] sqlx::Error),
    /// The caller is restricted to jobs, and this concerns others. Nothing was changed.
    #[error("{}", message_of(.0))]
    OutOfScope(#[source] sqlx::Error),
    /// A fault of the program: a statement that this schema cannot run.
    #[error("the database cannot run a statement: {0}")]
    Statement(#[source] sqlx::Error),
}

impl StoreError {
    /// Returns whether the server has answered and one row of a batch may be the cause: a value, a damaged page, a
    /// trigger, a table space without room for this row. The others can succeed one by one.
    pub fn may_be_of_one_row(&self) -> bool {
        match self {
            Self::Data(_) | Self::Inconsistent { .. } | Self::Forbidden(_) | Self::Statement(_) => {
                true
            }
            Self::Unavailable(error) => has_code(error, ["53100", "58030"]),
            _ => false,
        }
    }

    /// Returns whether the server has answered that others were in the way: a deadlock, a lock that did not come, or the time was up. The
    /// statement did nothing.
    pub fn is_contention(&self) -> bool {
        match self {
            Self::TooSlow(_) => true,
            Self::Unavailable(error) => has_code(error, ["40P01", "55P03"]),
            _ => false,
        }
    }

    /// Returns whether the server refuses what the statement does, and would refuse it again: a value, more than PostgreSQL can
    /// hold (class 54), or by an exception of a function or trigger (class P0).
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Data(_) => true,
            Self::Statement(error) => {
                let code = error.as_database_error().and_then(DatabaseError::code);
                code.is_some_and(|code| code.starts_with("54") || code.starts_with("P0"))
            }
            _ => false,
        }
    }

    /// Returns whether the same call can succeed later without anybody's intervention.
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable(_)
                | Self::Refused(_)
                | Self::SettingsNotApplied(_)
                | Self::TooSlow(_)
        )
    }
}

fn has_code(error: &sqlx::Error, codes: [&str; 2]) -> bool {
    let code = error.as_database_error().and_then(DatabaseError::code);
    code.is_some_and(|code| codes.contains(&code.as_ref()))
}

/// The server's own words, without the place in its source code.
fn message_of(error: &sqlx::Error) -> String {
    error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
}

/// What helps where a pooler refuses to connect anybody who brings start-up options.
const START_UP_REFUSED: &str = "a connection pooler between this program and PostgreSQL refuses start-up options: let \
    DATABASE_URL name PostgreSQL itself (Sexton pools its connections), or let the pooler ignore them (PgBouncer: \
    ignore_startup_parameters = extra_float_digits,options) and give the role their settings";

/// PgBouncer's words for a start-up parameter that it does not know.
fn is_refused_start_up(error: &sqlx::Error) -> bool {
    let message = error.as_database_error().map(DatabaseError::message);
    message.is_some_and(|text| text.starts_with("unsupported startup parameter"))
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let Some(code) = error.as_database_error().and_then(DatabaseError::code) else {
            return match error {
                sqlx::Error::Configuration(why) if why.is::<SettingsNotApplied>() => {
                    Self::SettingsNotApplied(why.to_string())
                }
                sqlx::Error::ColumnDecode { .. }
                | sqlx::Error::Decode(_)
                | sqlx::Error::ColumnNotFound(_)
                | sqlx::Error::RowNotFound
                | sqlx::Error::Encode(_) => Self::Statement(error),
                other => Self::Unavailable(other),
            };
        };
        if is_refused_start_up(&error) {
            return Self::SettingsNotApplied(START_UP_REFUSED.to_owned());
        }
        match code.as_ref() {
            // Invalid authorisation, unknown database.
            code if code.starts_with("28") || code.starts_with("3D") => Self::Refused(error),
            code if code.starts_with("22") || code.starts_with("23") => Self::Data(error),
            // Undefined table, column or function.
            "42P01" | "42703" | "42883" => Self::Schema(error.to_string()),
            "57014" => Self::TooSlow(error),
            "42501" => Self::Forbidden(error),
            "SX040" => Self::OutOfScope(error),
            // Connection failures, lack of resources, operator intervention, deadlocks, serialisation failures and
            // lock timeouts all pass.
            code if ["08", "40", "53", "55", "57", "58"]
                .iter()
                .any(|class| code.starts_with(class)) =>
            {
                Self::Unavailable(error)
            }
            // A hot standby is being promoted ("cannot execute … in a read-only transaction"), or the server ended an
            // idle transaction, and with it a lock or a sweep.
            "25006" | "25P03" => Self::Unavailable(error),
            _ => Self::Statement(error),
        }
    }
}

impl From<sqlx::migrate::MigrateError> for StoreError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        match error {
            sqlx::migrate::MigrateError::Execute(error)
            | sqlx::migrate::MigrateError::ExecuteMigration(error, _) => error.into(),
            other => Self::Schema(other.to_string()),
        }
    }
}

/// Parses a text column that only this program writes.
pub(crate) fn parse_column<T>(
    place: &'static str,
    text: &str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, StoreError> {
    parse(text).ok_or_else(|| StoreError::Inconsistent {
        place,
        value: sexton_model::ticket::truncate(text, 80).to_owned(),
    })
}
