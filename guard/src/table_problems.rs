//! What is wrong with a table of lock rows.

use std::fmt;

/// The table with which [`LockRow`](crate::LockRow) works, ShedLock's own. Name it as you like, also in a schema.
pub const CREATE_SHEDLOCK: &str = "CREATE TABLE shedlock (
    name varchar(64) PRIMARY KEY,
    lock_until timestamp NOT NULL,
    locked_at timestamp NOT NULL,
    locked_by varchar(255) NOT NULL
)";

/// Why a table cannot hold lock rows: all problems, column by column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableProblems {
    /// The table's name.
    pub table: String,
    /// What is wrong, one for each column or the table itself.
    pub problems: Vec<String>,
}

impl fmt::Display for TableProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the table {} cannot hold lock rows: {}; make it like this, or name another table: {}",
            self.table,
            self.problems.join("; "),
            CREATE_SHEDLOCK.split_whitespace().collect::<Vec<_>>().join(" ")
        )
    }
}
