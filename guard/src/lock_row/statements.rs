//! The statements of a lock row, those of ShedLock on PostgreSQL with the database's clock.
//!
//! Each is one message there and one back, without parameters and without a prepared statement: so it is a transaction by
//! itself, also through a pooler that gives each transaction another session. Texts are quoted here.
//!
//! Times are `clock_timestamp()`, which goes on within a transaction, as timestamps of UTC without a zone.

use std::fmt::Write as _;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, Row as _};

use super::times::Times;

/// A text as a literal that stands in a statement, whatever `standard_conforming_strings` is.
pub(super) fn literal(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 3);
    quoted.push_str("E'");
    for character in text.chars() {
        match character {
            '\'' | '\\' => {
                let _ = write!(quoted, "{character}{character}");
            }
            other => quoted.push(other),
        }
    }
    quoted.push('\'');
    quoted
}

/// A span of time as an interval.
fn interval(span: Duration) -> String {
    format!("({} * interval '1 microsecond')", span.as_micros())
}

/// An instant as a timestamp of UTC. One that is far beyond every clock stays so in a form that PostgreSQL reads.
fn timestamp(at: DateTime<Utc>) -> String {
    let (first, last) = (DateTime::UNIX_EPOCH, DateTime::from_timestamp(LAST_S, 0).unwrap_or(at));
    format!("'{}'::timestamp", at.clamp(first, last).format("%Y-%m-%d %H:%M:%S%.6f"))
}

/// The end of the year 9999, in seconds of the Unix epoch.
const LAST_S: i64 = 253_402_300_799;

const NOW: &str = "t AS MATERIALIZED (SELECT timezone('utc', clock_timestamp()) AS now)";

/// What an attempt to take the row found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// It is this holder's now.
    Yes,
    /// It is locked, or was taken for this tick or a later one.
    No,
    /// No working clock names this tick now.
    WrongTick,
}

/// Takes the row if it is free, and inserts it if it is missing; with a tick only if it was last taken before that, so that
/// the row is taken once per tick.
///
/// Who does not get it only reads: a hundred instances do not wait for each other's locks of the row.
pub(super) fn lock(
    table: &str,
    name: &str,
    holder: &str,
    times: Times,
    tick: Option<DateTime<Utc>>,
) -> String {
    let (name, holder, at_most) = (literal(name), literal(holder), interval(times.at_most));
    // A tick that the clock has not quite reached counts as of its instant.
    let tick = tick.map_or_else(|| "NULL::timestamp".to_owned(), timestamp);
    format!(
        "WITH {NOW},
         g AS MATERIALIZED (
             SELECT t.now AS now, {tick} AS tick, greatest(t.now, {tick}) AS locked_at,
                    coalesce({tick} BETWEEN t.now - interval '1 day' AND t.now + interval '5 minutes', true) AS is_right
             FROM t),
         updated AS (
             UPDATE {table} l SET lock_until = g.now + {at_most}, locked_at = g.locked_at, locked_by = {holder}
             FROM g WHERE g.is_right AND l.name = {name} AND l.lock_until <= g.now
                      AND (g.tick IS NULL OR l.locked_at < g.tick) RETURNING 1),
         inserted AS (
             INSERT INTO {table} (name, lock_until, locked_at, locked_by)
             SELECT {name}, g.now + {at_most}, g.locked_at, {holder} FROM g
             WHERE g.is_right AND NOT EXISTS (SELECT FROM {table} l WHERE l.name = {name})
             ON CONFLICT (name) DO NOTHING RETURNING 1)
         SELECT CASE WHEN NOT g.is_right THEN -1
                     ELSE (SELECT count(*) FROM updated) + (SELECT count(*) FROM inserted) END AS rows
         FROM g"
    )
}

/// Prolongs the lock of a holder that still has it.
pub(super) fn extend(table: &str, name: &str, holder: &str, times: Times) -> String {
    let (name, holder, at_most) = (literal(name), literal(holder), interval(times.at_most));
    format!(
        "WITH {NOW},
         updated AS (
             UPDATE {table} l SET lock_until = t.now + {at_most} FROM t
             WHERE l.name = {name} AND l.locked_by = {holder} AND l.lock_until > t.now RETURNING 1)
         SELECT count(*) AS rows FROM updated"
    )
}

/// Releases the lock of a holder, when its `at_least` has passed.
pub(super) fn unlock(table: &str, name: &str, holder: &str, times: Times) -> String {
    let (name, holder, at_least) = (literal(name), literal(holder), interval(times.at_least));
    format!(
        "WITH {NOW},
         updated AS (
             UPDATE {table} l SET lock_until = greatest(t.now, l.locked_at + {at_least}) FROM t
             WHERE l.name = {name} AND l.locked_by = {holder} RETURNING 1)
         SELECT count(*) AS rows FROM updated"
    )
}

/// Runs [`lock`].
///
/// A future that is dropped leaves open whether it took the row.
pub(super) async fn take(
    connection: &mut PgConnection,
    statement: String,
) -> Result<Taken, sqlx::Error> {
    Ok(match rows(connection, statement).await? {
        -1 => Taken::WrongTick,
        0 => Taken::No,
        _ => Taken::Yes,
    })
}

/// Runs [`extend`] or [`unlock`]; whether it changed the row.
///
/// A future that is dropped leaves open whether it did.
pub(super) async fn run(pool: &PgPool, statement: String) -> Result<bool, sqlx::Error> {
    Ok(rows(pool, statement).await? > 0)
}

async fn rows<'c>(on: impl PgExecutor<'c>, statement: String) -> Result<i64, sqlx::Error> {
    sqlx::raw_sql(AssertSqlSafe(statement)).fetch_one(on).await?.try_get("rows")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_ends_its_literal() {
        assert_eq!(literal("plain"), "E'plain'");
        assert_eq!(literal("a'b"), "E'a''b'");
        assert_eq!(literal(r"\'; DROP TABLE x --"), r"E'\\''; DROP TABLE x --'");
        assert_eq!(literal("é\n"), "E'é\n'");
    }

    #[test]
    fn instants_are_timestamps_that_postgresql_reads() {
        let of = |at: DateTime<Utc>| timestamp(at);
        let at = DateTime::from_timestamp_micros(1_795_724_653_500_000).unwrap();
        assert_eq!(of(at), "'2026-11-26 20:24:13.500000'::timestamp");
        assert_eq!(of(DateTime::<Utc>::MAX_UTC), "'9999-12-31 23:59:59.000000'::timestamp");
        assert_eq!(of(DateTime::<Utc>::MIN_UTC), "'1970-01-01 00:00:00.000000'::timestamp");
    }

    #[test]
    fn spans_are_whole_microseconds() {
        assert_eq!(interval(Duration::from_millis(1_500)), "(1500000 * interval '1 microsecond')");
    }
}
