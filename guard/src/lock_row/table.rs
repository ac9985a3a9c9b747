//! The table of lock rows: its name, and whether its shape is the right one.

use std::fmt;
use std::str::FromStr;

use sqlx::{AssertSqlSafe, PgPool, Row as _};

use super::statements::literal;
use crate::error::LockError;
use crate::table_problems::TableProblems;

/// The bytes of an identifier that PostgreSQL keeps.
const MAX_IDENTIFIER_BYTES: usize = 63;

/// A table's name, quoted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Table {
    quoted: String,
    shown: String,
}

impl Default for Table {
    fn default() -> Self {
        Self { quoted: "\"shedlock\"".to_owned(), shown: "shedlock".to_owned() }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.quoted)
    }
}

impl FromStr for Table {
    type Err = LockError;

    /// Reads `table` or `schema.table`, as they are in the catalogue.
    fn from_str(text: &str) -> Result<Self, LockError> {
        let parts: Vec<&str> = text.split('.').collect();
        let is_valid = |part: &&str| {
            !part.is_empty()
                && part.len() <= MAX_IDENTIFIER_BYTES
                && !part.starts_with(|c: char| c.is_ascii_digit())
                && part.chars().all(|c| c.is_alphanumeric() || c == '_')
        };
        if parts.len() > 2 || !parts.iter().all(is_valid) {
            let shown: String = text.chars().take(60).collect();
            return Err(LockError::Invalid(format!(
                "{shown:?} is no table's name; write letters, digits and underscores, with at most one schema and a dot before"
            )));
        }
        let quoted: Vec<String> = parts.iter().map(|part| format!("\"{part}\"")).collect();
        Ok(Self { quoted: quoted.join("."), shown: text.to_owned() })
    }
}

/// A column that must be there, by its type in the catalogue's words.
struct Column {
    name: &'static str,
    is_right: fn(&str) -> bool,
    expected: &'static str,
}

const COLUMNS: [Column; 4] = [
    Column { name: "name", is_right: |found| holds_text(found, 64), expected: "varchar(64)" },
    Column { name: "lock_until", is_right: is_timestamp, expected: TIMESTAMP },
    Column { name: "locked_at", is_right: is_timestamp, expected: TIMESTAMP },
    Column {
        name: "locked_by",
        is_right: |found| holds_text(found, 255),
        expected: "varchar(255)",
    },
];

const TIMESTAMP: &str = "timestamp without time zone";

fn holds_text(found: &str, least: usize) -> bool {
    let length = found.strip_prefix("character varying(").and_then(|rest| rest.strip_suffix(')'));
    matches!(found, "text" | "character varying")
        || length
            .and_then(|length| length.parse().ok())
            .is_some_and(|length: usize| length >= least)
}

/// With milliseconds at least: a coarser one is rounded by more than the margin of a lock.
fn is_timestamp(found: &str) -> bool {
    found == TIMESTAMP
        || (3..=6).any(|digits| found == format!("timestamp({digits}) without time zone"))
}

/// Checks the table, once for each lock row: a column with a time zone would take the wrong times without an error.
///
/// # Errors
///
/// [`LockError::Table`] with all problems, and those of the database.
pub(super) async fn check(pool: &PgPool, table: &Table) -> Result<(), LockError> {
    let of_table = literal(&table.quoted);
    let statement = format!(
        "SELECT c.relkind::text AS kind, a.attname::text AS name, format_type(a.atttypid, a.atttypmod) AS type,
                a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AND a.attgenerated = '' AS is_required,
                EXISTS (SELECT FROM pg_index i
                        WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
                          AND i.indpred IS NULL AND i.indexprs IS NULL AND i.indnkeyatts = 1
                          AND i.indkey[0] = (SELECT n.attnum FROM pg_attribute n
                                             WHERE n.attrelid = c.oid AND n.attname = 'name')) AS is_unique,
                array_to_string(ARRAY(
                    SELECT p FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) p
                    WHERE NOT has_table_privilege(c.oid, p)), ', ') AS missing
         FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
         WHERE c.oid = to_regclass({of_table})"
    );
    let rows = sqlx::raw_sql(AssertSqlSafe(statement)).fetch_all(pool).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        found.push(FoundColumn {
            name: row.try_get("name")?,
            of_type: row.try_get("type")?,
            is_required: row.try_get("is_required")?,
        });
    }
    let of_table = match rows.first() {
        None => None,
        Some(row) => Some(FoundTable {
            kind: row.try_get("kind")?,
            is_unique: row.try_get("is_unique")?,
            missing_privileges: row.try_get("missing")?,
        }),
    };
    let problems = problems(of_table.as_ref(), &found);
    if problems.is_empty() {
        return Ok(());
    }
    Err(LockError::Table(TableProblems { table: table.shown.clone(), problems }))
}

struct FoundTable {
    kind: String,
    is_unique: bool,
    missing_privileges: String,
}

struct FoundColumn {
    name: String,
    of_type: String,
    is_required: bool,
}

fn problems(table: Option<&FoundTable>, columns: &[FoundColumn]) -> Vec<String> {
    let Some(table) = table else {
        return vec![
            "it is not in this database, or not in a schema of the search_path".to_owned(),
        ];
    };
    if !matches!(&*table.kind, "r" | "p") {
        return vec!["it is no table".to_owned()];
    }
    let mut problems = Vec::new();
    for expected in &COLUMNS {
        match columns.iter().find(|column| column.name == expected.name) {
            None => problems.push(format!(
                "column {} is missing and must be {}",
                expected.name, expected.expected
            )),
            Some(column) if !(expected.is_right)(&column.of_type) => problems.push(format!(
                "column {} is {} and must be {}",
                expected.name, column.of_type, expected.expected
            )),
            Some(_) => {}
        }
    }
    let is_extra = |column: &&FoundColumn| {
        column.is_required && COLUMNS.iter().all(|known| known.name != column.name)
    };
    for column in columns.iter().filter(is_extra) {
        problems.push(format!(
            "column {} is not null and has no default, and no lock sets it",
            column.name
        ));
    }
    if !table.is_unique {
        problems.push("column name is neither primary key nor unique by itself".to_owned());
    }
    if !table.missing_privileges.is_empty() {
        problems.push(format!("this role lacks {} on it", table.missing_privileges));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_a_name_with_or_without_a_schema() {
        assert_eq!("locks.shedlock".parse::<Table>().unwrap().to_string(), r#""locks"."shedlock""#);
        assert_eq!("Größe_1".parse::<Table>().unwrap().to_string(), r#""Größe_1""#);
        let long = "x".repeat(64);
        for text in ["", ".", "a.b.c", "a b", "a\"b", "a;b", "1a", "a.", &*long] {
            let error = text.parse::<Table>().unwrap_err().to_string();
            assert!(error.contains("is no table's name"), "{error}");
        }
    }

    #[test]
    fn types_that_hold_the_values_are_right() {
        for right in ["text", "character varying", "character varying(64)", "character varying(90)"]
        {
            assert!(holds_text(right, 64), "{right}");
        }
        for wrong in ["character varying(63)", "character(64)", "bytea", "name"] {
            assert!(!holds_text(wrong, 64), "{wrong}");
        }
        assert!(is_timestamp(TIMESTAMP) && is_timestamp("timestamp(3) without time zone"));
        for wrong in ["timestamp with time zone", "timestamp(0) without time zone", "date", "text"]
        {
            assert!(!is_timestamp(wrong), "{wrong}");
        }
    }
}
