//! `sexton migrate`: creates or upgrades the schema, and sets up roles.

use std::future::pending;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use sexton_store::grants::{self, GrantError};
use sexton_store::roles::{DEFAULT_PREFIX, grant_roles};
use sexton_store::schema::MigrationSession;
use sexton_store::timeout::with_timeout;
use sexton_store::{StoreError, status};
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::session::Session;
use crate::show::line;

/// For all migrations, and the wait for another process's. Longer than the build of an index takes on any database
/// within the limits; the server rolls back a migration that is under way at the end.
const MIGRATE_TIMEOUT: Duration = Duration::from_hours(24);

/// Options of `migrate`.
#[derive(Debug, Args)]
pub struct Migrate {
    /// Also set up the platform's roles; with ROLE, let only that role run the programs
    ///
    /// The roles are PREFIX_owner (migrates), PREFIX_service (runs schedulers and workers), PREFIX_operator (acts with
    /// `sexton`), PREFIX_producer (enqueues) and PREFIX_viewer (reads). They cannot log in: make your log-in roles members.
    #[arg(long, value_name = "ROLE", num_args = 0..=1, default_missing_value = "")]
    grant: Option<String>,

    /// First part of the roles' names, where two platforms share a server
    #[arg(long, value_name = "PREFIX", default_value = DEFAULT_PREFIX, requires = "grant")]
    role_prefix: String,
}

/// Brings the schema up to this program's version, and lets a role use it. Several may do so at once.
///
/// # Errors
///
/// [`Failure::Schema`] when the database is ahead of this program; [`Failure::NotFound`] when there is no
/// such role.
pub async fn run(arguments: &Migrate, session: &Session) -> Result<(), Failure> {
    let store = session.direct_database().await?;
    let migrating = MigrationSession::begin(&store).await?;
    let server = migrating.session();
    let say = |text: &str| eprintln!("sexton: migrate: {}", line(text, 500));
    let applied = tokio::select! {
        applied = with_timeout(MIGRATE_TIMEOUT, migrating.run(&say)) => applied,
        signal = stop_signal() => {
            server.end().await;
            return Err(Failure::Failed(format!(
                "stopped by {signal}: what was applied whole stays, what was under way was taken back; run \
                 `sexton migrate` again, it goes on from there"
            )));
        }
    };
    let applied = match applied {
        Err(StoreError::Schema(why)) => {
            return Err(Failure::Schema(format!(
                "the database cannot be migrated by this program: {why}; use the version of \
                 `sexton` that the database was migrated with, or a newer one"
            )));
        }
        other => other?,
    };
    let granted = match arguments.grant.as_deref() {
        None => Vec::new(),
        Some("") => grant_roles(&store, &arguments.role_prefix).await.map_err(grant_failure)?,
        Some(role) => {
            grants::grant(&store, role).await.map_err(grant_failure)?;
            vec![role.to_owned()]
        }
    };
    let version = status::schema_version(&store).await?;
    if session.out.is_json() {
        let mut document = json!({"applied": applied, "schema_version": version});
        match arguments.grant.as_deref() {
            None => {}
            Some("") => document["granted"] = json!(granted),
            Some(role) => document["granted"] = json!(role),
        }
        return session.out.document(&document);
    }
    let version = version.map_or_else(|| "none".to_owned(), |version| version.to_string());
    match &granted[..] {
        [] => {}
        [role] => {
            session.out.print(format!("The role {} may run the programs.", line(role, 100)))?;
        }
        roles => {
            session.out.print(format!("The roles are set up: {}.", roles.join(", ")))?;
        }
    }
    session.out.print(match applied {
        0 => format!("The schema is up to date (version {version})."),
        1 => format!("1 migration was applied; the schema is at version {version}."),
        n => format!("{n} migrations were applied; the schema is at version {version}."),
    })
}

/// Waits for SIGTERM or SIGINT; returns its name.
async fn stop_signal() -> &'static str {
    let Ok(mut term) = signal(SignalKind::terminate()) else { return pending().await };
    let Ok(mut interrupt) = signal(SignalKind::interrupt()) else { return pending().await };
    tokio::select! {
        _ = term.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

fn grant_failure(error: GrantError) -> Failure {
    match error {
        error @ GrantError::Missing(_) => Failure::NotFound(error.to_string()),
        error @ GrantError::Prefix(_) => Failure::Usage(error.to_string()),
        error @ (GrantError::Owner(_)
        | GrantError::Member { .. }
        | GrantError::MayNotCreate { .. }
        | GrantError::NotOwner { .. }
        | GrantError::NoCreate { .. }) => Failure::Failed(error.to_string()),
        GrantError::Store(error) => error.into(),
    }
}
