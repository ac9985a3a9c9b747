//! What makes an insert of many rows slow, suspended while a benchmark fills its database: secondary indexes, unique and foreign keys, and
//! the wakeups of monitors that no scheduler takes there. Afterwards the tables have them again, under the same names.

use anyhow::{Context as _, Result};
use sqlx::{AssertSqlSafe, PgConnection};

/// Statements that suspend, each with the one that restores. Primary keys stay: the index of failures needs its own.
const STATEMENTS: &str = "
    WITH filled (id) AS (VALUES ('sexton.executions'::regclass), ('sexton.failures'::regclass))
    SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', f.id, c.conname),
           format('ALTER TABLE %s ADD CONSTRAINT %I %s', f.id, c.conname, pg_get_constraintdef(c.oid))
    FROM filled f JOIN pg_constraint c ON c.conrelid = f.id WHERE c.contype IN ('u', 'f')
    UNION ALL
    SELECT format('DROP INDEX %s', i.indexrelid::regclass), pg_get_indexdef(i.indexrelid)
    FROM filled f JOIN pg_index i ON i.indrelid = f.id
    WHERE NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)
    UNION ALL
    SELECT format('ALTER TABLE %s DISABLE TRIGGER %I', f.id, t.tgname),
           format('ALTER TABLE %s ENABLE TRIGGER %I', f.id, t.tgname)
    FROM filled f JOIN pg_trigger t ON t.tgrelid = f.id WHERE t.tgname = 'wake_monitor'";

/// What is suspended; lost with the database, if the fill fails.
#[derive(Debug)]
pub(super) struct Suspended {
    restore: Vec<String>,
}

impl Suspended {
    /// Suspends them, over a connection whose statements have no limit.
    pub(super) async fn suspend(connection: &mut PgConnection) -> Result<Self> {
        let statements: Vec<(String, String)> =
            sqlx::query_as(STATEMENTS).fetch_all(&mut *connection).await?;
        let mut restore = Vec::with_capacity(statements.len());
        for (suspending, restoring) in statements {
            run(connection, suspending).await?;
            restore.push(restoring);
        }
        Ok(Self { restore })
    }

    /// Restores them, over the same connection.
    pub(super) async fn restore(self, connection: &mut PgConnection) -> Result<()> {
        for statement in self.restore {
            run(connection, statement).await?;
        }
        Ok(())
    }
}

async fn run(connection: &mut PgConnection, statement: String) -> Result<()> {
    let safe = AssertSqlSafe(statement.clone());
    sqlx::query(safe).execute(connection).await.context(statement)?;
    Ok(())
}
