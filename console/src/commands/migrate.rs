//! `sexton migrate`.

use std::time::Duration;

use serde_json::json;
use sexton_store::answer::within;
use sexton_store::{StoreError, status};

use crate::failure::Failure;
use crate::session::Session;

/// For all migrations. Longer than they take on a large database, each statement ended by the server
/// after 30 s; what is begun when the time is up is undone by the server.
const LIMIT: Duration = Duration::from_mins(10);

/// Brings the schema up to this program's version. Several may do so at once.
///
/// # Errors
///
/// [`Failure::Schema`] when the database is ahead of this program.
pub async fn run(session: &Session) -> Result<(), Failure> {
    let store = session.database().await?;
    let applied = match within(LIMIT, store.migrate()).await {
        Err(StoreError::Schema(why)) => {
            return Err(Failure::Schema(format!(
                "the database cannot be migrated by this program: {why}; use the version of \
                 `sexton` that the database was migrated with, or a newer one"
            )));
        }
        other => other?,
    };
    let version = status::schema_version(&store).await?;
    if session.out.is_json() {
        return session.out.document(&json!({"applied": applied, "schema_version": version}));
    }
    let version = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
    session.out.say(match applied {
        0 => format!("The schema is up to date (version {version})."),
        1 => format!("1 migration was applied; the schema is at version {version}."),
        n => format!("{n} migrations were applied; the schema is at version {version}."),
    })
}
