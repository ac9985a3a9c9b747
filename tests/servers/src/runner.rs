//! The two kinds of private servers, processes or a container, with the same methods for both.
//!
//! Knows neither PostgreSQL nor RabbitMQ: the caller provides the connection test.

use std::time::Duration;

use rustix::process::Signal;

use super::compose::Project;
use super::error::ServersError;
use super::instance::Instance;
use super::ready;

/// A private server of either kind.
#[derive(Debug)]
pub(super) enum Runner {
    Programs(Instance),
    Container(Project),
}

impl Runner {
    /// Creates the server's empty data.
    pub(super) async fn create(&self) -> Result<(), ServersError> {
        match self {
            Self::Programs(instance) => instance.create().await,
            Self::Container(project) => project.up().await,
        }
    }

    /// Starts the server that was created or stopped and waits until `connect` succeeds.
    pub(super) async fn start(
        &mut self,
        server: &'static str,
        deadline: Duration,
        connect: impl AsyncFn() -> Result<(), String>,
    ) -> Result<(), ServersError> {
        let outcome = match self {
            Self::Programs(instance) => {
                instance.start().await?;
                ready::until(deadline, connect, || instance.how_it_ended()).await
            }
            Self::Container(project) => {
                project.start().await?;
                ready::until(deadline, connect, || None).await
            }
        };
        let Err(reason) = outcome else { return Ok(()) };
        let log_tail = match self {
            Self::Programs(instance) => instance.folder.log_tail(),
            Self::Container(project) => project.log_tail().await,
        };
        Err(ServersError::NotReady { server, reason, log_tail })
    }

    /// Stops the server in good order.
    pub(super) async fn stop(&mut self) -> Result<(), ServersError> {
        match self {
            Self::Programs(instance) => instance.stop().await,
            Self::Container(project) => project.stop().await,
        }
    }

    /// SIGKILLs every process of the server.
    pub(super) async fn kill(&mut self) -> Result<(), ServersError> {
        match self {
            Self::Programs(instance) => instance.kill().await,
            Self::Container(project) => project.kill().await,
        }
    }

    /// Freezes every process of the server.
    pub(super) async fn pause(&self) -> Result<(), ServersError> {
        match self {
            Self::Programs(instance) => {
                instance.signal(Signal::STOP);
                Ok(())
            }
            Self::Container(project) => project.pause().await,
        }
    }

    /// Thaws every process of the server.
    pub(super) async fn resume(&self) -> Result<(), ServersError> {
        match self {
            Self::Programs(instance) => {
                instance.signal(Signal::CONT);
                Ok(())
            }
            Self::Container(project) => project.resume().await,
        }
    }

    /// Kills the server, deletes its data, and creates it empty; it may or may not run then.
    pub(super) async fn renew(&mut self) -> Result<(), ServersError> {
        match self {
            Self::Programs(instance) => instance.renew().await,
            Self::Container(project) => project.renew().await,
        }
    }

    /// Keeps a copy of the data of a server that does not run.
    pub(super) fn back_up(&self) -> Result<(), ServersError> {
        match self {
            Self::Programs(instance) => instance.back_up(),
            Self::Container(_) => Err(no_backup()),
        }
    }

    /// Kills the server, and puts the copy in the place of its data; it does not run then.
    pub(super) async fn restore(&mut self) -> Result<(), ServersError> {
        match self {
            Self::Programs(instance) => instance.restore().await,
            Self::Container(_) => Err(no_backup()),
        }
    }

    /// The ids of the server's processes on this machine: none for a container.
    pub(super) fn process_ids(&self) -> Vec<i32> {
        match self {
            Self::Programs(instance) => instance.process_ids(),
            Self::Container(_) => Vec::new(),
        }
    }

    /// Ends the server for good, deletes its data, and waits for both.
    pub(super) async fn end(self) -> Result<(), ServersError> {
        match self {
            Self::Programs(instance) => instance.folder.end().await,
            Self::Container(project) => project.folder.end().await,
        }
    }
}

fn no_backup() -> ServersError {
    ServersError::Program {
        action: "back up a server".to_owned(),
        reason: "this needs installed programs, and the server is a container".to_owned(),
    }
}
