//! Scratch databases: created beside the platform's for a measurement, and dropped after it.
//!
//! They hold nothing worth keeping, and change nothing outside. A killed program leaves its database behind; the name
//! says what it is and when it was created, and [`Server::leftovers`] finds it.

use std::str::FromStr as _;

use chrono::{DateTime, Utc};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use crate::StoreError;
use crate::connection::client_timeout::{WithTimeout, with_client_timeout};

/// Prefix of their names.
pub const NAME_PREFIX: &str = "sexton_bench_";
/// Maximum number of databases in one list.
const MAX_LISTED_DATABASES: i64 = 1_000;

/// Returns the name of a database created at this instant; `tag` distinguishes two of one second.
pub fn name(made_at: DateTime<Utc>, tag: u32) -> String {
    format!("{NAME_PREFIX}{}_{tag:08x}", made_at.timestamp())
}

/// Returns when the database of this name was created; `None`: it is no scratch database.
pub fn made_at(name: &str) -> Option<DateTime<Utc>> {
    let (seconds, tag) = name.strip_prefix(NAME_PREFIX)?.split_once('_')?;
    let tagged = tag.len() == 8 && tag.bytes().all(|byte| byte.is_ascii_hexdigit());
    DateTime::from_timestamp(seconds.parse().ok()?, 0).filter(|_| tagged)
}

/// A server for scratch databases, by the URL of an existing database.
#[derive(Clone, Debug)]
pub struct Server(String);

impl Server {
    /// Takes a URL such as `postgres://user:password@host:port/database`.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The URL of the database `name` on the same server, for the same user.
    ///
    /// # Errors
    ///
    /// [`StoreError::Refused`]: the server's URL cannot be read.
    pub fn url_of(&self, name: &str) -> Result<String, StoreError> {
        PgConnectOptions::from_str(&self.0).map_err(StoreError::Refused)?;
        // The query is kept as text, because a parsed URL loses options that only the server understands.
        let (base, query) = self.0.split_at(self.0.find('?').unwrap_or(self.0.len()));
        let authority = base.find("://").map_or(0, |at| at + "://".len());
        let end = base[authority..].find('/').map_or(base.len(), |slash| authority + slash);
        Ok(format!("{}/{name}{query}", &base[..end]))
    }

    /// Creates an empty database.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: also if the role may not create databases.
    pub async fn create(&self, name: &str) -> Result<(), StoreError> {
        self.run(&format!("CREATE DATABASE {}", check_name(name)?)).await
    }

    /// Drops a database, even with connected clients; a missing one is no error.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: it still exists, and the call can be repeated.
    pub async fn drop(&self, name: &str) -> Result<(), StoreError> {
        self.run(&format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", check_name(name)?)).await
    }

    /// Returns the scratch databases without connections that this role may drop, oldest first, up to a thousand.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub async fn leftovers(&self) -> Result<Vec<String>, StoreError> {
        let mut connection = self.connect().await?;
        let names: Vec<String> = sqlx::query_scalar(
            "-- scratch_leftovers
            SELECT datname::text FROM pg_database d WHERE starts_with(datname, $1)
              AND pg_has_role(current_user, datdba, 'USAGE')
              AND NOT EXISTS (SELECT FROM pg_stat_activity a WHERE a.datname = d.datname)
            ORDER BY datname LIMIT $2",
        )
        .bind(NAME_PREFIX)
        .bind(MAX_LISTED_DATABASES)
        .fetch_all(WithTimeout(&mut connection))
        .await?;
        Ok(names.into_iter().filter(|name| made_at(name).is_some()).collect())
    }

    async fn run(&self, statement: &str) -> Result<(), StoreError> {
        let mut connection = self.connect().await?;
        with_client_timeout(
            sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut connection),
        )
        .await?;
        // The work is done; a failed goodbye does no harm.
        let _ = with_client_timeout(connection.close()).await;
        Ok(())
    }

    async fn connect(&self) -> Result<PgConnection, StoreError> {
        let options = PgConnectOptions::from_str(&self.0).map_err(StoreError::Refused)?;
        Ok(with_client_timeout(options.connect()).await?)
    }
}

/// Names are inserted into statements unquoted, so only names made here are accepted.
fn check_name(name: &str) -> Result<&str, StoreError> {
    let inconsistent = || StoreError::Inconsistent {
        place: "the name of a scratch database",
        value: name.to_owned(),
    };
    made_at(name).map(|_| name).ok_or_else(inconsistent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_when_it_was_made_and_no_other_database_has_such_a_name() {
        let at = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let name = name(at, 0xab);
        assert_eq!(name, "sexton_bench_1800000000_000000ab");
        assert_eq!(made_at(&name), Some(at));
        for other in
            ["sexton", "sexton_bench_", "sexton_bench_1_x", "sexton_bench_1_0000000g; drop"]
        {
            assert_eq!(made_at(other), None, "{other}");
            assert!(check_name(other).is_err());
        }
    }

    #[test]
    fn the_url_keeps_everything_but_the_database() {
        let tail = "?sslmode=require&options=endpoint%3Dnear";
        let server = Server::new(format!("postgres://me:secret@db.example:6000/prod{tail}"));
        let url = server.url_of("sexton_bench_1_00000000").unwrap();
        let read = PgConnectOptions::from_str(&url).unwrap();
        assert_eq!(read.get_database(), Some("sexton_bench_1_00000000"));
        assert_eq!(
            (read.get_host(), read.get_port(), read.get_username()),
            ("db.example", 6000, "me")
        );
        assert!(url.contains("me:secret@") && url.ends_with(tail), "{url}");
        for short in ["postgres://db.example", "postgres://db.example/"] {
            let url = Server::new(short).url_of("sexton_bench_1_00000000").unwrap();
            assert_eq!(url, "postgres://db.example/sexton_bench_1_00000000");
        }
    }
}
