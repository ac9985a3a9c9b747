//! A private PgBouncer in front of a PostgreSQL, for tests of a connection pooler's effects on sessions.

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use tokio::sync::Mutex;
use url::Url;

use super::error::ServersError;
use super::folder::{Ending, Folder};
use super::installation::Installation;
use super::instance::{Instance, Launch, Programs};
use super::programs::{User, in_path};
use super::{install, ports};

/// Held while the package is installed: tests beside one another need it at once.
static INSTALLING: Mutex<()> = Mutex::const_new(());

/// What a PgBouncer is set up to ignore so that programs which bring start-up options can connect at all.
const IGNORED: &str = "ignore_startup_parameters = extra_float_digits,options\n";

/// A PgBouncer on a free loopback port. Ended when this value is dropped.
#[derive(Debug)]
pub struct PgBouncer {
    url: String,
    _instance: Instance,
}

impl PgBouncer {
    /// Starts one in front of `database_url`, in `pool_mode` (`session` or `transaction`), which drops the start-up
    /// parameter `options` as many are set up to.
    ///
    /// # Errors
    ///
    /// [`ServersError::NoPgBouncer`] if it is missing and cannot be installed from here, and errors
    /// of the program's start.
    pub async fn start(database_url: &str, pool_mode: &str) -> Result<Self, ServersError> {
        Self::start_with(database_url, pool_mode, IGNORED).await
    }

    /// The same as its package sets it up: it refuses start-up parameters that it does not know.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub async fn start_strict(database_url: &str, pool_mode: &str) -> Result<Self, ServersError> {
        Self::start_with(database_url, pool_mode, "").await
    }

    async fn start_with(
        database_url: &str,
        pool_mode: &str,
        more: &str,
    ) -> Result<Self, ServersError> {
        let program = program().await?;
        let [port] = ports::free()?;
        let is_root = rustix::process::geteuid().is_root();
        let user = if is_root { User::find(Path::new("/etc/passwd")) } else { None };
        let folder = Folder::create(
            "pgbouncer",
            Installation::here(user),
            Ending { signal: "QUIT", removal: &[] },
        )?;
        let refused = |reason: String| ServersError::Program {
            action: "read the database's URL".to_owned(),
            reason,
        };
        let mut server = Url::parse(database_url).map_err(|error| refused(error.to_string()))?;
        let host = server.host_str().unwrap_or("127.0.0.1");
        let (name, to) = (server.username(), server.port().unwrap_or(5432));
        let password = server.password().unwrap_or_default();
        let settings = format!(
            "[databases]\n* = host={host} port={to} user={name} password={password}\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = {pool_mode}\ndefault_pool_size = 50\n{more}"
        );
        let file = folder.write("pgbouncer.ini", &settings)?;
        let serve = Launch {
            program,
            arguments: vec![file.into_os_string()],
            environment: Vec::new(),
            port: Some(port),
        };
        let programs = Programs { create: None, serve: vec![serve], stop_signal: Signal::QUIT };
        let mut instance = Instance::new(folder, programs);
        instance.start().await?;
        server.set_host(Some("127.0.0.1")).map_err(|error| refused(error.to_string()))?;
        server.set_port(Some(port)).map_err(|()| refused("it has no port".to_owned()))?;
        Ok(Self { url: server.into(), _instance: instance })
    }

    /// The same database's URL, through this pooler.
    pub fn url(&self) -> &str {
        &self.url
    }
}

async fn program() -> Result<PathBuf, ServersError> {
    let _alone = INSTALLING.lock().await;
    if let Some(found) = in_path("pgbouncer") {
        return Ok(found);
    }
    let why = match install::package("pgbouncer").await {
        Ok(()) => "its package does not bring it".to_owned(),
        Err(why) => why,
    };
    in_path("pgbouncer").ok_or(ServersError::NoPgBouncer { why })
}
