//! Failures of a task's statement, by reaction.

use sqlx::error::DatabaseError;

/// The reaction to a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reaction {
    /// Try the task again: the cause is temporary.
    Retry,
    /// Do not retry: the statement, its privileges or its data must change first.
    GiveUp,
    /// The server ended the statement at a limit or on request.
    Stopped,
}

/// A failure of a task's transaction, which has had no effect.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct TaskFailure {
    /// The reaction.
    pub reaction: Reaction,
    /// The condition's name in PostgreSQL's documentation.
    pub class: String,
    /// The server's message.
    pub message: String,
}

impl TaskFailure {
    pub(super) fn of(error: &sqlx::Error) -> Self {
        let Some(known) = error.as_database_error() else { return Self::without_code(error) };
        let code = known.code().unwrap_or_default();
        let hint = match &*code {
            // From Bind: the statement has more parameters than it gets.
            "08P01" => "; a task's statement has $1 params, $2 idempotency key, $3 nominal time",
            _ => "",
        };
        let message = format!("{}{hint}", full_message(known));
        Self { reaction: reaction_to(&code), class: condition_name(&code), message }
    }

    pub(super) fn ended_by_itself() -> Self {
        Self {
            reaction: Reaction::GiveUp,
            class: "invalid_transaction_termination".to_owned(),
            message:
                "the task ended the transaction that its completion belongs to; leave COMMIT and \
                      ROLLBACK out of it"
                    .to_owned(),
        }
    }

    /// For errors that do not come from the server: the connection, or an answer that was not understood.
    fn without_code(error: &sqlx::Error) -> Self {
        let (reaction, class) = match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => (Reaction::Retry, "connection_failure"),
            _ => (Reaction::GiveUp, "protocol_violation"),
        };
        Self { reaction, class: class.to_owned(), message: error.to_string() }
    }
}

/// Returns the message with the server's detail and hint.
fn full_message(error: &(dyn DatabaseError + 'static)) -> String {
    let of_server = error.try_downcast_ref::<sqlx::postgres::PgDatabaseError>();
    let more = of_server.and_then(|error| error.detail().or_else(|| error.hint()));
    match more {
        Some(more) => format!("{} ({more})", error.message()),
        None => error.message().to_owned(),
    }
}

/// Returns the reaction by SQLSTATE, whose first two characters are the class.
fn reaction_to(code: &str) -> Reaction {
    match code {
        "57014" => Reaction::Stopped,
        // A wrong number of parameters, and a constraint checked at the commit.
        "08P01" | "40002" => Reaction::GiveUp,
        // A standby before its promotion; a transaction that was idle, as of a frozen worker; a lock timeout; a table
        // in use.
        "25006" | "25P03" | "25P04" | "55P03" | "55006" => Reaction::Retry,
        _ => match code.get(..2).unwrap_or_default() {
            // Features, transactions, cardinality, data, constraints, names, privileges, the server's limits, objects
            // in a wrong state: the next attempt would fail in the same way.
            "0A" | "0B" | "0L" | "0P" | "20" | "21" | "22" | "23" | "24" | "25" | "26" | "2B"
            | "2D" | "2F" | "34" | "38" | "39" | "3B" | "3D" | "3F" | "42" | "44" | "54" | "55" => {
                Reaction::GiveUp
            }
            // Connections, serialisation and deadlocks, lack of resources, operator intervention; and errors that a
            // function raises itself.
            _ => Reaction::Retry,
        },
    }
}

/// The condition's name, for the codes that tasks meet; `sqlstate_…` for others.
fn condition_name(code: &str) -> String {
    let name = match code {
        "08000" => "connection_exception",
        "08003" => "connection_does_not_exist",
        "08006" => "connection_failure",
        "08P01" => "protocol_violation",
        "0A000" => "feature_not_supported",
        "21000" => "cardinality_violation",
        "22000" => "data_exception",
        "22001" => "string_data_right_truncation",
        "22003" => "numeric_value_out_of_range",
        "22004" => "null_value_not_allowed",
        "22007" => "invalid_datetime_format",
        "22008" => "datetime_field_overflow",
        "22012" => "division_by_zero",
        "22023" => "invalid_parameter_value",
        "22P02" => "invalid_text_representation",
        "22P05" => "untranslatable_character",
        "23000" => "integrity_constraint_violation",
        "23502" => "not_null_violation",
        "23503" => "foreign_key_violation",
        "23505" => "unique_violation",
        "23514" => "check_violation",
        "23P01" => "exclusion_violation",
        "25001" => "active_sql_transaction",
        "25006" => "read_only_sql_transaction",
        "25P02" => "in_failed_sql_transaction",
        "25P03" => "idle_in_transaction_session_timeout",
        "28000" => "invalid_authorization_specification",
        "28P01" => "invalid_password",
        "2D000" => "invalid_transaction_termination",
        "3D000" => "invalid_catalog_name",
        "3F000" => "invalid_schema_name",
        "40001" => "serialization_failure",
        "40002" => "transaction_integrity_constraint_violation",
        "40P01" => "deadlock_detected",
        "42501" => "insufficient_privilege",
        "42601" => "syntax_error",
        "42703" => "undefined_column",
        "42704" => "undefined_object",
        "42804" => "datatype_mismatch",
        "42846" => "cannot_coerce",
        "42883" => "undefined_function",
        "42P01" => "undefined_table",
        "42P02" => "undefined_parameter",
        "42P18" => "indeterminate_datatype",
        "53100" => "disk_full",
        "53200" => "out_of_memory",
        "53300" => "too_many_connections",
        "54000" => "program_limit_exceeded",
        "54001" => "statement_too_complex",
        "55000" => "object_not_in_prerequisite_state",
        "55006" => "object_in_use",
        "55P03" => "lock_not_available",
        "57014" => "query_canceled",
        "57P01" => "admin_shutdown",
        "57P02" => "crash_shutdown",
        "57P03" => "cannot_connect_now",
        "P0001" => "raise_exception",
        "P0002" => "no_data_found",
        "P0003" => "too_many_rows",
        "P0004" => "assert_failure",
        "XX000" => "internal_error",
        other => return format!("sqlstate_{other}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_tried_again_and_what_has_to_be_mended_is_not() {
        for code in
            ["40001", "40P01", "55P03", "08006", "53300", "57P01", "25P03", "P0001", "XX000"]
        {
            assert_eq!(reaction_to(code), Reaction::Retry, "{code}");
        }
        for code in
            ["42601", "42P01", "42501", "23505", "22012", "2D000", "25001", "08P01", "0A000"]
        {
            assert_eq!(reaction_to(code), Reaction::GiveUp, "{code}");
        }
        assert_eq!(reaction_to("57014"), Reaction::Stopped);
    }

    #[test]
    fn a_failure_bears_the_name_of_its_condition() {
        assert_eq!(condition_name("40P01"), "deadlock_detected");
        assert_eq!(condition_name("ZZ123"), "sqlstate_ZZ123");
        let lost = TaskFailure::of(&sqlx::Error::PoolTimedOut);
        assert_eq!((lost.reaction, &*lost.class), (Reaction::Retry, "connection_failure"));
        let odd = TaskFailure::of(&sqlx::Error::Protocol("copy".to_owned()));
        assert_eq!(odd.reaction, Reaction::GiveUp);
    }
}
