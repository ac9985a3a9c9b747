//! `sexton jobs lint`: likely mistakes in jobs, of files or of the database.

use clap::Args;

use crate::commands::cron::lint::{Policies, Sources, examine};
use crate::failure::Failure;
use crate::session::Session;

/// The jobs to examine, and options.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true).args(["files", "database"]))]
pub struct Lint {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    policies: Policies,
}

pub(super) async fn run(arguments: &Lint, session: &Session) -> Result<(), Failure> {
    examine(&arguments.sources, &arguments.policies, session).await
}
