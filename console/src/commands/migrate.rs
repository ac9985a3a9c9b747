//! `sexton migrate`.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use sexton_store::answer::within;
use sexton_store::grants::{self, GrantError};
use sexton_store::{StoreError, status};

use crate::failure::Failure;
use crate::session::Session;
use crate::show::line;

/// For all migrations. Longer than they take on a large database, each statement ended by the server
/// after 30 s; what is begun when the time is up is undone by the server.
const LIMIT: Duration = Duration::from_mins(10);

/// For whom.
#[derive(Debug, Args)]
pub struct Migrate {
    /// Afterwards let this role do what the programs do, and not change what the audit says
    #[arg(long, value_name = "ROLE")]
    grant: Option<String>,
}

/// Brings the schema up to this program's version, and lets a role use it. Several may do so at once.
///
/// # Errors
///
/// [`Failure::Schema`] when the database is ahead of this program; [`Failure::NotFound`] when there is no
/// such role.
pub async fn run(arguments: &Migrate, session: &Session) -> Result<(), Failure> {
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
    if let Some(role) = &arguments.grant {
        grants::grant(&store, role).await.map_err(not_granted)?;
    }
    let version = status::schema_version(&store).await?;
    if session.out.is_json() {
        let mut document = json!({"applied": applied, "schema_version": version});
        if let Some(role) = &arguments.grant {
            document["granted"] = json!(role);
        }
        return session.out.document(&document);
    }
    let version = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
    if let Some(role) = &arguments.grant {
        session.out.say(format!("The role {} may run the programs.", line(role, 100)))?;
    }
    session.out.say(match applied {
        0 => format!("The schema is up to date (version {version})."),
        1 => format!("1 migration was applied; the schema is at version {version}."),
        n => format!("{n} migrations were applied; the schema is at version {version}."),
    })
}

fn not_granted(error: GrantError) -> Failure {
    match error {
        error @ GrantError::Missing(_) => Failure::NotFound(error.to_string()),
        error @ (GrantError::Owner(_) | GrantError::Member { .. }) => {
            Failure::Failed(error.to_string())
        }
        GrantError::Store(error) => error.into(),
    }
}
