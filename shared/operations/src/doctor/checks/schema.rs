//! Checks that the database's schema is this program's.

use super::join_first;
use crate::doctor::facts::Facts;
use crate::doctor::{Code, Finding};

pub(in crate::doctor) fn check(facts: &Facts, found: &mut Vec<Finding>) {
    let Ok(database) = &facts.database else { return };
    let migrations = &database.migrations;
    for (numbers, code) in [
        (&migrations.missing, Code::MigrationsMissing),
        (&migrations.unknown, Code::MigrationsUnknown),
        (&migrations.changed, Code::MigrationsChanged),
    ] {
        if !numbers.is_empty() {
            let numbers = join_first(numbers.iter().map(|number| format!("{number:04}")));
            found.push(Finding::new(code, format!("migrations {numbers}")));
        }
    }
    if !database.invalid_indexes.is_empty() {
        let each =
            database.invalid_indexes.iter().map(|one| format!("{} of {}", one.index, one.table));
        found.push(Finding::new(Code::IndexInvalid, join_first(each)));
    }
    // Missing migrations are reported above.
    if let Err(why) = &database.rows
        && migrations.missing.is_empty()
    {
        found.push(Finding::new(Code::RowsUnread, why));
    }
}
