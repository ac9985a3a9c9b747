//! A private server in a container, where an engine for Docker Compose runs.
//!
//! One Compose project per server, named like its folder, with a loopback port chosen beforehand:
//! so the server comes back on the same port after a kill, like a server made of processes.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::process::Command;

use super::error::ServersError;
use super::folder::{Ending, Folder};
use super::installation::Installation;

/// The file that describes both servers' containers.
const FILE: &str = include_str!("../../../deploy/servers.compose.yml");

/// The limit of a command to the engine; the first `up` may pull an image.
const DEADLINE: Duration = Duration::from_mins(10);

/// The limit of a query to the engine.
const QUESTION_DEADLINE: Duration = Duration::from_secs(10);

/// The command of Docker Compose: the plugin, or the older separate program.
#[derive(Debug, Clone)]
pub(super) struct Compose {
    command: Vec<String>,
}

/// One server's container.
#[derive(Debug)]
pub(super) struct Project {
    pub(super) folder: Folder,
    command: Vec<String>,
    service: &'static str,
    variables: Vec<(&'static str, OsString)>,
}

impl Compose {
    /// Docker Compose, if an engine answers and Compose is installed.
    pub(super) async fn find() -> Option<Self> {
        let engine = ["docker", "version", "--format", "{{.Server.Version}}"];
        run(&engine.map(String::from), QUESTION_DEADLINE, &[]).await.ok()?;
        for compose in [vec!["docker", "compose"], vec!["docker-compose"]] {
            let command: Vec<_> = compose.into_iter().map(String::from).collect();
            let version = [command.as_slice(), &["version".into()]].concat();
            if run(&version, QUESTION_DEADLINE, &[]).await.is_ok() {
                return Some(Self { command });
            }
        }
        None
    }

    /// Prepares a project that runs `service` of the file; nothing is started yet. `variables` fill
    /// the places that the file leaves open, next to the folder's.
    pub(super) fn project(
        &self,
        service: &'static str,
        mut variables: Vec<(&'static str, OsString)>,
    ) -> Result<Project, ServersError> {
        // The guard has none of the variables, so it finds the container by its label and not through Compose.
        let script = "docker ps -aq --filter label=com.docker.compose.project={name} \
                      | xargs -r docker rm -fv; \
                      docker network rm {name}_default";
        let removal = ["sh", "-c", script].map(String::from);
        let kind = format!("{service}-container");
        let ending = Ending { signal: "KILL", removal: &removal };
        let folder = Folder::create(&kind, Installation::default(), ending)?;
        folder.write("compose.yml", FILE)?;
        variables.push(("SERVER_FOLDER", folder.file("").into()));
        let mut command = self.command.clone();
        let file = folder.file("compose.yml").display().to_string();
        command.extend(["-p".into(), folder.name().into(), "-f".into(), file]);
        Ok(Project { folder, command, service, variables })
    }
}

impl Project {
    /// Gives the container a file, readable by whichever user the image runs as.
    pub(super) fn write_shared(&self, name: &str, content: &str) -> Result<PathBuf, ServersError> {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.folder.write(name, content)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644))
            .map_err(ServersError::file("open up", &path))?;
        Ok(path)
    }

    /// Creates and starts the container.
    pub(super) async fn up(&self) -> Result<(), ServersError> {
        self.compose(&["up", "-d"]).await
    }

    /// Starts the stopped or killed container with its data, on its port.
    pub(super) async fn start(&self) -> Result<(), ServersError> {
        self.compose(&["start"]).await
    }

    /// Stops the container in good order.
    pub(super) async fn stop(&self) -> Result<(), ServersError> {
        self.compose(&["stop"]).await
    }

    /// Kills the container.
    pub(super) async fn kill(&self) -> Result<(), ServersError> {
        self.compose(&["kill"]).await
    }

    /// Freezes the container's processes.
    pub(super) async fn pause(&self) -> Result<(), ServersError> {
        self.compose(&["pause"]).await
    }

    /// Thaws the container's processes.
    pub(super) async fn resume(&self) -> Result<(), ServersError> {
        self.compose(&["unpause"]).await
    }

    /// Removes the container with its data and creates and starts it anew.
    pub(super) async fn renew(&self) -> Result<(), ServersError> {
        self.compose(&["rm", "-sfv"]).await?;
        self.up().await
    }

    /// The end of the container's log.
    pub(super) async fn log_tail(&self) -> String {
        let logs = [self.command.as_slice(), &["logs".into(), "--tail=20".into()]].concat();
        run(&logs, QUESTION_DEADLINE, &self.variables).await.unwrap_or_else(|e| e.to_string())
    }

    async fn compose(&self, verb: &[&str]) -> Result<(), ServersError> {
        let verb: Vec<_> = verb.iter().copied().chain([self.service]).map(String::from).collect();
        let command = [self.command.as_slice(), &verb].concat();
        run(&command, DEADLINE, &self.variables).await.map(drop)
    }
}

/// Runs a command to its end and returns what it printed.
async fn run(
    command: &[String],
    deadline: Duration,
    variables: &[(&'static str, OsString)],
) -> Result<String, ServersError> {
    let failed =
        |reason: String| ServersError::Program { action: format!("run {}", command[0]), reason };
    let child = Command::new(&command[0])
        .args(&command[1..])
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(deadline, child)
        .await
        .map_err(|_| failed(format!("no answer within {} s", deadline.as_secs())))?
        .map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
    }
}
