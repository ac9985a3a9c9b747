//! The source of a private server: a root that the environment names, installed programs, a
//! container, or packages installed now.

use tokio::sync::Mutex;

use super::compose::Compose;
use super::error::ServersError;
use super::install;
use super::installation::Root;
use super::processes;
use super::programs::{PostgresPrograms, RabbitPrograms};

/// Packages are installed by one test at a time; the others find them installed.
static INSTALLING: Mutex<()> = Mutex::const_new(());

/// The source of a private server.
#[derive(Debug, Clone)]
pub(super) enum Source<P> {
    /// Programs of this machine.
    Programs(P),
    /// Containers.
    Compose(Compose),
}

/// The source of a private PostgreSQL here.
pub(super) async fn postgres() -> Result<Source<PostgresPrograms>, ServersError> {
    if let Some(root) = Root::named()? {
        let programs = PostgresPrograms::find_in(&root);
        return programs.map(Source::Programs).ok_or_else(|| root.lacks("PostgreSQL"));
    }
    choose("PostgreSQL", "postgresql", PostgresPrograms::find).await
}

/// The source of a private RabbitMQ here.
pub(super) async fn rabbit() -> Result<Source<RabbitPrograms>, ServersError> {
    if let Some(root) = Root::named()? {
        let programs = RabbitPrograms::find_in(&root);
        return programs.map(Source::Programs).ok_or_else(|| root.lacks("RabbitMQ"));
    }
    choose("RabbitMQ", "rabbitmq-server", RabbitPrograms::find).await
}

async fn choose<P>(
    missing: &'static str,
    package: &'static str,
    find: fn() -> Option<P>,
) -> Result<Source<P>, ServersError> {
    let find = || processes::can_be_found().then(find).flatten();
    if let Some(programs) = find() {
        return Ok(Source::Programs(programs));
    }
    if let Some(compose) = Compose::find().await {
        return Ok(Source::Compose(compose));
    }
    let _one_at_a_time = INSTALLING.lock().await;
    if let Some(programs) = find() {
        return Ok(Source::Programs(programs));
    }
    let nothing = |why_not_installed| ServersError::NothingToStart { missing, why_not_installed };
    install::package(package).await.map_err(nothing)?;
    find().map(Source::Programs).ok_or_else(|| {
        nothing(format!("the package {package} was installed and its programs were not found"))
    })
}
