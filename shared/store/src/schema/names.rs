//! The names of the objects that migrations create.

use sqlx::migrate::Migrator;

use super::up_migrations;

/// The kind of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A table.
    Table,
    /// An index, a function, a sequence: any other named object.
    Other,
}

/// Returns all objects that the files create, in their order, including those that they drop again.
pub(super) fn created_names(migrator: &Migrator) -> Vec<(Kind, String)> {
    let of_file = |sql: &str| {
        sql.lines().filter_map(created_by).map(|(kind, name)| (kind, name.to_owned())).collect()
    };
    up_migrations(migrator)
        .flat_map(|migration| -> Vec<_> { of_file(migration.sql.as_str()) })
        .collect()
}

/// Returns the names of the tables.
pub(super) fn table_names(migrator: &Migrator) -> Vec<String> {
    let tables = created_names(migrator).into_iter().filter(|(kind, _)| *kind == Kind::Table);
    tables.map(|(_, name)| name).collect()
}

fn created_by(line: &str) -> Option<(Kind, &str)> {
    let mut words = line.strip_prefix("CREATE ")?.split([' ', '(', ';']).filter(|w| !w.is_empty());
    let mut kind = None;
    loop {
        match words.next()? {
            "TABLE" => kind = Some(Kind::Table),
            "INDEX" | "FUNCTION" | "SEQUENCE" | "TYPE" | "VIEW" => kind = Some(Kind::Other),
            "UNIQUE" | "UNLOGGED" | "CONCURRENTLY" | "IF" | "NOT" | "EXISTS" | "MATERIALIZED" => {}
            name => {
                return kind.map(|kind| (kind, name.strip_prefix("sexton.").unwrap_or(name)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::MIGRATIONS;

    #[test]
    fn names_are_read_from_every_way_to_create() {
        for (line, kind, name) in [
            ("CREATE TABLE sexton.jobs (", Kind::Table, "jobs"),
            ("CREATE UNLOGGED TABLE sexton.sweep_kept (", Kind::Table, "sweep_kept"),
            ("CREATE UNIQUE INDEX holds_open ON sexton.holds ((true))", Kind::Other, "holds_open"),
            ("CREATE INDEX CONCURRENTLY IF NOT EXISTS a_b ON a (b);", Kind::Other, "a_b"),
            ("CREATE FUNCTION sexton.f() RETURNS trigger", Kind::Other, "f"),
        ] {
            assert_eq!(created_by(line), Some((kind, name)), "{line}");
        }
        assert_eq!(created_by("CREATE TRIGGER t AFTER INSERT ON sexton.jobs"), None);
        assert_eq!(created_by("CREATE OR REPLACE FUNCTION f()"), None);
    }

    #[test]
    fn the_tables_of_our_migrations_are_known() {
        let tables = table_names(&MIGRATIONS);
        assert!(
            ["jobs", "executions", "failures"]
                .iter()
                .all(|name| tables.contains(&(*name).to_owned()))
        );
    }

    /// Returns the files of a folder, recursively.
    fn sources(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }

    /// Statements that the macros check are prepared where unqualified tables do not exist. This test reads the
    /// others too.
    #[test]
    fn every_statement_of_the_store_names_the_schema_of_its_tables() {
        let mut tables = table_names(&MIGRATIONS);
        tables.push("_sqlx_migrations".to_owned());
        let files = sources(std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")));
        assert!(files.len() > 50, "{files:?}");
        let mut statements = 0;
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap().replace("\\n", " ");
            let words: Vec<&str> = text.split_whitespace().collect();
            for pair in words.windows(2) {
                let after = ["FROM", "JOIN", "INTO", "UPDATE", "TABLE", "ONLY", "USING"];
                let name =
                    pair[1].trim_matches(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
                if after.iter().any(|word| pair[0].ends_with(word)) {
                    let bare = tables.iter().any(|table| table == name);
                    assert!(!bare, "{}: {} {name}: name it sexton.{name}", file.display(), pair[0]);
                    statements += usize::from(name.starts_with("sexton."));
                }
            }
        }
        assert!(statements > 300, "only {statements} tables were found in statements");
    }
}
